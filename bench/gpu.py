# SPDX-License-Identifier: BSD-3-Clause
"""The recovery of training on a GPU, and on the CPUs of the machine that has it."""

import measure
import recovery

FIRST = "cuda:0"
# Kills: of torchrun, Muster, Muster with standby workers.
ON_A_GPU, ON_CPUS = (3, 3, 10), (2, 2, 5)


class Bench(recovery.Bench):
    def one_worker(self):
        name = "1 DDP worker on a GPU (NCCL), killed: first step of the new worker"
        yield from self.kills(name, "", 1, 1, ON_A_GPU, device=FIRST, backend="nccl")

    def four_workers(self):
        name = "the same machine, 4 DDP workers on its CPUs (gloo), one killed: first step of the last new worker"
        yield from self.kills(name, "median at most 120 ms, worst 250 ms", 1, 4, ON_CPUS)

    PARTS = (one_worker, four_workers)


def measure_all(launchers, quick):
    if measure.describe_gpu() is None:
        print("  not measured: training on a GPU needs one of NVIDIA's")
        return []
    if measure.peer_program("python3") is None:
        print("  not measured: training on a GPU needs PyTorch (make peers)")
        return []
    return recovery.measure_all(launchers, quick, Bench)

# SPDX-License-Identifier: BSD-3-Clause
"""The same recoveries as in part `recovery`, of training on a GPU, and of training on the CPUs of the machine that has it."""

import measure
import recovery

FIRST = "cuda:0"  # all workers share it
COUNTS = (4, 4, 10)  # kills: torchrun, muster, muster with standby workers


class Bench(recovery.Bench):
    def one_worker(self):
        name = "1 DDP worker on a GPU (NCCL), killed: first step of the new worker"
        yield from self.kills(name, "", 1, 1, COUNTS, device=FIRST, backend="nccl")

    def four_workers_on_one_gpu(self):
        name = "4 DDP workers on one GPU (gloo), one killed: first step of the last new worker"
        yield from self.kills(name, "", 1, 4, COUNTS, device=FIRST)

    PARTS = (one_worker, four_workers_on_one_gpu, recovery.Bench.four_workers, recovery.Bench.two_nodes, recovery.Bench.joining)


def measure_all(launchers, quick):
    if measure.describe_gpu() is None:
        print("  not measured: training on a GPU needs one of NVIDIA's")
        return []
    if measure.peer_program("python3") is None:
        print("  not measured: training on a GPU needs PyTorch (make peers)")
        return []
    return recovery.measure_all(launchers, quick, Bench)

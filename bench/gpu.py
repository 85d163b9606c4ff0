# SPDX-License-Identifier: BSD-3-Clause
"""The recovery of training on a GPU."""

import measure
import recovery

FIRST = "cuda:0"
KILLS = (3, 3, 10)  # of torchrun, Muster, Muster with standby workers


class Bench(recovery.Bench):
    def one_worker(self):
        name = "1 DDP worker on a GPU (NCCL), killed: first step of the new worker"
        yield from self.kills(name, "", 1, 1, KILLS, device=FIRST, backend="nccl")

    PARTS = (one_worker,)


def measure_all(launchers, quick):
    if measure.describe_gpu() is None:
        print("  not measured: training on a GPU needs one of NVIDIA's")
        return []
    return recovery.measure_all(launchers, quick, Bench)

# SPDX-License-Identifier: BSD-3-Clause
"""A worker that holds PyTorch's own countdown timers: three quick steps, then, on rank 1 of the first
attempt, one that never ends."""

import os
import sys
import time

import torch.distributed as dist
import torch.distributed.elastic.timer as timer

timer.configure(timer.FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
for _ in range(3):
    with timer.expires(after=60):
        dist.barrier()
if rank == 1 and attempt == 0:
    with timer.expires(after=float(sys.argv[1]), scope="the step that hangs"):
        time.sleep(600)
with timer.expires(after=60, scope="the last barrier"):
    dist.barrier()
print(f"rank {rank} done in attempt {attempt}", flush=True)

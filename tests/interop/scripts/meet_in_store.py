# SPDX-License-Identifier: BSD-3-Clause
"""A worker that meets the others of its world in the workers' store by PyTorch's own client, as
init_process_group does; then says so in the file of its rank."""

import datetime
import os

import torch.distributed as dist

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
store, _, _ = next(dist.rendezvous("env://", timeout=datetime.timedelta(seconds=60)))
store.set(f"here/{rank}", str(rank))
store.wait([f"here/{other}" for other in range(size)], datetime.timedelta(seconds=60))
with open(f"met.{rank}.new", "w", encoding="ascii") as met:
    met.write(os.environ["MASTER_ADDR"] + ":" + os.environ["MASTER_PORT"])
os.rename(f"met.{rank}.new", f"met.{rank}")
while not os.path.exists("go"):
    store.wait(["here/0"])

# SPDX-License-Identifier: BSD-3-Clause
"""What workers tell each other by their store: barrier, synchronize and get_all of utils.store.
    muster run --standalone --nproc-per-node 3 exchange.py"""

import os

from muster.store import PrefixStore, TCPStore
from muster.store_utils import barrier, get_all, synchronize

rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
store = PrefixStore("mine", TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
shares = synchronize(store, str(rank + 1).encode(), rank, world_size, "shares")
store.set(f"square{rank}", str((rank + 1) ** 2).encode())
squares = get_all(store, rank, "square", world_size)
barrier(store, world_size, "done")
print(f"{rank}: {sum(map(int, shares))} and {sum(map(int, squares))}\n", end="")

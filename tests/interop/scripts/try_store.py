# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's client at a store, as a stranger's, which tries for so many seconds: says whether it is served."""

import datetime
import sys

import torch.distributed as dist

try:
    patience = datetime.timedelta(seconds=int(sys.argv[3]))
    store = dist.TCPStore(sys.argv[1], int(sys.argv[2]), is_master=False, timeout=patience, use_libuv=False)
    store.set("stranger", "was here")
    print(store.get("stranger").decode())
except dist.DistNetworkError:
    print("not served")

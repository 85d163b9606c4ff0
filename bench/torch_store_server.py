#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own TCPStore server, for the bench: prints "PORT <n>", serves until its stdin ends."""

import datetime
import sys

from torch.distributed import TCPStore

options = dict(is_master=True, timeout=datetime.timedelta(seconds=30), wait_for_workers=False)
try:
    store = TCPStore("localhost", 0, **options)
except RuntimeError:  # a build without libuv refuses the default backend
    store = TCPStore("localhost", 0, use_libuv=False, **options)
print("PORT", store.port, flush=True)
sys.stdin.read()

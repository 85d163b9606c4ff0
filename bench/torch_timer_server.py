#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own file timer server, for the bench: prints "FILE <path>", serves until its stdin ends. It
sends itself the signal it ends a process with, so clients are to ask for SIGUSR1."""

import logging
import signal
import sys

from torch.distributed.elastic.timer import FileTimerServer

logging.disable(logging.CRITICAL)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
server = FileTimerServer(sys.argv[1], "bench", max_interval=0.1)
server.start()
print("FILE", sys.argv[1], flush=True)
sys.stdin.read()
server.stop()

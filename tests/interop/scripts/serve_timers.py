# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own file timer server at the given path, until its standard input ends. It sends itself the
signal it ends a process with, so clients are to ask for SIGUSR1."""

import signal
import sys

from torch.distributed.elastic.timer import FileTimerServer

signal.signal(signal.SIGUSR1, signal.SIG_IGN)
server = FileTimerServer(sys.argv[1], "timers", max_interval=0.1)
server.start()
print("serving", flush=True)
sys.stdin.read()
server.stop()

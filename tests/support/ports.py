# SPDX-License-Identifier: BSD-3-Clause
"""Ports that nodes are told before anybody has bound them."""

import os
import random
import socket

# Below the range from which the kernel serves others.
FIRST, LAST = 10000, 32000

# Tests run in several processes at once. Each draws from ports of its own.
PROCESSES = 32
PROCESS = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % PROCESSES

HANDED_OUT = set()


def free_port():
    """A port that is free now, and that this process has not handed out before: of two jobs that meet at one port,
    the nodes become one job."""
    while True:
        port = random.randrange(FIRST + PROCESS, LAST, PROCESSES)
        if port in HANDED_OUT:
            continue
        with socket.socket(socket.AF_INET6) as listener:
            try:
                listener.bind(("::", port))
            except OSError:
                continue
        HANDED_OUT.add(port)
        return port

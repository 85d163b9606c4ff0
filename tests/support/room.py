# SPDX-License-Identifier: BSD-3-Clause
"""Most tests mainly wait, so more of them are played beside each other than there are processors. The last MORE_TESTS of
pytest's workers begin a test only while the machine has room for it."""

import os
import re
import time

PATIENCE = 600  # seconds; then it begins all the same
LOOK = 0.2  # seconds
WANTED = 0.3  # of all processors' time


def is_one_more():
    """Whether this worker, which xdist names "gw3", is among them."""
    number = re.fullmatch(r"gw(\d+)", os.environ.get("PYTEST_XDIST_WORKER", ""))
    plain = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1)) - int(os.environ.get("MORE_TESTS", 0))
    return number is not None and int(number[1]) >= plain


def processor_ticks():
    """(idle ones, all)"""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def wait_for_room():
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        idle, ticks = processor_ticks()
        time.sleep(LOOK)
        idle_later, ticks_later = processor_ticks()
        if idle_later - idle >= WANTED * (ticks_later - ticks):
            return

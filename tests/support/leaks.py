# SPDX-License-Identifier: BSD-3-Clause
"""Scratch directories, and the processes that still carry their mark."""

import os
import pathlib
import shutil
import signal
import tempfile
import time

GRACE = 1.0  # a killed session needs a moment to vanish from /proc


def environment_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def command_of(pid):
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "gone"
    return b" ".join(words).decode(errors="replace").strip()


def processes_with(mark):
    """Pids of living processes, this one excepted, whose environment holds the mark."""
    wanted, own = str(mark).encode(), os.getpid()
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if pid != own and wanted in environment_of(pid)]


def wait_until_gone(mark, grace=GRACE):
    """Waits for the processes carrying the mark to end; returns those that did not."""
    deadline = time.monotonic() + grace
    while True:
        left = processes_with(mark)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.01)


class ScratchDirectory:
    """A directory whose path marks every process started for it (see Muster.environment)."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="muster-test-", dir="/tmp"))

    def end(self):
        """Removes it; kills and names the processes that should have been gone."""
        leaked = []
        for pid in wait_until_gone(self.path):
            leaked.append(f"{pid} ({command_of(pid)})")
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.path, ignore_errors=True)
        return leaked

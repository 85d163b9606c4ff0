# SPDX-License-Identifier: BSD-3-Clause
"""Cgroups of a test's own, of version 1 or 2: with a limit on memory, or on processes."""

import contextlib
import os
import pathlib
import time

import pytest

# By controller: the files of version 2 and of version 1, for the limit and for what is in use.
FILES = {
    "memory": (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")),
    "pids": (("pids.max", "pids.current"), ("pids.max", "pids.current")),
}


def places(controller):
    """(directory, files) of the cgroups of this process, below which it may make one."""
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            yield pathlib.Path(f"/sys/fs/cgroup/{controller}{path}"), FILES[controller][1]
        elif not controllers:
            yield pathlib.Path("/sys/fs/cgroup" + path), FILES[controller][0]


class Cgroup:
    def __init__(self, path, files):
        self.path, self.limit_file, self.usage_file = path, *(path / file for file in files)

    def limit(self, amount):
        """Bytes, or processes and threads. What is in use already may be more than that."""
        self.limit_file.write_text(str(amount))

    def usage(self):
        return int(self.usage_file.read_text())

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def entrance(self):
        """What a program is started with, to run in it."""
        return ["sh", "-ec", 'echo $$ >"$0/cgroup.procs"; exec "$@"', str(self.path)]


@contextlib.contextmanager
def cgroup(controller, limit=None):
    for parent, files in places(controller):
        made = Cgroup(parent / f"muster-test-{os.getpid()}", files)
        try:
            made.path.mkdir()
        except OSError:
            continue
        try:
            if made.limit_file.exists():
                if limit is not None:
                    made.limit(limit)
                yield made
                return
        finally:
            for process in (made.path / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    (parent / "cgroup.procs").write_text(process)
            remove(made.path)
    pytest.skip(f"no cgroup with a limit on {controller} can be made here")


def remove(path):
    """The last process of it may still be ending."""
    for _ in range(1000):
        try:
            path.rmdir()
            return
        except OSError:
            time.sleep(0.01)
    path.rmdir()

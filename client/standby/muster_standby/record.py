# SPDX-License-Identifier: BSD-3-Clause
"""A worker's record: a hello, and from then on a line for each import, before the module runs. Modules that import each
other can only be imported again in the order in which they began. When the program has changed its environment nothing
more is written, since what it imports then may depend on that. When a library has, there is a line =NUMBER: what comes
behind may depend on all that comes before."""
import os
import sys

from muster_standby import borrow, is_of_round, move_up, own_code, pass_for_importlib, program, watch_imports
from muster_standby.notice import prepare

RECORD_MAXIMUM = 1 << 20


def begin(told):
    """In a worker that was started cold."""

    def after():
        try:
            if os.readlink("/proc/self/fd/" + told["fd"]).startswith("/memfd:"):
                record(int(told["fd"]), told)
        except Exception:
            pass  # A wrapper did not pass the descriptors on, for example. The agent hears no hello.

    return after


def record(fd, told):
    pid, getpid, write, fstat = os.getpid(), os.getpid, os.write, os.fstat
    fd, left, who_changed = move_up(fd), RECORD_MAXIMUM, watch_environment()
    file, take_mutex = fstat(fd)[1:3], prepare(fd)

    @pass_for_importlib
    def found(name, origin):
        nonlocal left
        try:
            changed = who_changed()
            left = 0 if changed == "by the program" else left
            mark = "=%d\t\n" % left if changed else ""  # a line of its own each time
            line = ("%s%s\t%s\n" % (mark, name, origin)).encode("utf-8", "surrogateescape")
            # Not in a child, and not into what the program opens after it has closed all descriptors.
            if getpid() == pid and fstat(fd)[1:3] == file:
                take_mutex()
                if len(line) <= left:
                    left -= write(fd, line)
        except (OSError, ValueError, RuntimeError):
            left = 0

    if "signal" in told:  # The stacks of all threads go to the end of the record when the agent sends this signal.
        borrow("faulthandler").register(int(told["signal"]), file=fd, all_threads=True, chain=False)
    write(fd, b"hello 1 %d\n" % pid)
    watch_imports(found)
    take_mutex()


def watch_environment():
    """A function that tells who has changed the environment since the last time, not counting the names of the round:
    a library while it was imported, or else the program. Nobody: an empty text."""
    environ, is_own, getframe = os.environ._data, own_code(program()[0]), sys._getframe
    known = dict(environ)

    def is_library(frame):
        """Whether this is the code of a library's module that is being imported."""
        code = frame.f_code
        is_module = code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__"
        return is_module and code.co_filename.startswith(("/", "<frozen")) and not is_own(code.co_filename)

    @pass_for_importlib
    def who_changed():
        if environ == known:
            return ""
        frame = getframe(1)
        while frame is not None and not is_library(frame):
            frame = frame.f_back
        names = {os.fsdecode(pair[0]) for pair in environ.items() ^ known.items()}
        known.clear()
        known.update(environ)
        who = "by the program" if frame is None else "by a library"
        return "" if all(map(is_of_round, names)) else who

    return who_changed

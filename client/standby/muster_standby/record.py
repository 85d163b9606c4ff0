# SPDX-License-Identifier: BSD-3-Clause
"""A worker's record: a hello, and from then on a line for each import, before the module runs. Modules that import each
other can only be imported again in the order in which they began. When the program has changed its environment nothing
more is written, since what it imports then may depend on that. When a library has, there is a line
=NUMBER VARIABLE<tab>VALUE, empty where it is unset now, and ? for anything but a short word (it may be a secret). Of a
variable whose name is one of secrets there is only =NUMBER ?<tab>?. With -m there is a line __main__ where the package of
that module has been imported, and the module itself begins."""
import os
import sys

from muster_standby import borrow, is_of_round, move_up, own_code, pass_for_importlib, program, watch_imports
from muster_standby.notice import prepare
from muster_standby.steps import count_steps

# Parts of the names of what may be a secret, however short. The agent has the same ones (core/standby/standby_preparation.c).
SECRETS = ("AUTH", "COOKIE", "CRED", "KEY", "OTP", "PASS", "PHRASE", "PIN", "PRIVATE", "PWD", "SALT", "SECRET", "TOKEN")


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
    fd, left, changes, argv = move_up(fd), 1 << 20, watch_environment(), sys.argv
    look_for_optimizers = count_steps(fd) if os.environ.get("MUSTER_PROGRESS") else None
    file, take_mutex, mains = fstat(fd)[1:3], prepare(fd), ["__main__\t\n"] if argv[:1] == ["-m"] else []

    @pass_for_importlib
    def found(name, origin):
        nonlocal left
        if look_for_optimizers:
            look_for_optimizers()
        try:
            # The program's line counts, whatever it has changed.
            before = "" if name.startswith("__line__.") else changes() + (mains.pop() if mains and argv[:1] != ["-m"] else "")
            line = (before + "%s\t%s\n" % (name, origin)).encode("utf-8", "surrogateescape")
            # Not in a child, and not into what the program opens after it has closed all descriptors.
            if getpid() == pid and fstat(fd)[1:3] == file:
                take_mutex()
                if len(line) <= left or name.startswith("__line__."):
                    left -= write(fd, line)
        except (OSError, ValueError, RuntimeError):
            left = 0

    if "signal" in told:  # The stacks of all threads go to the end of the record when the agent sends this signal.
        borrow("faulthandler").register(int(told["signal"]), file=fd, all_threads=True, chain=False)
    write(fd, b"hello 1 %d\n" % pid)
    watch_imports(found)
    take_mutex()
    if look_for_optimizers:
        look_for_optimizers()


def watch_environment():
    """A function that returns the lines for what libraries have changed in the environment while they were imported,
    since the last time, not counting the names of the round. It raises ValueError when the program has changed it,
    or a name cannot be told."""
    environ, is_own, getframe = os.environ._data, own_code(program()[0]), sys._getframe
    known, numbers = [dict(environ)], iter(range(1, 1 << 20))

    def is_library(frame):
        """Whether this is the code of a library's module that is being imported."""
        file = frame.f_code.co_filename if frame.f_code.co_name == "<module>" else ""
        return file.startswith(("/", "<frozen")) and not is_own(file) and frame.f_globals.get("__name__") != "__main__"

    def line(name):
        value = environ.get(os.fsencode(name), b"")
        told = name, value.decode() if (value + b"0").isalnum() and len(value) < 6 else "?"
        return "=%d %s\t%s\n" % (next(numbers), *("??" if any(part in name.upper() for part in SECRETS) else told))

    @pass_for_importlib
    def changes():
        if environ == known[0]:
            return ""
        frame, changed = getframe(1), {os.fsdecode(pair[0]) for pair in environ.items() ^ known[0].items()}
        known[0] = dict(environ)
        while frame is not None and not is_library(frame):
            frame = frame.f_back
        changed = [name for name in sorted(changed) if not is_of_round(name)]
        if changed and (frame is None or len("".join(changed)) > 200 or not "".join(changed).isprintable()):
            raise ValueError
        return "".join(map(line, changed))

    return changes

# SPDX-License-Identifier: BSD-3-Clause
"""A standby worker of a program that calls muster.standby.wait(): it runs the program itself, as __main__, and waits in
that call. Nothing is imported ahead by others' experience there, and nothing is refused: what is above the line is the
user's. Only what a worker finds in its environment and a standby worker does not may not be read.

It does so only where workers have come to the line of this very program, which they have written down as a name with a
digest of the program's file (python/muster/standby.py). Another program might never call wait(), and run to its end here."""
import os
import sys

from muster_standby import borrow, is_of_round, own_code, program, watch_imports
from muster_standby.files import Files
from muster_standby.gate import CAPTURED_MAXIMUM, Dirty, Unsuited, change_streams, put_in_order
from muster_standby.listed import LINE
from muster_standby.pace import Pace
from muster_standby.parent import show_environment
from muster_standby.reads import EARLY, NAMES
from muster_standby.record import record
from muster_standby.stand_in import StandIn


def line_of(listed):
    """(file of the program, name of its line), (None, None) where workers have come to none."""
    known = {name for name, origin in listed if name.startswith(LINE) and origin is not None}
    file = main_file() if known else None
    try:
        with open(file or "", "rb") as text:
            name = LINE + sys.modules["_imp"].source_hash(0, text.read()).hex()
    except OSError:
        return None, None
    return (file, name) if name in known else (None, None)


def main_file():
    """Where the program will be found when it is run; None where it has no file."""
    if sys.argv[0] == "-c":  # --run-path
        return sys.argv[1] if len(sys.argv) > 1 else None
    stand_in = StandIn()
    stand_in.begin_path()
    stand_in.begin_main()
    file = vars(sys.modules["__main__"]).get("__file__")
    stand_in.end()
    return file


class Watched(dict):
    """What os.environ is made of above the line."""

    __slots__ = ("lacks",)

    def __missing__(self, name):
        self.lacks(name)
        raise KeyError(name)

    def __delitem__(self, name):
        if name not in self:
            self.lacks(name)
        dict.__delitem__(self, name)


class Line:
    def __init__(self, gate, told, file, name, guarded):
        self.gate, self.told, self.name, self.guarded, self.pid = gate, told, name, guarded, os.getpid()
        self.directory, self.is_own, self.streams = os.getcwdb(), own_code(program()[0]), list(map(identity, range(3)))
        self.pace, self.files = Pace(0 if told.get("alone") == "1" else float(told.get("rest", "0"))), Files()
        self.files.add(os.path.abspath(file))
        self.plain = os.environ._data
        self.there = set(self.plain)
        watched = Watched(self.plain)
        watched.lacks = self.lacks
        put(watched)
        self.stop = watch_imports(self.found)
        borrow("atexit").register(self.end)

    def found(self, name, origin):
        """A module is imported, or the program has come to its line."""
        if os.getpid() != self.pid:
            return False
        if name.startswith(LINE):
            return self.guarded(self.wait)
        self.pace.step()
        self.files.add(origin)
        return False

    def lacks(self, name):
        name = os.fsdecode(name)
        # What is told of a failure goes to a file of the attempt, and the failure is told by other means here.
        if name in NAMES and not (name in EARLY and sys.exc_info()[0] is not None):
            try:
                self.gate.leave_out("%s is read in %s, above muster.standby.wait()" % (name, self.reader()), self.name)
            except OSError:
                if os.getpid() != self.pid:
                    return  # A child from above the line, whose parent is a worker by now.
            os._exit(77)

    def reader(self):
        """Where the code is that reads, and where the user's own is that has called it."""
        frame, reader = sys._getframe(1), None
        while frame is not None:
            place, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
            if module.partition(".")[0] != "muster_standby" and module not in ("os", "_collections_abc", "collections.abc"):
                here = "%s, line %d" % (place, frame.f_lineno)
                reader = reader or here
                if module == "__main__" or not place.startswith("<") and self.is_own(os.path.abspath(place)):
                    return reader if reader == here else "%s (which %s calls)" % (reader, here)
            frame = frame.f_back
        return reader

    def end(self):
        """The process exits, and has not come to the line."""
        error = getattr(sys, "last_value", None)
        if os.getpid() != self.pid:
            return
        if error is not None:
            try:
                self.gate.refuse(borrow("traceback").format_exception_only(type(error), error)[-1].strip(), b"E")
            finally:
                os._exit(77)
        self.guarded(self.never)

    def never(self):
        raise Dirty("the program has come to its end without a call of muster.standby.wait()")

    def wait(self):
        """The program has called muster.standby.wait(). Returns True when this is a worker."""
        self.stop()
        borrow("atexit").unregister(self.end)
        gc, ctypes = borrow("gc"), sys.modules.get("ctypes")
        if gc.isenabled():
            gc.collect()  # What is due now would delay the program's next lines.
        self.files.watch(ctypes and ctypes.CDLL(None))
        self.say_ready()
        directory, names, fds = self.gate.hear_go(self.say_ready)
        changed = self.files.changed()
        if changed:
            raise Unsuited("%s has changed since it was imported" % changed)
        if directory and directory != self.directory:
            raise Dirty("the agent is in %s now" % os.fsdecode(directory))
        self.take_environment(names)
        own = [fd for fd in range(3) if identity(fd) == self.streams[fd]]
        for fd in own:
            trim(fd)
        change_streams(fds, own)
        record(fds[3], self.told)
        self.gate.say(b"R")
        self.gate.socket.close()
        return True

    def say_ready(self, *_):
        self.gate.say_ready(b"A", sum(map(len, self.files.stamps.values())))

    def take_environment(self, names):
        """What the program has changed above the line stays, as in a worker."""
        self.plain.clear()
        self.plain.update(os.environ._data)
        put(self.plain)
        for name, value in names:
            if is_of_round(name) and os.fsencode(name) not in self.there and name not in os.environ:
                os.environ[name] = value
        put_in_order(self.plain, [os.fsencode(name) for name, _ in names])
        if "ctypes" in sys.modules:  # It may keep a file open.
            show_environment(names, self.told)


def put(environment):
    os.environ._data = os.environb._data = sys.modules["posix"].environ = environment


def identity(fd):
    try:
        return os.fstat(fd)[1:3]
    except OSError:
        return None


def trim(fd):
    """Of what was printed above the line only the end is kept, where it is much."""
    size = os.fstat(fd).st_size
    if fd > 0 and size > CAPTURED_MAXIMUM:
        kept = os.pread(fd, CAPTURED_MAXIMUM - 100, size - CAPTURED_MAXIMUM + 100)
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, b"[%d bytes that were printed before this are left out]\n" % (size - len(kept)) + kept)

# SPDX-License-Identifier: BSD-3-Clause
"""What a standby worker imports before the gate, and what it sees of itself meanwhile."""
import os
import sys

from muster_standby import borrow, is_of_round, own_code, program, watch_imports
from muster_standby.gate import CAPTURED_MAXIMUM

DEVICES = ("socket:", "/dev/nvidia", "/dev/kfd", "/dev/dri", "/dev/infiniband")
EARLY = ("TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_RESTART_COUNT")


class Warming:
    def __init__(self):
        self.path, self.listed, self.loaded, self.skipped = sys.path[:], {}, {}, 0
        (self.place, self.module), self.files = program(), open_files()
        self.is_own = own_code(self.place)
        for name in EARLY:
            os.environ.pop(name, None)  # There for the guardian of the agent, but not as they will be.
        self.reads, self.stop_watching = watch_reads()

    def preload(self, listed, pace):
        """Imports what is listed, but not what is the user's own or would come from elsewhere than in the worker that
        has listed it: that waits for the gate."""
        wanted, new = None, dict(listed)
        self.listed.update(new)

        def found(name, origin):
            nonlocal wanted
            pace.step()
            if name == wanted:  # Not where a module imports another: that would do without what it should have.
                wanted = None
                if self.is_own(origin) or not is_same(origin, self.listed[name]):
                    raise ImportError
            self.loaded.setdefault(name, origin)

        end = watch_imports(found)
        for name, origin in new.items():
            if name in self.loaded or name in sys.modules:  # What fails is not tried twice.
                continue
            parent, _, last = name.rpartition(".")
            try:
                if name == self.module or last == "__main__" or self.is_own(origin) or parent and parent not in sys.modules:
                    raise ImportError
                wanted = name
                __import__(name)
            except BaseException:
                self.skipped += 1
            wanted = None
        end()

    def complaints(self):
        """Each reason why this process may not become a worker."""
        yield from self.reads
        for name, origin in self.loaded.items():
            if not is_same(origin, self.listed.get(name, origin)):
                yield "%s was imported from %s instead of %s" % (name, origin, self.listed[name])
            if self.is_own(origin):
                yield "%s is the user's own code, and was imported by a library" % name
        if self.module in sys.modules and "." in self.module:
            yield "%s was imported before it is run" % self.module
        if sys.path[: len(self.path)] != self.path:
            yield "an imported module put something in front of sys.path"
        # Threads without Python, as libraries of numbers have them, are the same in a worker that was started cold.
        if has_python_threads():
            yield "an imported module started a thread"
        if has_children():
            yield "an imported module started a process"
        for file in sorted(open_files() - self.files):
            if file.startswith(DEVICES):
                yield "an imported module opened %s" % file
        if any(os.fstat(fd).st_size > CAPTURED_MAXIMUM for fd in (1, 2)):
            yield "imported modules printed more than %d bytes" % CAPTURED_MAXIMUM
        for name in self.shadows():
            yield "%s in %s hides a module that was imported from elsewhere" % (name, self.place)

    def shadows(self):
        """Top-level modules that the program would find in its own directory. Looked for again at the gate."""
        finder = sys.modules["_frozen_importlib_external"].PathFinder
        known = {name for name, origin in self.loaded.items() if "." not in name and os.path.isabs(origin)}
        files = os.listdir(self.place) if self.place else []
        for name in sorted(known.intersection(file.partition(".")[0] for file in files)):
            spec = finder.find_spec(name, [self.place])
            if spec is not None and spec.loader is not None:
                yield name
        sys.path_importer_cache.pop(self.place, None)


def watch_reads():
    """([who reads a name of the round, as a sentence], a function that ends this)"""
    reads, read, there = [], os._Environ.__getitem__, set(os.environ)

    def __getitem__(environ, key):
        name = os.fsdecode(key) if isinstance(key, (str, bytes)) else ""
        if is_of_round(name) and name not in there:
            frame = sys._getframe(1)
            while frame.f_globals.get("__name__") in ("os", "_collections_abc", "collections.abc"):
                frame = frame.f_back
            reads.append("%s reads %s while it is imported" % (frame.f_globals.get("__name__"), name))
        return read(environ, key)

    os._Environ.__getitem__ = __getitem__
    return reads, lambda: setattr(os._Environ, "__getitem__", read)


def is_same(origin, listed):
    """Whether a module that was found here is the one that a worker has listed, be it on a node whose interpreter and
    packages lie elsewhere. A listed package that is here, too, may be what the program would find."""
    part = library_part(origin)
    return part == library_part(listed) and (part is None or origin == listed or not os.path.exists(listed))


def library_part(origin):
    """Where a file of a package lies below the directory for packages. None for the interpreter's own modules."""
    for name in "/site-packages/", "/dist-packages/":
        if name in origin:
            directory, _, file = origin.rpartition(name)[2].rpartition("/")
            return directory, file.partition(".")[0]
    is_interpreters = origin in ("built-in", "frozen") or "/lib/python3." in origin or "/lib64/python3." in origin
    return None if is_interpreters else origin


def has_python_threads():
    """Whether Python knows another thread, be it one that has not come to its first line yet: those are counted, or
    dumped, according to the version."""
    fd = os.memfd_create("muster-standby-threads")
    borrow("faulthandler").dump_traceback(fd)
    lines = os.pread(fd, os.fstat(fd).st_size, 0).splitlines()
    os.close(fd)
    return any(line.startswith((b"Thread 0x", b"<freed thread")) for line in lines) or borrow("_thread")._count() > 0


def has_children():
    """Also of threads without Python, and those that have ended."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def open_files():
    paths = ["/proc/self/fd/" + fd for fd in os.listdir("/proc/self/fd")]
    return {os.readlink(path) for path in paths if os.path.islink(path)}  # All but the listing's own.

# SPDX-License-Identifier: BSD-3-Clause
"""What a standby worker imports before the gate, and what it sees of itself meanwhile."""
import os
import sys

from muster_standby import is_of_round, own_code, program, watch_imports

DEVICES = ("socket:", "/dev/nvidia", "/dev/kfd", "/dev/dri", "/dev/infiniband")
CAPTURED_MAXIMUM = 64 * 1024
EARLY = ("TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_RESTART_COUNT")


class Warming:
    def __init__(self):
        self.path, self.loaded, self.skipped = sys.path[:], {}, 0
        (self.place, self.module), self.files = program(), open_files()
        self.is_own = own_code(self.place)
        for name in EARLY:
            os.environ.pop(name, None)  # There for the guardian of the agent, but not as they will be.
        self.reads, self.stop_watching = watch_reads()

    def preload(self, listed):
        self.listed = dict(listed)
        end = watch_imports(lambda name, origin: self.loaded.setdefault(name, origin))
        for name, origin in self.listed.items():
            if name in self.loaded or name in sys.modules:
                continue  # Tried already: what fails is not tried twice.
            try:
                if name == self.module or name.rpartition(".")[2] == "__main__" or self.is_own(origin):
                    raise ImportError
                __import__(name)
            except BaseException:
                self.skipped += 1
        end()
        self.stop_watching()

    def complaints(self):
        """Each reason why this process may not become a worker."""
        yield from self.reads
        for name, origin in self.loaded.items():
            if origin != self.listed.get(name, origin):
                yield "%s was imported from %s instead of %s" % (name, origin, self.listed[name])
            if self.is_own(origin):
                yield "%s is the user's own code, and was imported by a library" % name
        if self.module in sys.modules and "." in self.module:
            yield "%s was imported before it is run" % self.module
        if sys.path[: len(self.path)] != self.path:
            yield "an imported module put something in front of sys.path"
        if len(os.listdir("/proc/self/task")) != 1:
            yield "an imported module started a thread"
        with open("/proc/self/task/%d/children" % os.getpid()) as file:
            if file.read():
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


def open_files():
    files = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            files.add(os.readlink("/proc/self/fd/" + fd))
        except OSError:
            pass  # The listing's own.
    return files

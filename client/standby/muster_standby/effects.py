# SPDX-License-Identifier: BSD-3-Clause
"""What modules do while they are imported and a standby worker must not have done, and who is to blame. Those modules
wait for the program, and so do all that import them: a module that had to do without another would be another one."""
import os
import sys

from muster_standby import borrow, pass_for_importlib

DEVICES = ("socket:", "/dev/nvidia", "/dev/kfd", "/dev/dri", "/dev/infiniband")


class Effects:
    """What there is in this process that a worker would not have, each as the end of a sentence that begins with a
    module. What a module does and undoes while it is imported is none. Looked for with few system calls."""

    def __init__(self):
        self.files, self.path, self.begun, self.told = open_files(), sys.path[:], {}, set()
        self.marks = look()
        has_python_threads()  # What that borrows is borrowed before imports are watched.

    def all(self):
        found = ["opened " + file for file in sorted(open_files() - self.files) if file.startswith(DEVICES)]
        # Threads without Python, as libraries of numbers have them, are the same in a worker that was started cold.
        found += ["started a thread"] if has_python_threads() else []
        found += ["started a process"] if has_children() else []
        found += ["put something in front of sys.path"] if sys.path[: len(self.path)] != self.path else []
        return [effect for effect in found if effect not in self.told]

    def can_be_new(self):
        marks, self.marks = self.marks, look()
        return marks != self.marks or sys.path[: len(self.path)] != self.path

    def note(self, module):
        """This module's code runs, and is about to import another."""
        if self.can_be_new():
            for effect in self.all():
                self.begun.setdefault(effect, module)

    def left_by(self, module):
        """The effects of a module that has been imported."""
        if self.can_be_new() or self.begun:
            there = self.all()
            self.begun = {effect: self.begun.get(effect, module) for effect in there}
            found = [effect for effect in there if self.begun[effect] == module]
            self.told.update(found)
            return found
        return []


class Environment:
    """Libraries change it while they are imported, here as in a worker. But from the first module on that is left out, they
    may not, since that one would see it. What those that are left out change there is changed by hand for what comes
    behind them, and undone in the end."""

    def __init__(self):
        self.by_hand, self.before, self.lacks_some, self.known = {}, {}, False, None

    def resume(self):
        for name, value in self.by_hand.items():
            put(name, value)
        self.known = dict(os.environ._data)

    def has_changed(self):
        changed = os.environ._data != self.known
        if changed:
            self.known = dict(os.environ._data)
        return changed

    def change(self, name, value):
        """To a value, to none where it is empty. False: nobody knows to what."""
        if self.lacks_some:
            if value and not value.strip("?"):
                return False
            self.before.setdefault(name, os.environ.get(name))
            self.by_hand[name] = value or None
            self.resume()
        return True

    def restore(self):
        for name, value in self.before.items():
            put(name, value)


def put(name, value):
    os.environ.pop(name, None)
    os.environ.update({} if value is None else {name: value})


class Blame:
    """Modules that may not be imported here, and why the first of them may not."""

    def __init__(self, outermost):
        self.outermost, self.names, self.reason = outermost, {}, None

    def running(self):
        """The modules that are being imported, the innermost first: each imports the one before it."""
        names, frame = [], sys._getframe(1)
        while frame is not None and frame is not self.outermost:
            if frame.f_code.co_name == "<module>":
                names.append(str(frame.f_globals.get("__name__")))
            frame = frame.f_back
        return names

    def note(self, reason=None, effect="", name=None):
        """Blames a module, by default the one whose code runs, and all that are being imported: they need it. False
        where there is none."""
        names = ([name] if name else []) + self.running()
        if names and self.reason is None:
            self.reason = reason or names[0] + " " + effect
        self.names.update(dict.fromkeys(names))
        return bool(names)

    def check(self, name, waits, why_not):
        """Ends an import that a module needs and cannot have."""
        if name in self.names or waits or why_not is not None:
            self.note(why_not, "imports %s, which waits for the program" % name)
            raise ImportError(name)


def watch_ends(ended):
    """Calls ended(name) after each import: if that is true, the import fails. Returns a function that ends this."""
    machinery = sys.modules["_frozen_importlib"]
    load = machinery._load_unlocked

    @pass_for_importlib
    def _load_unlocked(spec):
        try:
            return load(spec)
        finally:
            if ended(spec.name):
                sys.modules.pop(spec.name, None)
                raise ImportError(spec.name)

    machinery._load_unlocked = _load_unlocked
    return lambda: setattr(machinery, "_load_unlocked", load)


def look():
    """What changes when a file is opened, a thread or a process started."""
    lowest = os.dup(0)
    os.close(lowest)
    return lowest, os.stat("/proc/self/task").st_nlink, has_children()


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

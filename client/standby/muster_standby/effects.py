# SPDX-License-Identifier: BSD-3-Clause
"""What modules do while they are imported and a standby worker must not have done, and who is to blame. Those modules
wait for the program, and so do all that import them: a module that had to do without another would be another one."""
import os
import sys

from muster_standby import borrow, pass_for_importlib

DEVICES = ("socket:", "/dev/nvidia", "/dev/kfd", "/dev/dri", "/dev/infiniband")


# Ends of sentences that begin with a module, for what differs from what was before it.
SENTENCES = {
    "front": "put something in front of sys.path", "thread": "started a thread", "process": "started a process",
    "handlers": "set a signal handler", "timer": "set a timer", "exits": "registered a function for the exit",
    "streams": "changed a standard stream, or keeps its buffer", "directory": "changed the working directory",
    "Umask": "changed the umask", "SigBlk": "blocked a signal", "SigIgn": "ignores a signal",
    "Cpus_allowed": "changed its CPUs",
}


class Effects:
    """What there is in this process that a worker would not have. What a module does and undoes while it is imported is
    none. Looked for with few system calls."""

    def __init__(self):
        self.path, self.begun, self.signal, self.exits = sys.path[:], {}, borrow("_signal"), borrow("atexit")._ncallbacks
        has_python_threads()  # What that borrows is borrowed before imports are watched.
        self.marks = self.look()
        self.before = self.state()

    def look(self):
        """What changes when one of them does, or can: fast to know."""
        lowest = os.dup(0)
        os.close(lowest)
        handlers = tuple(map(self.signal.getsignal, range(1, self.signal.NSIG)))
        return (
            os.listdir("/proc/self/fd"), [os.fstat(fd).st_ino for fd in range(3)], os.stat("/proc/self/task").st_nlink,
            has_children(), handlers, self.signal.getitimer(self.signal.ITIMER_REAL)[1], self.exits(), streams(),
            os.getcwdb(), status(), sys.path[: len(self.path)],
        )

    def state(self):
        """By the name of a sentence."""
        _, _, _, process, handlers, timer, exits, kept, directory, lines, front = self.look()
        # Threads without Python, as libraries of numbers have them, are the same in a worker that was started cold.
        found = dict(lines, thread=has_python_threads(), process=process, handlers=handlers, timer=timer, exits=exits)
        return dict(found, streams=kept, directory=directory, front=front, files=held_files())

    def all(self):
        """(sentence, key of the state) of each difference"""
        now = self.state()
        found = [(file, "files") for file in sorted(now["files"] - self.before["files"])]
        return found + [(text, key) for key, text in SENTENCES.items() if now.get(key) != self.before.get(key)]

    def can_be_new(self):
        marks, self.marks = self.marks, self.look()
        return marks != self.marks

    def note(self, module):
        """This module's code runs, and is about to import another."""
        if self.can_be_new():
            for effect in self.all():
                self.begun.setdefault(effect, module)

    def left_by(self, module, is_installed):
        """The effects of a module that has been imported. Those that are installed have functions for the exit that are
        nobody else's matter."""
        if not self.can_be_new() and not self.begun:
            return []
        there = self.all()
        self.begun = {effect: self.begun.get(effect, module) for effect in there}
        found = [effect for effect in there if self.begun[effect] == module]
        if found:
            now = self.state()
            for effect in found:
                key = effect[1]
                self.before[key] = self.before[key] | {effect[0]} if key == "files" else now[key]
                del self.begun[effect]
        return [text for text, key in found if key != "exits" or not is_installed]


class Environment:
    """Libraries change it while they are imported, here as in a worker. But from the first module on that is left out, they
    may not, since that one would see it. What those that are left out change there is changed by hand for what comes
    behind them, and undone in the end."""

    def __init__(self):
        self.by_hand, self.before, self.lacks_some, self.known = {}, {}, False, None

    def resume(self):
        for name, value in self.by_hand.items():
            put(name, value)
        self.known = environment()

    def has_changed(self):
        changed = not dict.__eq__(os.environ._data, self.known)
        if changed:
            self.known = environment()
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


def environment():
    return dict(dict.items(os.environ._data))


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


def status():
    """Lines of what the kernel tells of this process."""
    fd = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
    lines = [line.partition(b":") for line in os.read(fd, 1 << 14).splitlines()]
    os.close(fd)
    return {name.decode(): value for name, _, value in lines if name in (b"Umask", b"SigBlk", b"SigIgn", b"Cpus_allowed")}


def streams():
    """The standard streams, and how many have what lies below them."""
    mine = sys.__stdin__, sys.__stdout__, sys.__stderr__
    buffers = [getattr(stream, "buffer", None) for stream in mine]
    return [(sys.stdin, sys.stdout, sys.stderr), [sys.getrefcount(buffer) for buffer in buffers if buffer is not None]]


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


def held_files():
    """Sentences on the open files that a module may not leave."""
    links, found = {}, set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            with open("/proc/self/fdinfo/" + fd, "rb") as file:
                flags = int(file.read().partition(b"flags:")[2].split()[0], 8)
            links[int(fd)] = os.readlink("/proc/self/fd/" + fd), flags & os.O_ACCMODE
        except OSError:
            pass  # The listing's own.
    for fd, (link, access) in links.items():
        if fd < 3:
            found.add("changed descriptor %d to %s" % (fd, link))
        elif link.startswith(DEVICES):
            found.add("opened " + link)
        elif (link, access) in [links.get(own) for own in range(3)]:
            found.add("keeps a copy of a standard stream, descriptor %d" % fd)
        elif access != os.O_RDONLY and link.startswith("/") and not link.startswith(("/memfd:", "/dev/null", "/dev/zero")):
            found.add("holds %s open for writing" % link)
    return found

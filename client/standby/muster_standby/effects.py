# SPDX-License-Identifier: BSD-3-Clause
"""What modules do while they are imported and a standby worker must not have done, as far as it stays in the process."""
import os
import sys

from muster_standby import borrow, move_up

DEVICES = ("socket:", "/dev/nvidia", "/dev/kfd", "/dev/dri", "/dev/infiniband")


# Ends of sentences that begin with a module, for what differs from what was before it.
SENTENCES = {
    "front": "put something in front of sys.path", "thread": "started a thread", "process": "started a process",
    "handlers": "set a signal handler", "timer": "set a timer", "exits": "registered a function for the exit",
    "streams": "changed a standard stream, or keeps its buffer", "directory": "changed the working directory",
    "Umask": "changed the umask", "SigBlk": "blocked a signal", "SigIgn": "ignores a signal",
    "Cpus_allowed": "changed its CPUs",
}

ENDING_LOOKS = 20  # a millisecond apart: so long a thread that was joined may take to end
LINES = {name: ("\n%s:" % name).encode() for name in ("Umask", "SigBlk", "SigIgn", "Cpus_allowed")}
EARLY = ("handlers", "exits", "Umask", "SigBlk", "SigIgn", "Cpus_allowed")


class Effects:
    """What there is in this process that a worker would not have. What a module does and undoes while it is imported is
    none. Looked for with few system calls."""

    def __init__(self):
        self.path, self.begun, self.signal, self.exits = sys.path[:], {}, borrow("_signal"), borrow("atexit")._ncallbacks
        self.process = open_process()
        has_python_threads()  # What that borrows is borrowed before imports are watched.
        self.marks, self.stands_in, self.there = self.look(), False, []
        self.before = self.state()

    def begin_again(self):
        """In a child of the process that has begun it, with a gate of its own."""
        self.close()
        self.process = open_process()
        self.before["files"], self.marks = held_files(), self.look()

    def stand_in(self, change):
        """The front of sys.path becomes another one, which is no module's effect. Nor is what a sitecustomize of the
        user's has set in the process: it has done so in a worker, too, before the program."""
        now = self.state()
        self.before.update({key: now[key] for key in EARLY if key in now})
        before = sys.path[:]
        change()
        added = sys.path[: len(sys.path) - len(before)]
        self.path, self.before["front"], self.stands_in = added + self.path, added + self.before["front"], True

    def look(self):
        """What changes when one of them does, or can: fast to know."""
        status, files, threads = self.process
        return (
            os.fstat(files).st_size or os.listdir("/proc/self/fd"), [os.fstat(fd).st_ino for fd in range(3)],
            os.fstat(threads).st_nlink, has_children(), tuple(map(self.signal.getsignal, range(1, self.signal.NSIG))),
            self.signal.getitimer(self.signal.ITIMER_REAL)[1], self.exits(), streams(), os.getcwdb(),
            lines_of(os.pread(status, 1 << 14, 0)), sys.path[: len(self.path)],
        )

    def state(self):
        """By the name of a sentence."""
        _, _, _, process, handlers, timer, exits, kept, directory, lines, front = self.look()
        # Threads without Python, as libraries of numbers have them, are the same in a worker that was started cold.
        found = dict(zip(LINES, lines), thread=has_python_threads(), process=process, handlers=handlers, timer=timer)
        return dict(found, exits=exits, streams=kept, directory=directory, front=front, files=held_files())

    def all(self):
        """(sentence, key of the state) of each difference"""
        now = self.state()
        found = [(file, "files") for file in sorted(now["files"] - self.before["files"])]
        return found + [(text, key) for key, text in SENTENCES.items() if now.get(key) != self.before.get(key)]

    def differences(self):
        marks, self.marks = self.marks, self.look()
        if marks != self.marks:
            self.there = self.all()
        return self.there

    def note(self, module):
        """This module's code runs, and is about to import another."""
        for effect in self.differences():
            self.begun.setdefault(effect, module)

    def left_by(self, module, is_installed):
        """The effects of a module that has been imported. Those that are installed have functions for the exit that are
        nobody else's matter."""
        there = self.differences()
        self.begun = {effect: self.begun.get(effect, module) for effect in there}
        found = [effect for effect in there if self.begun[effect] == module]
        now = self.state() if found else {}
        for effect in found:  # What comes next is compared with that.
            key = effect[1]
            self.before[key] = self.before[key] | {effect[0]} if key == "files" else now[key]
            there.remove(effect)
            del self.begun[effect]
        return [text for text, key in found if key != "exits" or not is_installed]

    def close(self):
        for fd in self.process:
            os.close(fd)


def open_process():
    return [move_up(os.open("/proc/self/" + name, os.O_RDONLY | os.O_CLOEXEC)) for name in ("status", "fd", "task")]


def lines_of(status):
    """The values of these lines in what the kernel tells of this process."""
    return [status.partition(name)[2].partition(b"\n")[0] for name in LINES.values()]


def streams():
    """The standard streams, and how many have what lies below them."""
    mine = sys.__stdin__, sys.__stdout__, sys.__stderr__
    buffers = [getattr(stream, "buffer", None) for stream in mine]
    return [(sys.stdin, sys.stdout, sys.stderr), [sys.getrefcount(buffer) for buffer in buffers if buffer is not None]]


def has_python_threads():
    """Whether Python knows another thread, be it one that has not come to its first line yet: those are counted, or
    dumped, according to the version. One that was joined may still be dumped for a moment."""
    sleep = borrow("time").sleep
    for _ in range(ENDING_LOOKS):
        fd = os.memfd_create("muster-standby-threads")
        borrow("faulthandler").dump_traceback(fd)
        lines = os.pread(fd, os.fstat(fd).st_size, 0).splitlines()
        os.close(fd)
        if borrow("_thread")._count() == 0 and not any(line.startswith((b"Thread 0x", b"<freed thread")) for line in lines):
            return False
        sleep(0.001)
    return True


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

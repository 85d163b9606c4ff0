# SPDX-License-Identifier: BSD-3-Clause
"""A warm parent: a process that has imported what the workers of a node import, and never becomes a worker. It forks
standby workers when the agent asks for them, in milliseconds, and they share its memory. A child waits at a gate of its own.
It is adopted by the agent, as each orphan of a worker is, and is from then on what a standby worker of its own is."""
import os
import sys

from muster_standby import borrow
from muster_standby.gate import Dirty, Gate, Unsuited, read_list
from muster_standby.pages import HUGE, Pages, read_maps

COLLAPSE = 25  # MADV_COLLAPSE: Linux 6.1
DEATH_SIGNAL, SET_NAME, SET_MAP = 1, 15, 35  # PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_MM
NAME = b"muster-parent"
# The fields of struct prctl_mm_map, and where /proc/self/stat has those that stay.
MAP = ("start_code", "end_code", "start_data", "end_data", "start_brk", "brk", "start_stack", "arg_start", "arg_end",
       "env_start", "env_end")
IN_STAT = {"start_code": 26, "end_code": 27, "start_stack": 28, "start_data": 45, "end_data": 46, "start_brk": 47,
           "arg_start": 48, "arg_end": 49}


class Parent:
    def __init__(self, gate, warming, agent):
        self.gate, self.warming, self.agent, self.is_child, self.name = gate, warming, agent, False, None
        places = set(sys.path_importer_cache)
        self.ctypes, self.time = borrow("ctypes"), borrow("time")
        borrow("select")
        for place in set(sys.path_importer_cache) - places:
            del sys.path_importer_cache[place]
        for name in "sitecustomize", "usercustomize":
            warming.files.add(getattr(getattr(sys.modules.get(name), "__spec__", None), "origin", None) or "")
        self.library = self.ctypes.CDLL(None)
        warming.files.library = self.library
        self.library.mmap.restype = self.library.sbrk.restype = self.ctypes.c_void_p
        self.pages = Pages(self.library)

    def settle(self):
        """All is imported. Raises Dirty where no standby worker can be forked from this process, and Unsuited with a
        module that is in the way."""
        if self.name is None:
            with open("/proc/self/comm", "rb") as file:
                self.name = file.read()[:-1]
        self.collapse()
        borrow("gc").freeze()  # So that a child that collects garbage does not write into each object.
        self.check()
        self.library.prctl(SET_NAME, NAME, 0, 0, 0)

    def collapse(self):
        """Makes huge pages of what can be one: a fork copies a table of pages for each 2 MiB of the others."""
        for start, end, access, name in read_maps():
            if access == "rw-p" and name in ("", "[heap]"):
                for at in range((start + HUGE - 1) // HUGE * HUGE, end - HUGE + 1, HUGE):
                    self.library.madvise(self.ctypes.c_void_p(at), self.ctypes.c_size_t(HUGE), COLLAPSE)

    def check(self):
        try:
            child = os.fork()  # Some libraries end their threads before a fork; those of others would be missed after it.
        except OSError as failure:
            raise Dirty("it cannot fork: %s" % failure.strerror) from None
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        threads = len(os.listdir("/proc/self/task")) - 1
        if threads > 0:
            raise Dirty("%d of its threads do not end before a fork" % threads)
        for name, attribute in keeps_number(os.getpid()):
            raise Unsuited("%s keeps the number of its process in %s" % (name, attribute), name)

    def serve(self, learn, say_ready):
        """Hears the agent. Returns in a child alone, with the child's gate."""
        while True:
            kind, message, fds = self.gate.hear()
            if kind in (b"L", b"T"):
                learn(read_list(*fds))
            elif kind == b"F":
                changed = self.warming.files.changed_now()
                if changed:
                    raise Unsuited("%s has changed since it was imported" % changed)
                if self.fork():
                    return self.begin(*fds)
                os.close(*fds)
            elif kind == b"W":
                self.pages.look(int.from_bytes(message, "little"))
                say_ready()
            else:
                raise Dirty("the agent says %r" % kind)

    def fork(self):
        """True in the child. The process between it and this one ends at once, so that the agent adopts the child."""
        try:
            middle = os.fork()
        except OSError as failure:
            raise Dirty("it cannot fork: %s" % failure.strerror) from None
        if middle == 0:
            middle = os.getpid()
            self.library.prctl(SET_NAME, self.name, 0, 0, 0)
            try:
                if os.fork() > 0:
                    os._exit(0)
            except OSError:
                os._exit(1)
            while os.getppid() == middle:
                self.time.sleep(0.0002)
            return True
        if os.waitpid(middle, 0)[1] == 1 << 8:
            raise Dirty("it cannot fork twice")
        return False

    def begin(self, fd):
        """A child becomes a standby worker. It has all that this one has, but what is of a process alone."""
        self.library.prctl(DEATH_SIGNAL, 9, 0, 0, 0)
        if os.getppid() != self.agent:
            os._exit(0)  # The agent has ended, or another process has adopted this one.
        os.setsid()
        self.gate.socket.close()
        self.gate, self.is_child = Gate(fd), True
        self.warming.begin_again()
        keep_apart()
        draw_anew()
        if hasattr(sys.modules.get("threading"), "main_thread"):
            sys.modules["threading"].main_thread()._set_native_id()  # Python leaves it as it was before the fork.
        self.gate.say(b"H", 1, os.getpid())
        return self.gate


def keeps_number(pid):
    """(module, attribute) of each that has this process id, as far as it is one of a module's own."""
    text = str(pid)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "muster_standby" or not isinstance(getattr(module, "__dict__", None), dict):
            continue
        for attribute, value in list(vars(module).items()):
            if type(value) is int and value == pid and "pid" in attribute.lower():
                yield name, attribute
            elif type(value) is str and len(text) > 3 and len(value) < 256 and is_word(text, value):
                yield name, attribute


def is_word(text, value):
    before, found, after = value.partition(text)
    return bool(found) and not before[-1:].isdigit() and not after[:1].isdigit()


def keep_apart():
    """What this one prints before its gate is its own, behind what its parent has printed."""
    shared = os.path.sameopenfile(1, 2)
    for fd, name in (1, "muster-standby-stdout"), (2, "muster-standby-stderr"):
        printed = os.pread(fd, os.fstat(fd).st_size, 0)
        if fd == 2 and shared:
            os.dup2(1, 2)
            break
        own = os.memfd_create(name)
        os.write(own, printed)
        os.dup2(own, fd)
        os.close(own)


def draw_anew():
    """Generators that took their seed when their library was imported take another one. Python does that for its own."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if hasattr(sys.modules.get("torch"), "default_generator"):
        sys.modules["torch"].default_generator.seed()


def show_environment(names, told):
    """Has /proc tell the worker's environment, and not the parent's. Where the kernel refuses that nothing changes."""
    ctypes = borrow("ctypes")
    library = ctypes.CDLL(None)
    library.mmap.restype = library.sbrk.restype = ctypes.c_void_p
    names = [*names, ("MUSTER_STANDBY", ";".join(map("=".join, told.items())))]
    with open("/proc/self/stat", "rb") as file:
        numbers = file.read().rpartition(b")")[2].split()
    text = b"".join(os.fsencode("%s=%s" % pair) + b"\0" for pair in names if pair[0])
    word, size = ctypes.c_ulong, ctypes.c_size_t
    place = library.mmap(None, size(len(text)), 3, 0x22, -1, word(0))
    if place in (None, ctypes.c_void_p(-1).value):
        return
    ctypes.memmove(place, text, len(text))
    values = {name: int(numbers[at - 3]) for name, at in IN_STAT.items()}
    values.update(brk=library.sbrk(word(0)), env_start=place, env_end=place + len(text))
    data = b"".join(values[name].to_bytes(8, sys.byteorder) for name in MAP)
    # The auxiliary vector stays, and so does the program.
    library.prctl(SET_MAP, word(14), data + bytes(12) + b"\xff" * 4, word(len(data) + 16), word(0))

# SPDX-License-Identifier: BSD-3-Clause
"""Who reads what a worker has in its environment, and a standby worker has not yet: a name of its round, or all names at
once. What Python reads goes through one dictionary, which watches. What C reads is traps.py's.

Some modules ask for all names only to find those that begin with a word of theirs. So whoever asks for all gets those of
the round as well, as texts that know what is done with them: whether a name begins with another word tells nothing."""
import os
import sys

from muster_standby import borrow, is_of_round
from muster_standby.traps import NOBODY, Traps

# What the agent keeps back until the gate (src/core/standby/standby_preparation.c), and what is there too early.
EARLY = ("TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_RESTART_COUNT")
NAMES = EARLY + ("RANK", "WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_ADDR",
                 "MASTER_PORT", "LOCAL_RANK")  # The last is kept back in a warm parent alone.
WHOLE = "reads the environment as a whole while it is imported"
TESTS = ("startswith", "endswith", "__contains__", "__eq__")
UNWATCHED = ("__new__", "__init__", "__init_subclass__", "__subclasshook__", "__class__", "__getattribute__", "__hash__",
             "__setattr__", "__delattr__", "__dir__", "__doc__", "__sizeof__", "maketrans", "fromhex", "encode", "decode")


class Trace:
    """Of one name that a module was given: it lives as long as one of its texts does, and says what was done with them."""

    def __init__(self, said):
        self.said = said


def watched_texts(plain):
    """A class of texts that say what is done with them."""

    def watch(name):
        method = getattr(plain, name)

        def call(self, *arguments, **named):
            answer = method(self, *arguments, **named)
            self.trace.said.add("no" if name in TESTS and answer is not True else "used")
            return answer

        return call

    members = {name: watch(name) for name in dir(plain) if name not in UNWATCHED and callable(getattr(plain, name))}
    members["__hash__"], members["__ne__"] = plain.__hash__, lambda self, other: not self == other
    return type(plain)(plain.__name__, (plain,), members)


def traced(texts, value, trace):
    text = texts(value)
    text.trace = trace
    return text


class Text(watched_texts(str)):
    def encode(self, *how):
        return traced(Bytes, str.encode(self, *how), self.trace)


class Bytes(watched_texts(bytes)):
    def __bytes__(self):
        return self

    def decode(self, *how):
        return traced(Text, bytes.decode(self, *how), self.trace)


class Names:
    """Which names of the round are not there, and to whom they were given."""

    def __init__(self, running, note):
        self.running, self.note, self.there, self.given = running, note, set(os.environb), []
        self.refer = borrow("_weakref").ref

    def all(self):
        """For a module that asks for all names."""
        module = self.running()
        if module is None:
            self.whole()
        for name in map(os.fsencode, NAMES):
            if name not in self.there:
                trace = Trace(set())
                self.given.append((module, trace.said, self.refer(trace)))
                yield traced(Bytes, name, trace)

    def kept_by(self, module):
        """Whether a module that has been imported has used a name that it was given, or has it still."""
        given = [each for each in self.given if each[0] == module]
        self.given = [each for each in self.given if each[0] != module]
        return any(said != {"no"} or life() is not None for _, said, life in given)

    def whole(self):
        self.note(caller(), WHOLE)

    def one(self, name):
        if isinstance(name, bytes) and name not in self.there and is_of_round(os.fsdecode(name)):
            self.note(caller(), "reads %s while it is imported" % os.fsdecode(name))


def caller():
    frame = sys._getframe(2)
    while frame.f_globals.get("__name__") in (__name__, "os", "_collections_abc", "collections.abc"):
        frame = frame.f_back
    return frame.f_globals.get("__name__")


class Watched(dict):
    """What os.environ and posix.environ are made of while a standby worker warms."""

    __slots__ = ("names",)

    def __getitem__(self, name):
        if isinstance(name, Bytes):
            return b""
        self.names.one(name)
        return dict.__getitem__(self, name)

    def __iter__(self):
        yield from self.names.all()
        yield from dict.__iter__(self)

    def __len__(self):
        if sys._getframe(1).f_code.co_name != "__iter__":  # That of os.environ asks how much room it needs.
            self.names.whole()
        return dict.__len__(self)

    def keys(self):
        return list(iter(self))

    def items(self):
        return [(name, self[name]) for name in self]


def watch_method(name):
    method, is_of_one = getattr(dict, name), name in ("get", "__contains__", "pop", "setdefault")

    def call(self, *arguments):
        (self.names.one if is_of_one else lambda *_: self.names.whole())(*arguments[:1])
        return method(self, *arguments)

    return call


for each in ("get", "__contains__", "pop", "setdefault", "popitem", "values", "copy", "__repr__", "__or__", "__ror__",
             "__reversed__", "__eq__", "__ne__"):
    if hasattr(dict, each):
        setattr(Watched, each, watch_method(each))


class Reads:
    def __init__(self, running, note):
        """`running()` is the module whose code runs, if there is one. Calls note(module, what it does)."""
        self.running, self.note = running, note
        self.names, self.plain = Names(running, note), os.environ._data
        self.there = Watched(self.plain)
        self.there.names = self.names
        self.put(self.there)
        self.references = self.count()
        self.traps = None

    def begin_c(self, listed):
        """Lays out names for C, where something that is listed can ask for them: not without need, since ctypes may keep
        a file open."""
        foreign = [origin for origin in listed.values() if origin and origin.endswith(".so") and "/lib-dynload/" not in origin]
        try:
            if self.traps is None and (foreign or "_ctypes" in listed):
                self.traps = Traps([name for name in NAMES if not dict.__contains__(self.there, os.fsencode(name))] + [NOBODY])
        except Exception:
            pass  # What C reads is not seen.

    def put(self, there):
        os.environ._data = os.environb._data = sys.modules["posix"].environ = there

    def count(self):
        return sys.getrefcount(self.there)

    def note_c(self):
        """C code has run, which may have read something."""
        for name in self.traps.touched() if self.traps else ():
            self.note(self.running(), WHOLE if name == NOBODY else "reads %s in C while it is imported" % name)

    def left_by(self, module):
        """The ends of sentences on a module that has been imported."""
        found = [WHOLE] if self.names.kept_by(module) else []
        if self.count() > self.references:
            self.references = self.count()
            found.append("keeps posix.environ")
        for name in self.traps.touched() if self.traps else ():
            found.append(WHOLE if name == NOBODY else "reads %s in C while it is imported" % name)
        return found

    def stop(self):
        self.plain.clear()
        self.plain.update(dict.items(self.there))
        self.put(self.plain)
        if self.traps:
            self.traps.stop()

# SPDX-License-Identifier: BSD-3-Clause
"""What a standby worker imports before the gate, and what it sees of itself meanwhile."""
import os
import sys

from muster_standby import own_code, watch_imports
from muster_standby.audit import Temporary, watch_requests, watch_terminals
from muster_standby.blame import Blame, Environment, watch_ends
from muster_standby.effects import Effects
from muster_standby.files import Files
from muster_standby.gate import CAPTURED_MAXIMUM, Unsuited
from muster_standby.listed import LINE, may_be_imported
from muster_standby.reads import EARLY, Reads
from muster_standby.stand_in import StandIn

CHANGED = "changed the environment, which what is left out may read"


class Warming:
    def __init__(self):
        self.listed, self.loaded, self.skipped, self.files = {}, {}, 0, Files()
        self.outside = set()  # top-level modules that were imported from a file
        self.stand_in = StandIn()
        self.place, self.module = self.stand_in.place, self.stand_in.module
        self.is_own, self.blame, self.others = own_code(self.place), None, []
        for name in EARLY:
            os.environ.pop(name, None)  # There for the guardian of the agent, but not as they will be.
        self.reads, self.environment = Reads(self.running, self.note), Environment()
        self.effects, self.temporary, self.stop_asking = Effects(), Temporary(), watch_terminals(self.note)
        self.stop_refusing = watch_requests(self.note, self.running, self.temporary)

    def running(self):
        """The module whose code runs, if one does."""
        return next(iter(self.blame.running()), None) if self.blame else None

    def begin_again(self):
        """In a child of the process that has begun it. What is of a process and not of its memory is made anew."""
        self.effects.begin_again()
        if self.reads.traps:
            self.reads.traps.begin_again()
        self.files.begin_again()

    def stop_watching(self):
        self.effects.close()
        self.stop_refusing()
        self.stop_asking()
        self.reads.stop()
        self.stand_in.end()

    def preload(self, listed, pace):
        """Imports what is listed, but not what is the user's own or would come from elsewhere than in the worker that
        has listed it: that waits for the gate. Raises Unsuited when there are modules that must wait with it."""
        wanted, new = None, {name: origin for name, origin in listed if not name.startswith(LINE)}
        self.listed.update(new)
        self.blame = blame = Blame(sys._getframe())
        environment = self.environment
        environment.resume()
        if not self.effects.stands_in:
            self.effects.stand_in(self.stand_in.begin_path)
        self.reads.begin_c(new)
        if "__main__" not in new:
            self.stand_in.begin_main()

        def found(name, origin):
            nonlocal wanted
            pace.step()
            self.effects.note(self.running())
            self.reads.note_c()
            if environment.has_changed() and (environment.lacks_some or blame.names):
                blame.note(effect=CHANGED)
            if name == wanted:  # Not where a module imports another: that would do without what it should have.
                wanted = None
                if self.is_own(origin) or not is_same(origin, self.listed[name]):
                    raise ImportError
            else:
                blame.check(name, self.listed.get(name, origin) is None, self.why_not(name, origin))
            self.loaded.setdefault(name, origin)
            self.files.add(origin)

        def ended(name):
            effects = self.effects.left_by(name, library_part(self.loaded.get(name, "")).__class__ is not str)
            effects += self.reads.left_by(name) + self.temporary.left_by(name)
            if environment.has_changed() and (environment.lacks_some or blame.names):
                effects.append(CHANGED)
            for effect in effects:
                blame.note(effect=effect, name=name)
            return name in blame.names

        ends = watch_imports(found), watch_ends(ended)
        for name, origin in new.items():
            if name == "__main__":
                self.stand_in.begin_main()
            elif origin is None:
                environment.lacks_some = True
            elif name.startswith("=") and not environment.change(name.partition(" ")[2], origin):
                break  # What comes now may depend on that.
            if origin is None or name.startswith("=") or name in self.loaded or name in sys.modules:
                continue  # What fails is not tried twice.
            parent, _, last = name.rpartition(".")
            try:
                if name == self.module or last == "__main__" or self.is_own(origin) or parent and parent not in sys.modules:
                    raise ImportError
                wanted = name
                __import__(name)
            except BaseException:
                self.skipped += 1
            wanted = None
        for end in ends:
            end()
        environment.restore()
        self.blame = None
        self.outside = {name for name, origin in self.loaded.items() if "." not in name and os.path.isabs(origin)}
        if blame.names:
            raise Unsuited(blame.reason, *blame.names)
        self.files.watch(self.reads.traps and self.reads.traps.c)

    def why_not(self, name, origin):
        """Why a library may not import this module here, although the program may; None: it may."""
        listed = self.listed.get(name, origin)
        if self.is_own(origin):
            return "%s is the user's own code, and was imported by a library" % name
        if listed is not None and not is_same(origin, listed):
            return "%s was imported from %s instead of %s" % (name, origin, listed)
        if name == self.module and "." in name:
            return "%s was imported before it is run" % name
        return None

    def note(self, who, effect):
        if self.blame is None or not self.blame.note(effect=effect):
            self.others.append("%s %s" % (who, effect))

    def complaints(self):
        """Each reason why this process may not become a worker, whatever it imports."""
        yield from self.others
        for effect, _ in self.effects.all():
            yield "an imported module " + effect
        if any(os.fstat(fd).st_size > CAPTURED_MAXIMUM for fd in (1, 2)):
            yield "imported modules printed more than %d bytes" % CAPTURED_MAXIMUM
        for name in self.shadows():
            yield "%s in %s hides a module that was imported from elsewhere" % (name, self.place)

    def shadows(self):
        """Top-level modules that the program would find in its own directory. Looked for again at the gate, where nobody
        has the time to go through all that is loaded: that would copy each page where a name of it is counted."""
        finder = sys.modules["_frozen_importlib_external"].PathFinder
        files = os.listdir(self.place) if self.place and os.path.isdir(self.place) else self.outside if self.place else []
        for name in sorted(self.outside.intersection(file.partition(".")[0] for file in files)):
            spec = finder.find_spec(name, [self.place])
            if spec is not None and spec.loader is not None:
                yield name
        sys.path_importer_cache.pop(self.place, None)


def is_same(origin, listed):
    """Whether a module that was found here is the one that a worker has listed, be it on a node whose interpreter and
    packages lie elsewhere. A listed package that is here, too, may be what the program would find."""
    part = library_part(origin)
    if not may_be_imported(origin, listed):
        return False
    return part == library_part(listed) and (part is None or origin == listed or not os.path.exists(listed))


def library_part(origin):
    """Where a file of a package lies below the directory for packages. None for the interpreter's own modules."""
    for name in "/site-packages/", "/dist-packages/":
        if name in origin:
            directory, _, file = origin.rpartition(name)[2].rpartition("/")
            return directory, file.partition(".")[0]
    is_interpreters = origin in ("built-in", "frozen") or "/lib/python3." in origin or "/lib64/python3." in origin
    return None if is_interpreters else origin

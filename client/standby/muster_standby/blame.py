# SPDX-License-Identifier: BSD-3-Clause
"""Who is to blame for what a standby worker must not have done. Those modules wait for the program, and so do all that
import them: a module that had to do without another would be another one. What they do to the environment is done for
them."""
import os
import sys

from muster_standby import pass_for_importlib


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

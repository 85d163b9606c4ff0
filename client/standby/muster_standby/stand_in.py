# SPDX-License-Identifier: BSD-3-Clause
"""What modules see of the program while a standby worker imports them. Python makes it when it starts the program: the
front of sys.path, the name in sys.argv, and what is known of __main__. It is made before, and taken away at the gate, where
Python makes it anew. Nothing of the program runs for it."""
import os
import sys

from muster_standby import program

ABSENT = object()
FILES = sys.modules["_frozen_importlib_external"]


def find(module):
    """The spec of a module that will be run with -m; None where there is none. No package is imported for it."""
    spec, names, path = None, module.split("."), None
    for at in range(len(names)):
        spec = sys.modules["_frozen_importlib"]._find_spec(".".join(names[: at + 1]), path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
        if path is None and at + 1 < len(names):
            return None
    return spec if path is None else find(module + ".__main__")


def finder_of(path):
    """What finds modules in a program that is a directory or an archive; None where it is a file."""
    for hook in sys.path_hooks:
        try:
            return hook(path)
        except ImportError:
            pass
    return None


def absolute(path):
    """As Python makes it, which leaves what is in it as it is."""
    return path if sys.version_info < (3, 9) else os.path.join(os.getcwd(), path)


class StandIn:
    def __init__(self):
        self.place, self.module = self.known = program()
        self.argument, self.old, self.first, self.finder = sys.argv[0], {}, self.place, None
        self.has_begun = False
        self.is_text = self.argument in ("", "-", "-c")
        if not self.is_text and self.module is None:
            self.finder = finder_of(absolute(self.argument))
            if self.finder is not None:
                self.place = self.first = absolute(self.argument)
        elif self.is_text and self.place is not None:
            self.first = ""

    def begin_path(self):
        if self.first is not None:
            sys.path.insert(0, self.first)
            self.has_begun = True

    def has_moved(self):
        """Whether the program would be found in another place now."""
        return program() != self.known

    def begin_main(self):
        """Python does this for -m only after it has imported the package of that module."""
        if self.old or self.is_text:
            return
        spec = find(self.module) if self.module else self.finder and FILES.PathFinder.find_spec("__main__", [self.place])
        if spec is not None:
            self.set(__file__=spec.origin, __cached__=spec.cached, __loader__=spec.loader, __package__=spec.parent, __spec__=spec)
        elif self.module is None and self.finder is None:
            file = absolute(self.argument)
            loader = FILES.SourcelessFileLoader if file.endswith(".pyc") else FILES.SourceFileLoader
            self.set(__file__=file, __cached__=None, __loader__=loader("__main__", file))
        if self.module and spec is not None:
            sys.argv[0] = spec.origin

    def set(self, **values):
        main = vars(sys.modules["__main__"])
        self.old = {name: main.get(name, ABSENT) for name in values}
        main.update(values)

    def end(self):
        main = vars(sys.modules["__main__"])
        for name, value in self.old.items():
            if value is ABSENT:
                main.pop(name, None)
            else:
                main[name] = value
        if self.old and self.module:
            sys.argv[0] = self.argument
        if self.has_begun:
            sys.path.remove(self.first)
            sys.path_importer_cache.pop(self.place, None)

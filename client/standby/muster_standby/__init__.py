# SPDX-License-Identifier: BSD-3-Clause
"""What the hook knows of the process that it is a guest in. Its parts are imported by sitecustomize.py alone, which takes
them out of sys.modules again."""
import os
import sys

ROUND = ("MASTER_", "LOCAL_", "GROUP_", "ROLE_", "TORCHELASTIC_")


def is_of_round(name):
    """Whether a variable of the environment has a value that only a worker has."""
    return name in ("RANK", "WORLD_SIZE") or name.startswith(ROUND)


def move_up(fd):
    """Moves a descriptor to a high number, closed by exec, so that those of the program get the usual numbers."""
    limit = os.sysconf("SC_OPEN_MAX")
    numbers = range(min(limit if limit > 0 else 1024, 1024) - 1, 2, -1)
    number = next(number for number in numbers if not os.path.lexists("/proc/self/fd/%d" % number))
    os.dup2(fd, number, False)
    os.close(fd)
    return number


def borrow(name, borrowed={}):
    """A module of the interpreter's own for the hook alone: sys.modules stays as it was. It is kept, since a module that
    nobody has any more is garbage, to be collected in the program's first lines."""
    if name not in borrowed:
        known, borrowed[name] = set(sys.modules), __import__(name)
        for new in set(sys.modules) - known:
            borrowed[new] = sys.modules.pop(new)
    return borrowed[name]


def program():
    """(directory that sys.path will begin with or None, module that is run with -m or None)"""
    argument, place, module = sys.argv[0], os.getcwd(), None
    if argument == "-m":
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read().split(b"\0")[:-1]
        module = os.fsdecode(words[len(words) - len(sys.argv)])
        module = module.partition("m")[2] if module.startswith("-") else module
    elif argument not in ("", "-", "-c"):
        script = os.path.realpath(argument)
        place = script if os.path.isdir(script) else os.path.dirname(script)
    return None if getattr(sys.flags, "safe_path", False) else place, module


def own_code(place):
    """A test for files of the user's: below the program's directory or the current one, but not in a library there."""
    libraries = [os.path.dirname(os.__file__)]
    libraries += [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    own = [path for path in (place, os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0]))) if path]

    def longest(paths, file):
        return max((len(path) for path in paths if file.startswith(path.rstrip("/") + "/")), default=0)

    return lambda file: longest(own, file) > longest(libraries, file)


def pass_for_importlib(function):
    """Tracebacks, debuggers and warnings leave out the frames of importlib, which they know by the name of its file."""
    function.__code__ = function.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    return function


def watch_imports(found):
    """Calls found(name, origin) before each import. sys.meta_path, which programs may look at, stays as it is, and no
    frame of the hook is on the stack while the module runs. Returns a function that ends this. muster.standby finds
    `found` there, and calls it with the name of the program's line (line.py)."""
    machinery, frame = sys.modules["_frozen_importlib"], sys._getframe
    find = machinery._find_spec

    @pass_for_importlib
    def _find_spec(name, path, target=None):
        spec = find(name, path, target)
        if spec is not None and frame(1).f_code.co_name == "_find_and_load_unlocked":
            found(name, spec.origin or "")
        return spec

    machinery._find_spec, _find_spec.found = _find_spec, found
    return lambda: setattr(machinery, "_find_spec", find)

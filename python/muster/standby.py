# SPDX-License-Identifier: BSD-3-Clause
"""The line in a program up to which its standby workers go (`muster run --standby`): they have done everything above it
when they are needed.

    import muster.standby
    ...                        what takes long, and is the same for every worker
    muster.standby.wait()
    ...                        what is different for each start: RANK, the process group

This file needs nothing else of the package, and Python 3.8. The other half is Muster's, which is in the process already
where there are standby workers (client/standby). It looks at what is imported, and is found there."""

import _thread
import os
import sys

_LINE = "__line__."
_pid = os.getpid()
_has_been_called = False


def wait():
    """To be called once, from the main thread of each worker. In a standby worker it returns True when the process has
    become a worker, and not at all when that is not needed. Everywhere else it returns False at once: in a worker that
    was started the ordinary way, under other launchers, without standby workers, and in children of a worker."""
    global _has_been_called
    found = getattr(sys.modules["_frozen_importlib"]._find_spec, "found", None)
    if found is None:
        return False
    complaint = _complaint()
    if complaint:
        import warnings

        warnings.warn("muster.standby.wait() does nothing here: " + complaint, RuntimeWarning, stacklevel=2)
        return False
    _has_been_called = True
    return found(_name(), "") is True


def _complaint():
    if os.getpid() != _pid:
        return "it is called in a child of the worker"
    if _thread.get_native_id() != _pid:
        return "it is called in another thread than the main one"
    return "it has been called before" if _has_been_called else None


def _name():
    """Of the line of this program: with a digest of its file, if what runs is what is in there now. Otherwise it is none
    by which a standby worker could know the program."""
    main = vars(sys.modules["__main__"])
    frame = sys._getframe(2)
    while frame is not None and not (frame.f_globals is main and frame.f_code.co_name == "<module>"):
        frame = frame.f_back
    try:
        with open(main["__file__"], "rb") as file:
            text = file.read()
        if frame is not None and compile(text, main["__file__"], "exec", dont_inherit=True) == frame.f_code:
            return _LINE + sys.modules["_imp"].source_hash(0, text).hex()
    except (OSError, KeyError, TypeError, ValueError, SyntaxError):
        pass
    return _LINE

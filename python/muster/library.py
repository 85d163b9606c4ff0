# SPDX-License-Identifier: BSD-3-Clause
"""libmuster, which the classes of this package are made of: where it is, and what its errors are in Python.

The library is looked for in this order: the file that the variable MUSTER_LIBRARY names, the directory `lib` of this
package, and where the system looks for libraries (as packages and `make install` put it)."""

import contextlib
import ctypes
import os
import pathlib
import sys
import threading

NAME = "libmuster.so.0"
OWN = pathlib.Path(__file__).resolve().parent / "lib" / NAME
NEEDED = ("libuv.so.1", "libjansson.so.4")

(OK, INVALID, LIMIT, STATE, FORKED, MEMORY, MISSING, UNSUPPORTED, TIMEOUT, DISCONNECTED, PROTOCOL, CANCELLED,
 SYSTEM) = range(13)  # enum muster_error

_loaded = None
_loading = threading.Lock()


class LibraryMissing(ImportError):
    """There is no libmuster on this system, or it is older than this package."""


class Failure(ctypes.Structure):
    """struct muster_failure."""

    _fields_ = [("error", ctypes.c_int), ("system_error", ctypes.c_int), ("message", ctypes.c_char * 1024)]

    def text(self):
        return self.message.decode("utf-8", "replace")


def load():
    """The library. Its functions return what enum muster_error says, unless something else is declared here."""
    global _loaded
    with _loading:
        if _loaded is None:
            _loaded = _declared(_open())
    return _loaded


def functions(declarations):
    """The library, with the functions of these names declared: {name: (what it returns, what it takes)}."""
    library = load()
    for name, (result, arguments) in declarations.items():
        function = _function(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class raising:  # noqa: N801
    """Around calls of C that call back: what a signal's handler raises meanwhile, as Control-C does, is raised when C has
    returned. ctypes would show it on stderr and forget it, wherever in the callback it has come."""

    def __enter__(self):
        self._raised, self._before = None, None
        if threading.current_thread() is threading.main_thread():  # no other runs signals' handlers
            self._before, sys.unraisablehook = sys.unraisablehook, self._note

    def _note(self, unraisable):
        if self._raised is None and "ctypes callback" in (unraisable.err_msg or ""):
            self._raised = unraisable.exc_value
        else:
            self._before(unraisable)

    def __exit__(self, *_):
        if self._before is not None:
            sys.unraisablehook = self._before
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised


def _open():
    named = os.environ.get("MUSTER_LIBRARY")
    path = named or (str(OWN) if OWN.exists() else NAME)
    try:
        if path == str(OWN):
            _open_needed()
        return ctypes.CDLL(path)
    except OSError as wrong:
        raise LibraryMissing(
            f"{path} cannot be loaded ({wrong}). Install libmuster: the package libmuster0 (Debian's kind) or muster-devel (Red "
            "Hat's kind), the wheel muster-launch, or `make install` from source; or name the file in MUSTER_LIBRARY.") from None


def _open_needed():
    """What libmuster asks for lies beside it. Once it is loaded, whoever asks for that name has it; the system's own
    goes first, since there may be one of that name in the process."""
    for needed in NEEDED:
        try:
            ctypes.CDLL(needed)
        except OSError:
            ctypes.CDLL(str(OWN.with_name(needed)))


def _function(library, name):
    try:
        return getattr(library, name)
    except AttributeError:
        raise LibraryMissing(f"{library._name} has no {name}: it is older than this package; install the same "
                             "version of both") from None


def _declared(library):
    _function(library, "muster_version").restype = ctypes.c_char_p
    return library


_process = os.getpid()
_is_ready_for_fork = False  # of the interpreter, as in the copies that C makes meanwhile


def _note_process():
    global _process, _is_ready_for_fork
    _process, _is_ready_for_fork = os.getpid(), False


os.register_at_fork(after_in_child=_note_process)


@contextlib.contextmanager
def ready_for_fork():
    """Around a call in which C forks: the interpreter holds its locks meanwhile, as in os.fork, and the copies release them."""
    global _is_ready_for_fork
    ctypes.pythonapi.PyOS_BeforeFork()
    _is_ready_for_fork = True
    try:
        yield
    finally:
        _is_ready_for_fork = False
        ctypes.pythonapi.PyOS_AfterFork_Parent()


def enter_copy():
    """In a process that C has forked the interpreter is told so, as os.fork does. For what C calls there. A copy of such a copy
    has not got ready, and does it now: CPython 3.14 ends a process that releases what it does not hold."""
    if os.getpid() != _process:
        if not _is_ready_for_fork:
            ctypes.pythonapi.PyOS_BeforeFork()
        ctypes.pythonapi.PyOS_AfterFork_Child()


def text_of(what, text):
    """Bytes of a text for C, which ends at the first zero byte."""
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"{what} is a text, not {text!r}")
    data = text.encode("utf-8") if isinstance(text, str) else text
    if b"\0" in data:
        raise ValueError(f"{what} {text!r} has a zero byte")
    return data


def error_of(code, message, kinds):
    """An exception for this code. `kinds` has what the calling module raises for some codes."""
    kind = kinds.get(code) or {
        INVALID: ValueError, LIMIT: ValueError, MEMORY: MemoryError, UNSUPPORTED: NotImplementedError, MISSING: KeyError,
        TIMEOUT: TimeoutError, DISCONNECTED: ConnectionError, SYSTEM: OSError,
    }.get(code, RuntimeError)  # fmt: skip
    return kind(message)

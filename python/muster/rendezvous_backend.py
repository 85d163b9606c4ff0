# SPDX-License-Identifier: BSD-3-Clause
"""A backend of the program's own for a rendezvous: RendezvousBackend of
torch/distributed/elastic/rendezvous/dynamic_rendezvous.py, and how libmuster calls it."""

import abc
import ctypes

from muster import library as muster_library
from muster.library import Failure
from muster.rendezvous_api import RendezvousStateError

# The library gives back the token of the record that it has seen last; an earlier one is of a write that lost.
TOKENS_KEPT = 8


class RendezvousBackend(abc.ABC):
    """Keeps the record of a rendezvous, which is bytes here. Its methods are called on the thread that takes part, one at a
    time, and have to return soon. A method that fails raises RendezvousStateError when the record is damaged; after every
    other exception it is tried again, until the time to join is up.

    What a class may have besides, and None has not:
    - `watch_fd`: a descriptor that becomes readable when the record may have changed, and `changed()`, which reads what is
      there. Without them the record is looked at about once in a second.
    - `present(node)`: ties the name of this node to this process, or, with None, ends that; and `is_gone(node)`: whether
      the node of this name was present, and is gone for good. Without them a node that is gone is missed after
      keep_alive_interval * keep_alive_max_attempt, as with PyTorch's backends."""

    watch_fd = changed = present = is_gone = None

    @property
    @abc.abstractmethod
    def name(self):
        """For messages."""

    @abc.abstractmethod
    def get_state(self):
        """(state, token), or None where there is no record yet. The token stands for this version of the record."""

    @abc.abstractmethod
    def set_state(self, state, token=None):
        """Sets the state if the record is still that of the token, or, without a token, if there is none. Returns what the
        record is then, and whether it was set: (state, token, is_set), or None where there is none. It is one step,
        whoever else does it at the same time."""


class _Record(ctypes.Structure):
    _fields_ = [
        ("exists", ctypes.c_int), ("state", ctypes.c_char_p), ("state_length", ctypes.c_size_t),
        ("token", ctypes.c_char_p), ("token_length", ctypes.c_size_t), ("is_set", ctypes.c_int),
    ]  # fmt: skip


_FAILURE = ctypes.POINTER(Failure)
_GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Record), _FAILURE)
_SET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
                        ctypes.POINTER(_Record), _FAILURE)
_CHANGED = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_PRESENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, _FAILURE)
_IS_GONE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)


class _Functions(ctypes.Structure):
    """struct muster_rendezvous_backend."""

    _fields_ = [
        ("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("get_state", _GET), ("set_state", _SET),
        ("context", ctypes.c_void_p), ("has_watch", ctypes.c_int), ("watch_fd", ctypes.c_int), ("changed", _CHANGED),
        ("present", _PRESENT), ("is_gone", _IS_GONE),
    ]  # fmt: skip


class BackendFunctions:
    """What libmuster calls instead of a RendezvousBackend, PyTorch's class of that name included. It has to live as long as
    the rendezvous."""

    def __init__(self, backend):
        self._backend, self._tokens, self._count = backend, {}, 0
        self._held = None  # what the library has borrowed
        self.functions = _Functions(
            size=ctypes.sizeof(_Functions), name=str(backend.name).encode("utf-8", "replace"),
            get_state=_GET(self._get_state), set_state=_SET(self._set_state))
        if getattr(backend, "watch_fd", None) is not None:
            self.functions.has_watch, self.functions.watch_fd = 1, backend.watch_fd
            self.functions.changed = _CHANGED(self._changed)
        if getattr(backend, "present", None) is not None:
            self.functions.present = _PRESENT(self._present)
            self.functions.is_gone = _IS_GONE(self._is_gone)

    def address(self):
        return ctypes.addressof(self.functions)

    def _number(self, token):
        """Tokens are anything; for the library they are numbers."""
        self._count += 1
        self._tokens[self._count] = token
        self._tokens.pop(self._count - TOKENS_KEPT, None)
        return b"%d" % self._count

    def _fill_in(self, out, state, token, is_set):
        if not isinstance(state, (bytes, bytearray, memoryview)):
            raise TypeError(f"the backend {self._backend.name} gives a state that is no bytes, but {type(state).__name__}")
        self._held = bytes(state), self._number(token)
        record = out.contents
        record.exists, record.is_set = 1, int(bool(is_set))
        record.state, record.state_length = self._held[0], len(self._held[0])
        record.token, record.token_length = self._held[1], len(self._held[1])

    @staticmethod
    def _told(failure, function, *arguments):
        """No exception may pass through the library."""
        muster_library.enter_copy()
        try:
            function(*arguments)
            return muster_library.OK
        except Exception as wrong:  # noqa: BLE001
            code = muster_library.PROTOCOL if isinstance(wrong, RendezvousStateError) else muster_library.DISCONNECTED
            if failure:
                text = f"{type(wrong).__name__}: {wrong}".encode("utf-8", "replace")[:1023]
                failure.contents.error, failure.contents.message = code, text.replace(b"\0", b"?")
            return code

    def _get_state(self, context, out, failure):
        def get():
            found = self._backend.get_state()
            if found is not None:
                self._fill_in(out, *found, False)

        return self._told(failure, get)

    def _set_state(self, context, state, length, token, token_length, out, failure):
        def write():
            number = int(ctypes.string_at(token, token_length)) if token_length > 0 else 0
            found = self._backend.set_state(ctypes.string_at(state, length), self._tokens.get(number))
            if found is not None:
                self._fill_in(out, *found)

        return self._told(failure, write)

    def _changed(self, context):
        muster_library.enter_copy()
        self._backend.changed()

    def _is_gone(self, context, node):
        muster_library.enter_copy()
        return int(bool(self._backend.is_gone(node.decode())))

    def _present(self, context, node, failure):
        return self._told(failure, self._backend.present, None if node is None else node.decode())

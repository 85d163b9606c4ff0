# SPDX-License-Identifier: BSD-3-Clause
"""One node's part in a dynamic rendezvous, as libmuster's muster/rendezvous.h has it: at an endpoint, or with a backend of
the program's own, without PyTorch. muster.torchrun_handler is made of it, for `torchrun --rdzv-backend muster`.

    with Rendezvous("job", "node0:29400", min_nodes=2, max_nodes=4) as rendezvous:
        info = rendezvous.next()
        print(info.rank, info.world_size)

A thread keeps the node alive, and learns at once when another one has come or gone: then num_nodes_waiting() is not 0."""

import collections
import ctypes
import dataclasses
import enum
import json
import logging
import os
import select
import threading
from typing import Optional

from muster import library as muster_library
from muster.library import Failure, error_of, raising, text_of
from muster.rendezvous_api import (
    RendezvousClosedError, RendezvousConnectionError, RendezvousError, RendezvousGracefulExitError, RendezvousStateError,
    RendezvousTimeoutError,
)  # fmt: skip
from muster.rendezvous_backend import BackendFunctions

CLOSED, GRACEFUL_EXIT = 13, 14  # enum muster_error, beside those of muster.library

logger = logging.getLogger(__name__)

# `store` and `bootstrap_store_info` are those of TorchElastic's class; muster.dynamic_rendezvous gives them.
RendezvousInfo = collections.namedtuple(
    "RendezvousInfo", "round rank world_size node store_prefix store_host store_port master_addr master_port store "
    "bootstrap_store_info", defaults=(None, None))


_KINDS = {
    CLOSED: RendezvousClosedError, muster_library.TIMEOUT: RendezvousTimeoutError,
    muster_library.DISCONNECTED: RendezvousConnectionError, muster_library.PROTOCOL: RendezvousStateError,
    GRACEFUL_EXIT: RendezvousGracefulExitError,
}  # fmt: skip


class _Info(ctypes.Structure):
    _fields_ = [
        ("round", ctypes.c_int64), ("rank", ctypes.c_int), ("world_size", ctypes.c_int), ("node", ctypes.c_char_p),
        ("store_prefix", ctypes.c_char_p), ("store_host", ctypes.c_char_p), ("store_port", ctypes.c_int),
        ("master_addr", ctypes.c_char_p), ("master_port", ctypes.c_int),
    ]  # fmt: skip


_HANDLE = ctypes.c_void_p
_FAILURE = ctypes.POINTER(Failure)
_ROUND_OVER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
_LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
_DONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_Info))


class _Event(ctypes.Structure):
    """struct muster_rendezvous_event."""

    _fields_ = [
        ("name", ctypes.c_char_p), ("run_id", ctypes.c_char_p), ("message", ctypes.c_char_p), ("hostname", ctypes.c_char_p),
        ("pid", ctypes.c_int64), ("node_state", ctypes.c_int), ("master_endpoint", ctypes.c_char_p), ("rank", ctypes.c_int),
        ("has_local_id", ctypes.c_int), ("local_id", ctypes.c_int64), ("error_trace", ctypes.c_char_p),
    ]  # fmt: skip


_EVENT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Event))


class NodeState(str, enum.Enum):
    """In which state a node was when it has recorded an event."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


@dataclasses.dataclass
class RdzvEvent:
    """A step of a node, with the members of TorchElastic's class of this name."""

    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: Optional[int] = None
    local_id: Optional[int] = None
    error_trace: str = ""

    def serialize(self):
        return json.dumps(dataclasses.asdict(self))


def _event_of(event):
    return RdzvEvent(
        _text(event.name), _text(event.run_id), _text(event.message), _text(event.hostname), event.pid,
        list(NodeState)[event.node_state], _text(event.master_endpoint), event.rank if event.rank >= 0 else None,
        event.local_id if event.has_local_id else None, _text(event.error_trace))


class _Settings(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("run_id", ctypes.c_char_p), ("endpoint", ctypes.c_char_p),
        ("backend", ctypes.c_void_p), ("min_nodes", ctypes.c_int), ("max_nodes", ctypes.c_int),
        ("local_addr", ctypes.c_char_p), ("join_timeout", ctypes.c_double), ("last_call_timeout", ctypes.c_double),
        ("close_timeout", ctypes.c_double), ("keep_alive_interval", ctypes.c_double),
        ("keep_alive_max_attempt", ctypes.c_int), ("is_host", ctypes.c_int), ("token_file", ctypes.c_char_p),
        ("linger_timeout", ctypes.c_double), ("is_torchrun", ctypes.c_int), ("master_addr", ctypes.c_char_p),
        ("master_port", ctypes.c_int), ("round_over", _ROUND_OVER), ("log", _LOG), ("context", ctypes.c_void_p),
        ("use_agent_store", ctypes.c_int), ("event", _EVENT),
    ]  # fmt: skip


def _library():
    wanted = {
        "muster_rendezvous_new": [ctypes.POINTER(_Settings), ctypes.POINTER(_HANDLE), _FAILURE],
        "muster_rendezvous_submit_next": [_HANDLE, _DONE, ctypes.c_void_p, _FAILURE],
        "muster_rendezvous_is_closed": [_HANDLE, ctypes.POINTER(ctypes.c_int), _FAILURE],
        "muster_rendezvous_num_nodes_waiting": [_HANDLE, ctypes.POINTER(ctypes.c_size_t), _FAILURE],
        "muster_rendezvous_set_closed": [_HANDLE, _FAILURE],
        "muster_rendezvous_shutdown": [_HANDLE, _FAILURE],
        "muster_rendezvous_process": [_HANDLE, _FAILURE],
    }
    declarations = {name: (ctypes.c_int, arguments) for name, arguments in wanted.items()}
    declarations["muster_rendezvous_free"] = (None, [_HANDLE])
    declarations["muster_rendezvous_fd"] = (ctypes.c_int, [_HANDLE])
    return muster_library.functions(declarations)


def _log(context, level, origin, message):
    logger.log(level, "%s", message.decode("utf-8", "replace"))


def _text(bytes_or_none):
    return None if bytes_or_none is None else bytes_or_none.decode("utf-8", "replace")


class Rendezvous:
    """The settings are those of struct muster_rendezvous_settings, where they say what they mean. `on_event` is called with an
    RdzvEvent for each step of the node; it must not call the rendezvous."""

    def __init__(self, run_id, endpoint=None, min_nodes=1, max_nodes=0, local_addr=None, is_host=None, token_file=None,
                 is_torchrun=False, linger_timeout=0.0, backend=None, use_agent_store=False, on_event=None, **timeouts):
        self._library, self._handle, self._thread = _library(), _HANDLE(), None
        self._lock, self._process, self._is_ending = threading.Lock(), os.getpid(), False
        self._callbacks = [_LOG(_log)]  # the library calls them as long as it lives
        self._run_id, self._was_closed = run_id, False
        self._backend = None if backend is None else BackendFunctions(backend)
        settings = _Settings(
            size=ctypes.sizeof(_Settings), run_id=text_of("run_id", run_id),
            endpoint=None if endpoint is None else text_of("endpoint", endpoint),
            backend=None if backend is None else self._backend.address(),
            min_nodes=min_nodes, max_nodes=max_nodes, is_torchrun=is_torchrun, linger_timeout=linger_timeout,
            use_agent_store=use_agent_store,
            is_host=0 if is_host is None else 1 if is_host else -1, log=self._callbacks[0],
            local_addr=text_of("local_addr", local_addr) if local_addr else None,
            token_file=text_of("token_file", os.fspath(token_file)) if token_file else None, **timeouts)
        if on_event is not None:
            self._on_event = on_event
            self._callbacks.append(_EVENT(self._take_event))
            settings.event = self._callbacks[1]
        failure = Failure()
        self._check(self._library.muster_rendezvous_new(settings, self._handle, failure), failure)

    @staticmethod
    def _check(code, failure):
        if code != muster_library.OK:
            raise error_of(code, failure.text(), _KINDS)

    def _take_event(self, _context, pointer):
        try:
            self._on_event(_event_of(pointer.contents))
        except Exception:
            logger.exception("what is called with the rendezvous's events has failed")

    def _call(self, function, *arguments):
        failure = Failure()
        with self._lock, raising():
            self._check(function(self._handle, *arguments, failure), failure)

    def next(self):
        """The next round with this node in it, when there is one. Signals are handled meanwhile."""
        ended, answers = threading.Event(), []

        def done(context, code, message, info):
            if code == muster_library.OK:
                found = info.contents
                answers.append(RendezvousInfo(*(_text(value) if isinstance(value, (bytes, type(None))) else value
                                                for value in (getattr(found, name) for name, _ in _Info._fields_))))
            else:
                answers.append(error_of(code, _text(message), _KINDS))
            ended.set()

        callback = _DONE(done)
        self._asked = callback
        self._call(self._library.muster_rendezvous_submit_next, callback, None)
        self._keep_alive()
        ended.wait()
        if isinstance(answers[0], Exception):
            raise answers[0]
        return answers[0]

    def _keep_alive(self):
        if self._thread is None:
            self._wake = os.pipe()
            self._thread = threading.Thread(target=self._run, name="muster-rendezvous", daemon=True)
            self._thread.start()

    def _run(self):
        poll = select.poll()
        poll.register(self._library.muster_rendezvous_fd(self._handle), select.POLLIN)
        poll.register(self._wake[0], select.POLLIN)
        while not self._is_ending:
            poll.poll()
            with self._lock:
                if not self._is_ending:
                    self._library.muster_rendezvous_process(self._handle, None)

    def is_closed(self):
        answer = ctypes.c_int()
        self._call(self._library.muster_rendezvous_is_closed, answer)
        return bool(answer.value)

    def num_nodes_waiting(self):
        answer = ctypes.c_size_t()
        self._call(self._library.muster_rendezvous_num_nodes_waiting, answer)
        return answer.value

    def set_closed(self):
        self._call(self._library.muster_rendezvous_set_closed)

    def shutdown(self):
        """Closes the rendezvous, and leaves. Whether it could be closed. A further call does nothing, and returns the same."""
        if not self._is_ending:
            try:
                # A node that was in no round asks a backend once: one that cannot be reached has nothing to be closed.
                if self._backend is None or self._thread is not None or not self.is_closed():
                    self._call(self._library.muster_rendezvous_shutdown)
                self._was_closed = True
            except RendezvousError as wrong:
                logger.warning("the rendezvous '%s' was not shut down: %s", self._run_id, wrong)
            finally:
                self.close()
        return self._was_closed

    @property
    def run_id(self):
        return self._run_id

    def close(self):
        """This node is gone, without closing the rendezvous for the others."""
        if self._is_ending or os.getpid() != self._process:
            return
        self._is_ending = True
        if self._thread is not None:
            os.write(self._wake[1], b"e")
            self._thread.join()
            for fd in self._wake:
                os.close(fd)
        with self._lock:
            handle, self._handle = self._handle, _HANDLE()  # what is called from now on gets an error
            with raising():
                self._library.muster_rendezvous_free(handle)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

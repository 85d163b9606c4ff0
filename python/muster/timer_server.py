# SPDX-License-Identifier: BSD-3-Clause
"""FileTimerServer of torch.distributed.elastic.timer without PyTorch: serves the timers of other processes on a thread. Their
clients are muster.timer, PyTorch's FileTimerClient, muster/timer.h and `muster timer run`.

    server = FileTimerServer("/run/user/1000/timers", run_id="mine")
    server.start()

The differences from PyTorch's: A deadline is noticed when it is due. Only processes of this user are ended, never this one,
and never a process that got the number of one that had the timer. Nothing happens to this process when a timer expires."""

import ctypes
import logging
import os
import select
import threading
import time

from muster import library as muster_library
from muster.library import Failure, error_of, raising, text_of
from muster.timer import FileTimerRequest

STARTED, STOPPED, EXPIRED, SIGNALLED = range(1, 5)  # enum muster_timer_event_kind

logger = logging.getLogger(__name__)


class _Event(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int), ("pid", ctypes.c_long), ("signal", ctypes.c_int),
        ("scopes", ctypes.POINTER(ctypes.c_char_p)), ("expirations", ctypes.POINTER(ctypes.c_double)),
        ("count", ctypes.c_size_t),
    ]  # fmt: skip


_MAY_ASK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_long)
_KILL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_long, ctypes.c_ulonglong, ctypes.c_int)
_EVENT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Event))
_LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)


class _Settings(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("path", ctypes.c_char_p), ("may_ask", _MAY_ASK), ("kill", _KILL), ("event", _EVENT),
        ("log", _LOG), ("context", ctypes.c_void_p),
    ]  # fmt: skip


class _Request(ctypes.Structure):
    """struct muster_timer_request."""

    _fields_ = [
        ("pid", ctypes.c_long), ("scope", ctypes.c_char_p), ("expiration", ctypes.c_double), ("signal", ctypes.c_int),
        ("json", ctypes.c_char_p),
    ]  # fmt: skip


_VISIT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Request))
_HANDLE = ctypes.c_void_p
_FAILURE = ctypes.POINTER(Failure)


def _library():
    with_server = {
        "muster_timer_server_new": [ctypes.POINTER(_Settings), ctypes.POINTER(_HANDLE), _FAILURE],
        "muster_timer_server_start": [_HANDLE, _FAILURE],
        "muster_timer_server_stop": [_HANDLE, _FAILURE],
        "muster_timer_server_process": [_HANDLE, _FAILURE],
        "muster_timer_server_clear": [_HANDLE, ctypes.c_long, _FAILURE],
        "muster_timer_server_last_progress_time": [_HANDLE, ctypes.POINTER(ctypes.c_double), _FAILURE],
        "muster_timer_server_register": [_HANDLE, ctypes.c_long, ctypes.c_char_p, ctypes.c_double, ctypes.c_int, _FAILURE],
        "muster_timer_server_each_expired": [_HANDLE, ctypes.c_double, _VISIT, ctypes.c_void_p, _FAILURE],
        "muster_timer_server_count": [_HANDLE, ctypes.POINTER(ctypes.c_size_t), _FAILURE],
    }
    declared = {name: (ctypes.c_int, arguments) for name, arguments in with_server.items()}
    declared["muster_timer_server_free"] = (None, [_HANDLE])
    declared["muster_timer_server_fd"] = (ctypes.c_int, [_HANDLE])
    declared["muster_timer_is_process_running"] = (ctypes.c_int, [ctypes.c_long])
    return muster_library.functions(declared)


class FileTimerServer:
    """`log_event(name, request)` is called with "watchdog started", "timer expired", "kill worker process" and "watchdog
    stopped"; the request is None of the first and the last. The lines of the log name `run_id`. `max_interval` is there for
    PyTorch's programs, and says nothing: there is no interval. `may_ask(pid)` says whether a process may have timers (default:
    those of this user but this one). `kill(pid, signal)` ends a process and says whether that was done (default: sends the
    signal to it).

    Callbacks come from the server's thread, and from start() and stop()."""

    def __init__(self, file_path, run_id="", max_interval=10, daemon=True, log_event=None, may_ask=None, kill=None):
        self._library, self._handle, self._failure = _library(), _HANDLE(), Failure()
        self._file_path, self._daemon = os.fspath(file_path), daemon
        self._prefix = f"run_id={run_id}: " if run_id else ""
        self._log_event, self._may_ask, self._kill = log_event, may_ask, kill
        self._lock = threading.RLock()  # in C, one thread at a time
        self._thread, self._last_progress_time = None, time.time()
        self._settings = _Settings(size=ctypes.sizeof(_Settings), path=text_of("the path", self._file_path),
                                   event=_EVENT(self._take_event), log=_LOG(self._take_log))
        if may_ask is not None:
            self._settings.may_ask = _MAY_ASK(self._take_question)
        if kill is not None:
            self._settings.kill = _KILL(self._take_kill)
        self._check(self._library.muster_timer_server_new(
            ctypes.byref(self._settings), ctypes.byref(self._handle), ctypes.byref(self._failure)))
        self._wake_end, self._waking_end = os.pipe()
        self._fd = self._library.muster_timer_server_fd(self._handle)

    def start(self):
        """Begins to serve; what was written before is dropped."""
        with self._lock:
            self._call("start")
            self._thread = threading.Thread(target=self._serve, name="muster-timers", daemon=self._daemon)
            self._thread.start()

    def stop(self):
        """Forgets all timers and removes the FIFO. The server cannot be started again."""
        self._end(is_told=True)

    def run_once(self):
        """Takes in what is in the FIFO, ends what is due, and stops, without the event of stop()."""
        with self._lock:
            if self._handle and self._thread:
                self._call("process")
        self._end(is_told=False)

    def get_last_progress_time(self):
        """In seconds since 1970: now, as long as what is due is ended in time."""
        with self._lock:
            if self._handle:
                moment = ctypes.c_double()
                self._call("last_progress_time", ctypes.byref(moment))
                self._last_progress_time = moment.value
        return int(self._last_progress_time)

    def clear_timers(self, worker_pids):
        """Drops all timers of these processes."""
        with self._lock:
            for pid in worker_pids:
                self._call("clear", pid)

    def register_timers(self, timer_requests):
        """Takes these FileTimerRequests as if their processes had asked. A negative expiration releases the timer. A process
        that would get none gets none here."""
        with self._lock:
            for request in timer_requests:
                expiration = request.expiration_time if request.expiration_time < float("inf") else -1.0  # it never comes
                self._call("register", request.worker_pid, text_of("the scope", request.scope_id), expiration,
                           max(0, request.signal))

    def get_expired_timers(self, deadline):
        """{pid: [FileTimerRequest]} of the timers held that have expired by this time, in seconds since 1970."""
        found = {}

        def visit(_context, pointer):
            timer = pointer.contents
            request = FileTimerRequest(timer.pid, timer.scope.decode("utf-8", "replace"), timer.expiration, timer.signal)
            found.setdefault(timer.pid, []).append(request)

        with self._lock:
            self._call("each_expired", deadline, _VISIT(visit), None)
        return found

    @staticmethod
    def is_process_running(pid):
        return bool(_library().muster_timer_is_process_running(pid))

    def timer_count(self):
        """How many timers are held."""
        with self._lock:
            count = ctypes.c_size_t()
            self._call("count", ctypes.byref(count))
        return count.value

    def _serve(self):
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        poll.register(self._wake_end, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            with self._lock:
                if self._wake_end in ready or not self._handle:
                    return
                self._call("process")
                if not self._handle:  # stopped by a callback
                    return

    def _end(self, is_told):
        with self._lock:
            thread, self._thread = self._thread, None
            if thread:
                os.write(self._waking_end, b"x")
        if thread and thread is not threading.current_thread():
            thread.join()
        with self._lock:
            if not self._handle:
                return
            if not is_told:
                self._log_event = None
            if thread:
                self._call("stop")
            self._library.muster_timer_server_free(self._handle)
            self._handle = None
            os.close(self._wake_end)
            os.close(self._waking_end)

    def _call(self, name, *arguments):
        function = getattr(self._library, f"muster_timer_server_{name}")
        with raising():
            code = function(self._handle, *arguments, ctypes.byref(self._failure))
        self._check(code)

    def _check(self, code):
        if code != muster_library.OK:
            raise error_of(code, self._failure.text(), {})

    def __del__(self):
        if getattr(self, "_handle", None) and not self._thread:
            self._end(is_told=False)

    # What C calls. An exception of a callback must not get into C: it is logged.

    def _safely(self, function, *arguments):
        try:
            return function(*arguments)
        except Exception:
            logger.exception("A callback of the timer server has failed.")
            return None

    def _take_question(self, _context, pid):
        return 1 if self._safely(self._may_ask, pid) else 0

    def _take_kill(self, _context, pid, _start_time, number):
        return 1 if self._safely(self._kill, pid, number) else 0

    def _take_log(self, _context, level, _origin, message):
        self._safely(logger.log, level, "%s%s", self._prefix, message.decode("utf-8", "replace"))

    def _take_event(self, _context, pointer):
        event = pointer.contents
        if self._log_event is not None:
            self._safely(self._tell, event)

    def _tell(self, event):
        if event.kind in (STARTED, STOPPED):
            self._log_event("watchdog started" if event.kind == STARTED else "watchdog stopped", None)
            return
        # The last one has asked for the signal.
        requests = [FileTimerRequest(event.pid, event.scopes[each].decode("utf-8", "replace"), event.expirations[each],
                                     event.signal if each == event.count - 1 else 0) for each in range(event.count)]
        if event.kind == SIGNALLED:
            self._log_event("kill worker process", requests[-1])
            return
        for request in requests:
            self._log_event("timer expired", request)

# SPDX-License-Identifier: BSD-3-Clause
"""Countdown timers by which a process asks to be ended if it hangs: FileTimerClient, configure and expires of
torch.distributed.elastic.timer, without PyTorch. The server is an agent (`muster run` or torchrun), PyTorch's
FileTimerServer, or muster.timer_server.

    with expires(after=30):
        load_a_batch()

Nothing here needs libmuster."""

import abc
import contextlib
import json
import os
import select
import signal
import sys
import time

# Where an agent has its FIFO.
VARIABLE = "TORCHELASTIC_TIMER_FILE"
# A server that is not there yet is waited for, as long as in PyTorch. There is no way to wait for a path.
OPENING_SECONDS = 1.0
OPENING_PAUSE_SECONDS = 0.01
# How long a request waits for room in a FIFO that is full.
ROOM_SECONDS = 5.0


class TimerClient(abc.ABC):
    """Asks for timers of this process. What expires() is given may be of any class that has these."""

    @abc.abstractmethod
    def acquire(self, scope_id, expiration_time):
        """Asks for a timer of this scope, which expires at this time (as time.time())."""

    @abc.abstractmethod
    def release(self, scope_id):
        """The timer of this scope is over."""


class FileTimerRequest:
    """A timer of a process. A negative expiration time releases it."""

    __slots__ = ["version", "worker_id", "scope_id", "expiration_time", "signal"]

    def __init__(self, worker_pid, scope_id, expiration_time, signal=0):
        self.version, self.worker_id, self.scope_id = 1, worker_pid, scope_id
        self.expiration_time, self.signal = expiration_time, int(signal)

    @property
    def worker_pid(self):
        return self.worker_id

    def __eq__(self, other):
        if not isinstance(other, FileTimerRequest):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None

    def __repr__(self):
        return f"FileTimerRequest{self.to_json()}"

    def to_json(self):
        return json.dumps({"version": self.version, "pid": self.worker_pid, "scope_id": self.scope_id,
                           "expiration_time": self.expiration_time, "signal": self.signal})  # fmt: skip


class FileTimerClient(TimerClient):
    """Asks the server at this FIFO. `signal` is what ends this process; zero or less: nothing."""

    def __init__(self, file_path, signal=signal.SIGKILL):
        self._file_path, self.signal = os.fspath(file_path), signal

    def acquire(self, scope_id, expiration_time):
        """Asks to be ended at this time (as time.time()), unless the scope is released or acquired again before."""
        self._send(FileTimerRequest(os.getpid(), scope_id, expiration_time, self.signal))

    def release(self, scope_id):
        self._send(FileTimerRequest(os.getpid(), scope_id, -1))

    def _send(self, request):
        line = request.to_json().encode("ascii") + b"\n"
        if len(line) > select.PIPE_BUF:  # the kernel may split longer ones
            raise RuntimeError(f"the timer request has {len(line)} bytes, and may have {select.PIPE_BUF}: {request.scope_id!r:.80}")
        fd = self._open()
        try:
            _write(fd, line)
        except BlockingIOError:
            raise TimeoutError(f"{self._file_path}: the server has taken nothing for {ROOM_SECONDS} seconds") from None
        finally:
            os.close(fd)

    def _open(self):
        deadline = time.monotonic() + OPENING_SECONDS
        while True:
            try:
                return os.open(self._file_path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as wrong:
                if time.monotonic() >= deadline:
                    raise BrokenPipeError(f"{self._file_path}: no server of timers is there ({wrong.strerror})") from wrong
            time.sleep(OPENING_PAUSE_SECONDS)


def _write(fd, line):
    """All of it or nothing. Raises BlockingIOError when there is no room in time."""
    poll, deadline = select.poll(), time.monotonic() + ROOM_SECONDS
    poll.register(fd, select.POLLOUT)
    while True:
        try:
            os.write(fd, line)
            return
        except BlockingIOError:
            left = deadline - time.monotonic()
            if left <= 0:
                raise
            poll.poll(1000 * left + 1)


_timer_client = None


def configure(timer_client):
    """The client that `expires` uses from now on where it is given none."""
    global _timer_client
    _timer_client = timer_client


def _default_client():
    if _timer_client is not None:
        return _timer_client
    if not os.environ.get(VARIABLE):
        raise RuntimeError(f"there is no client for timers: call configure(), or run under an agent that sets {VARIABLE}")
    return FileTimerClient(os.environ[VARIABLE])


def expires(after, scope=None, client=None):
    """For `with`: a timer for the block, which ends this process if the block takes longer than `after` seconds. The scope is
    by default the place of the call. Without a client it is that of configure(), else the agent's."""
    if scope is None:
        caller = sys._getframe(1)
        scope = f"{caller.f_code.co_filename}#{caller.f_lineno}"
    return _held(client if client is not None else _default_client(), scope, after)


@contextlib.contextmanager
def _held(client, scope, after):
    client.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        client.release(scope)

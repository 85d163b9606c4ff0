# SPDX-License-Identifier: BSD-3-Clause
"""Timers between a program and its children by a queue of multiprocessing: TimerServer, RequestQueue, LocalTimerServer and what
belongs to them, of torch.distributed.elastic.timer, without PyTorch. Programs may extend each.

    queue = multiprocessing.Queue()
    LocalTimerServer(queue).start()          # in the parent
    configure(LocalTimerClient(queue))       # in a child
    with expires(after=30):
        load_a_batch()

The differences from PyTorch's: a LocalTimerServer notices a deadline when it is due, not at the end of an interval. It does not
end a process that has got the number of the one that had asked, nor this one. Programs in C have muster/local_timer.h."""

import abc
import logging
import os
import queue
import signal
import threading
import time

from muster.timer import TimerClient, configure, expires

__all__ = ["LocalTimerClient", "LocalTimerServer", "MultiprocessingRequestQueue", "RequestQueue", "TimerClient", "TimerRequest",
           "TimerServer", "configure", "expires"]  # fmt: skip

logger = logging.getLogger(__name__)

# kill() would reach more processes than one by the first two.
NOBODY = (0, -1, 1)
STARTED = 19  # of the words of /proc/PID/stat behind the name: when the process began


class TimerRequest:
    """A timer of a worker, whose id means what client and server want. A negative expiration time releases it."""

    __slots__ = ["worker_id", "scope_id", "expiration_time"]

    def __init__(self, worker_id, scope_id, expiration_time):
        self.worker_id, self.scope_id, self.expiration_time = worker_id, scope_id, expiration_time

    def __eq__(self, other):
        return isinstance(other, TimerRequest) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None

    def __repr__(self):
        return f"TimerRequest({self.worker_id!r}, {self.scope_id!r}, {self.expiration_time!r})"


class RequestQueue(abc.ABC):
    """Where a server has its requests from."""

    @abc.abstractmethod
    def size(self):
        """How many there are; as many can be had at once."""

    @abc.abstractmethod
    def get(self, size, timeout):
        """Up to so many requests, for which it waits up to so many seconds."""


class TimerServer(abc.ABC):
    """Ends workers whose timers have expired, on a thread of its own."""

    def __init__(self, request_queue, max_interval, daemon=True):
        self._request_queue, self._max_interval, self._daemon = request_queue, max_interval, daemon
        self._watchdog_thread, self._stop_signaled = None, False

    @abc.abstractmethod
    def register_timers(self, timer_requests):
        """Takes these requests."""

    @abc.abstractmethod
    def clear_timers(self, worker_ids):
        """Drops all timers of these workers."""

    @abc.abstractmethod
    def get_expired_timers(self, deadline):
        """{worker_id: [TimerRequest]} of what has expired by this time."""

    @abc.abstractmethod
    def _reap_worker(self, worker_id):
        """Ends a worker, and says whether that was done. After an exception the worker counts as ended."""

    def _patience(self):
        """For how many seconds requests are waited for before it is looked what has expired."""
        return self._max_interval

    def _ends_worker(self, worker_id):
        try:
            return self._reap_worker(worker_id)
        except Exception:
            logger.exception("the timer server's _reap_worker has failed for %s, which counts as ended", worker_id)
            return True

    def _run_watchdog(self):
        self.register_timers(self._request_queue.get(max(1, self._request_queue.size()), self._patience()))
        ended = set()
        for worker_id, expired in self.get_expired_timers(time.time()).items():
            logger.info("ending worker %s, whose timers have expired: %s", worker_id, [timer.scope_id for timer in expired])
            if self._ends_worker(worker_id):
                ended.add(worker_id)
            else:
                logger.error("worker %s could not be ended, and is tried again", worker_id)
        self.clear_timers(ended)

    def _watchdog_loop(self):
        while not self._stop_signaled:
            try:
                self._run_watchdog()
            except Exception:
                logger.exception("the timer server has failed, and goes on")

    def start(self):
        """Begins to serve."""
        self._watchdog_thread = threading.Thread(target=self._watchdog_loop, name="muster-local-timers", daemon=self._daemon)
        self._watchdog_thread.start()

    def stop(self):
        """Ends the thread, for which it waits up to one interval."""
        self._stop_signaled = True
        if self._watchdog_thread is not None:
            self._watchdog_thread.join(self._max_interval)
            self._watchdog_thread = None


class LocalTimerClient(TimerClient):
    """For a process whose parent has a LocalTimerServer with this queue."""

    def __init__(self, mp_queue):
        self._mp_queue = mp_queue

    def acquire(self, scope_id, expiration_time):
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, expiration_time))

    def release(self, scope_id):
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, -1))


class MultiprocessingRequestQueue(RequestQueue):
    """Over a multiprocessing.Queue."""

    def __init__(self, mp_queue):
        self._mp_queue = mp_queue

    def size(self):
        return self._mp_queue.qsize()

    def get(self, size, timeout):
        requests, deadline, left = [], time.monotonic() + timeout, timeout
        while len(requests) < size:
            try:
                requests.append(self._mp_queue.get(timeout=max(0, left)))
            except queue.Empty:
                break
            left = deadline - time.monotonic()
            if left <= 0:
                break
        return requests


class LocalTimerServer(TimerServer):
    """Its workers are processes, and their ids are pids."""

    def __init__(self, mp_queue, max_interval=60, daemon=True):
        super().__init__(MultiprocessingRequestQueue(mp_queue), max_interval, daemon)
        self._timers, self._started = {}, {}

    def register_timers(self, timer_requests):
        for request in timer_requests:
            timer = request.worker_id, request.scope_id
            if request.expiration_time < 0:
                self._timers.pop(timer, None)
            else:
                self._timers[timer] = request
                self._started[request.worker_id] = _start_time(request.worker_id)

    def clear_timers(self, worker_ids):
        self._timers = {timer: request for timer, request in self._timers.items() if timer[0] not in worker_ids}
        held = {worker_id for worker_id, _ in self._timers}
        self._started = {worker_id: moment for worker_id, moment in self._started.items() if worker_id in held}

    def get_expired_timers(self, deadline):
        expired = {}
        for request in self._timers.values():
            if request.expiration_time <= deadline:
                expired.setdefault(request.worker_id, []).append(request)
        return expired

    def _patience(self):
        first = min((request.expiration_time for request in self._timers.values()), default=float("inf"))
        return max(0, min(self._max_interval, first - time.time()))

    def _reap_worker(self, worker_id):
        started = self._started.get(worker_id)
        if worker_id in (*NOBODY, os.getpid()) or (started is not None and _start_time(worker_id) != started):
            logger.info("process %s is none that may be ended, or is gone", worker_id)
            return True
        try:
            os.kill(worker_id, signal.SIGKILL)
            return True
        except ProcessLookupError:
            logger.info("process %s is gone", worker_id)
            return True
        except OSError:
            logger.exception("process %s could not be ended", worker_id)
            return False


def _start_time(pid):
    """With the number, it tells a process from all others. None: there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[STARTED]
    except OSError:
        return None

# SPDX-License-Identifier: BSD-3-Clause
"""TimerClient, RequestQueue and TimerServer, extended: timers of threads, whose requests wait in a list.    python3 own_timers.py"""

import threading
import time

from muster import timer
from muster.local_timer import RequestQueue, TimerClient, TimerRequest, TimerServer


class ListQueue(RequestQueue):
    def __init__(self):
        self._requests, self._come = [], threading.Condition()

    def put(self, request):
        with self._come:
            self._requests.append(request)
            self._come.notify_all()

    def size(self):
        return len(self._requests)

    def get(self, size, timeout):
        with self._come:
            self._come.wait_for(lambda: len(self._requests) >= size, timeout)
            taken, self._requests[:size] = self._requests[:size], []
            return taken


class ThreadTimers(TimerClient):
    def __init__(self, queue):
        self._queue = queue

    def acquire(self, scope_id, expiration_time):
        self._queue.put(TimerRequest(threading.get_ident(), scope_id, expiration_time))

    def release(self, scope_id):
        self._queue.put(TimerRequest(threading.get_ident(), scope_id, -1))


class ThreadServer(TimerServer):
    """A thread cannot be ended: it is told."""

    def __init__(self, queue, told):
        super().__init__(queue, max_interval=0.02)
        self._timers, self._told = {}, told

    def register_timers(self, timer_requests):
        for request in timer_requests:
            if request.expiration_time < 0:
                self._timers.pop((request.worker_id, request.scope_id), None)
            else:
                self._timers[request.worker_id, request.scope_id] = request

    def clear_timers(self, worker_ids):
        self._timers = {key: request for key, request in self._timers.items() if key[0] not in worker_ids}

    def get_expired_timers(self, deadline):
        expired = {}
        for request in self._timers.values():
            if request.expiration_time <= deadline:
                expired.setdefault(request.worker_id, []).append(request)
        return expired

    def _reap_worker(self, worker_id):
        self._told.set()
        return True


if __name__ == "__main__":
    queue, told = ListQueue(), threading.Event()
    server = ThreadServer(queue, told)
    server.start()
    timer.configure(ThreadTimers(queue))
    with timer.expires(after=3600, scope="quick"):
        time.sleep(0.01)
    with timer.expires(after=0.05, scope="slow"):
        print("told" if told.wait(60) else "forgotten")
    server.stop()

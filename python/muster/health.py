# SPDX-License-Identifier: BSD-3-Clause
"""Answers probes over HTTP: HealthCheckServer and create_healthcheck_server of
torch/distributed/elastic/agent/server/health_check_server.py, with muster/health.h and without PyTorch.

    server = create_healthcheck_server(lambda: last_step_time, 8080, 60)
    server.start()

`GET /health` answers 200 while the time that the callback returns is not older than the timeout, else 503. Handed to
LocalElasticAgent (muster.agent) it is not started: the agent serves there, and says what it knows itself, too."""

import ctypes
import logging
import select
import socket
import threading

from muster import library as muster_library
from muster.library import Failure, error_of

logger = logging.getLogger(__name__)

_ALIVE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


class _Settings(ctypes.Structure):
    """struct muster_health_settings."""

    _fields_ = [
        ("size", ctypes.c_size_t), ("alive", _ALIVE), ("context", ctypes.c_void_p), ("address", ctypes.c_char_p),
        ("port", ctypes.c_int), ("timeout", ctypes.c_double),
    ]  # fmt: skip


def _library():
    handle, failure = ctypes.c_void_p, ctypes.POINTER(Failure)
    return muster_library.functions({
        "muster_health_server_new": (ctypes.c_int, [ctypes.POINTER(_Settings), ctypes.POINTER(handle), failure]),
        "muster_health_server_free": (None, [handle]),
        "muster_health_server_port": (ctypes.c_int, [handle]),
        "muster_health_server_fd": (ctypes.c_int, [handle]),
        "muster_health_server_process": (ctypes.c_int, [handle, failure]),
    })  # fmt: skip


class HealthCheckServer:
    """`alive_callback` returns when the program made progress last, in seconds since 1970. Port 0 is a free one, which `port` has
    once the server is started."""

    def __init__(self, alive_callback, port, timeout):
        self.alive_callback, self.port, self.timeout = alive_callback, port, timeout
        self._thread = self._handle = None

    def start(self):
        self._library, self._handle, failure = _library(), ctypes.c_void_p(), Failure()
        self._callback = _ALIVE(self._ask)
        settings = _Settings(ctypes.sizeof(_Settings), self._callback, None, None, self.port, self.timeout)
        code = self._library.muster_health_server_new(settings, self._handle, failure)
        if code != muster_library.OK:
            raise error_of(code, failure.text(), {})
        self.port = self._library.muster_health_server_port(self._handle)
        self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="muster-health", daemon=True)
        self._thread.start()

    def stop(self):
        if self._thread is None:
            return
        self._wake[0].close()
        self._thread.join()
        self._wake[1].close()
        self._library.muster_health_server_free(self._handle)
        self._thread = self._handle = None

    def _ask(self, _context):
        try:
            return int(self.alive_callback())
        except Exception:
            logger.exception("the alive callback has failed")
            return 0

    def _serve(self):
        poll = select.poll()
        poll.register(self._library.muster_health_server_fd(self._handle), select.POLLIN)
        poll.register(self._wake[1], select.POLLIN)
        while not any(fd == self._wake[1].fileno() for fd, _ in poll.poll()):
            self._library.muster_health_server_process(self._handle, None)


def create_healthcheck_server(alive_callback, healthcheck_port, timeout):
    return HealthCheckServer(alive_callback, healthcheck_port, timeout)

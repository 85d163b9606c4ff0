# SPDX-License-Identifier: BSD-3-Clause
"""TCPStore, FileStore and PrefixStore with the methods of torch.distributed's, without PyTorch. The server may be Muster's or
PyTorch's, the file may be shared with PyTorch's processes, and an agent's workers find its store at MASTER_ADDR and MASTER_PORT.

    store = TCPStore("node0", 29500)
    store.set("rank0", "ready")

What waits can be interrupted by signals (Control-C). Threads may share a store; they wait for each other, as in PyTorch. A
process that was forked has to make a store of its own."""

import ctypes
import datetime
import errno
import functools
import os
import select
import threading
import time
import weakref

from muster import library as muster_library
from muster.library import Failure, error_of, raising, text_of

(SET, GET, ADD, APPEND, COMPARE_SET, CHECK, WAIT, DELETE_KEY, NUM_KEYS, MULTI_GET, MULTI_SET, QUEUE_PUSH, QUEUE_POP,
 QUEUE_LEN, LIST_KEYS, BARRIER, PING) = range(1, 18)  # enum muster_store_operation

WITHOUT_KEY = (NUM_KEYS, LIST_KEYS, PING)

DEFAULT_TIMEOUT = datetime.timedelta(seconds=300)
# How much later than its deadline an answer may be before it is called lost.
GRACE_SECONDS = 10
# Of the key "init/", in which PyTorch's stores count workers. It has no other way to be told of them.
INIT_KEY = "init/"
INIT_PAUSE_SECONDS = 0.01


class DistError(RuntimeError):
    """What went wrong, as torch.distributed.DistError."""


class DistStoreError(DistError):
    """As torch.distributed.DistStoreError."""


class DistNetworkError(DistError):
    """There is no connection to the server, or no longer."""


class DistTimeoutError(DistStoreError, TimeoutError):
    """The time limit has passed."""


class DistQueueEmptyError(DistStoreError):
    """There is nothing in the queue."""


KINDS = {
    muster_library.TIMEOUT: DistTimeoutError, muster_library.DISCONNECTED: DistNetworkError,
    muster_library.PROTOCOL: DistStoreError, muster_library.SYSTEM: DistStoreError,
    muster_library.CANCELLED: DistStoreError, muster_library.MISSING: DistQueueEmptyError,
}  # fmt: skip


class _Slice(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    def bytes(self):
        return ctypes.string_at(self.data, self.length) if self.length else b""


class _Request(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("operation", ctypes.c_int), ("key", ctypes.c_char_p), ("value", _Slice),
        ("expected", _Slice), ("number", ctypes.c_int64), ("keys", ctypes.POINTER(ctypes.c_char_p)),
        ("values", ctypes.POINTER(_Slice)), ("count", ctypes.c_size_t), ("timeout", ctypes.c_double),
        ("is_raw", ctypes.c_int),
    ]  # fmt: skip


class _Result(ctypes.Structure):
    _fields_ = [
        ("error", ctypes.c_int), ("message", ctypes.c_char_p), ("system_error", ctypes.c_int), ("is_over", ctypes.c_int),
        ("number", ctypes.c_int64), ("value", _Slice), ("values", ctypes.POINTER(_Slice)), ("count", ctypes.c_size_t),
    ]  # fmt: skip


class _TcpSettings(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("host", ctypes.c_char_p), ("port", ctypes.c_int), ("timeout", ctypes.c_double),
        ("silence_timeout", ctypes.c_double), ("token_file", ctypes.c_char_p), ("value_maximum", ctypes.c_size_t),
        ("connected", ctypes.c_void_p), ("lost", ctypes.c_void_p), ("context", ctypes.c_void_p),
    ]  # fmt: skip


class _FileSettings(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("path", ctypes.c_char_p), ("timeout", ctypes.c_double), ("is_visitor", ctypes.c_int),
        ("connected", ctypes.c_void_p), ("lost", ctypes.c_void_p), ("context", ctypes.c_void_p),
    ]  # fmt: skip


class _ServerSettings(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("host", ctypes.c_char_p), ("port", ctypes.c_int), ("has_fd", ctypes.c_int),
        ("fd", ctypes.c_int), ("is_polled", ctypes.c_int), ("token_file", ctypes.c_char_p),
        ("silence_timeout", ctypes.c_double), ("memory", ctypes.c_size_t), ("memory_percent", ctypes.c_int),
        ("key_maximum", ctypes.c_size_t), ("value_maximum", ctypes.c_size_t), ("request_keys", ctypes.c_size_t),
        ("request_maximum", ctypes.c_size_t), ("reply_maximum", ctypes.c_size_t), ("connection_maximum", ctypes.c_size_t),
        ("log", ctypes.c_void_p), ("context", ctypes.c_void_p),
    ]  # fmt: skip


_DONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Result))
_HANDLE = ctypes.c_void_p
_FAILURE = ctypes.POINTER(Failure)


def _library():
    return muster_library.functions({
        "muster_store_new_tcp": (ctypes.c_int, [ctypes.POINTER(_TcpSettings), ctypes.POINTER(_HANDLE), _FAILURE]),
        "muster_store_new_file": (ctypes.c_int, [ctypes.POINTER(_FileSettings), ctypes.POINTER(_HANDLE), _FAILURE]),
        "muster_store_new_prefix": (ctypes.c_int, [_HANDLE, ctypes.c_char_p, ctypes.POINTER(_HANDLE), _FAILURE]),
        "muster_store_free": (None, [_HANDLE]),
        "muster_store_set_timeout": (ctypes.c_int, [_HANDLE, ctypes.c_double, _FAILURE]),
        "muster_store_timeout": (ctypes.c_double, [_HANDLE]),
        "muster_store_submit": (ctypes.c_int, [_HANDLE, ctypes.POINTER(_Request), _DONE, ctypes.c_void_p, _FAILURE]),
        "muster_store_fd": (ctypes.c_int, [_HANDLE]),
        "muster_store_process": (ctypes.c_int, [_HANDLE, _FAILURE]),
        "muster_store_server_new": (ctypes.c_int, [ctypes.POINTER(_ServerSettings), ctypes.POINTER(_HANDLE), _FAILURE]),
        "muster_store_server_free": (None, [_HANDLE]),
        "muster_store_server_port": (ctypes.c_int, [_HANDLE]),
    })  # fmt: skip


def _told_of_server(reason):
    """With PyTorch's words where a port is taken, which programs look for."""
    is_taken = os.strerror(errno.EADDRINUSE) in reason
    return f"The server socket has failed to listen on any local network address (EADDRINUSE): {reason}" if is_taken else reason


def _made(function, *arguments):
    """The object that a function of C makes, as its handle."""
    handle, failure = _HANDLE(), Failure()
    code = function(*arguments, ctypes.byref(handle), ctypes.byref(failure))
    if code != muster_library.OK:
        raise error_of(code, failure.text(), KINDS)
    return handle


def _seconds(timeout):
    """For C: no time at all means for ever in PyTorch."""
    seconds = timeout.total_seconds()
    if seconds < 0:
        raise ValueError(f"the time limit {timeout} is negative")
    return seconds or -1.0


def _bytes(value):
    if isinstance(value, str):
        return value.encode("utf-8")
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"a value is text or bytes, not {value!r}")
    return bytes(value)


def _slice(data):
    return _Slice(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data))


def _about(request):
    names = [request.key] if request.key else [request.keys[each] for each in range(request.count)]
    shown = ", ".join(name.decode("utf-8", "replace") for name in names[:3]) + (", ..." if len(names) > 3 else "")
    return f" (keys: {shown})" if names else ""


class _Answer:
    """Of one request: what C has called back with, and what has to stay until then."""

    def __init__(self):
        self.code = None
        self.callback = _DONE(self._take)

    def _take(self, _context, pointer):
        result = pointer.contents
        self.message = (result.message or b"").decode("utf-8", "replace")
        self.number = result.number
        self.value = result.value.bytes()
        self.values = [result.values[each].bytes() for each in range(result.count)]
        self.code = result.error


class _Shared:
    """What the stores of one connection share: the server that they serve, and that only one thread at a time is inside."""

    def __init__(self, server=None):
        # Taken with `with` itself: between a method's taking it and its return, Control-C would leave it taken.
        self.lock, self._abandoned, self._owner = threading.Lock(), [], os.getpid()
        self.unanswered = set()
        self.server = server

    def check(self):
        if os.getpid() != self._owner:
            raise RuntimeError("the store belongs to the process that has made it")

    def tidy(self):
        """For the thread that is inside, when it leaves."""
        while self._abandoned:
            with raising():
                self._abandoned.pop()()
        self.unanswered.difference_update({each for each in self.unanswered if each.code is not None})

    def abandon(self, free):
        """Frees a store that nobody holds any more, now or when the thread that is inside leaves."""
        self._abandoned.append(free)
        if self.lock.acquire(blocking=False):
            try:
                self.tidy()
            finally:
                self.lock.release()


class Store:
    """What all kinds of stores have. Keys are texts. Values are given as text or bytes, and come as bytes."""

    def __init__(self, handle, shared):
        self._library, self._handle, self._shared = _library(), handle, shared
        # Callbacks come until it is freed, and the server outlives its clients: so `shared` is held by this, too.
        free = functools.partial(self._library.muster_store_free, handle)
        self._finish = weakref.finalize(self, shared.abandon, free)

    def _ask(self, operation, key=None, keys=None, value=b"", expected=b"", values=(), number=0, timeout=0.0, is_raw=False):
        request = _Request(size=ctypes.sizeof(_Request), operation=operation, number=number, timeout=timeout, is_raw=is_raw)
        if keys is None and operation not in WITHOUT_KEY:
            request.key = text_of("the key", key)
        value, expected = _bytes(value), _bytes(expected)
        request.value, request.expected = _slice(value), _slice(expected)
        if keys is not None:
            if isinstance(keys, (str, bytes)):
                raise TypeError(f"{keys!r} is one key; a list of keys is needed")
            names, contents = [text_of("the key", each) for each in keys], [_bytes(each) for each in values]
            if operation == MULTI_SET and len(contents) != len(names):
                raise ValueError(f"there are {len(names)} keys and {len(contents)} values")
            request.keys = (ctypes.c_char_p * len(names))(*names)
            request.values = (_Slice * len(contents))(*map(_slice, contents))
            request.count = len(names)
        self._shared.check()
        with self._shared.lock:
            try:
                return self._wait_for(request)
            finally:
                self._shared.tidy()

    def _wait_for(self, request):
        answer, failure = _Answer(), Failure()
        unanswered = self._shared.unanswered
        unanswered.add(answer)  # C may call it back later, if this is interrupted
        with raising():
            code = self._library.muster_store_submit(self._handle, ctypes.byref(request), answer.callback, None,
                                                     ctypes.byref(failure))
        if code != muster_library.OK:
            unanswered.discard(answer)
            raise error_of(code, failure.text(), KINDS)
        limit = request.timeout or self._library.muster_store_timeout(self._handle)
        # Connecting has a limit of its own.
        deadline = None if limit < 0 else time.monotonic() + 2 * limit + GRACE_SECONDS
        poll = select.poll()
        poll.register(self._library.muster_store_fd(self._handle), select.POLLIN)
        while answer.code is None:
            if deadline is not None and time.monotonic() > deadline:
                raise DistTimeoutError("an answer was lost")
            poll.poll(None if deadline is None else 1000 * max(0.0, deadline - time.monotonic()) + 1)
            with raising():
                code = self._library.muster_store_process(self._handle, ctypes.byref(failure))
            if code != muster_library.OK:
                raise error_of(code, failure.text(), KINDS)
        if answer.code != muster_library.OK:
            raise error_of(answer.code, answer.message + _about(request), KINDS)
        return answer

    def set(self, key, value):
        self._ask(SET, key, value=value)

    def get(self, key):
        """Waits until the key exists."""
        return self._ask(GET, key).value

    def add(self, key, amount):
        return self._ask(ADD, key, number=int(amount)).number

    def append(self, key, value):
        self._ask(APPEND, key, value=value)

    def check(self, keys):
        """Whether all of the keys exist."""
        return self._ask(CHECK, keys=keys).number == 1

    def wait(self, keys, timeout=None):
        """Waits until all of the keys exist."""
        self._ask(WAIT, keys=keys, timeout=0.0 if timeout is None else _seconds(timeout))

    def delete_key(self, key):
        """Whether it existed."""
        return self._ask(DELETE_KEY, key).number == 1

    def compare_set(self, key, expected_value, desired_value):
        return self._ask(COMPARE_SET, key, expected=expected_value, value=desired_value).value

    def multi_get(self, keys):
        return self._ask(MULTI_GET, keys=keys).values

    def multi_set(self, keys, values):
        self._ask(MULTI_SET, keys=keys, values=values)

    def num_keys(self):
        return self._ask(NUM_KEYS).number

    def list_keys(self):
        """The names of all keys, as they are on the server."""
        return [name.decode("utf-8", "replace") for name in self._ask(LIST_KEYS).values]

    def queue_push(self, key, value):
        self._ask(QUEUE_PUSH, key, value=value)

    def queue_pop(self, key, block=True):
        """Raises DistQueueEmptyError when there is nothing and it is not to wait."""
        answer = self._ask(QUEUE_POP, key, number=1 if block else 0)
        if answer.number == 0:
            raise DistQueueEmptyError("queue is empty")
        return answer.value

    def queue_len(self, key):
        return self._ask(QUEUE_LEN, key).number

    def barrier(self, key, world_size, timeout=None):
        """Waits until that many have called it."""
        self._ask(BARRIER, key, number=int(world_size), timeout=0.0 if timeout is None else _seconds(timeout))

    def set_timeout(self, timeout):
        failure = Failure()
        self._shared.check()
        with self._shared.lock:
            code = self._library.muster_store_set_timeout(self._handle, _seconds(timeout), ctypes.byref(failure))
        if code != muster_library.OK:
            raise error_of(code, failure.text(), KINDS)

    @property
    def timeout(self):
        """datetime.timedelta(0) stands for ever."""
        return datetime.timedelta(seconds=max(0.0, self._library.muster_store_timeout(self._handle)))

    def has_extended_api(self):
        """Whether it has append, multi_get, multi_set and queues."""
        return True

    def close(self):
        """Frees the store; it cannot be used any more. Done by itself when nobody holds it."""
        self._shared.check()
        with self._shared.lock:
            self._handle = None
            self._finish()
            self._shared.tidy()


class _Server:
    """A store server of this process, on a thread of its own."""

    _by_port = weakref.WeakValueDictionary()

    def __init__(self, port, listen_fd, token_file):
        library = _library()
        settings = _ServerSettings(size=ctypes.sizeof(_ServerSettings), port=port, token_file=token_file)
        if listen_fd is not None:
            settings.port, settings.has_fd, settings.fd = 0, 1, listen_fd
        try:
            handle = _made(library.muster_store_server_new, ctypes.byref(settings))
        except DistStoreError as wrong:
            raise DistNetworkError(_told_of_server(str(wrong))) from None  # as in PyTorch, when the port is taken
        self.port = library.muster_store_server_port(handle)
        weakref.finalize(self, library.muster_store_server_free, handle)

    @classmethod
    def of(cls, port, listen_fd, token_file, is_shared):
        server = cls._by_port.get(port) if is_shared and port else None
        if server is None:
            server = cls(port, listen_fd, token_file)
            cls._by_port[server.port] = server
        return server


class TCPStore(Store):
    """With `is_master` it serves, too, as long as a store of it is used. `world_size` is how many stores there will be;
    with `wait_for_workers` the master waits for all of them. `token_file` has the job's token, which PyTorch's servers
    and clients do not know. `use_libuv` is there for PyTorch's programs, and says nothing."""

    def __init__(self, host_name, port, world_size=None, is_master=False, timeout=DEFAULT_TIMEOUT, wait_for_workers=True,
                 multi_tenant=False, master_listen_fd=None, use_libuv=True, token_file=None):
        token = None if token_file is None else text_of("the token file", str(token_file))
        host = text_of("the host", host_name)
        server = _Server.of(port, master_listen_fd, token, multi_tenant) if is_master else None
        self._host, self._port, self._token_file = host_name, server.port if server else port, token_file
        settings = _TcpSettings(size=ctypes.sizeof(_TcpSettings), host=host, port=self._port, timeout=_seconds(timeout),
                                token_file=token)
        super().__init__(_made(_library().muster_store_new_tcp, ctypes.byref(settings)), _Shared(server))
        self._connect()
        if wait_for_workers and world_size is not None and world_size >= 0:
            self._count_workers(world_size, is_master, timeout)

    def _connect(self):
        try:
            self._ask(PING)
        except DistStoreError as wrong:
            raise DistNetworkError(str(wrong)) from None

    def _count_workers(self, world_size, is_master, timeout):
        """As PyTorch's stores do, which may be among them: they add to a number, and have no key to wait for."""
        joined = self._ask(ADD, INIT_KEY, number=1, is_raw=True).number
        deadline = time.monotonic() + timeout.total_seconds()
        while is_master and joined < world_size:
            if timeout and time.monotonic() > deadline:
                raise DistTimeoutError(f"{joined} of {world_size} clients have joined after {timeout.total_seconds()} seconds")
            time.sleep(INIT_PAUSE_SECONDS)
            joined = int(self._ask(GET, INIT_KEY, is_raw=True).value)

    @property
    def host(self):
        return self._host

    @property
    def port(self):
        return self._port

    def clone(self):
        """Another connection to the same server."""
        return TCPStore(self._host, self._port, timeout=self.timeout, token_file=self._token_file)


class FileStore(Store):
    """The file is created where it is missing, and is never removed. `world_size` is there for PyTorch's programs, whose
    stores remove the file by it, and says nothing."""

    def __init__(self, file_name, world_size=-1, timeout=DEFAULT_TIMEOUT):
        path = text_of("the path", str(file_name))
        settings = _FileSettings(size=ctypes.sizeof(_FileSettings), path=path, timeout=_seconds(timeout))
        super().__init__(_made(_library().muster_store_new_file, ctypes.byref(settings)), _Shared())
        self._path = str(file_name)

    @property
    def path(self):
        return self._path

    def has_extended_api(self):
        return False

    def clone(self):
        return FileStore(self._path, timeout=self.timeout)


class PrefixStore(Store):
    """The same store; "prefix/" goes before every key."""

    def __init__(self, prefix, store):
        if not isinstance(store, Store):
            raise TypeError(f"{store!r} is no store of muster.store")
        store._shared.check()
        with store._shared.lock:
            handle = _made(_library().muster_store_new_prefix, store._handle, text_of("the prefix", prefix))
        super().__init__(handle, store._shared)
        self._prefix, self._store = prefix, store

    @property
    def underlying_store(self):
        return self._store

    def has_extended_api(self):
        return self._store.has_extended_api()

    def clone(self):
        return PrefixStore(self._prefix, self._store.clone())

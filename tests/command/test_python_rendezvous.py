# SPDX-License-Identifier: BSD-3-Clause
"""The Python package's rendezvous with a backend of the program's own, several nodes in one process."""

import contextlib
import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from support.own_library import environment, import_module

rendezvous = import_module("muster.rendezvous")
store = import_module("muster.store")

pytestmark = pytest.mark.plain_build
SOON = rendezvous.RendezvousTimeout(join=timedelta(seconds=20), last_call=timedelta(seconds=1), close=timedelta(seconds=5))


class SharedRecord:
    """What the backends of one job's nodes have in common."""

    def __init__(self):
        self.lock, self.state, self.version, self.present, self.gone, self.watchers = threading.RLock(), None, 0, set(), set(), []

    def tell(self):
        for write_end in self.watchers:
            os.write(write_end, b"!")


class Backend(rendezvous.RendezvousBackend):
    """Tokens that are no bytes: a version and the object that it is of."""

    name = "shared"

    def __init__(self, shared):
        self.shared, self.calls, self.wrong = shared, 0, None

    def record(self):
        return None if self.shared.state is None else (self.shared.state, (self.shared.version, self.shared))

    def get_state(self):
        self.calls += 1
        if self.wrong is not None:
            raise self.wrong
        with self.shared.lock:
            return self.record()

    def set_state(self, state, token=None):
        with self.shared.lock:
            is_set = token == ((self.shared.version, self.shared) if self.shared.state is not None else None)
            if is_set:
                self.shared.state, self.shared.version = state, self.shared.version + 1
                self.shared.tell()
            found = self.record()
            return None if found is None else (*found, is_set)


class WatchedBackend(Backend):
    """With all that a backend may have."""

    def __init__(self, shared):
        super().__init__(shared)
        self.watch_fd, self.write_end = os.pipe()
        self.node = None
        shared.watchers.append(self.write_end)

    def changed(self):
        os.read(self.watch_fd, 4096)

    def present(self, node):
        with self.shared.lock:
            if self.node is not None:
                self.shared.gone.add(self.node)
                self.shared.tell()
            self.node = node

    def is_gone(self, node):
        return node in self.shared.gone


def handler_of(backend, lowest=2, highest=2, keys=None, timeout=SOON, run_id="job"):
    return rendezvous.DynamicRendezvousHandler.from_backend(run_id, keys, backend, lowest, highest, "127.0.0.1", timeout)


def all_next(handlers):
    with ThreadPoolExecutor(len(handlers)) as pool:
        return [info.result(30) for info in [pool.submit(handler.next_rendezvous) for handler in handlers]]


@contextlib.contextmanager
def ended(handlers):
    yield handlers
    for handler in handlers:
        handler.close()


@pytest.mark.parametrize("kind", [Backend, WatchedBackend])
def test_nodes_meet_by_a_backend_of_the_program(kind):
    shared = SharedRecord()
    with ended([handler_of(kind(shared), 3, 3) for _ in range(3)]) as handlers:
        infos = all_next(handlers)
        assert sorted(info.rank for info in infos) == [0, 1, 2]
        assert {(info.world_size, info.round, info.store) for info in infos} == {(3, 0, None)}
        assert [handler.is_closed() for handler in handlers] == [False] * 3
        assert [handler.num_nodes_waiting() for handler in handlers] == [0] * 3
        assert handlers[0].shutdown() is True
        assert handlers[0].shutdown() is True
        with pytest.raises(rendezvous.RendezvousClosedError):
            handler_of(kind(shared), 3, 3).next_rendezvous()


def test_the_store_of_a_round_and_of_its_workers():
    keys = store.TCPStore("127.0.0.1", 0, is_master=True)
    shared = SharedRecord()
    with ended([handler_of(Backend(shared), keys=keys.clone()) for _ in range(2)]) as handlers:
        infos = all_next(handlers)
        infos[0].store.set("said", b"here")
        assert infos[1].store.get("said") == b"here"
        assert keys.get(infos[0].store_prefix + "/said") == b"here"
        assert infos[0].bootstrap_store_info == infos[1].bootstrap_store_info
        assert 0 < infos[0].bootstrap_store_info.master_port < 65536


def test_the_steps_of_a_node_are_events():
    told = []

    def take(event):
        told.append(event)
        raise ValueError("who is told is wrong, which is its own business")

    handler = rendezvous.DynamicRendezvousHandler.from_backend("job", None, Backend(SharedRecord()), 1, 1, "here", SOON, on_event=take)
    with ended([handler]):
        handler.next_rendezvous()
        handler.shutdown()
    assert {(event.run_id, event.hostname, event.pid, event.master_endpoint) for event in told} == {("job", "here", os.getpid(), "")}
    joined = next(event for event in told if event.rank is not None)
    assert joined.message.endswith("has joined round 0 of the rendezvous 'job' as rank 0 in a world of size 1.")
    assert (joined.name, joined.node_state) == ("dynamic_rendezvous.py:DynamicRendezvousHandler.next_rendezvous", "RUNNING")
    assert isinstance(joined.local_id, int)
    assert told[-1].node_state is rendezvous.NodeState.SUCCEEDED
    assert '"node_state": "SUCCEEDED"' in told[-1].serialize()


def test_the_first_node_serves_the_store_of_the_workers():
    keys = store.TCPStore("127.0.0.1", 0, is_master=True)
    shared = SharedRecord()
    with ended([rendezvous.DynamicRendezvousHandler.from_backend("job", keys.clone(), Backend(shared), 2, 2, "127.0.0.1", SOON)
                for _ in range(2)]) as handlers:
        assert [handler.use_agent_store for handler in handlers] == [True, True]
        place = all_next(handlers)[0].bootstrap_store_info
        worker = store.TCPStore(place.master_addr, place.master_port, is_master=False)
        worker.set("worker", b"here")
        assert worker.get("worker") == b"here"
        again = all_next(handlers)
        assert again[0].round == 1
        assert {info.bootstrap_store_info for info in again} == {place}


def test_the_first_worker_serves_its_store_where_the_environment_says_so(monkeypatch):
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    keys = store.TCPStore("127.0.0.1", 0, is_master=True)
    with ended([handler_of(Backend(SharedRecord()), 1, 1, keys)]) as (handler,):
        assert handler.use_agent_store is False
        place = handler.next_rendezvous().bootstrap_store_info
        store.TCPStore("127.0.0.1", place.master_port, is_master=True)  # which nobody has


def test_a_node_that_comes_is_seen_and_let_in():
    shared = SharedRecord()
    with ended([handler_of(WatchedBackend(shared), 1, 3) for _ in range(3)]) as handlers:
        first = all_next(handlers[:1])[0]
        assert first.world_size == 1
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(handlers[1].next_rendezvous)
            while handlers[0].num_nodes_waiting() == 0:
                pass
            again = handlers[0].next_rendezvous()
            assert (again.round, again.world_size, second.result(30).world_size) == (1, 2, 2)


def test_a_node_that_is_gone_is_seen_by_its_presence():
    shared = SharedRecord()
    with ended([handler_of(WatchedBackend(shared), 1, 2) for _ in range(2)]) as handlers:
        all_next(handlers)
        handlers[1].close()
        while handlers[0].num_nodes_waiting() == 0:
            pass
        assert handlers[0].next_rendezvous().world_size == 1


def test_a_redundant_node_takes_the_place_of_one_that_is_gone():
    shared = SharedRecord()
    with ended([handler_of(WatchedBackend(shared)) for _ in range(3)]) as handlers:
        all_next(handlers[:2])
        with ThreadPoolExecutor(2) as pool:
            spare = pool.submit(handlers[2].next_rendezvous)
            while handlers[2]._backend.node is None:
                pass
            handlers[1].close()
            rest = pool.submit(handlers[0].next_rendezvous)
            assert (spare.result(30).world_size, rest.result(30).world_size) == (2, 2)


@pytest.mark.parametrize("wrong, error, text", [
    (rendezvous.RendezvousStateError("torn"), rendezvous.RendezvousStateError, "torn"),
    (rendezvous.RendezvousConnectionError("away"), rendezvous.RendezvousConnectionError, "away"),
    (ZeroDivisionError("a\0b"), rendezvous.RendezvousConnectionError, "ZeroDivisionError: a?b"),
])
def test_what_a_backend_raises(wrong, error, text):
    backend = Backend(SharedRecord())
    backend.wrong = wrong
    soon = rendezvous.RendezvousTimeout(join=timedelta(seconds=0.5))
    with ended([handler_of(backend, timeout=soon)]) as handlers, pytest.raises(rendezvous.RendezvousError) as raised:
        handlers[0].next_rendezvous()
    assert (type(raised.value), text in str(raised.value)) == (error, True), repr(raised.value)


def test_a_node_that_was_in_no_round_asks_a_backend_that_is_gone_once():
    backend = Backend(SharedRecord())
    handler, asked = handler_of(backend), []
    backend.wrong = ConnectionError("gone")
    get_state = backend.get_state
    backend.get_state = lambda: asked.append(1) or get_state()
    assert not handler.shutdown()
    assert len(asked) == 1


@pytest.mark.parametrize("state", ["text", 3, None])
def test_a_state_that_is_no_bytes(state):
    backend = Backend(SharedRecord())
    backend.get_state = lambda: (state, b"token")
    soon = rendezvous.RendezvousTimeout(join=timedelta(seconds=0.5))
    with ended([handler_of(backend, timeout=soon)]) as handlers, pytest.raises(rendezvous.RendezvousError, match="no bytes"):
        handlers[0].next_rendezvous()


def test_a_state_that_is_none_of_a_rendezvous_is_refused():
    shared = SharedRecord()
    shared.state = b"cos\nsystem\n(S'true'\ntR."
    with ended([handler_of(Backend(shared))]) as handlers, pytest.raises(rendezvous.RendezvousStateError):
        handlers[0].next_rendezvous()


def test_a_node_asks_its_backend_before_its_first_round():
    shared = SharedRecord()
    with ended([handler_of(Backend(shared), 1, 1) for _ in range(2)]) as (looker, other):
        assert (looker.is_closed(), looker.num_nodes_waiting(), looker._backend.calls) == (False, 0, 2)
        other.next_rendezvous()
        other.set_closed()
        assert looker.is_closed() is True
        looker._backend.wrong = rendezvous.RendezvousConnectionError("away")
        with pytest.raises(rendezvous.RendezvousConnectionError, match="away"):
            looker.num_nodes_waiting()


def test_a_node_goes_on_with_what_it_wrote_where_its_backend_has_no_answer():
    shared = SharedRecord()
    backend = Backend(shared)
    answers = [None]

    def set_state(state, token=None):
        found = Backend.set_state(backend, state, token)
        return answers.pop() if answers else found

    backend.set_state = set_state
    with ended([handler_of(backend, 1, 1)]) as (handler,):
        assert handler.next_rendezvous().world_size == 1
        assert (shared.version, answers) == (1, [])


def test_a_backend_that_never_answers_with_a_record_ends_at_the_deadline():
    backend = Backend(SharedRecord())
    backend.get_state, backend.set_state = lambda: None, lambda state, token: None
    soon = rendezvous.RendezvousTimeout(join=timedelta(seconds=0.5))
    with ended([handler_of(backend, timeout=soon)]) as handlers, pytest.raises(rendezvous.RendezvousError):
        handlers[0].next_rendezvous()


@pytest.mark.parametrize("lowest, highest, run_id, text", [
    (0, 1, "job", "minimum number of nodes (0)"), (3, 2, "job", "maximum number of nodes (2)"), (1, 1, "", "run id"),
    (1, 1, "a\0b", "zero byte"), (1, 70000, "job", "70000"), (1, 1, "j" * 300, "256"),
])
def test_settings_that_make_no_sense(lowest, highest, run_id, text):
    with pytest.raises(ValueError) as raised:
        handler_of(Backend(SharedRecord()), lowest, highest, run_id=run_id)
    assert text in str(raised.value), raised.value


@pytest.mark.parametrize("endpoint, text", [("host:port", "host:port"), ("host:-1", "host:-1"), ("host:65536", "65536")])
def test_an_endpoint_that_is_none(endpoint, text):
    with pytest.raises(ValueError, match=text):
        rendezvous.create_backend(rendezvous.RendezvousParameters("c10d", endpoint, "job", 1, 1))


class OwnHandler(rendezvous.RendezvousHandler):
    """One node, alone."""

    def __init__(self, params):
        self.params, self.is_over = params, False

    def get_backend(self):
        return "mine"

    def next_rendezvous(self):
        return (0, 1)

    def is_closed(self):
        return self.is_over

    def set_closed(self):
        self.is_over = True

    def num_nodes_waiting(self):
        return 0

    def get_run_id(self):
        return self.params.run_id

    def shutdown(self):
        return True


def test_a_program_registers_a_handler_by_name():
    registry = rendezvous.RendezvousHandlerRegistry()
    params = rendezvous.RendezvousParameters("mine", "", "job", 1, 1)
    with pytest.raises(ValueError, match="'mine' is not registered"):
        registry.create_handler(params)
    registry.register("mine", OwnHandler)
    registry.register("mine", OwnHandler)
    with pytest.raises(ValueError, match="already registered"):
        registry.register("mine", lambda params: None)
    with pytest.raises(ValueError, match="non-empty"):
        registry.register("", OwnHandler)
    handler = registry.create_handler(params)
    assert (handler.get_run_id(), handler.use_agent_store) == ("job", False)
    registry.register("yours", OwnHandler)
    with pytest.raises(RuntimeError, match="'mine' does not match the requested backend 'yours'"):
        registry.create_handler(rendezvous.RendezvousParameters("yours", "", "job", 1, 1))


def test_what_lacks_a_method_is_no_handler():
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (rendezvous.RendezvousHandler,), {})()
    assert issubclass(rendezvous.DynamicRendezvousHandler, rendezvous.RendezvousHandler)


def test_c10d_by_name():
    keys = store.TCPStore("127.0.0.1", 0, is_master=True)
    params = rendezvous.RendezvousParameters("c10d", f"127.0.0.1:{keys.port}", "job", 1, 1, "127.0.0.1", is_host=False)
    with ended([rendezvous.get_rendezvous_handler(params)]) as (handler,):
        assert handler.get_backend() == "c10d"
        assert handler.next_rendezvous().world_size == 1


def test_static_by_name():
    keys = store.TCPStore("127.0.0.1", 0, is_master=True, multi_tenant=True)  # whose server is that of rank 0
    endpoint = f"127.0.0.1:{keys.port}"
    handlers = [rendezvous.get_rendezvous_handler(rendezvous.RendezvousParameters("static", endpoint, "job", 2, 2, rank=rank))
                for rank in range(2)]
    infos = all_next(handlers)
    assert [(info.rank, info.world_size) for info in infos] == [(0, 2), (1, 2)]
    infos[0].store.set("said", b"here")
    assert infos[1].store.get("said") == b"here"
    assert infos[0].bootstrap_store_info == infos[1].bootstrap_store_info
    for words in ({}, {"rank": 0}):
        with pytest.raises(ValueError, match="rank|port"):
            rendezvous.get_rendezvous_handler(rendezvous.RendezvousParameters("static", "host", "job", 1, 1, **words))
    with pytest.raises(ValueError, match="not registered"):
        rendezvous.get_rendezvous_handler(rendezvous.RendezvousParameters("nobody's", "", "job", 1, 1))


def test_nodes_that_come_and_go_leave_no_descriptor():
    def play():
        shared = SharedRecord()
        with ended([handler_of(Backend(shared), 1, 1)]) as handlers:
            all_next(handlers)

    play()
    gc.collect()  # what other tests have left
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(30):
        play()
    assert len(os.listdir("/proc/self/fd")) == before


def test_it_imports_no_pytorch():
    script = "import sys, muster.rendezvous; print(sorted(name for name in sys.modules if name.startswith('torch')))"
    end = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True,
                         env={**os.environ, **{name: str(value) for name, value in environment().items()}})
    assert end.stdout == "[]\n"

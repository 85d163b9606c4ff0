# SPDX-License-Identifier: BSD-3-Clause
"""muster.store, with Muster's own server. How it compares with PyTorch's classes is in tests/interop."""

import ast
import contextlib
import datetime
import gc
import os
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.binary import ROOT
from support.own_library import environment, import_module

pytestmark = pytest.mark.plain_build
store = import_module("muster.store")
store_utils = import_module("muster.store_utils")

LONG = datetime.timedelta(seconds=60)
SHORT = datetime.timedelta(milliseconds=20)


@pytest.fixture
def master():
    with contextlib.closing(store.TCPStore("127.0.0.1", 0, is_master=True, timeout=LONG)) as made:
        yield made


@pytest.fixture(params=["tcp", "file", "prefix"])
def any_store(request, master, scratch):
    if request.param == "file":
        return store.FileStore(scratch / "file", timeout=LONG)
    return master if request.param == "tcp" else store.PrefixStore("p", master)


def test_what_is_set_is_there(any_store):
    for value, expected in (("text", b"text"), (b"\x00\xff", b"\x00\xff"), ("", b""), ("é", "é".encode())):
        any_store.set("key", value)
        assert any_store.get("key") == expected
    assert any_store.add("number", 5) == 5
    assert any_store.add("number", -7) == -2
    assert any_store.check(["key", "number"])
    assert not any_store.check(["key", "missing"])
    any_store.wait(["key", "number"])
    assert any_store.delete_key("key")
    assert not any_store.delete_key("key")
    assert any_store.compare_set("cas", "", "one") == b"one"
    assert any_store.compare_set("cas", "other", "two") == b"one"
    assert any_store.compare_set("cas", "one", b"two") == b"two"


def test_what_a_file_does_not_have(master, scratch):
    assert master.has_extended_api()
    master.multi_set(["a", "b"], ["1", b"2"])
    master.append("a", "0")
    assert master.multi_get(["b", "a"]) == [b"2", b"10"]
    master.queue_push("q", "x")
    assert master.queue_len("q") == 1
    assert master.queue_pop("q") == b"x"
    with pytest.raises(store.DistQueueEmptyError):
        master.queue_pop("q", block=False)
    file = store.FileStore(scratch / "file")
    assert not file.has_extended_api()
    with pytest.raises(NotImplementedError):
        file.queue_push("q", "x")


def test_prefixes_are_nested_and_share_the_connection(master):
    inner = store.PrefixStore("b", store.PrefixStore("a", master))
    inner.set("key", "value")
    assert master.get("a/b/key") == b"value"
    assert inner.underlying_store.underlying_store is master
    with pytest.raises(TypeError):
        store.PrefixStore("a", object())


def test_a_time_limit_leaves_the_store_usable(any_store):
    with pytest.raises(store.DistTimeoutError, match="missing"):
        any_store.wait(["missing"], SHORT)
    assert any_store.timeout == LONG
    any_store.set_timeout(SHORT)
    assert any_store.timeout == SHORT
    with pytest.raises(store.DistStoreError):
        any_store.get("missing")
    any_store.set_timeout(datetime.timedelta(0))
    assert any_store.timeout == datetime.timedelta(0)  # for ever
    any_store.set("key", "value")
    assert any_store.get("key") == b"value"


def test_master_waits_for_its_workers():
    made = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, fd = listener.getsockname()[1], listener.detach()

    def make_master():
        made.append(store.TCPStore("127.0.0.1", 0, 3, True, LONG, master_listen_fd=fd))

    thread = threading.Thread(target=make_master)
    thread.start()
    first = store.TCPStore("127.0.0.1", port, 3, timeout=LONG)
    first.set("key", "value")
    assert not made  # one is missing
    store.TCPStore("127.0.0.1", port, 3, timeout=LONG)
    thread.join()
    assert made[0].port == port
    assert made[0].get("key") == b"value"


def test_a_worker_that_stays_away_is_noticed():
    with pytest.raises(store.DistTimeoutError, match="1 of 2 clients"):
        store.TCPStore("127.0.0.1", 0, 2, True, SHORT)


def test_processes_hand_each_other_what_they_have(any_store, master, scratch):
    others = store.FileStore(scratch / "file", timeout=LONG) if isinstance(any_store, store.FileStore) else any_store.clone()
    with ThreadPoolExecutor(1) as pool:
        far = pool.submit(store_utils.synchronize, others, b"right", 1, 2, "values", 60)
        assert store_utils.synchronize(any_store, b"left", 0, 2, "values", 60) == [b"left", b"right"]
        assert far.result(60) == [b"left", b"right"]
        far = pool.submit(store_utils.barrier, others, 2, "both", 60)
        store_utils.barrier(any_store, 2, "both", 60)
        far.result(60)
    assert any_store.timeout == LONG


def test_a_barrier_says_who_has_not_come(master):
    with pytest.raises(store.DistStoreError, match=r"on rank 0, .*missing_ranks=\[host1, host2\]"):
        store_utils.barrier(master, 3, "three", 0.05, rank=0, rank_tracing_decoder="host{}".format, trace_timeout=0.05)
    with pytest.raises(store.DistStoreError, match=r"missing_ranks=\[<check rank 0 \(0\)"):
        store_utils.barrier(master, 4, "three", 0.05, rank=1)
    with pytest.raises(store.DistStoreError) as late:
        store_utils.barrier(master, 2, "two", 0.05)
    assert "missing" not in str(late.value)
    with pytest.raises(AssertionError):
        store_utils.barrier(master, 2, "two", 0.05, rank_tracing_decoder=str)
    assert master.timeout == LONG


def test_errors_are_named():
    with pytest.raises(store.DistNetworkError, match="127.0.0.1 port 1 "):
        store.TCPStore("127.0.0.1", 1, timeout=SHORT)
    with pytest.raises(ValueError, match="65536"):
        store.TCPStore("127.0.0.1", 65536)
    with pytest.raises(ValueError, match="zero byte"):
        store.TCPStore("a\0b", 1)


@pytest.mark.parametrize("call", [
    lambda it: it.set(None, "v"), lambda it: it.set("k" * 8192, "v"), lambda it: it.set("a\0b", "v"),
    lambda it: it.set("k", 5), lambda it: it.set("k", None), lambda it: it.get(5), lambda it: it.wait([]),
    lambda it: it.wait("key"), lambda it: it.wait(["k"], datetime.timedelta(-1)), lambda it: it.multi_set(["a"], []),
    lambda it: it.set_timeout(datetime.timedelta(seconds=-1)), lambda it: it.add("k", "x"),
    lambda it: store.PrefixStore("p" * 9000, it),
])  # fmt: skip
def test_bad_arguments_are_errors_and_nothing_else(master, call):
    with pytest.raises((ValueError, TypeError)):
        call(master)
    master.set("key", "value")
    assert master.get("key") == b"value"


def test_a_closed_store_is_an_error_and_the_others_go_on(master):
    prefixed = store.PrefixStore("p", master)
    other = master.clone()
    prefixed.close()
    prefixed.close()
    with pytest.raises(ValueError):
        prefixed.set("key", "value")
    other.set("key", "value")
    assert master.get("key") == b"value"


def test_threads_share_a_store(master):
    def count():
        for _ in range(50):
            store.PrefixStore("p", master).add("sum", 1)  # each is left to the collector

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert master.get("p/sum") == b"200"


def test_a_child_is_refused_and_leaves_the_parent_alone(master):
    master.set("key", "value")
    child = os.fork()
    if child == 0:
        try:
            master.get("key")
        except RuntimeError as refused:
            os._exit(0 if "another process" in str(refused) or "process that has made it" in str(refused) else 2)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert master.get("key") == b"value"


def test_many_stores_leave_no_descriptor_behind(master):
    def count():
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    before = count()
    for _ in range(300):
        with contextlib.closing(master.clone()) as other:
            other.set("key", "value")
    assert count() == before


def test_control_c_ends_a_wait(muster):
    script = muster.script("waits.py", """
import muster.store
store = muster.store.TCPStore("127.0.0.1", 0, is_master=True)
try:
    print("waiting", flush=True)
    store.get("missing")
except KeyboardInterrupt:
    print("interrupted", flush=True)
""")
    waiting = muster.start([script], program=sys.executable, env=environment())
    waiting.wait_until(lambda: "waiting" in waiting.out(), "the wait")
    waiting.signal(signal.SIGINT)
    end = waiting.finish()
    assert (end.status, end.out) == (0, "waiting\ninterrupted\n"), end


def test_control_c_while_an_answer_is_taken_is_raised(muster):
    """The signal comes inside of what C calls back, where ctypes shows an exception and goes on."""
    script = muster.script("taken.py", """
import signal
from muster import store
at = store.TCPStore("127.0.0.1", 0, is_master=True)
take = store._Answer._take
def interrupted(answer, *arguments):
    signal.raise_signal(signal.SIGINT)
    take(answer, *arguments)
for when in range(3):
    store._Answer._take = interrupted
    try:
        at.set("key", str(when))
        print("not interrupted")
    except KeyboardInterrupt:
        print("interrupted")
    store._Answer._take = take
    print(at.get("key").decode())
""")
    end = muster.run([script], program=sys.executable, env=environment())
    assert (end.status, end.out) == (0, "".join(f"interrupted\n{each}\n" for each in range(3))), end
    assert "Exception ignored" not in end.err, end


def test_without_the_library_it_says_what_to_install(muster):
    end = muster.run(["-c", "import muster.store\nmuster.store.FileStore('x')"], program=sys.executable,
                     env={**environment(), "MUSTER_LIBRARY": "/nowhere/libmuster.so.0"})
    assert end.status == 1, end
    assert "/nowhere/libmuster.so.0 cannot be loaded" in end.err and "libmuster0" in end.err, end


def test_modules_are_python_3_8():
    for path in (ROOT / "python/muster").glob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))

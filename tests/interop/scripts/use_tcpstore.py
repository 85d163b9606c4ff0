# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's TCPStore client puts a store through its operations; each test is a function here.

    use_tcpstore.py TEST HOST PORT    prints "done" when everything was as PyTorch's documentation says
"""

import ctypes
import datetime
import sys
import threading
import time

import torch.distributed as dist


def connect(seconds=30, **more):
    return dist.TCPStore(
        HOST, PORT, is_master=False, timeout=datetime.timedelta(seconds=seconds), use_libuv=False,
        **{"wait_for_workers": False, **more},
    )


def soon(seconds=0.2):
    return datetime.timedelta(seconds=seconds)


def expect_failure(action, kind=RuntimeError):
    try:
        action()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def values():
    store = connect()
    store.set("k", "v")
    assert store.get("k") == b"v"
    store.set("k", "other")
    assert store.get("k") == b"other"
    store.set("empty", "")
    assert store.get("empty") == b""
    binary = bytes(range(256)) * 40
    store.set("binary", binary)
    assert store.get("binary") == binary
    large = "x" * (8 << 20)
    store.set("large", large)
    assert store.get("large") == large.encode()
    assert store.check(["k", "empty"]) and not store.check(["k", "missing"]) and store.check([])
    assert store.num_keys() == 4
    assert store.delete_key("k") and not store.delete_key("k")
    assert store.num_keys() == 3


def counters():
    store = connect()
    assert store.add("n", 5) == 5 and store.add("n", -7) == -2
    assert store.get("n") == b"-2"
    store.set("n", "40")
    assert store.add("n", 2) == 42
    assert store.add("big", 2**63 - 1) == 2**63 - 1 and store.add("big", 1) == -(2**63)


def compare_set():
    store = connect()
    assert store.compare_set("c", "", "a") == b"a"
    assert store.compare_set("c", "a", "b") == b"b"
    assert store.compare_set("c", "wrong", "x") == b"b" and store.get("c") == b"b"
    assert store.compare_set("none", "wrong", "x") == b"wrong" and not store.check(["none"])


def several():
    store = connect()
    store.append("a", "x")
    store.append("a", "yz")
    assert store.get("a") == b"xyz"
    names = [f"m{i}" for i in range(500)]
    store.multi_set(names, names)
    assert [value.decode() for value in store.multi_get(names)] == names
    assert store.multi_get([]) == []


def waiting():
    store, other = connect(), connect()
    threading.Timer(0.2, lambda: other.set("late", "v")).start()
    store.wait(["late"], datetime.timedelta(seconds=20))
    assert store.get("late") == b"v"
    message = expect_failure(lambda: store.wait(["never"], soon()), dist.DistStoreError)
    assert "timeout" in message, message
    store.set("still", "usable")
    assert store.get("still") == b"usable"
    expect_failure(lambda: store.wait(["never"], datetime.timedelta(0)), dist.DistStoreError)
    store.set_timeout(soon())
    expect_failure(lambda: store.get("never"), dist.DistStoreError)
    threading.Timer(0.2, lambda: other.compare_set("by-comparison", "", "v")).start()
    store.wait(["by-comparison"], datetime.timedelta(seconds=20))
    threading.Timer(0.2, lambda: other.add("by-count", 1)).start()
    store.wait(["by-count"], datetime.timedelta(seconds=20))


def listing():
    store = connect()
    for name in ("b", "a", "deep/er"):
        store.set(name, "v")
    store.add("init", 1)
    assert sorted(store.list_keys()) == ["a", "b", "deep/er", "init"], store.list_keys()


def barrier():
    stores = [connect() for _ in range(3)]
    done = []

    def arrive(store):
        store.barrier("all", 3, datetime.timedelta(seconds=20))
        done.append(time.monotonic())

    threads = [threading.Thread(target=arrive, args=(store,)) for store in stores]
    for thread in threads[:2]:
        thread.start()
    time.sleep(0.2)
    assert not done
    threads[2].start()
    for thread in threads:
        thread.join()
    assert len(done) == 3
    expect_failure(lambda: stores[0].barrier("alone", 2, soon()), dist.DistStoreError)
    assert stores[0].get("alone") == b"1"
    stores[0].barrier("alone", 2, datetime.timedelta(seconds=20))


def prefixes():
    store = connect()
    outer = dist.PrefixStore("outer", dist.PrefixStore("inner", store))
    outer.set("k", "v")
    assert store.get("inner/outer/k") == b"v"
    assert outer.get("k") == b"v" and outer.add("n", 3) == 3 and store.add("inner/outer/n", 1) == 4
    assert outer.num_keys() == 2
    dist.PrefixStore("pre", store).barrier("b", 1, datetime.timedelta(seconds=20))


def workers():
    """Counting at `init/`: the constructor of each of the world's members returns."""
    members = []
    threads = [threading.Thread(target=lambda: members.append(connect(world_size=3, wait_for_workers=True)))
               for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(members) == 3
    assert members[0].num_keys() == 1 and members[0].list_keys() == []


def clones():
    store = connect()
    copy = store.clone()
    threading.Timer(0.2, lambda: copy.set("k", "v")).start()
    store.wait(["k"], datetime.timedelta(seconds=20))


def allow_queues(store):
    """Builds without libuv refuse queues in the client, by a flag in the object: turns it over."""
    if store.libuvBackend:
        return
    start = ctypes.c_void_p.from_address(id(store) + 2 * ctypes.sizeof(ctypes.c_void_p)).value
    for offset in range(64, 512):
        byte = ctypes.c_uint8.from_address(start + offset)
        if byte.value == 0:
            byte.value = 1
            if store.libuvBackend:
                return
            byte.value = 0
    raise AssertionError("the flag was not found")


def queues():
    store, other = connect(), connect()
    for each in (store, other):
        allow_queues(each)
    store.queue_push("q", "first")
    store.queue_push("q", "second")
    assert store.queue_len("q") == 2 and store.check(["q"]) and store.num_keys() == 0
    assert store.queue_pop("q") == b"first" and other.queue_pop("q") == b"second"
    assert store.queue_len("q") == 0 and not store.check(["q"])
    expect_failure(lambda: store.queue_pop("q", False), dist.QueueEmptyError)
    threading.Timer(0.2, lambda: other.queue_push("q", "late")).start()
    assert store.queue_pop("q") == b"late"


TEST, HOST, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
globals()[TEST]()
print("done")

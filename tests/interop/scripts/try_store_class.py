# SPDX-License-Identifier: BSD-3-Clause
"""What TCPStore, FileStore and PrefixStore do, one line each, for the classes of PyTorch or of muster.store:

    try_store_class.py torch|muster serve|PORT|FILE

With `serve` it also prints the port of a server of its own, and serves on until its input ends."""

import datetime
import sys

if sys.argv[1] == "torch":
    import torch.distributed as classes
else:
    import muster.store as classes

IS_FILE = not (sys.argv[2].isdigit() or sys.argv[2] == "serve")
LONG, SHORT = datetime.timedelta(seconds=60), datetime.timedelta(milliseconds=50)


def show(name, call):
    try:
        result = call()
    except Exception as error:  # the kind that programs catch; of a file's time limit PyTorch says only RuntimeError
        kinds = [kind.__name__ for kind in type(error).__mro__]
        result = next(kind for kind in ("DistNetworkError", *(() if IS_FILE else ("DistStoreError",)), "ValueError", "TypeError",
                                        "NotImplementedError", "RuntimeError", "Exception") if kind in kinds)  # fmt: skip
    print(name, repr(result))


def try_what_all_have(store):
    show("set", lambda: store.set("key", "value"))
    show("get", lambda: store.get("key"))
    show("empty", lambda: (store.set("empty", ""), store.get("empty")))
    show("unicode", lambda: (store.set("ü", "é"), store.get("ü")))
    show("add", lambda: (store.add("number", 5), store.add("number", -7), store.get("number")))
    show("add to text", lambda: store.add("digits", 40) + store.add("digits", 2))
    show("check", lambda: (store.check(["key"]), store.check(["key", "missing"])))
    show("wait", lambda: store.wait(["key", "number"]))
    show("wait, timeout", lambda: store.wait(["missing"], SHORT))
    show("compare_set, new", lambda: store.compare_set("cas", "", "one"))
    show("compare_set, other", lambda: store.compare_set("cas", "zero", "two"))
    show("compare_set, same", lambda: store.compare_set("cas", "one", "two"))
    show("compare_set, missing", lambda: store.compare_set("nothing", "expected", "desired"))
    show("delete", lambda: (store.delete_key("key"), store.check(["key"])))
    if not IS_FILE:  # PyTorch's says of every key of a file that it was there
        show("delete what is missing", lambda: store.delete_key("key"))
    show("set, wrong type", lambda: store.set("key", 5))
    show("get, wrong type", lambda: store.get(5))
    show("set_timeout", lambda: (store.set_timeout(SHORT), store.timeout))
    show("get, timeout", lambda: store.get("missing"))
    store.set_timeout(LONG)
    show("extended", store.has_extended_api)


def try_what_servers_have(store):
    show("append", lambda: (store.append("a", "1"), store.append("a", "23"), store.get("a")))
    show("multi", lambda: (store.multi_set(["m1", "m2"], ["1", "22"]), store.multi_get(["m2", "m1"])))
    show("multi_get, timeout", lambda: (store.set_timeout(SHORT), store.multi_get(["m1", "missing"])))
    store.set_timeout(LONG)


def main():
    where = sys.argv[2]
    if not IS_FILE:
        # Queues need libuv in PyTorch, which is not in every build.
        options = {} if sys.argv[1] == "muster" else {"use_libuv": False}
        port, serves = (0, True) if where == "serve" else (int(where), False)
        store = classes.TCPStore("127.0.0.1", port, is_master=serves, timeout=LONG, wait_for_workers=False, **options)
        if serves:
            print("PORT", store.port, flush=True)
            sys.stdin.read()
            return
        print("host", store.host, store.port == port)
        for each in (store, classes.PrefixStore("p", store)):
            try_what_all_have(each)
            try_what_servers_have(each)
        show("nested", lambda: classes.PrefixStore("b", classes.PrefixStore("a", store)).set("key", "deep"))
        show("nested, base", lambda: store.get("a/b/key"))
        show("underlying", lambda: classes.PrefixStore("b", store).underlying_store.get("a/b/key"))
        show("num_keys", store.num_keys)
        show("clone", lambda: store.clone().get("a/b/key"))
    else:
        store = classes.FileStore(where, 1)
        for each in (store, classes.PrefixStore("p", store)):
            try_what_all_have(each)


main()

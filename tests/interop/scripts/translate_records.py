# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's side of tests/interop/test_record_pickle.py: one JSON request per line of stdin, one JSON
answer per line of stdout. States are spelled as tests/probes/record_probe.c spells them.

    {"ask": "write", "state": …, "protocol": 2…5, "is_naive": bool, "is_shared": bool}   {"text": …}
    {"ask": "read", "text": …, "is_damaged": bool}   {"state": …} or {"odd": why it is no state}
    {"ask": "rewrite", "text": …, "protocol": …}     loaded and pickled again: {"text": …}
    {"ask": "command", "function": …, "argument": …, "place": …, "protocol": …}
                                       a pickle that would call a function: {"text": …}
    {"ask": "run", "text": …}          loads it for good: {"error": … or null}
    {"ask": "decode", "base64": …}     {"hex": …} or {"refused": …}
"""

import base64
import copy
import datetime
import importlib
import io
import json
import pickle
import sys

from torch.distributed.elastic.rendezvous.dynamic_rendezvous import _NodeDesc, _RendezvousState

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
MICROSECOND = datetime.timedelta(microseconds=1)
FLAGS = {"draining": "is_draining", "charged": "is_charged", "doubted": "is_doubted", "failed": "has_failed"}
EXTRAS = {"restarts": 0, "wanted": 0, "size": 0, **dict.fromkeys(FLAGS, False), "reason": ""}


def named(name):
    return FLAGS.get(name, name)


class Call:
    """Pickles as a call of the function."""

    def __init__(self, function, argument):
        self.function, self.argument = function, argument

    def __reduce__(self):
        return self.function, (self.argument,)


class CarefulReader(pickle._Unpickler):
    """For damaged pickles: runs no functions, and is the one in Python, whose memo is a dict: that in C
    takes 32 GB when told to keep something at place 4294967295."""

    def find_class(self, module, name):
        if (module, name) == ("_codecs", "encode") or name in (
            "_RendezvousState", "_NodeDesc", "datetime", "timezone", "timedelta", "set",
        ):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


def time_from(nanoseconds, is_naive):
    if nanoseconds is None:
        return None
    time = EPOCH + nanoseconds // 1000 * MICROSECOND
    return time.replace(tzinfo=None) if is_naive else time


def time_to(time):
    if time is None:
        return None
    assert type(time) is datetime.datetime, "a time is no datetime"
    aware = time.replace(tzinfo=EPOCH.tzinfo) if time.tzinfo is None else time
    return (aware - EPOCH) // MICROSECOND * 1000


def build(source, is_naive=False, is_shared=True):
    """A _RendezvousState. Shared: one object for each node and time, as torchrun has it."""
    state = _RendezvousState()
    times = {}

    def node_of(node):
        if is_shared:
            return node
        return _NodeDesc("".join(list(node.addr)), node.pid, node.local_id)

    def heartbeat(nanoseconds):
        time = time_from(nanoseconds, is_naive)
        return times.setdefault(time, time) if is_shared else copy.deepcopy(time)

    state.round = source["round"]
    state.complete = source["is_complete"]
    state.deadline = time_from(source["deadline"], is_naive)
    state.closed = source["is_closed"]
    for each in source["nodes"]:
        node = _NodeDesc(each["address"], each["pid"], each["local_id"])
        if each["is_participant"]:
            state.participants[node_of(node)] = each["rank"]
        if each["is_waiting"]:
            state.wait_list.add(node_of(node))
        if each["is_redundant"]:
            state.redundancy_list.add(node_of(node))
        if each["is_done"]:
            state.__dict__.setdefault("muster_done", set()).add(node_of(node))
        if each["heartbeat"] is not None:
            state.last_heartbeats[node_of(node)] = heartbeat(each["heartbeat"])
    for name, default in EXTRAS.items():
        if source[named(name)] != default:
            setattr(state, f"muster_{name}", source[named(name)])
    return state


def expect(condition, why):
    if not condition:
        raise AssertionError(why)


def describe(state):
    """The state as JSON; AssertionError for what torchrun would not have made."""
    expect(type(state) is _RendezvousState, "no _RendezvousState")
    for name, kind in {
        "round": int, "complete": bool, "closed": bool, "participants": dict, "wait_list": set,
        "redundancy_list": set, "last_heartbeats": dict,
    }.items():
        expect(type(getattr(state, name, None)) is kind, f"{name} is no {kind}")
    nodes = {}

    def node_of(node):
        expect(type(node) is _NodeDesc, "no _NodeDesc")
        expect([type(part) for part in (node.addr, node.pid, node.local_id)] == [str, int, int], "odd parts")
        return nodes.setdefault(node, {
            "address": node.addr, "pid": node.pid, "local_id": node.local_id, "is_participant": False,
            "is_waiting": False, "is_redundant": False, "is_done": False, "rank": 0, "heartbeat": None,
        })

    for node, rank in state.participants.items():
        expect(type(rank) is int, "a rank is no integer")
        node_of(node).update(is_participant=True, rank=rank)
    for node in state.wait_list:
        node_of(node)["is_waiting"] = True
    for node in state.redundancy_list:
        node_of(node)["is_redundant"] = True
    for node in getattr(state, "muster_done", ()):
        node_of(node)["is_done"] = True
    for node, time in state.last_heartbeats.items():
        expect(time is not None, "a heartbeat is None")
        node_of(node)["heartbeat"] = time_to(time)
    for name, default in EXTRAS.items():
        expect(type(getattr(state, f"muster_{name}", default)) is type(default), f"odd {name}")
    times = [time for time in (state.deadline, *state.last_heartbeats.values()) if time is not None]
    return {
        "round": state.round, "is_complete": state.complete, "deadline": time_to(state.deadline),
        "is_closed": state.closed, "nodes": list(nodes.values()),
        **{named(name): getattr(state, f"muster_{name}", default) for name, default in EXTRAS.items()},
        "is_utc": all(time.tzinfo == datetime.timezone.utc for time in times),
        "attributes": [str(name) for name in vars(state)],
    }


def encode(value, protocol):
    return base64.b64encode(pickle.dumps(value, protocol)).decode()


def write(request):
    state = build(request["state"], request["is_naive"], request["is_shared"])
    return {"text": encode(state, request["protocol"])}


def read(request):
    data = base64.b64decode(request["text"])
    try:
        state = CarefulReader(io.BytesIO(data)).load() if request.get("is_damaged") else pickle.loads(data)
        return {"state": describe(state)}
    except Exception as error:  # whatever a broken pickle raises
        return {"odd": repr(error)}


def rewrite(request):
    return {"text": encode(pickle.loads(base64.b64decode(request["text"])), request["protocol"])}


def command(request):
    module, _, name = request["function"].rpartition(".")
    call = Call(getattr(importlib.import_module(module), name), request["argument"])
    if request["place"] == "alone":
        return {"text": encode(call, request["protocol"])}
    state = _RendezvousState()
    setattr(state, request["place"], call)
    return {"text": encode(state, request["protocol"])}


def run(request):
    try:
        pickle.loads(base64.b64decode(request["text"]))
    except Exception as error:
        return {"error": repr(error)}
    return {"error": None}


def decode(request):
    try:
        return {"hex": base64.b64decode(request["base64"]).hex()}
    except ValueError as error:
        return {"refused": str(error)}


ANSWERS = {"write": write, "read": read, "rewrite": rewrite, "command": command, "run": run, "decode": decode}

for line in sys.stdin:
    question = json.loads(line)
    print(json.dumps(ANSWERS[question["ask"]](question)), flush=True)

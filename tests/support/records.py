# SPDX-License-Identifier: BSD-3-Clause
"""Records of a rendezvous as torchrun's nodes write them, without PyTorch: CPython's own pickle spells them."""

import base64
import pickle
import sys
import types

import pytest


class Strange:
    """Stands in the place of PyTorch's classes, so that CPython's own pickle writes records."""


def module_of_records():
    module = types.ModuleType("torch.distributed.elastic.rendezvous.dynamic_rendezvous")
    for name in ("_RendezvousState", "_NodeDesc"):
        setattr(module, name, type(name, (), {"__module__": module.__name__}))
    return module


@pytest.fixture
def records(monkeypatch):
    module = module_of_records()
    parts = module.__name__.split(".")
    for length in range(1, len(parts)):
        monkeypatch.setitem(sys.modules, ".".join(parts[:length]), types.ModuleType(parts[length - 1]))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def state_of(records, **changes):
    state = records._RendezvousState()
    fields = {
        "round": 0, "complete": False, "deadline": None, "closed": False, "participants": {},
        "wait_list": set(), "redundancy_list": set(), "last_heartbeats": {},
    }  # fmt: skip
    state.__dict__.update({name: value for name, value in {**fields, **changes}.items() if value is not Strange})
    return state


def node_of(records, number):
    node = records._NodeDesc()
    node.__dict__.update(addr=f"node{number}", pid=1, local_id=0)
    return node


def spelled(state, protocol=4):
    return base64.b64encode(pickle.dumps(state, protocol))

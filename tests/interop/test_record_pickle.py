# SPDX-License-Identifier: BSD-3-Clause
"""The shared record between PyTorch's pickles and ours: each reads what the other wrote, and what would
run a command is refused."""

import base64
import random
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.answering import Answering, start_probe
from support.binary import ROOT

PROTOCOLS = [2, 3, 4, 5]
MOMENT = 1_795_174_428_123_456_000  # 2026-11-20 11:33:48.123456 UTC
OPCODES = bytes.fromhex("2829 2e30 4243 4a4b4d4e 5258 5d 616263 6568 6a 7172737475 7d 808185868788898a8c8f90939495")
REPEATABLE = settings(max_examples=150, deadline=None, derandomize=True, database=None)


@pytest.fixture(scope="module")
def ours():
    """Muster's codec."""
    probe = start_probe("record_probe")
    yield probe
    probe.end()


@pytest.fixture(scope="module")
def theirs(peer):
    """CPython's pickle with PyTorch's classes."""
    script = (ROOT / "tests/interop/scripts/translate_records.py").read_text(encoding="utf-8")
    process = Answering([peer.python, "-c", script])
    yield process
    process.end()


def identity(node):
    return node["address"], node["pid"], node["local_id"]


def comparable(state):
    """What both sides know of a state: nodes in one order, for sets have none; a reason ends at a NUL."""
    plain = {name: value for name, value in state.items() if name not in ("is_utc", "attributes")}
    return plain | {"nodes": sorted(state["nodes"], key=identity), "reason": state["reason"].split("\0")[0]}


def make_node(address, pid=1, local_id=0, **more):
    flags = dict.fromkeys(("is_participant", "is_waiting", "is_redundant", "is_done"), False)
    flags |= {"rank": 0, "heartbeat": None}
    return {"address": address, "pid": pid, "local_id": local_id, **flags, **more}


def make_state(nodes=(), **more):
    plain = {"round": 0, "is_complete": False, "deadline": None, "is_closed": False}
    flags = dict.fromkeys(("is_draining", "is_charged", "is_doubted", "has_failed"), False)
    extras = {"restarts": 0, "wanted": 0, "size": 0, **flags, "reason": ""}
    return {**plain, **extras, "nodes": list(nodes), **more}


def crowd(size):
    """As large a job has it: most take part, every seventh waits, every eleventh is spare, all beat."""
    nodes = []
    for i in range(size):
        rank = {"is_waiting": True} if i % 7 == 6 else {"is_redundant": True} if i % 11 == 10 else {
            "is_participant": True, "rank": i}
        nodes.append(make_node(f"node{i}.example", 1000 + i, i % 3, heartbeat=MOMENT + i // 2 * 1000, **rank))
    return make_state(nodes, round=5, is_complete=True)


def read_ours(ours, text):
    answer = ours.ask({"ask": "read", "text": text})
    assert "state" in answer, answer
    return comparable(answer["state"])


def write_theirs(theirs, state, protocol=5, is_naive=False, is_shared=True):
    request = {"ask": "write", "state": state, "protocol": protocol, "is_naive": is_naive, "is_shared": is_shared}
    return theirs.ask(request)["text"]


def write_ours(ours, state):
    answer = ours.ask({"ask": "write", "state": state})
    assert "text" in answer, answer
    return answer["text"]


TIMES = st.integers(-9 * 10**15, 9 * 10**15).map(lambda microseconds: microseconds * 1000)  # 1684 to 2255
CHARACTERS = st.characters(min_codepoint=1, max_codepoint=0xD7FF) | st.characters(min_codepoint=0xE000)
ADDRESSES = st.text(CHARACTERS, max_size=60)
# what a reader does not change so that it can be printed
REASONS = st.text(CHARACTERS.filter(lambda character: unicodedata.category(character) != "Cc"), max_size=60)
INTEGERS = st.one_of(st.integers(0, 5), st.integers(0, 2**22), st.integers(-(2**63), 2**63 - 1))
COUNTS = st.one_of(st.integers(0, 300), st.integers(0, 2**31 - 1))
NODES = st.builds(
    lambda participant, **node: node | {
        "is_participant": participant[0], "rank": participant[0] * participant[1],
        "is_done": participant[0] and participant[2],
    },  # fmt: skip
    participant=st.tuples(st.booleans(), COUNTS, st.booleans()),
    address=ADDRESSES,
    pid=INTEGERS,
    local_id=INTEGERS,
    is_waiting=st.booleans(),
    is_redundant=st.booleans(),
    heartbeat=st.none() | TIMES,
).filter(lambda node: any(value is True for value in node.values()) or node["heartbeat"] is not None)
STATES = st.builds(
    make_state,
    nodes=st.lists(NODES, max_size=6, unique_by=identity),
    round=COUNTS,
    is_complete=st.booleans(),
    deadline=st.none() | TIMES,
    is_closed=st.booleans(),
    restarts=COUNTS,
    wanted=COUNTS,
    size=COUNTS,
    is_draining=st.booleans(),
    is_charged=st.booleans(),
    is_doubted=st.booleans(),
    has_failed=st.booleans(),
    reason=REASONS,
)


@REPEATABLE
@given(state=STATES, protocol=st.sampled_from(PROTOCOLS), is_naive=st.booleans(), is_shared=st.booleans())
def test_what_pytorch_pickles_is_read(ours, theirs, state, protocol, is_naive, is_shared):
    text = write_theirs(theirs, state, protocol, is_naive, is_shared)
    assert read_ours(ours, text) == comparable(state)


@REPEATABLE
@given(state=STATES, protocol=st.sampled_from(PROTOCOLS))
def test_what_is_written_pytorch_loads_and_passes_on_whole(ours, theirs, state, protocol):
    text = write_ours(ours, state)
    loaded = theirs.ask({"ask": "read", "text": text})
    assert "state" in loaded, loaded
    assert comparable(loaded["state"]) == comparable(state)
    assert loaded["state"]["is_utc"]
    passed_on = theirs.ask({"ask": "rewrite", "text": text, "protocol": protocol})["text"]
    assert read_ours(ours, passed_on) == comparable(state)


@pytest.mark.parametrize("size", [0, 1, 2, 36, 37, 1000, 1001, 3000])
def test_jobs_of_every_size_go_both_ways(ours, theirs, size):
    state = crowd(size)
    for protocol in PROTOCOLS:
        for is_shared in (True, False):
            text = write_theirs(theirs, state, protocol, is_naive=protocol == 4, is_shared=is_shared)
            assert read_ours(ours, text) == comparable(state)
    text = write_ours(ours, state)
    assert comparable(theirs.ask({"ask": "read", "text": text})["state"]) == comparable(state)
    assert len(text) < len(write_theirs(theirs, state)) + 400


def test_a_record_of_torchruns_has_no_attributes_of_musters(ours, theirs):
    attributes = theirs.ask({"ask": "read", "text": write_ours(ours, crowd(3))})["state"]["attributes"]
    assert attributes == [
        "round", "complete", "deadline", "closed", "participants", "wait_list", "redundancy_list", "last_heartbeats",
    ]


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"pid": 2**63}, "an integer of more than 64 bits"),
        ({"local_id": -(2**63) - 1}, "an integer of more than 64 bits"),
        ({"address": "a" * 256}, "an address of 256 bytes, the limit is 255, in participants"),
        ({"address": "a\0b"}, "an address with a NUL in it, in participants"),
        ({"address": "a" * 65537}, "text of 65537 bytes, the limit is 65536"),
        ({"address": None}, "addr is None, not text, in participants"),
        ({"pid": True}, "pid is a boolean, not an integer, in participants"),
        ({"pid": 1.5}, "refuses the opcode BINFLOAT: no record needs it"),
        ({"rank": 2**31}, "a rank is 2147483648, which is out of range"),
        ({"rank": None}, "a rank is None, not an integer"),
    ],
)
def test_a_node_torchrun_would_not_write_is_refused_with_its_reason(ours, theirs, change, reason):
    state = make_state([make_node("hosta", is_participant=True) | change])
    answer = ours.ask({"ask": "read", "text": write_theirs(theirs, state)})
    assert answer["reason"].startswith(reason), answer


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("place", ["alone", "round", "last_heartbeats", "somebody_elses"])
def test_a_pickle_that_would_run_a_command_is_refused(ours, theirs, scratch, protocol, place):
    trace = scratch / "somebody was here"
    request = {"ask": "command", "function": "os.system", "argument": f"touch '{trace}'"}
    text = theirs.ask(request | {"place": place, "protocol": protocol})["text"]
    answer = ours.ask({"ask": "read", "text": text})
    assert answer["refused"] == "not supported"
    assert answer["reason"].startswith("refuses posix.system: a record may hold only _RendezvousState,"), answer
    assert not trace.exists()
    assert theirs.ask({"ask": "run", "text": text})["error"] is None
    assert trace.exists(), "PyTorch's side did not run it: this test shows nothing"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "function, name",
    [
        ("builtins.eval", "eval"),
        ("builtins.exec", "exec"),
        ("subprocess.Popen", "Popen"),
        ("importlib.import_module", "importlib.import_module"),
        ("pickle.loads", "pickle.loads"),
        ("datetime.date", "datetime.date"),
        ("builtins.list", "list"),
    ],
)
def test_every_other_function_is_refused_by_name(ours, theirs, protocol, function, name):
    request = {"ask": "command", "function": function, "argument": "1", "place": "deadline", "protocol": protocol}
    answer = ours.ask({"ask": "read", "text": theirs.ask(request)["text"]})
    assert answer["refused"] == "not supported"
    assert name in answer["reason"].split(":")[0]


def test_damaged_records_are_refused_or_read_as_python_reads_them(ours, theirs):
    state = crowd(3) | {"deadline": MOMENT, "reason": "worker 3 died", "restarts": 2}
    texts = [write_ours(ours, state), *(write_theirs(theirs, state, protocol) for protocol in PROTOCOLS)]
    chance = random.Random(2)
    read_by_both = refused_by_both = 0
    for _ in range(3000):
        damaged = bytearray(base64.b64decode(chance.choice(texts)))
        for _ in range(chance.randint(1, 2)):
            damaged[chance.randrange(len(damaged))] = chance.choice([chance.randrange(256), *OPCODES])
        text = base64.b64encode(damaged).decode()
        answer = ours.ask({"ask": "read", "text": text})
        loaded = theirs.ask({"ask": "read", "text": text, "is_damaged": True})
        if "state" in answer and "state" in loaded:
            assert comparable(answer["state"]) == comparable(loaded["state"]), text
        read_by_both += "state" in answer and "state" in loaded
        refused_by_both += "state" not in answer and "state" not in loaded
        assert "state" in answer or answer["reason"], text
    assert read_by_both > 100 and refused_by_both > 100


def has_letters_after_the_end(text):
    """Whether the alphabet goes on after padding that ends the text: there Python's versions differ."""
    letters = pads = 0
    for place, character in enumerate(text):
        if character.isascii() and (character.isalnum() or character in "+/"):
            letters, pads = (letters + 1) % 4, 0
        elif character == "=" and letters > 1:
            pads += 1
            if letters + pads >= 4:
                return any(later.isascii() and (later.isalnum() or later in "+/") for later in text[place:])
    return False


@settings(REPEATABLE, max_examples=1000)
@given(text=st.text(st.sampled_from("AZaz09+/==-_ \n"), max_size=14))
def test_base64_is_what_python_says_it_is(ours, theirs, text):
    answer = ours.ask({"ask": "decode", "base64": text})
    if has_letters_after_the_end(text):
        assert "refused" in answer
        return
    assert answer.get("hex") == theirs.ask({"ask": "decode", "base64": text}).get("hex")

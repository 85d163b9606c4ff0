# SPDX-License-Identifier: BSD-3-Clause
"""What lies in the store of an elastic job: the same as torchrun's agents leave there."""

import re

import pytest

from support.answering import Answering
from support.mixed_nodes import MixedJob
from support.store import Server

pytestmark = pytest.mark.timeout(120)

RECORD = "torch.rendezvous.job"
SIZES = {1: 1, 2: 2}

# Reads records as torchrun's nodes do.
DESCRIBE = """
import base64, json, pickle, sys
name = lambda node: [node.addr, type(node.pid).__name__, type(node.local_id).__name__]
for line in sys.stdin:
    state = pickle.loads(base64.b64decode(json.loads(line).strip(), validate=True))
    members = vars(state)
    members["participants"] = sorted([name(node), rank] for node, rank in state.participants.items())
    members["last_heartbeats"] = sorted([name(node), str(time.tzinfo)] for node, time in state.last_heartbeats.items())
    members["wait_list"] = [name(node) for node in state.wait_list]
    members["redundancy_list"] = [name(node) for node in state.redundancy_list]
    print(json.dumps([f"{type(state).__module__} {type(state).__name__}", members], default=str), flush=True)
"""


class Contents:
    """The keys and values that a job of this kind has left behind, after a failure in its first round."""

    def __init__(self, muster, peer, describing, kind):
        self.muster, self.describing, self.server = muster, describing, Server(muster)
        job = MixedJob(muster, peer, endpoint=f"127.0.0.1:{self.server.port}", options=["--max-restarts", 1])
        for number, workers in SIZES.items():
            job.start(kind, number, "--role", f"role{number}", workers=workers, is_host=False)
        world = job.wait_for_world(SIZES)
        self.running = self.describe_record()
        job.fail(2)
        job.wait_for_world(SIZES, after=world)
        job.let_go()
        job.finish()
        self.ended = self.describe_record()
        self.values = {key: self.ask("get", key) for key in self.ask("keys").splitlines()}
        job.scratch.joinpath("go").unlink()
        for facts in job.scratch.glob("facts/*"):
            facts.unlink()

    def ask(self, *words):
        end = self.muster.run(["store", *words, "--host", "127.0.0.1", "--port", self.server.port])
        assert end.status == 0, end
        return end.out

    def describe_record(self):
        return tuple(self.describing.ask(self.ask("get", RECORD)))


@pytest.fixture
def contents(muster, peer):
    describing = Answering([peer.python, "-c", DESCRIBE])
    yield [Contents(muster, peer, describing, kind) for kind in ("torchrun", "muster")]
    describing.end()


def without_own(members):
    return {name: value for name, value in members.items() if not name.startswith("muster_")}


def test_the_store_holds_what_torchruns_agents_leave(contents):
    theirs, ours = contents
    for when in ("running", "ended"):
        (their_class, their_members), (our_class, our_members) = getattr(theirs, when), getattr(ours, when)
        assert our_class == their_class
        assert without_own(our_members) == their_members
        assert list(our_members)[: len(their_members)] == list(their_members)
    # torchrun's agents remember the address; ours publish it in every round
    again = {f"{RECORD}.1/MASTER_ADDR": "127.0.0.1", f"{RECORD}.1/MASTER_PORT": "a port"}
    assert comparable(ours.values) == {**comparable(theirs.values), **again}


def comparable(values):
    """Without Muster's own: its keys, and that its nodes say that they are Muster's. The record is compared
    on its own, ports are what they are."""
    found = {key: value.strip() for key, value in values.items() if "/muster/" not in key}
    found = {key: value.replace(', "muster": 1}', "}") for key, value in found.items()}
    found[RECORD] = "the record"
    for key, value in found.items():
        if key.endswith("/MASTER_PORT") and 0 < int(value) < 65536:
            found[key] = "a port"
    return found


def test_the_record_of_torchruns_nodes_is_shown(muster, peer):
    job = MixedJob(muster, peer)
    for number in SIZES:
        job.start("torchrun", number, workers=SIZES[number])
    job.wait_for_world(SIZES)
    for words in ([], ["--rdzv-id", "job"]):
        end = muster.run(["rendezvous", "show", "--rdzv-endpoint", job.endpoint, *words])
        lines = re.sub(r"process \d+|heartbeat .*", "?", end.out).splitlines()
        assert (end.status, lines) == (0, [
            "job 'job'",
            "round 0: complete, its participants have their ranks",
            "participants: 2",
            "  rank 0: 127.0.0.1, ?, torchrun's, last ?",
            "  rank 1: 127.0.0.2, ?, torchrun's, last ?",
            "wait list, for the next round: 0",
            "redundancy list, the spares: 0",
        ]), end  # fmt: skip
    job.let_go()
    job.finish()

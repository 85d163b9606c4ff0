# SPDX-License-Identifier: BSD-3-Clause
"""Agents of both kinds, muster's and torchrun's, in jobs whose nodes come and go."""

import json
import shutil
import signal
import subprocess
import time

import pytest

from support.binary import ROOT
from support.json_schema import check
from support.mixed_nodes import MixedJob
from support.nodes import wait_until

pytestmark = pytest.mark.timeout(120)

UNSHARED = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": 1}


@pytest.fixture
def make_mixed_job(muster, peer):
    return lambda **settings: MixedJob(muster, peer, **settings)


# Who is rank 0, who hosts the store, which node is started first, which node's worker fails.
FIRST_ROUNDS = [
    ("torchrun", "torchrun", 1, 1),
    ("muster", "muster", 1, 2),
    ("torchrun", "muster", 1, 2),
    ("muster", "torchrun", 1, 1),
]


@pytest.mark.parametrize("first, host, order, failing", FIRST_ROUNDS)
def test_both_kinds_run_fail_and_finish_together(make_mixed_job, first, host, order, failing):
    job = make_mixed_job(options=["--max-restarts", 1])
    kinds = {1: first, 2: "muster" if first == "torchrun" else "torchrun"}
    sizes = {1: 1, 2: 2}
    for number in (order, 3 - order):
        kind = kinds[number]
        job.start(kind, number, "--role", f"role{number}", workers=sizes[number], is_host=kind == host)
    world = job.wait_for_world(sizes)
    assert world.node == [1, 2, 2]
    assert world.ROLE_RANK == ["0", "0", "1"] and world.ROLE_WORLD_SIZE == ["1", "2", "2"]
    world.assert_has_met()
    job.fail(failing)
    world = job.wait_for_world(sizes, after=world)
    world.assert_has_met()
    job.let_go()
    job.finish()
    assert [job.starts(1), job.starts(2)] == [2, 2]


@pytest.mark.parametrize("kinds", [("torchrun", "muster"), ("muster", "torchrun")], ids="-".join)
def test_a_muster_node_joins_and_leaves_a_running_mixed_job(make_mixed_job, kinds):
    job = make_mixed_job(nodes="2:3")
    for number, kind in enumerate(kinds, 1):
        job.start(kind, number, is_host=number == 1)
    two = job.wait_for_world({1: 1, 2: 1})
    newcomer = job.start("muster", 3, is_host=False)
    three = job.wait_for_world({1: 1, 2: 1, 3: 1}, after=two)
    three.assert_has_met()
    newcomer.running.signal(signal.SIGTERM)
    job.wait_for_world({1: 1, 2: 1}, after=three).assert_has_met()
    job.let_go()
    job.finish({1: 0, 2: 0, 3: 1})


class LatePeer:
    """Its torchrun is late for the round after the first."""

    def __init__(self, peer, scratch):
        self.python, self.spawn = peer.python, subprocess.Popen
        script = shutil.copy(ROOT / "tests/interop/scripts/late_torchrun.py", scratch)
        self.torchrun = scratch / "late-torchrun"
        self.torchrun.write_text(f'#!/bin/sh\nexec {peer.python} {script} "$@"\n')
        self.torchrun.chmod(0o755)


def test_a_torchrun_node_that_has_missed_a_round_finds_the_store_where_it_was(muster, peer, scratch):
    """It keeps the address of the round before, and there were only Muster's nodes in the one between."""
    job = MixedJob(muster, LatePeer(peer, scratch), nodes="2:3")
    job.start("muster", 1, is_host=True)
    job.start("torchrun", 2, is_host=False)
    two = job.wait_for_world({1: 1, 2: 1})
    job.start("muster", 3, is_host=False)
    without_it = job.wait_for_world({1: 1, 3: 1}, after=two, without=[2])
    job.wait_for_world({1: 1, 2: 1, 3: 1}, after=without_it).assert_has_met()
    job.let_go()
    job.finish()


# What torchrun alone cannot do: the node that stays, or is rank 0 from now on, publishes no address.
@pytest.mark.parametrize("newcomer, does_share", [(1, True), (3, True), (3, False)])
def test_a_torchrun_node_joins_and_leaves_a_running_muster_job(make_mixed_job, newcomer, does_share):
    job = make_mixed_job(nodes="1:2")
    job.start("muster", 2)
    alone = job.wait_for_world({2: 1})
    torchrun = job.start("torchrun", newcomer, env=None if does_share else UNSHARED)
    both = job.wait_for_world({2: 1, newcomer: 1}, after=alone)
    if does_share:
        both.assert_has_met()
    torchrun.running.signal(signal.SIGTERM)
    job.wait_for_world({2: 1}, after=both).assert_has_met()
    job.let_go()
    job.finish({2: 0, newcomer: 1})


def test_a_muster_node_joins_and_leaves_a_running_torchrun_job(make_mixed_job):
    job = make_mixed_job(options=["--max-restarts", 1], nodes="1:2")
    job.start("torchrun", 1)
    alone = job.wait_for_world({1: 1})
    newcomer = job.start("muster", 2)
    both = job.wait_for_world({1: 1, 2: 1}, after=alone)
    both.assert_has_met()
    newcomer.running.signal(signal.SIGTERM)
    job.finish({2: 1})
    job.fail(1)  # as a real worker does that has lost the others; torchrun does not look before
    job.wait_for_world({1: 1}, after=both).assert_has_met()
    job.let_go()
    job.finish({1: 0})


def test_a_torchrun_node_leaves_a_job_with_another(make_mixed_job):
    # The first world has to be of all three: a torchrun node keeps the address of its first one (docs/compatibility.md).
    job = make_mixed_job(nodes="2:3", conf={"last_call_timeout": 10})
    for number, kind in enumerate(("torchrun", "muster", "torchrun"), 1):
        node = job.start(kind, number, is_host=number == 2)
    three = job.wait_for_world({1: 1, 2: 1, 3: 1})
    three.assert_has_met()
    node.running.signal(signal.SIGTERM)
    job.wait_for_world({1: 1, 2: 1}, after=three).assert_has_met()
    job.let_go()
    job.finish({1: 0, 2: 0, 3: 1})


@pytest.mark.parametrize("lost, spare", [("torchrun", "muster"), ("muster", "torchrun")])
def test_a_spare_of_the_other_kind_takes_a_lost_nodes_place(make_mixed_job, lost, spare):
    job = make_mixed_job(nodes="2:2")
    job.start("muster", 1, is_host=True)
    leaver = job.start(lost, 2, is_host=False)
    world = job.wait_for_world({1: 1, 2: 1})
    job.start(spare, 3, is_host=False)
    job.wait_until_known(3)
    leaver.running.signal(signal.SIGTERM)
    job.wait_for_world({1: 1, 3: 1}, after=world).assert_has_met()
    job.let_go()
    job.finish({1: 0, 2: 1, 3: 0})


def test_torchrun_nodes_that_share_no_store_change_rank_0(make_mixed_job):
    """The mixtures that torchrun's nodes survive only so: see docs/compatibility.md."""
    job = make_mixed_job(nodes="2:3", env=UNSHARED)
    job.start("muster", 2, is_host=True)
    job.start("torchrun", 3, is_host=False)
    two = job.wait_for_world({2: 1, 3: 1})
    newcomer = job.start("torchrun", 1, is_host=False)
    three = job.wait_for_world({1: 1, 2: 1, 3: 1}, after=two)
    assert three.MASTER_ADDR == ["127.0.0.1"] * 3
    newcomer.running.signal(signal.SIGTERM)
    again = job.wait_for_world({2: 1, 3: 1}, after=three)
    assert again.MASTER_ADDR == ["127.0.0.2"] * 2
    again.assert_has_met()
    job.let_go()
    job.finish({1: 1, 2: 0, 3: 0})


@pytest.mark.parametrize("kinds", [("torchrun", "muster"), ("muster", "torchrun")], ids="-".join)
def test_uniform_nodes_exchange_no_ranks(make_mixed_job, kinds):
    job = make_mixed_job(options=["--max-restarts", 1], env={"TORCH_ELASTIC_WORKER_IDENTICAL": 1})
    sizes = {1: 2, 2: 2}
    for number, kind in enumerate(kinds, 1):
        job.start(kind, number, workers=2, is_host=kind == "torchrun")
    world = job.wait_for_world(sizes)
    world.assert_has_met()
    job.fail(1)
    job.wait_for_world(sizes, after=world).assert_has_met()
    job.let_go()
    job.finish()


def test_both_kinds_share_a_filestore(make_mixed_job, scratch):
    job = make_mixed_job(options=["--max-restarts", 1], endpoint=scratch / "record", conf={"store_type": "file"})
    for number, kind in enumerate(("torchrun", "muster"), 1):
        job.start(kind, number)
    world = job.wait_for_world({1: 1, 2: 1})
    world.assert_has_met()
    job.fail(2)
    job.wait_for_world({1: 1, 2: 1}, after=world).assert_has_met()
    job.let_go()
    job.finish()


@pytest.mark.parametrize("early, host", [("torchrun", "muster"), ("muster", "torchrun")])
def test_a_node_that_is_done_is_not_taken_for_dead(make_mixed_job, early, host):
    job = make_mixed_job(options=["--max-restarts", 1], nodes="1:2", conf={"keep_alive_max_attempt": 2})
    for number, kind in enumerate(("torchrun", "muster"), 1):
        job.start(kind, number, is_host=kind == host)
    job.wait_for_world({1: 1, 2: 1})
    starts = job.starts(1), job.starts(2)
    done, other = (1, 2) if early == "torchrun" else (2, 1)
    job.let_go(done)
    time.sleep(5)  # 2.5 times what costs a silent node its place
    assert job.living().node == [other]
    job.let_go()
    job.finish()
    assert (job.starts(1), job.starts(2)) == starts


def test_a_host_that_is_done_does_not_wait_for_a_torchrun_node_that_has_failed(make_mixed_job):
    job = make_mixed_job()
    host = job.start("muster", 1, "--exit-barrier-timeout", 2, is_host=True)
    failing = job.start("torchrun", 2, is_host=False)
    job.wait_for_world({1: 1, 2: 1})
    job.fail(2)
    job.wait_until(lambda: failing.running.process.poll() is not None, "the end of torchrun's node")
    job.let_go()
    job.finish({1: 0, 2: 1})
    assert "1 of 2 nodes had come to the exit barrier within 2 s" in host.running.err(), job


def test_a_torchrun_node_that_is_stopped_is_left_behind(make_mixed_job):
    job = make_mixed_job(nodes="1:2")
    job.start("muster", 1, is_host=True)
    stopped = job.start("torchrun", 2, is_host=False)
    both = job.wait_for_world({1: 1, 2: 1})
    stopped.running.signal(signal.SIGSTOP)
    job.wait_for_world({1: 1}, after=both, without=[2])
    assert f"node 127.0.0.2 (pid {stopped.running.pid}) has left the round" in job.nodes[0].running.err(), job
    stopped.running.kill()
    job.let_go()
    job.finish({1: 0})


def test_a_muster_node_that_was_stopped_comes_back(make_mixed_job):
    job = make_mixed_job(nodes="1:2")
    job.start("torchrun", 1, is_host=True)
    stopped = job.start("muster", 2, is_host=False)
    both = job.wait_for_world({1: 1, 2: 1})
    stopped.running.signal(signal.SIGSTOP)
    time.sleep(8)  # twice what costs a silent node its place
    stopped.running.signal(signal.SIGCONT)
    job.wait_for_world({1: 1, 2: 1}, after=both).assert_has_met()
    assert "this agent stood still for " in stopped.running.err()
    job.let_go()
    job.finish()


@pytest.mark.parametrize("final", [1, 2])
def test_a_final_failure_is_final_for_all(make_mixed_job, final):
    job = make_mixed_job(nodes="1:2")
    for number, kind in enumerate(("torchrun", "muster"), 1):
        job.start(kind, number, "--max-restarts", 0 if number == final else 3, is_host=kind == "muster")
    job.wait_for_world({1: 1, 2: 1})
    job.fail(final)
    job.wait_until(lambda: job.living().node == [3 - final], "the end of the failed worker")
    time.sleep(1)
    job.fail(3 - final)  # as a real worker does that has lost the others
    job.finish({1: 1, 2: 1})
    muster = job.nodes[1].running.err()
    assert ("exitcode  : 7" if final == 2 else "workers cannot be started again") in muster, muster


@pytest.mark.parametrize("kinds", [("torchrun", "muster"), ("muster", "torchrun")], ids="-".join)
def test_hosts_with_names_of_their_own_run_both_kinds(make_mixed_job, make_network, kinds):
    job = make_mixed_job(endpoint="node1:29400", options=["--max-restarts", 1])
    for number, (kind, host) in enumerate(zip(kinds, make_network(2).hosts), 1):
        job.start(kind, number, on=host)
    world = job.wait_for_world({1: 1, 2: 1})
    assert world.MASTER_ADDR == ["node1", "node1"] and world.has_met == [True, True]
    job.fail(2)
    world = job.wait_for_world({1: 1, 2: 1}, after=world)
    assert world.MASTER_ADDR == ["node1", "node1"] and world.has_met == [True, True]
    job.let_go()
    job.finish()


@pytest.mark.parametrize("kinds", [("torchrun", "muster"), ("muster", "torchrun")], ids="-".join)
def test_a_round_with_a_node_of_torchruns_has_a_store_for_everybody(make_mixed_job, kinds):
    job = make_mixed_job(nodes="1:2")
    muster = job.start("muster", kinds.index("muster") + 1, "--worker-store-from", "round", is_host=True)
    alone = job.wait_for_world({muster.number: 1})
    torchrun = job.start("torchrun", 3 - muster.number, is_host=False)
    both = job.wait_for_world({1: 1, 2: 1}, after=alone)
    both.assert_has_met()
    if muster.number == 1:  # otherwise the store is torchrun's
        assert "--worker-store-from round: " in muster.running.err(), job
        assert "the workers' store serves all other machines" in muster.running.err()
    torchrun.running.signal(signal.SIGTERM)
    job.wait_for_world({muster.number: 1}, after=both).assert_has_met()
    job.let_go()
    job.finish({muster.number: 0, torchrun.number: 1})


@pytest.mark.parametrize("host", ["muster", "torchrun"])
def test_the_status_lists_the_nodes_of_torchruns_as_such(make_mixed_job, muster, scratch, host):
    """Where one of them hosts the store nobody knows the whole job; then it is what this node knows."""
    place = scratch / "announced"
    place.mkdir(mode=0o700)
    job = make_mixed_job(options=["--max-restarts", 1])
    job.start("muster", 1, is_host=host == "muster", env={"MUSTER_RUNTIME_DIR": place})
    job.start("torchrun", 2, is_host=host == "torchrun")
    world = job.wait_for_world({1: 1, 2: 1})

    def find():
        shown = muster.run(["status", "--json", "--nodes"], env={"MUSTER_RUNTIME_DIR": place})
        told = json.loads(shown.out) if shown.status in (0, 3) else None
        return told if told and told["job"]["state"] == "running" else None

    told = check(wait_until(find, "the status"), "status")
    nodes = told["nodes"]
    assert sorted(zip(nodes["version"], nodes["state"]))[1] == ("torchrun", "torchrun"), nodes
    place_of_theirs = nodes["state"].index("torchrun")
    assert nodes["rank"][place_of_theirs] == 1 and nodes["said"][place_of_theirs] is None
    assert nodes["step"][place_of_theirs] is None and nodes["workers"][place_of_theirs] is None
    assert told["seen"]["from"] == ("host" if host == "muster" else "nodes") and not told["seen"]["complete"]
    shown = muster.run(["status"], env={"MUSTER_RUNTIME_DIR": place})
    words = "; a node of torchrun's tells nothing" if host == "muster" else "; seen from 127.0.0.1 only"
    assert shown.status == 0 and words in shown.out.splitlines()[0], shown
    job.fail(2)
    world = job.wait_for_world({1: 1, 2: 1}, after=world)
    told = wait_until(lambda: (found := find()) and found["recoveries"] and found["recoveries"][-1]["over"] and found, "the recovery")
    assert told["nodes"]["state"].count("torchrun") == 1
    job.let_go()
    job.finish()

# SPDX-License-Identifier: BSD-3-Clause
"""A worker that fails on one of several nodes restarts or ends them all."""

import re

import pytest

from support.nodes import wait_until
from support.store import CHECK, RawClient, request


@pytest.mark.parametrize("failing", ["node1", "node2"])
def test_a_failed_worker_restarts_all_nodes_at_the_jobs_expense(make_job_anywhere, failing):
    job = make_job_anywhere(2)
    job.nodes("node1", "node2")
    first = job.wait_for_world("node1", "node2")
    first.of(failing).end(3)
    second = job.wait_for_world("node1", "node2")
    assert second.restarts == {1}
    assert not any(worker.is_running() for worker in first.workers)
    second.of(failing).end(4)
    third = job.wait_for_world("node1", "node2")
    assert third.restarts == {2}
    third.end()
    assert job.succeeds()
    for number in (1, 2):
        assert any(f"restart {number} of 3 (--max-restarts)" in node.err() for node in job.started), job.tell()


def test_the_log_says_who_failed_and_what_it_costs_and_a_node_has_one_name(make_job, scratch):
    """In its log, in the job's record and in the events alike."""
    job = make_job("2:3", "--event-log-handler", f"file:{scratch}/events")
    job.start_host("node1")
    job.start("node2")
    culprit = job.wait_for_world("node1", "node2").of("node2")
    culprit.end(7)
    job.wait_for_world("node1", "node2")
    why = f"rank {culprit.rank} (local_rank 0) on node2 failed: exit code 7"
    said = f"Stopping worker group: the world changes, since {why}; this is restart 1 of 3 (--max-restarts)"
    assert said in job.started[0].err(), job.tell()
    job.start("node3")
    job.wait_for_world("node1", "node2", "node3").end()
    assert job.succeeds()
    assert "; this uses no restart" in job.started[0].err(), job.tell()
    assert set(re.findall(r'"hostname": "([^"]*)"', (scratch / "events").read_text())) == {"node1", "node2", "node3"}


def test_what_a_round_left_in_the_store_is_cleared_away_two_rounds_later(make_job):
    job = make_job(2, restarts=6)
    job.nodes("node1", "node2")
    for _ in range(6):
        job.wait_for_world("node1", "node2").of("node2").end(3)
    last = job.wait_for_world("node1", "node2")
    assert last.restarts == {6}
    with RawClient(job.port) as client:

        def has(name):
            client.send(request(CHECK, 1, f"/torch.rendezvous.job.{name}".encode()))
            return client.receive(1) == b"\x00"

        wait_until(lambda: not has("4/MASTER_ADDR"), "the end of round 4's keys")
        names = ["MASTER_ADDR", "MASTER_PORT", "torchelastic/role_info/1", "torchelastic/assigned_ranks/1"]
        names += ["muster/publisher", "muster/root_cause"]
        for number in range(5):
            wait_until(lambda: not any(has(f"{number}/{name}") for name in names), f"the end of round {number}'s keys")
        assert has("5/MASTER_ADDR") and has("5/muster/root_cause") and has("6/MASTER_ADDR")
    last.end()
    assert job.succeeds()


def test_failures_on_all_nodes_at_once_are_charged_once(make_job):
    names = ["node1", "node2", "node3"]
    job = make_job(3, restarts=1)
    job.nodes(*names)
    job.wait_for_world(*names).end(5)
    world = job.wait_for_world(*names)
    assert world.restarts == {1}
    world.end()
    assert job.succeeds()


@pytest.mark.parametrize("failing", ["node1", "node2", "node3"])
def test_the_last_failure_ends_all_nodes_and_each_names_it(make_job, failing):
    names = ["node1", "node2", "node3"]
    job = make_job(3, restarts=1)
    job.start_host()
    job.nodes("node2", "node3")
    job.wait_for_world(*names).of("node2").end(3)
    world = job.wait_for_world(*names)
    culprit = world.of(failing)
    culprit.end(7)
    ends = job.finish()
    assert {name: end.status for name, end in ends.items()} == dict.fromkeys(names, 1), job.tell()
    for name, end in ends.items():
        root_cause = end.err[end.err.index("Root Cause") : end.err.index("Failures:")]
        assert f"rank      : {culprit.rank} (local_rank: 0)" in root_cause, job.tell()
        assert f"exitcode  : 7 (pid: {culprit.pid})" in root_cause, job.tell()
        assert (name == failing) == ("no restart is left of 1 (--max-restarts)" in end.err), job.tell()
        consequences = end.err[end.err.index("Failures:") :]
        assert name == failing or "consequence: ended by the launcher" in consequences, job.tell()


@pytest.mark.parametrize("failing", ["one", "all"])
def test_workers_that_fail_at_once_lose_no_restart(make_job_anywhere, muster, failing):
    names, restarts = ["node1", "node2", "node3"], 20
    job = make_job_anywhere(3, restarts=restarts)
    unlucky = "[ $((TORCHELASTIC_RESTART_COUNT % 3)) = $RANK ]" if failing == "one" else "true"
    script = muster.script(
        "unlucky.sh",
        f"echo $TORCHELASTIC_RESTART_COUNT $RANK >>starts; [ $TORCHELASTIC_RESTART_COUNT = {restarts} ] && exit 0\n"
        f"{unlucky} && exit 3; exec sleep 300\n",
    )
    for name in names:
        job.start(name, script=script)
    assert job.succeeds()
    starts = [tuple(map(int, line.split())) for line in (job.scratch / "starts").read_text().splitlines()]
    assert len(starts) == len(set(starts))
    assert {number for number, _ in starts} == set(range(restarts + 1))
    assert [rank for number, rank in sorted(starts) if number == restarts] == [0, 1, 2]

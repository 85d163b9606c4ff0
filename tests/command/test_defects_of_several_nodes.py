# SPDX-License-Identifier: BSD-3-Clause
"""Defects of torchrun that belong to several nodes, each shown not to be here. docs/compatibility.md lists
them with the names of these tests (test_compatibility_page_names_every_defect_test)."""

import signal
import time

import pytest

from support.nodes import IMPATIENT, WORKER, Job
from support.store import Server

# Addresses, and by them the nodes' names; ranks follow their order.
ONE, TWO, THREE, FOUR = "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"

# Notes what is in the workers' store, and goes on when all of its world have met there.
MEETING = (
    """\
echo "$$ $("$MUSTER" store keys | tr '\\n' ' ')" >>found
"$MUSTER" store set "left-by-$$" x "here/$RANK" x
seq -f 'here/%g' 0 $((WORLD_SIZE - 1)) | xargs "$MUSTER" store wait || exit 8
"""
    + WORKER
)


@pytest.fixture
def make_job(muster):
    """A job whose workers meet in their store."""

    def make(nnodes, *options, **how):
        job = Job(muster, nnodes, *options, env={"MUSTER": muster.binary}, **how)
        job.script = muster.script("meeting.sh", MEETING)
        return job

    return make


def found_by(job, worker):
    """The keys a worker found in its store when it began."""
    lines = (job.scratch / "found").read_text(encoding="ascii").splitlines()
    return next(line.split()[1:] for line in lines if line.split()[0] == str(worker.pid))


# One world, one store


def test_a_job_grows_while_rank_0_stays(make_job):
    """torchrun's rank 0 publishes its address once: who comes later waits 60 s for it, then all end."""
    job = make_job("1:3")
    job.start_host(ONE)
    job.wait_for_world(ONE)
    job.start(TWO)
    job.wait_for_world(ONE, TWO)
    job.start(THREE)
    world = job.wait_for_world(ONE, TWO, THREE)
    assert world.nodes[0] == ONE
    world.end()
    assert job.succeeds()


def test_a_lost_node_is_replaced_while_rank_0_stays(make_job):
    """With torchrun the replacement waits for an address in vain, as any node that comes later."""
    job = make_job("2:2")
    job.start_host(ONE)
    lost = job.start(TWO)
    job.wait_for_world(ONE, TWO)
    lost.kill()
    job.start(THREE)
    world = job.wait_for_world(ONE, THREE)
    assert world.nodes[0] == ONE
    world.end()
    assert job.succeeds()


def test_all_nodes_are_told_one_store_when_a_newcomer_becomes_rank_0(make_job):
    """torchrun's old nodes keep the address they have, the newcomer has published its own."""
    job = make_job("1:3")
    job.start_host(TWO)
    job.wait_for_world(TWO)
    job.start(THREE)
    job.wait_for_world(TWO, THREE)
    job.start(ONE)
    world = job.wait_for_world(ONE, TWO, THREE)
    assert world.nodes == [ONE, TWO, THREE]
    assert {worker.store for worker in world.workers} == {world.store}
    world.end()
    assert job.succeeds()


@pytest.mark.parametrize("cause", ["failure", "newcomer"])
def test_new_workers_find_nothing_of_dead_ones_in_their_store(make_job, cause):
    """torchrun's store outlives a restart, with the addresses of dead workers in it."""
    job = make_job("2:3")
    job.start_host(ONE)
    job.start(TWO)
    first = job.wait_for_world(ONE, TWO)
    if cause == "failure":
        first.of(TWO).end(3)
        second = job.wait_for_world(ONE, TWO)
    else:
        job.start(THREE)
        second = job.wait_for_world(ONE, TWO, THREE)
    allowed = {f"left-by-{worker.pid}" for worker in second.workers}
    allowed |= {f"here/{worker.rank}" for worker in second.workers}
    for worker in second.workers:
        assert set(found_by(job, worker)) <= allowed, job.tell()
    second.end()
    assert job.succeeds()


def test_all_nodes_count_the_same_restarts(make_job):
    """Each torchrun node counts the failures of its own workers."""
    job = make_job("2:3")
    job.start_host(ONE)
    job.start(TWO)
    first = job.wait_for_world(ONE, TWO)
    assert first.restarts == {0}
    first.of(TWO).end(3)
    second = job.wait_for_world(ONE, TWO)
    assert second.restarts == {1}
    second.of(ONE).end(3)
    third = job.wait_for_world(ONE, TWO)
    assert third.restarts == {2}
    job.start(THREE)
    fourth = job.wait_for_world(ONE, TWO, THREE)
    assert fourth.restarts == {2}, "a membership change is free, and a newcomer counts the job's restarts"
    fourth.of(THREE).end(3)
    last = job.wait_for_world(ONE, TWO, THREE)
    assert last.restarts == {3}
    last.of(ONE).end(3)
    assert job.statuses() == {ONE: 1, TWO: 1, THREE: 1}, "three restarts for the job, not for each node"


# Nodes that go before there is a world


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_node_that_is_ended_before_the_first_start_is_not_missed(make_job, number):
    """With torchrun Ctrl-C closes the job for all, and SIGTERM leaves a participant nobody hears of."""
    job = make_job("3:3", conf=["keep_alive_interval=600"])
    job.start_host(ONE)
    ended = job.start(TWO)
    ended.wait_for_log("rendezvous <- written won")  # it is a participant
    ended.signal(number)
    assert ended.finish().status != 0
    job.nodes(THREE, FOUR)
    job.wait_for_world(ONE, THREE, FOUR).end()
    assert [node.finish().status for node in job.started if node is not ended] == [0, 0, 0], job.tell()


# Nodes that are done


@pytest.fixture(params=["presence", "heartbeats"])
def make_job_anywhere(request, muster, make_job):
    """A job at a store that tells of lost connections, then at one where heartbeats are all there is."""
    if request.param == "presence":
        return lambda nnodes, **how: make_job(nnodes, **how)
    server = Server(muster)
    return lambda nnodes, conf=(), **how: make_job(nnodes, port=server.port, conf=["is_host=false", *conf], **how)


def finish_one(job, node):
    """Ends the node's workers well; returns when it waits for the others to be done."""
    job.worlds()[-1].of(node.name).end()
    node.wait_until_done()


@pytest.mark.parametrize("done", [ONE, TWO])
def test_a_node_that_is_done_is_not_taken_for_dead(make_job_anywhere, done):
    """torchrun's exit barrier sends no heartbeats: after 15 s the node is expelled, a spare takes its place,
    and all work is done anew."""
    job = make_job_anywhere("2:2", conf=IMPATIENT)
    job.start(ONE)
    job.start(TWO)
    world = job.wait_for_world(ONE, TWO)
    spare = job.start(THREE)
    spare.wait_for_log("written won")  # it is in the record
    finish_one(job, next(node for node in job.started if node.name == done))
    time.sleep(3)  # longer than a node may be silent
    assert [world.of(node).is_running() for node in (ONE, TWO)] == [done != ONE, done != TWO], job.tell()
    assert spare.is_running()
    world.end()
    assert job.succeeds()
    assert len(job.workers()) == 2, job.tell()


@pytest.mark.parametrize("done", [ONE, TWO])
def test_a_node_that_is_done_ends_when_the_last_other_fails(make_job, done):
    """torchrun's finished node waits 300 s for one that will not come."""
    job = make_job("2:2", restarts=0)
    one = job.start_host(ONE)
    two = job.start(TWO)
    world = job.wait_for_world(ONE, TWO)
    finish_one(job, one if done == ONE else two)
    world.of(TWO if done == ONE else ONE).end(3)
    ends = job.statuses()
    assert ends[TWO if done == ONE else ONE] == 1, job.tell()
    assert len(job.workers()) == 2, job.tell()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_node_that_is_done_goes_on_when_the_last_other_leaves(make_job, how):
    """torchrun's finished node waits 300 s for the others to be done, also for those that are gone."""
    job = make_job("1:2")
    done = job.start_host(ONE)
    leaving = job.start(TWO)
    job.wait_for_world(ONE, TWO)
    finish_one(job, done)
    leaving.signal(how)
    job.wait_for_world(ONE).end()  # what the other has not done is done anew
    assert done.finish().status == 0, job.tell()


@pytest.mark.parametrize("done", [ONE, TWO])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_of_a_node_that_is_done(make_job, done, number):
    """torchrun acts on it when the wait is over, which begins anew with each signal: 300 s."""
    job = make_job("1:2")
    one = job.start_host(ONE)
    two = job.start(TWO)
    world = job.wait_for_world(ONE, TWO)
    waiting = one if done == ONE else two
    finish_one(job, waiting)
    waiting.signal(number)
    waiting.finish()
    if waiting is two:
        world.of(ONE).end()
        assert one.finish().status == 0, job.tell()
    assert len(job.workers()) == 2, job.tell()


def test_a_spare_that_was_not_needed_ends_well(make_job):
    """torchrun's spare trips over a missing result, or over its host, which has left: status 1."""
    job = make_job("2:2")
    job.start_host(ONE)
    job.start(TWO)
    world = job.wait_for_world(ONE, TWO)
    for spare in job.nodes(THREE, FOUR):
        spare.wait_for_log("written won")  # it is in the record
    world.end()
    assert job.statuses() == {ONE: 0, TWO: 0, THREE: 0, FOUR: 0}, job.tell()


# Running nodes are told


def test_running_nodes_notice_that_the_job_has_failed(make_job):
    """torchrun's survivors run on until they meet again: a job that is closed is noticed then."""
    job = make_job("3:3", restarts=0)
    job.start_host(ONE)
    job.nodes(TWO, THREE)
    world = job.wait_for_world(ONE, TWO, THREE)
    world.of(THREE).end(3)
    assert job.statuses() == {ONE: 1, TWO: 1, THREE: 1}, job.tell()
    assert not any(worker.is_running() for worker in world.workers)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_running_nodes_notice_that_another_is_gone(make_job, how):
    """torchrun's survivors notice nothing, be it killed or told to end, while their own workers run."""
    job = make_job("1:3", conf=["keep_alive_interval=600"])
    job.start_host(ONE)
    gone, _ = job.nodes(TWO, THREE)
    first = job.wait_for_world(ONE, TWO, THREE)
    gone.signal(how)
    second = job.wait_for_world(ONE, THREE)
    assert second.restarts == {0}
    assert not any(worker.is_running() for worker in first.workers)
    second.end()
    assert [job.started[0].finish().status, job.started[2].finish().status] == [0, 0], job.tell()


@pytest.mark.parametrize("done", [ONE, TWO])
def test_a_node_that_is_done_joins_one_that_fails_later(make_job, done):
    """torchrun's failing node joins anew alone, until the join timeout; the finished one waits in its barrier."""
    job = make_job("2:2")
    one = job.start_host(ONE)
    two = job.start(TWO)
    world = job.wait_for_world(ONE, TWO)
    finish_one(job, one if done == ONE else two)
    world.of(TWO if done == ONE else ONE).end(3)
    again = job.wait_for_world(ONE, TWO)
    assert again.restarts == {1}
    again.end()
    assert job.succeeds()

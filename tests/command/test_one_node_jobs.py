# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of one node that meet somewhere: of several agents one runs the workers, the others stand by."""

import re

import pytest

from support.nodes import IMPATIENT, Job, job_in_a_file, wait_until
from support.store import Server


@pytest.fixture
def make_job_elsewhere(muster):
    """A job whose store is neither agent's."""
    server = Server(muster)
    return lambda nnodes, *options: Job(
        muster, nnodes, *options, port=server.port, conf=["is_host=false", *IMPATIENT]
    )


def test_of_two_agents_one_runs_and_the_other_waits(make_job_anywhere):
    job = make_job_anywhere(1)
    job.start_host("node1")
    world = job.wait_for_world("node1")
    job.start("node2").wait_for_log("rendezvous <- written won")  # it is a spare now
    world.end()
    assert job.succeeds()
    assert [worker.node for worker in job.workers()] == ["node1"]


def is_killed_and_followed(job):
    active = job.start("node1")
    world = job.wait_for_world("node1")
    job.start("node2").wait_for_log("rendezvous <- written won")  # it is a spare now
    active.kill()
    world.of("node1").wait_until_gone()
    job.wait_for_world("node2").end()
    return job.succeeds()


def test_the_spare_takes_over_from_a_lost_node_through_a_file(muster):
    assert is_killed_and_followed(job_in_a_file(muster, 1))


def test_the_spare_takes_over_from_a_lost_node_through_a_store(make_job_elsewhere):
    assert is_killed_and_followed(make_job_elsewhere(1))


def test_a_failed_worker_is_restarted_where_it_was(make_job_anywhere):
    job = make_job_anywhere(1)
    job.start_host("node1")
    first = job.wait_for_world("node1")
    job.start("node2").wait_for_log("rendezvous <- written won")  # it is a spare now
    first.of("node1").end(3)
    second = job.wait_for_world("node1")
    assert second.restarts == {1}
    second.end()
    assert job.succeeds()


def test_a_failure_for_good_ends_the_spare_too(make_job):
    job = make_job(1, restarts=0)
    job.start_host("node1")
    world = job.wait_for_world("node1")
    job.start("node2").wait_for_log("rendezvous <- written won")  # it is a spare now
    world.end(3)
    assert job.statuses() == {"node1": 1, "node2": 1}
    assert [worker.node for worker in job.workers()] == ["node1"]


def test_an_endpoint_that_is_not_reached_is_a_failure(make_job):
    job = make_job(1, conf=["is_host=false", "join_timeout=1"])
    end = job.start("node1").finish()
    assert end.status == 1, end
    assert f"no store at 127.0.0.1 port {job.port} within 1 s" in end.err
    assert job.workers() == []


@pytest.mark.parametrize("endpoint", ["localhost:0", "127.0.0.1:0"])
def test_agents_at_any_free_port_meet_nobody(muster, endpoint):
    """PyTorch's documentation starts several jobs on one machine so."""
    job = Job(muster, 1)
    job.endpoint = endpoint
    nodes = job.nodes("node1", "node2")
    wait_until(lambda: len(job.workers()) == len(nodes), "a worker of each")
    assert all(world.is_whole() and len(world.nodes) == 1 for world in job.worlds()), job.tell()
    for world in job.worlds():
        world.end()
    assert job.succeeds()


def test_a_job_of_one_or_two_nodes_takes_a_free_port_and_says_which(muster):
    job = Job(muster, "1:2")
    job.endpoint = "localhost:0"
    first = job.start("node1")
    job.wait_for_world("node1")
    (port,) = set(re.findall(r"hosting the store of job 'job' on port (\d+)", first.err()))
    assert int(port) > 0
    job.endpoint = f"localhost:{port}"
    job.start("node2")
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()


def test_the_port_that_was_taken_is_shown_without_being_asked_for(muster):
    job = Job(muster, "1:2", env={"LOGLEVEL": "WARNING"})
    job.endpoint = "localhost:0"
    node = job.start("node1")
    world = job.wait_for_world("node1")
    assert re.search(r"--rdzv-endpoint HOST:[1-9]\d*", node.err()), job.tell()
    world.end()
    assert job.succeeds()

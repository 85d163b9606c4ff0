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


def end_of_second_job(job, **how):
    """A job runs; another agent was given the same --rdzv-id, and waits beside it until it is over."""
    job.start_host("node1")
    world = job.wait_for_world("node1")
    second = job.start("node2", **how)
    second.wait_for_log("this one is a spare")
    world.end()
    assert job.started[0].finish().status == 0
    assert [worker.node for worker in job.workers()] == ["node1"]
    return second.finish()


def test_a_spare_that_was_not_needed_is_told_that_its_program_never_ran(make_job_anywhere):
    end = end_of_second_job(make_job_anywhere(1))
    assert end.status == 0 and "two jobs" not in end.err, end
    assert re.search(r"^W.*ended well without this node: its program never ran", end.err, re.M), end


def test_a_second_job_of_one_machine_does_not_end_as_if_it_had_run(make_job_anywhere):
    end = end_of_second_job(make_job_anywhere(1), address="node1")
    assert end.status == 1, end
    assert re.search(r"^W.*this one is a spare.*is on this machine, process \d+: if these are two jobs", end.err, re.M)
    assert re.search(r"^W.*the program of this node never ran", end.err, re.M)


def test_a_job_with_another_command_does_not_end_as_if_it_had_run(make_job_anywhere, muster):
    other = muster.script("other.sh", "touch other\n")
    end = end_of_second_job(make_job_anywhere(1), script=other)
    assert end.status == 1 and not (muster.scratch / "other").exists(), end
    assert re.search(r"^W.*this one is a spare.*with other arguments: if these are two jobs", end.err, re.M)


def test_three_jobs_of_one_name_are_one_that_runs_and_two_that_fail(make_job):
    job = make_job(1)
    job.start_host("node1")
    world = job.wait_for_world("node1")
    others = [job.start(name, address="node1") for name in ("node2", "node3")]
    for other in others:
        other.wait_for_log("this one is a spare")
    world.end()
    assert job.statuses() == {"node1": 0, "node2": 1, "node3": 1}


def test_two_commands_of_one_machine_in_one_world_are_said(make_job, muster):
    job = make_job("1:2")
    job.start_host("node1")
    job.wait_for_world("node1")
    job.start("node2", address="node1", script=muster.script("other.sh", "exit 0\n"))
    job.wait_for_log_of_any("they are one world now; if these are two jobs")


def test_a_second_job_that_is_not_let_in_does_not_end_as_if_it_had_run(make_job):
    job = make_job("1:2", "--scale-up", "never")
    job.start_host("node1")
    world = job.wait_for_world("node1")
    second = job.start("node2", address="node1")
    second.wait_for_log("which waits to be let in (--scale-up); but a node of that job is on this machine")
    world.end()
    assert job.statuses() == {"node1": 0, "node2": 1}

# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of one node with a spare: of agents of both kinds one runs the workers, the other stands by."""

import pytest

from support.mixed_nodes import MixedJob
from support.store import Server

pytestmark = pytest.mark.timeout(120)

KINDS = [("torchrun", "torchrun"), ("muster", "muster"), ("torchrun", "muster"), ("muster", "torchrun")]


@pytest.fixture
def make_job(muster, peer):
    """A job whose store is neither agent's."""
    server = Server(muster)
    return lambda **how: MixedJob(muster, peer, nodes="1", endpoint=f"127.0.0.1:{server.port}", **how)


@pytest.mark.parametrize("active, standby", KINDS)
def test_the_spare_takes_over_from_the_killed_agent(make_job, active, standby):
    job = make_job()
    first = job.start(active, 1, is_host=False)
    world = job.wait_for_world({1: 1})
    job.start(standby, 2, is_host=False)
    job.wait_until_known(2)
    assert job.living().node == [1], job
    first.running.kill()
    job.wait_for_world({2: 1}, after=world).assert_has_met()
    job.let_go()
    job.finish({2: 0})
    assert [job.starts(1), job.starts(2)] == [1, 1]


@pytest.mark.parametrize("kind", ["torchrun", "muster"])
def test_a_spare_that_was_not_needed_never_runs(make_job, kind):
    job = make_job()
    job.start(kind, 1, is_host=False)
    job.wait_for_world({1: 1})
    job.start("muster", 2, is_host=False)
    job.wait_until_known(2)
    job.let_go()
    job.finish({1: 0, 2: 0})
    assert [job.starts(1), job.starts(2)] == [1, 0]


@pytest.mark.parametrize("kind", ["torchrun", "muster"])
def test_one_node_is_enough_for_a_job_at_a_free_port(muster, peer, kind):
    job = MixedJob(muster, peer, nodes="1:2", endpoint="localhost:0")
    job.start(kind, 1)
    job.wait_for_world({1: 1}).assert_has_met()
    job.let_go()
    job.finish()


@pytest.mark.parametrize("kind", ["torchrun", "muster"])
def test_the_default_logs_can_be_asked_for_by_name(muster, peer, kind):
    job = MixedJob(muster, peer, nodes="1", endpoint="localhost:0", options=["--logs-specs", "default"])
    job.start(kind, 1)
    job.wait_for_world({1: 1})
    job.let_go()
    job.finish()

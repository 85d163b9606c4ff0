# SPDX-License-Identifier: BSD-3-Clause
"""`torchrun --rdzv-backend muster`: real torchrun agents with Muster's rendezvous, alone and beside nodes of `muster run`."""

import signal

import pytest

from support.installed_package import install
from support.mixed_nodes import MixedJob
from support.own_library import LIBRARY

pytestmark = pytest.mark.timeout(120)


class Job(MixedJob):
    """A node of the kind "handler" is torchrun with Muster's rendezvous."""

    def start(self, kind, number, *options, **settings):
        if kind != "handler":
            return super().start(kind, number, *options, **settings)
        env = {**self.installed, **settings.pop("env", {})}
        return super().start("torchrun", number, "--rdzv-backend", "muster", *options, env=env, **settings)


@pytest.fixture
def make_job(muster, peer, scratch):
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built (-Dlibrary=false)")
    installed = install(scratch / "package")

    def make(**settings):
        job = Job(muster, peer, **settings)
        job.installed = installed
        return job

    return make


def test_nodes_of_torchrun_meet_by_musters_rendezvous_and_restart(make_job):
    job = make_job(options=["--max-restarts", 1])
    job.start("handler", 1)
    job.start("handler", 2, workers=2)
    world = job.wait_for_world({1: 1, 2: 2})
    world.assert_has_met()
    job.fail(2)
    world = job.wait_for_world({1: 1, 2: 2}, after=world)
    world.assert_has_met()
    job.let_go()
    job.finish()


@pytest.mark.parametrize("other", ["torchrun", "muster"])
@pytest.mark.parametrize("host", [1, 2])
def test_it_is_one_job_with_nodes_of_other_kinds(make_job, other, host):
    job = make_job()
    job.start("handler", 1, is_host=host == 1)
    job.start(other, 2, is_host=host == 2)
    world = job.wait_for_world({1: 1, 2: 1})
    world.assert_has_met()
    job.let_go()
    job.finish()


def test_the_others_restart_when_a_node_is_gone_or_comes(make_job):
    """With c10d, torchrun does not notice before a worker fails."""
    job = make_job(nodes="1:2")
    job.start("handler", 1)
    leaver = job.start("handler", 2, is_host=False)
    both = job.wait_for_world({1: 1, 2: 1})
    leaver.running.signal(signal.SIGTERM)
    alone = job.wait_for_world({1: 1}, after=both)
    alone.assert_has_met()
    job.start("handler", 3, is_host=False)
    job.wait_for_world({1: 1, 3: 1}, after=alone).assert_has_met()
    job.let_go()
    job.finish({1: 0, 2: 1, 3: 0})

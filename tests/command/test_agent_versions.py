# SPDX-License-Identifier: BSD-3-Clause
"""Agents that speak another version of Muster's protocol are refused, and both ends say so in one sentence."""

import pytest

from support.nodes import Job
from support.store import RawClient

PROTOCOL = b"/torch.rendezvous.job/muster/protocol"
REFUSED = b"/torch.rendezvous.job/muster/presence/refused/7"


@pytest.fixture
def version(muster):
    """What this program calls itself."""
    return muster.run(["--version"]).out.strip()


@pytest.fixture
def job(muster):
    """A job whose first node works alone, and would let in another one."""
    job = Job(muster, "1:2")
    job.start_host("node1")
    job.world = job.wait_for_world("node1")
    return job


def end_well(job, host):
    assert all(worker.is_running() for worker in job.world.workers), job.tell()
    job.world.end()
    assert host.finish().status == 0, job.tell()


def test_a_job_is_begun_with_the_version_of_its_first_agent(job, version):
    with RawClient(job.port) as client:
        assert client.get(PROTOCOL) == b"1 " + version.encode()
    end_well(job, job.started[0])


def test_an_agent_that_finds_another_version_is_refused_and_both_say_so(job, version):
    host = job.started[0]
    with RawClient(job.port) as client:
        client.set(PROTOCOL, b"2 muster 9.1")
        assert client.get(PROTOCOL) == b"2 muster 9.1"
    end = job.start("node2").finish()
    own = f"{version}, which speaks version 1 of Muster's protocol"
    assert end.status == 1, job.tell()
    assert (f"job 'job' at this store was begun by muster 9.1, which speaks version 2 of Muster's protocol, and this is {own}; "
            "use one version of Muster on all nodes of a job") in end.err
    host.wait_for_log(f"a node was refused: it runs {own}, and this is {own}; use one version of Muster on all nodes of a job")
    end_well(job, host)


def test_a_later_agent_that_was_refused_is_told_of(job):
    host = job.started[0]
    with RawClient(job.port) as client:
        client.set(REFUSED, b"2 muster 9.1")
        assert client.get(REFUSED) == b"2 muster 9.1"
    host.wait_for_log("a node was refused: it runs muster 9.1, which speaks version 2 of Muster's protocol, and this is muster ")
    end_well(job, host)


def test_nonsense_about_versions_is_not_repeated(job, scratch):
    host = job.started[0]
    with RawClient(job.port) as client:
        client.set(REFUSED, b"2 \x1b[2J")
        client.set(PROTOCOL, b"2 \x1b[2J")
        client.get(PROTOCOL)
    end = job.start("node2").finish()
    assert end.status == 1, job.tell()
    assert "the protocol's version of job 'job' in the store (key torch.rendezvous.job/muster/protocol) cannot be used" in end.err
    assert "\x1b" not in end.err
    end_well(job, host)
    assert "\x1b" not in host.err()

# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of real agents whose register is a real etcd: the host of the store dies, etcd's members go and come, both at once."""

import signal

import pytest

from support.etcd import Etcd, make_certificates, require_etcd
from support.nodes import Job

pytestmark = pytest.mark.timeout(900)
# Etcd and the agents may both be slow on a machine that does much else.
PATIENCE = 240


@pytest.fixture
def make_etcd(tmp_path):
    require_etcd()
    started = []

    def make(members, trust=None):
        started.append(Etcd(tmp_path, members, trust))
        return started[-1]

    yield make
    for etcd in started:
        etcd.end()


@pytest.fixture
def make_etcd_job(muster):
    """make_etcd_job(etcd, "2:3"): nodes of this machine, whose register is that etcd."""

    def make(etcd, nnodes, *options, backend="etcd", spelling="{}", **how):
        endpoint = ",".join(spelling.format(member) for member in etcd.endpoints.split(","))
        return Job(muster, nnodes, "--rdzv-backend", backend, *options, path=endpoint, **how)

    return make


def start_nodes(job, count):
    """Nodes node1, node2, …, of which the first hosts the store."""
    for number in range(1, count + 1):
        job.start(f"node{number}", address="127.0.0.1")
        if number == 1:
            job.started[0].wait_for_log("this node hosts the store", timeout=PATIENCE)
    return job.wait_for_world(*(f"node{number}" for number in range(1, count + 1)), timeout=PATIENCE)


@pytest.mark.parametrize("members, backend, spelling", [(1, "etcd-v3", "http://{}"), (3, "etcd", "{}")])
def test_a_killed_host_is_succeeded(make_etcd, make_etcd_job, members, backend, spelling):
    job = make_etcd_job(make_etcd(members), "2:3", backend=backend, spelling=spelling)
    start_nodes(job, 3)
    job.started[0].kill()
    world = job.wait_for_world("node2", "node3", timeout=PATIENCE)
    assert world.restarts == {0}, job.tell()
    assert len(job.worlds()) == 2, job.tell()
    world.end()
    assert job.succeeds(PATIENCE)


def test_workers_run_on_while_all_members_are_away(make_etcd, make_etcd_job):
    """And the round that a failed worker asks for is begun when they are back."""
    etcd = make_etcd(3)
    job = make_etcd_job(etcd, "3", conf=["fence_timeout=4"])
    world = start_nodes(job, 3)
    for member in range(3):
        etcd.kill(member)
    for node in job.started:
        if "hosts the store" in node.err():
            node.wait_for_log("this node's term is not renewed", timeout=PATIENCE)
    assert all(worker.is_running() for worker in world.workers), job.tell()
    world.of("node2").end(3)
    world.of("node1").wait_until_gone()
    for member in range(3):
        etcd.start(member)
    again = job.wait_for_world("node1", "node2", "node3", timeout=PATIENCE)
    assert again.restarts == {1}, job.tell()
    assert len(job.worlds()) == 2, job.tell()
    again.end()
    assert job.succeeds(PATIENCE)


def test_host_and_leader_of_etcd_may_be_killed_together(make_etcd, make_etcd_job):
    etcd = make_etcd(3)
    job = make_etcd_job(etcd, "2:3")
    start_nodes(job, 3)
    leader = etcd.leader()
    etcd.signal(leader, signal.SIGKILL)
    job.started[0].kill()
    world = job.wait_for_world("node2", "node3", timeout=PATIENCE)
    assert world.restarts == {0}, job.tell()
    world.end()
    assert job.succeeds(PATIENCE)


def test_one_node_and_a_list_wait_for_nobody(make_etcd, make_etcd_job):
    job = make_etcd_job(make_etcd(3), "1")
    world = start_nodes(job, 1)
    world.end()
    assert job.succeeds(PATIENCE)


def test_nodes_show_etcd_their_certificates(make_etcd, make_etcd_job, tmp_path):
    make_certificates(tmp_path)
    trust = [f"ca_cert={tmp_path}/ca.pem", f"ssl_cert={tmp_path}/client.pem", f"ssl_cert_key={tmp_path}/client.key"]
    job = make_etcd_job(make_etcd(1, tmp_path), "2:3", spelling="https://{}", conf=trust)
    start_nodes(job, 3)
    assert "knows no setting" not in job.tell()
    job.started[0].kill()
    job.wait_for_world("node2", "node3", timeout=PATIENCE).end()
    assert job.succeeds(PATIENCE)


def test_members_that_are_not_there_are_one_error_in_the_end(muster):
    end = muster.run(
        ["run", "--nnodes", "2", "--rdzv-backend", "etcd", "--rdzv-endpoint", "127.0.0.1:1,127.0.0.1:2", "--rdzv-id", "job",
         "--rdzv-conf", "join_timeout=8", "--local-addr", "127.0.0.1", "--no-python", "true"],
        timeout=PATIENCE)  # fmt: skip
    assert end.status == 1, end
    assert "etcd (127.0.0.1:" in end.err, end.err


def test_a_member_that_stands_still_is_left_for_the_next(make_etcd, make_etcd_job):
    """It takes connections, and answers nothing; it may have led the others."""
    etcd = make_etcd(3)
    etcd.signal(0, signal.SIGSTOP)
    job = make_etcd_job(etcd, "2:3")
    start_nodes(job, 3)
    job.started[0].kill()
    world = job.wait_for_world("node2", "node3", timeout=PATIENCE)
    assert world.restarts == {0}, job.tell()
    world.end()
    assert job.succeeds(PATIENCE)

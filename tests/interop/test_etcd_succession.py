# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of real agents whose register is a real etcd: the host of the store dies, etcd's members go and come, both at once."""

import signal
import time

import pytest

from support.etcd import Etcd, make_certificates, require_etcd, require_other_etcd
from support.nodes import Job, wait_until

pytestmark = pytest.mark.timeout(900)
# Etcd and the agents may both be slow on a machine that does much else.
PATIENCE = 240
FENCE = 4  # seconds; a node that is only slow must not take itself for cut off


@pytest.fixture
def make_etcd(tmp_path):
    require_etcd()
    started = []

    def make(members, trust=None, **how):
        started.append(Etcd(tmp_path, members, trust, **how))
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


def start_nodes(job, count, hosts=()):
    """Nodes node1, node2, …, of which the first hosts the store; here or on these hosts."""
    for number in range(1, count + 1):
        where = {"on": hosts[number - 1]} if hosts else {"address": "127.0.0.1"}
        job.start(f"node{number}", **where)
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
    job = make_etcd_job(etcd, "3", conf=[f"fence_timeout={FENCE}"])
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


def test_workers_outlive_an_absence_of_all_members_that_is_longer_than_the_fence(make_etcd, make_etcd_job):
    """No worker is restarted for it, and one that fails afterwards is restarted as ever. Nobody says that nothing has
    happened for so long, so here a time has to pass."""
    etcd = make_etcd(3)
    job = make_etcd_job(etcd, "3", conf=[f"fence_timeout={FENCE}"])
    world = start_nodes(job, 3)
    for member in range(3):
        etcd.kill(member)
    time.sleep(FENCE + 1)
    assert all(worker.is_running() for worker in world.workers), job.tell()
    for member in range(3):
        etcd.start(member)
    etcd.await_member(0)
    world.of("node2").end(3)
    again = job.wait_for_world("node1", "node2", "node3", timeout=PATIENCE)
    assert again.restarts == {1}, job.tell()
    assert len(job.worlds()) == 2, job.tell()
    again.end()
    assert job.succeeds(PATIENCE)


@pytest.mark.parametrize("is_within_reach", [True, False], ids=["reached by nodes", "silent"])
def test_a_member_that_is_partitioned_holds_nothing_up(make_etcd, make_etcd_job, make_network, is_within_reach):
    """It led the others. What it still says to the nodes counts for nothing, where they reach it."""
    hosts = make_network(6).hosts
    etcd = make_etcd(3, hosts=hosts[3:])
    job = make_etcd_job(etcd, "2:3")
    start_nodes(job, 3, hosts)
    leader = etcd.leader()
    if is_within_reach:
        etcd.cut_from_others(leader)
    else:
        hosts[3 + leader].unplug()
    job.started[0].kill()
    world = job.wait_for_world("node2", "node3", timeout=PATIENCE)
    assert world.restarts == {0}, job.tell()
    world.of("node2").end(3)
    last = job.wait_for_world("node2", "node3", timeout=PATIENCE)
    assert last.restarts == {1}, job.tell()
    assert etcd.call(leader, "/etcdserverpb.KV/Range", b"\x0a\x01k") != 0, "it is not cut off"
    if is_within_reach:
        etcd.join_others(leader)
    else:
        hosts[3 + leader].plug()
    etcd.await_member(leader)
    last.end()
    assert job.succeeds(PATIENCE)
    assert len(job.worlds()) == 3, job.tell()


def test_a_later_etcd_keeps_a_job_alive(make_etcd, make_etcd_job):
    job = make_etcd_job(make_etcd(3, program=require_other_etcd()), "2:3")
    start_nodes(job, 3)
    job.started[0].kill()
    job.wait_for_world("node2", "node3", timeout=PATIENCE).end()
    assert job.succeeds(PATIENCE)


def test_a_host_that_is_told_to_end_names_the_next_one(make_etcd, make_etcd_job):
    job = make_etcd_job(make_etcd(3), "2:3")
    start_nodes(job, 3)
    job.started[0].signal(signal.SIGTERM)
    world = job.wait_for_world("node2", "node3", timeout=PATIENCE)
    assert job.started[0].finish(PATIENCE).status == 1
    job.started[2].wait_for_log("the store moves to another node", timeout=PATIENCE)
    assert "append handover" in job.started[1].err() and world.restarts == {0}, job.tell()
    world.end()
    assert job.started[1].finish(PATIENCE).status == job.started[2].finish(PATIENCE).status == 0
    assert len(job.worlds()) == 2, job.tell()


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


def test_the_status_is_asked_of_the_host_that_etcd_names(muster, make_etcd, make_etcd_job, scratch):
    etcd = make_etcd(1)
    job = make_etcd_job(etcd, "2:3")
    start_nodes(job, 3)
    words = ["--rdzv-backend", "etcd", "--rdzv-endpoint", etcd.endpoints, "--rdzv-id", "job"]

    def ask(nodes):
        told = muster.run(["status", *words], env={"MUSTER_RUNTIME_DIR": scratch / "nobody"})
        return told if told.status == 0 and f"{nodes} of 3 nodes" in told.out else None

    wait_until(lambda: ask(3), "the status", PATIENCE)
    job.started[0].kill()
    world = job.wait_for_world("node2", "node3", timeout=PATIENCE)
    told = wait_until(lambda: ask(2), "the status from the next host", PATIENCE)
    assert "before the host changed, " in told.out, told
    world.end()
    assert job.succeeds(PATIENCE)

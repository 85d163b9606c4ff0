# SPDX-License-Identifier: BSD-3-Clause
"""Nodes on machines of their own, and the cables between them: what is cut off is missed within seconds,
stops its own workers, and comes back."""

import re
import time

import pytest

from support.nodes import Job, wait_until

PORT = 29437  # of nobody else there: each test's machines are new


@pytest.fixture
def network(make_network):
    return make_network(3)


class JobOfMachines(Job):
    """One node per machine, of the same name; the first is the endpoint's."""

    def __init__(self, muster, network, nnodes, *options, host="node1", **how):
        super().__init__(muster, nnodes, *options, host=host, port=PORT, **how)
        self.machines = {host.name: host for host in network.hosts}

    def start_all(self):
        host = self.start_on("node1")
        host.wait_for_log("hosting the store")
        return [host, *(self.start_on(name) for name in ("node2", "node3"))]

    def start_on(self, name, **how):
        return self.start(name, on=self.machines[name], **how)


@pytest.fixture
def make_job(muster, network):
    return lambda nnodes, *options, **how: JobOfMachines(muster, network, nnodes, *options, **how)


ALL = ("node1", "node2", "node3")


@pytest.mark.parametrize("host", ["node1", "10.77.0.1", "[fd77::1]"])
def test_machines_meet_where_they_are_told_to(make_job, host):
    job = make_job(3, host=host)
    for name in reversed(ALL):
        job.start_on(name)
    world = job.wait_for_world(*ALL)
    assert world.nodes == list(ALL)
    for machine in job.machines.values():
        address, port = world.store.rsplit(":", 1)
        machine.run(job.muster.binary, "store", "ping", "--host", address, "--port", port)
    world.end()
    assert job.succeeds()


def test_a_host_whose_name_becomes_known_late_is_found(make_job, network):
    network.name_hosts(network.hosts[1:])
    job = make_job(3)
    waiting = [job.start_on("node2"), job.start_on("node3")]
    time.sleep(0.5)
    assert all(node.is_running() for node in waiting)
    network.name_hosts(network.hosts)
    job.start_on("node1")
    job.wait_for_world(*ALL).end()
    assert job.succeeds()


def test_each_report_names_the_machine_that_failed_first(make_job):
    job = make_job(3, restarts=0)
    job.start_all()
    job.wait_for_world(*ALL).of("node2").end(9)
    for name, end in job.finish().items():
        assert end.status == 1, job.tell()
        root_cause = end.err[end.err.index("Root Cause") : end.err.index("Failures:")]
        assert "host      : node2\n" in root_cause and "exitcode  : 9 " in root_cause, job.tell()
        consequences = end.err[end.err.index("Failures:") :]
        assert name == "node2" or f"host      : {name}\n" in consequences, job.tell()


@pytest.mark.parametrize("cut, mend", [("unplug", "plug"), ("link_down", "link_up")])
def test_a_machine_that_is_cut_off_is_missed_and_comes_back(make_job, cut, mend):
    job = make_job("2:3")
    job.start_all()
    first = job.wait_for_world(*ALL)
    getattr(job.machines["node3"], cut)()
    second = job.wait_for_world("node1", "node2")
    assert second.restarts == {0}
    first.of("node3").wait_until_gone()
    job.started[2].wait_for_log(f"this node is cut off from the job's store at node1:{PORT}: ")
    assert "no answer" in job.started[2].err(), job.tell()
    getattr(job.machines["node3"], mend)()
    third = job.wait_for_world(*ALL)
    assert third.restarts == {0}
    third.end()
    assert job.succeeds()


def is_calm(machine):
    """Whether the node on this machine has sent nothing for longer than from one sign of life to the next."""
    told = machine.run("ss", "-tinH", "dport", "=", f":{PORT}")
    pauses = [int(pause) for pause in re.findall(r"lastsnd:(\d+)", told)]
    return bool(pauses) and min(pauses) > 2500


@pytest.mark.parametrize("cut", ["unplug", "link_down"])
def test_a_machine_is_missed_whose_calm_connection_needed_no_signs_of_life(make_job, cut):
    job = make_job("2:3", conf=["delegation=true", "calm_after=1"])
    job.start_all()
    first = job.wait_for_world(*ALL)
    for name in ("node2", "node3"):
        wait_until(lambda name=name: is_calm(job.machines[name]), f"calm of {name}")
    getattr(job.machines["node3"], cut)()
    second = job.wait_for_world("node1", "node2")
    assert second.restarts == {0}
    first.of("node3").wait_until_gone()
    assert "no answer for" in job.started[0].err(), job.tell()
    job.machines["node3"].plug() if cut == "unplug" else job.machines["node3"].link_up()
    job.wait_for_world(*ALL).end()
    assert job.succeeds()


@pytest.mark.parametrize("cut", ["unplug", "link_down"])
def test_workers_that_fail_when_a_machine_is_cut_off_cost_nothing(make_job, cut):
    job = make_job("2:3", restarts=0)
    job.start_all()
    first = job.wait_for_world(*ALL)
    getattr(job.machines["node3"], cut)()
    for name in ALL:
        first.of(name).end(1)  # as when its connection is broken
    second = job.wait_for_world("node1", "node2")
    assert second.restarts == {0}
    job.machines["node3"].plug() if cut == "unplug" else job.machines["node3"].link_up()
    job.wait_for_world(*ALL).end()
    assert job.succeeds()


def test_a_cut_off_machine_stops_its_workers_before_it_gives_up(make_job):
    job = make_job("2:3", conf=["join_timeout=5"])
    job.start_all()
    first = job.wait_for_world(*ALL)
    job.machines["node3"].unplug()
    first.of("node3").wait_until_gone()
    end = job.started[2].finish()
    assert end.status == 1 and f"no store at node1 port {PORT}" in end.err.splitlines()[-1], end
    job.wait_for_world("node1", "node2").end()
    assert [node.finish().status for node in job.started[:2]] == [0, 0], job.tell()


@pytest.mark.parametrize("nnodes", ["1:3", "2:3"])
def test_when_the_hosts_machine_is_cut_off_nobody_else_goes_on(make_job, nnodes):
    job = make_job(nnodes)
    job.start_all()
    first = job.wait_for_world(*ALL)
    job.machines["node1"].unplug()
    for worker in first.workers:
        worker.wait_until_gone()
    for node in job.started[1:]:
        node.wait_for_log(f"this node is cut off from the job's store at node1:{PORT}: ")
    if nnodes == "1:3":
        job.wait_for_world("node1")
    job.machines["node1"].plug()
    world = job.wait_for_world(*ALL)
    assert world.restarts == {0}
    world.end()
    assert job.succeeds()


@pytest.mark.parametrize("end_of_host", ["silent", "refused"])
def test_a_host_that_is_lost_has_one_end_within_the_host_timeout(make_job, end_of_host):
    job = make_job("2:3", "--host-timeout", 7, conf=["silence_timeout=1"])
    host, *others = job.start_all()
    first = job.wait_for_world(*ALL)
    job.machines["node1"].unplug() if end_of_host == "silent" else host.kill()
    for node in others:
        end = node.finish()
        assert end.status == 1, end
        assert f"the job's store at node1:{PORT} is lost, and the job with it: no store at node1" in end.err, end
        assert ("still no connection to the job's store" in end.err) == (end_of_host == "silent"), end
    for worker in first.workers:
        worker.wait_until_gone()


def test_a_short_cut_is_not_noticed(make_job):
    job = make_job("1:3")
    job.start_all()
    world = job.wait_for_world(*ALL)
    for name in ("node3", "node1"):
        job.machines[name].unplug()
        time.sleep(1)
        job.machines[name].plug()
        time.sleep(1)
    assert all(worker.is_running() for worker in world.workers), job.tell()
    world.end()
    assert job.succeeds()
    assert job.is_newest(world)


def test_a_last_failure_waits_for_a_machine_that_may_be_lost(make_job):
    job = make_job("2:3", restarts=0)
    job.start_all()
    world = job.wait_for_world(*ALL)
    job.machines["node3"].unplug()
    world.of("node2").end(9)
    job.started[1].wait_for_log("failed (exitcode: 9)")
    job.machines["node3"].plug()
    assert [node.finish().status for node in job.started] == [1, 1, 1], job.tell()
    assert job.is_newest(world)

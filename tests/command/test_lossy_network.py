# SPDX-License-Identifier: BSD-3-Clause
"""Nodes whose cables are bad: packets are lost, one direction is dead, connections are reset."""

import time

import pytest

from support.nodes import Job

LOOK = ["--silence-timeout", 3]  # both ends of an idle connection send something within that time
PORT = 29438  # of nobody else there: each test's machines are new


class JobOfMachines(Job):
    """One node per machine, of the same name; the first is the endpoint's."""

    def __init__(self, muster, network, nnodes, *options, **how):
        super().__init__(muster, nnodes, *options, host="node1", port=PORT, **how)
        self.machines = network.hosts

    def start_all(self):
        self.start("node1", on=self.machines[0]).wait_for_log("hosting the store")
        return [self.start(host.name, on=host) for host in self.machines[1:]]


ECHO = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
    here.bind(("", 7))
    print("here", flush=True)
    while True:
        data, sender = here.recvfrom(100)
        here.sendto(data, sender)
"""
ASK = """
import socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
    here.settimeout(1)
    here.connect((sys.argv[1], 7))
    began, first = time.monotonic(), None
    for number in range(100):
        here.send(b"%d" % number)
    try:
        for count in range(101):
            here.recv(100)
            first = first or time.monotonic() - began
    except TimeoutError:
        print(count, first)
"""


def test_the_network_does_as_it_is_told(muster, make_lossy_network):
    network = make_lossy_network(2)
    one, two = network.hosts
    echo = muster.start(["-c", ECHO], program="/usr/bin/python3", on=one)
    echo.wait_until(lambda: "here" in echo.out(), "the echo")

    def ask():
        """How many of 100 questions were answered, and the first after how many seconds."""
        count, first = two.run("/usr/bin/python3", "-c", ASK, one.address).split()
        return int(count), None if first == "None" else float(first)

    assert ask()[0] == 100
    network.loss("*", "*", 0.3)
    before = network.counts()["lost"]
    assert 20 <= ask()[0] <= 80  # about 49: there and back
    assert network.counts()["lost"] - before >= 20
    network.mend("*", "*")
    network.cut(one, two)
    assert ask() == (0, None)
    network.mend(one, two)
    network.delay(two, one, 200)
    count, seconds = ask()
    assert count == 100 and seconds >= 0.2


def test_a_reset_ends_the_connections_of_both_sides(muster, make_lossy_network):
    network = make_lossy_network(2)
    one, two = network.hosts
    server = muster.start(["store", "serve", "--host", one.address, "--port", PORT, *LOOK], on=one)
    where = ["--host", one.address, "--port", PORT, "--timeout", 30, *LOOK]
    assert muster.start(["store", "set", "k", "v", *where], on=two).finish().status == 0
    waiting = muster.start(["store", "wait", "never", *where], on=two)
    waiting.wait_until(lambda: one.connections(PORT) == 1, "the connection")
    network.reset("*", "*")
    end = waiting.finish()
    assert end.status == 1 and "reset" in end.err, end
    waiting.wait_until(lambda: one.connections(PORT) == 0, "the other side's end")
    assert network.counts()["reset"] >= 2
    network.mend("*", "*")
    assert muster.start(["store", "get", "k", *where], on=two).finish().out == "v"
    assert server.process.poll() is None


@pytest.fixture
def network(make_lossy_network):
    return make_lossy_network(3)


def test_nodes_that_lose_every_third_packet_while_they_join_all_run(muster, make_lossy_network):
    network = make_lossy_network(5, 3)
    network.loss("*", "*", 0.3)
    job = JobOfMachines(muster, network, 5)
    for host in network.hosts:
        job.start(host.name, on=host)
    time.sleep(6)
    network.mend("*", "*")
    world = job.wait_for_world(*(host.name for host in network.hosts), timeout=60)
    assert world.restarts == {0}
    world.end()
    assert job.succeeds()


def test_lost_packets_are_no_lost_nodes(muster, make_lossy_network):
    """Every twentieth packet: with bare probes, a node is taken for gone every three seconds."""
    network = make_lossy_network(5, 3)
    job = JobOfMachines(muster, network, "2:5")
    job.start_all()
    world = job.wait_for_world(*(host.name for host in network.hosts))
    network.loss("*", "*", 0.05)
    time.sleep(12)
    assert network.counts()["lost"] > 0
    network.mend("*", "*")
    assert all("no answer" not in node.err() for node in job.started), job.tell()
    world.end()
    assert job.succeeds()


@pytest.mark.parametrize("is_deaf", [False, True], ids=["is not heard", "hears nothing"])
def test_a_node_with_a_dead_direction_is_missed_and_comes_back(muster, network, is_deaf):
    lost = network.hosts[2]
    job = JobOfMachines(muster, network, "2:3")
    job.start_all()
    first = job.wait_for_world("node1", "node2", "node3")
    network.cut(*(("*", lost) if is_deaf else (lost, "*")))
    second = job.wait_for_world("node1", "node2")
    first.of("node3").wait_until_gone()
    assert second.restarts == {0}
    network.mend("*", "*")
    job.wait_for_world("node1", "node2", "node3").end()
    assert job.succeeds()


def test_a_node_whose_connections_are_reset_comes_back(muster, network):
    job = JobOfMachines(muster, network, "2:3")
    job.start_all()
    job.wait_for_world("node1", "node2", "node3")
    network.reset(network.hosts[2], "*")
    job.started[2].wait_for_log("this node is cut off from the job's store")
    network.mend("*", "*")
    world = job.wait_for_world("node1", "node2", "node3")
    assert world.restarts == {0}
    world.end()
    assert job.succeeds()


def test_a_world_outlives_a_lossy_network(muster, network):
    job = JobOfMachines(muster, network, "1:3")
    job.start_all()
    world = job.wait_for_world("node1", "node2", "node3")
    network.loss("*", "*", 0.05)
    time.sleep(8)
    assert job.is_newest(world) and all(worker.is_running() for worker in world.workers), job.tell()
    network.mend("*", "*")
    world.end()
    assert job.succeeds()


def test_a_node_that_comes_back_to_a_last_round_keeps_nobody_from_ending(muster, network):
    """Its loss was ignored, and the others are done: no further round follows."""
    ignoring = ["--on-node-loss", "torchrun", "--exit-barrier-timeout", 1]
    job = JobOfMachines(muster, network, 3, *ignoring, conf=["join_timeout=6"])
    job.start_all()
    world = job.wait_for_world("node1", "node2", "node3")
    network.reset(network.hosts[2], "*")
    job.started[2].wait_for_log("this node is cut off from the job's store")
    world.of("node1").end()
    world.of("node2").end()
    job.started[1].wait_for_log("rendezvous <- done_asked")
    network.mend("*", "*")
    assert job.statuses() == {"node1": 0, "node2": 0, "node3": 1}, job.tell()

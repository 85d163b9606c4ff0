# SPDX-License-Identifier: BSD-3-Clause
"""Nodes whose cables are bad: packets are lost, one direction is dead, connections are reset."""

from support.nodes import Job

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
    server = muster.start(["store", "serve", "--host", one.address, "--port", PORT], on=one)
    where = ["--host", one.address, "--port", PORT, "--timeout", 30]
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

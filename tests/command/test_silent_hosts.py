# SPDX-License-Identifier: BSD-3-Clause
"""A machine that vanishes without a word is noticed by both ends of a store's connection, and told apart
from a process that ended: what becomes of a connection when its cable is pulled."""

import time

import pytest

from support.store import Server

LIMIT = ["--silence-timeout", 3]
PATIENCE = 10  # seconds for what should take three; the kernel's own would be a quarter of an hour


@pytest.fixture
def hosts(make_network):
    return make_network(2).hosts


def ask(muster, client, server, *words):
    where = ["--host", server[0].address, "--port", server[1].port, "--timeout", 100, *LIMIT]
    return muster.start(["store", *words, *where], on=client)


def wait_until_waiting(running, server):
    """Until the server has the client's connection; what the client then asks comes within the same moment."""
    host, store = server
    running.wait_until(lambda: host.connections(store.port) == 1, "the connection")
    time.sleep(0.2)


@pytest.mark.parametrize("cut", ["unplug", "link_down"])
@pytest.mark.parametrize("whose", ["server", "client"])
def test_an_idle_wait_ends_when_the_other_machine_is_silent(muster, hosts, cut, whose):
    server = hosts[0], Server(muster, *LIMIT, on=hosts[0])
    waiting = ask(muster, hosts[1], server, "wait", "never")
    wait_until_waiting(waiting, server)
    cut_at = time.monotonic()
    getattr(hosts[0 if whose == "server" else 1], cut)()
    end = waiting.finish(PATIENCE)
    seconds = time.monotonic() - cut_at
    assert end.status == 1 and f"no answer from {hosts[0].address}:{server[1].port} for 3 s" in end.err, end
    server[1].wait_for_log("no answer for 3 s")
    assert 1 < seconds < PATIENCE


def test_unacknowledged_data_does_not_prolong_it(muster, hosts):
    server = hosts[0], Server(muster, *LIMIT, on=hosts[0])
    watching = ask(muster, hosts[1], server, "watch", "k", "--interval", 0.1)
    assert ask(muster, hosts[0], server, "set", "k", "v").finish().status == 0
    watching.wait_until(lambda: "v" in watching.out(), "the first value")
    hosts[0].unplug()
    end = watching.finish(PATIENCE)
    assert end.status == 1 and f"no answer from {hosts[0].address}:{server[1].port} for 3 s" in end.err, end


def test_a_short_cut_is_survived(muster, hosts):
    server = hosts[0], Server(muster, *LIMIT, on=hosts[0])
    waiting = ask(muster, hosts[1], server, "wait", "k")
    wait_until_waiting(waiting, server)
    hosts[1].unplug()
    time.sleep(1)
    hosts[1].plug()
    assert ask(muster, hosts[0], server, "set", "k", "v").finish().status == 0
    assert waiting.finish(PATIENCE).status == 0
    assert server[1].running.err() == ""


def test_a_server_that_ended_is_not_called_silent(muster, hosts):
    server = hosts[0], Server(muster, *LIMIT, on=hosts[0])
    waiting = ask(muster, hosts[1], server, "wait", "never")
    wait_until_waiting(waiting, server)
    server[1].running.kill()
    end = waiting.finish(PATIENCE)
    assert end.status == 1 and f"the store at {hosts[0].address}:{server[1].port}: " in end.err, end
    assert "no answer" not in end.err


def test_a_host_that_comes_up_later_is_found(muster, make_network):
    network = make_network(2)
    one, two = network.hosts
    network.name_hosts([two])
    one.unplug()
    where = ["--host", "node1", "--port", 29417, "--timeout", 100]
    asking = muster.start(["store", "set", "k", "v", *where], on=two)
    time.sleep(0.5)
    network.name_hosts([one, two])  # now the name is known, but the machine is not there
    time.sleep(0.5)
    server = Server(muster, address=("--port", 29417), on=one)
    one.plug()
    assert asking.finish(20).status == 0
    assert muster.start(["store", "get", "k", *where], on=two).finish().out == "v"
    assert asking.err() == server.running.err() == ""


def test_what_was_tried_is_said(muster, hosts):
    one, two = hosts
    one.unplug()
    end = muster.run(["store", "ping", "--host", "node1", "--port", 29417, "--timeout", 4], on=two)
    assert end.status == 1 and "no store at node1 port 29417 within 4 s, after " in end.err, end
    assert f"{one.address}:29417: " in end.err, end


def test_an_unknown_name_is_said(muster, make_network):
    network = make_network(2)
    network.name_hosts([])
    end = muster.run(["store", "ping", "--host", "node1", "--port", 29417, "--timeout", 1], on=network.hosts[1])
    assert end.status == 1 and 'host "node1" is not known' in end.err and " attempts: " in end.err, end

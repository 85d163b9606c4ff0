# SPDX-License-Identifier: BSD-3-Clause
"""Machines that have more addresses than one: a bridge for containers, or a network of their own, that the other
machines do not reach. Whoever comes to host the job's store announces all of them."""

import json

import pytest

from support.network import Network, require_network, run


class BridgedNetwork(Network):
    """Each host has a bridge of its own, before the network that joins them. To the others that leads nowhere."""

    def bridged(self, host):
        return f"172.18.{host.number}.1"

    def connect(self, host):
        here = ("ip", "-n", host.namespace)
        run(*here, "link", "add", "bridge0", "type", "bridge")
        run(*here, "address", "add", f"{self.bridged(host)}/24", "dev", "bridge0")
        run(*here, "link", "set", "bridge0", "up")
        super().connect(host)

    def lead_to_nowhere(self):
        """Packets to the bridges of others go to a router that is not there."""
        for host in self.hosts:
            run("ip", "-n", host.namespace, "route", "add", "172.18.0.0/16", "via", "10.77.0.200")

    def leave_as_it_is(self):
        """The bridges are networks to which the others have no way."""

    def give_way_out(self):
        for host in self.hosts:
            run("ip", "-n", host.namespace, "route", "add", "default", "via", "10.77.0.200")


class LikeNetwork(BridgedNetwork):
    """The bridges have one address on all hosts, as those that Docker makes: who looks for another host there finds
    itself."""

    def bridged(self, host):
        return "172.17.0.1"


@pytest.fixture
def make_bridged_job(make_job, scratch):
    """A job whose nodes are the hosts of such a network, of which the first hosts the store; and the network."""
    require_network()
    networks = []
    register = scratch / "register"
    register.mkdir()

    def make(nnodes, count, *options, kind=BridgedNetwork, prepare=BridgedNetwork.leave_as_it_is):
        job = make_job(nnodes, "--rdzv-backend", "dir", *options, path=register)
        network = kind(scratch, count)
        networks.append(network)
        prepare(network)
        for host in network.hosts:
            node = job.start(host.name, on=host)
            if host is network.hosts[0]:
                node.wait_for_log("this node hosts the store")
        return job, network

    yield make
    for network in networks:
        network.end()


def entries_of(job):
    entries = sorted((job.scratch / "register/muster-job").glob("entry.*"))
    return [json.loads(entry.read_text(encoding="utf-8")) for entry in entries]


def first_addresses_of(job):
    return entries_of(job)[0]["addresses"].split()[1:]


def test_an_address_that_leads_nowhere_does_not_keep_anybody_from_the_host(make_bridged_job):
    """Of each address that leads nowhere the kernel says so after 3 s."""
    job, network = make_bridged_job("2:3", 3, "--host-timeout", "5", prepare=BridgedNetwork.lead_to_nowhere)
    job.wait_for_world("node1", "node2", "node3")
    assert first_addresses_of(job)[0] == network.bridged(network.hosts[0])
    job.started[0].kill()
    world = job.wait_for_world("node2", "node3")
    assert world.restarts == {0} and len(job.worlds()) == 2, job.tell()
    world.end()
    assert job.succeeds()


def test_the_address_of_the_way_out_is_announced_first(make_bridged_job):
    job, network = make_bridged_job("2", 2, prepare=BridgedNetwork.give_way_out)
    world = job.wait_for_world("node1", "node2")
    announced, first = first_addresses_of(job), network.hosts[0]
    assert announced[0] == first.address, announced
    assert set(announced) >= {network.bridged(first), first.ipv6_address}, announced
    world.end()
    assert job.succeeds()


@pytest.mark.parametrize("kind", [BridgedNetwork, LikeNetwork])
def test_a_node_that_is_cut_off_alone_does_not_take_the_host_for_dead(make_bridged_job, kind):
    """Its own bridge refuses it where it looks for the host's."""
    job, network = make_bridged_job("2:3", 3, kind=kind)
    job.wait_for_world("node1", "node2", "node3")
    network.hosts[2].unplug()
    job.wait_for_world("node1", "node2")
    network.hosts[2].plug()
    world = job.wait_for_world("node1", "node2", "node3")
    world.end()
    assert job.succeeds()
    assert {entry["term"] for entry in entries_of(job)} == {1}, job.tell()

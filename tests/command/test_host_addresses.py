# SPDX-License-Identifier: BSD-3-Clause
"""Machines that have more addresses than one: a bridge for containers, or a network of their own, that the other
machines do not reach. Whoever comes to host the job's store announces all of them."""

import json

import pytest

from support.network import Network, require_network, run


class BridgedNetwork(Network):
    """Each host has a bridge of its own, before the network that joins them. To the others that leads nowhere."""

    @staticmethod
    def bridged(host):
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

    def give_way_out(self):
        for host in self.hosts:
            run("ip", "-n", host.namespace, "route", "add", "default", "via", "10.77.0.200")


@pytest.fixture
def make_bridged_job(make_job, scratch):
    """A job whose nodes are the hosts of such a network, of which the first hosts the store; and the hosts."""
    require_network()
    networks = []
    register = scratch / "register"
    register.mkdir()

    def make(nnodes, count, prepare, *options):
        job = make_job(nnodes, "--rdzv-backend", "dir", *options, path=register)
        networks.append(BridgedNetwork(scratch, count))
        prepare(networks[0])
        for host in networks[0].hosts:
            node = job.start(host.name, on=host)
            if host is networks[0].hosts[0]:
                node.wait_for_log("this node hosts the store")
        return job, networks[0].hosts

    yield make
    for network in networks:
        network.end()


def addresses_of(job, number):
    entry = job.scratch / f"register/muster-job/entry.{number:012}"
    return json.loads(entry.read_text(encoding="utf-8"))["addresses"].split()[1:]


def test_an_address_that_leads_nowhere_does_not_keep_anybody_from_the_host(make_bridged_job):
    """Of each address that leads nowhere the kernel says so after 3 s."""
    job, hosts = make_bridged_job("2:3", 3, BridgedNetwork.lead_to_nowhere, "--host-timeout", "5")
    job.wait_for_world("node1", "node2", "node3")
    assert addresses_of(job, 1)[0] == BridgedNetwork.bridged(hosts[0])
    job.started[0].kill()
    world = job.wait_for_world("node2", "node3")
    assert world.restarts == {0} and len(job.worlds()) == 2, job.tell()
    world.end()
    assert job.succeeds()


def test_the_address_of_the_way_out_is_announced_first(make_bridged_job):
    job, hosts = make_bridged_job("2", 2, BridgedNetwork.give_way_out)
    world = job.wait_for_world("node1", "node2")
    announced = addresses_of(job, 1)
    assert announced[0] == hosts[0].address, announced
    assert set(announced) >= {BridgedNetwork.bridged(hosts[0]), hosts[0].ipv6_address}, announced
    world.end()
    assert job.succeeds()

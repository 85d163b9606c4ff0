# SPDX-License-Identifier: BSD-3-Clause
"""The hosts that tests run their nodes on (support.network) are what they claim to be."""

import subprocess

import pytest

from support.nodes import wait_until


def reaches(host, address):
    """Whether a datagram socket's route and neighbour answer: one echo request, half a second."""
    script = (
        "import socket, sys\n"
        "server = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, socket.SOCK_STREAM)\n"
        "server.settimeout(0.5)\n"
        "try:\n"
        "    server.connect((sys.argv[1], 9))\n"
        "except ConnectionRefusedError:\n"
        "    sys.exit(0)\n"
        "except OSError:\n"
        "    sys.exit(1)\n"
    )
    return subprocess.run(host.command(["/usr/bin/python3", "-c", script, address]), timeout=30).returncode == 0


def test_hosts_have_names_and_addresses_of_their_own(make_network):
    one, two = make_network(2).hosts
    assert one.run("hostname") == "node1\n" and two.run("hostname") == "node2\n"
    assert one.run("getent", "ahostsv4", "node2").split()[0] == two.address
    for source, target in [(one, two), (two, one)]:
        assert reaches(source, target.address) and reaches(source, target.ipv6_address)


def test_names_can_become_known_later(make_network):
    network = make_network(2)
    one, two = network.hosts
    network.name_hosts([one])
    with pytest.raises(AssertionError):
        one.run("getent", "hosts", "node2")
    network.name_hosts([one, two])
    assert one.run("getent", "hosts", "node2").split()[0] == two.address


@pytest.mark.parametrize("cut, mend", [("unplug", "plug"), ("link_down", "link_up")])
def test_cables_can_be_cut_and_mended(make_network, cut, mend):
    one, two, three = make_network(3).hosts
    getattr(two, cut)()
    assert not reaches(one, two.address) and not reaches(two, one.address)
    assert reaches(one, three.address)
    getattr(two, mend)()
    wait_until(lambda: reaches(one, two.address) and reaches(one, two.ipv6_address), "both to be joined again")


def test_nothing_is_left_of_a_network(make_network):
    network = make_network(2)
    left = subprocess.Popen(network.hosts[0].command(["sleep", "1000"]))
    while "sleep" not in network.hosts[0].run("cat", f"/proc/{left.pid}/comm"):
        pass
    assert network.hosts[0].processes() == [left.pid]
    network.end()
    assert left.wait(10) == -9
    assert network.label not in subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout

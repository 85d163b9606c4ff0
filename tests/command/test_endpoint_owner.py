# SPDX-License-Identifier: BSD-3-Clause
"""Which node the endpoint names is found out even where names become known late, or never."""

import contextlib
import re
import socket
import threading
import time

import pytest

from support.nodes import Job

PORT = 29438  # of nobody else there: each test's machines are new


@pytest.fixture
def network(make_network):
    return make_network(2)


@pytest.fixture
def make_job(muster):
    return lambda host, *options, **how: Job(muster, "1:2", *options, host=host, port=PORT, **how)


def is_run_by_both(job, one, two):
    job.wait_for_world("node1", "node2").end()
    assert "hosting the store" in one.err() and "hosting the store" not in two.err(), job.tell()
    return job.succeeds()


def test_a_name_that_becomes_known_late_is_recognised(make_job, network):
    """As in a Kubernetes pod, whose own name is known some seconds after its start."""
    one, two = network.hosts
    job = make_job("head", conf=["join_timeout=25"])
    nodes = [job.start("node1", on=one), job.start("node2", on=two)]
    time.sleep(2)
    assert all(node.is_running() and "hosting the store" not in node.err() for node in nodes), job.tell()
    network.name_hosts(network.hosts, {"node1": "node1 head"})
    assert is_run_by_both(job, *nodes)


def test_a_leading_part_of_the_qualified_name_is_enough(make_job, network):
    """A pod's /etc/hosts has its whole name; the name server, which completes names, may not know it yet."""
    one, two = network.hosts
    network.name_hosts(network.hosts, {"node1": "node1.train.default.svc.cluster.local node1"})
    job = make_job("node1.train")
    node = job.start("node1", on=one)
    node.wait_for_log("hosting the store")
    job.wait_for_world("node1").end()
    assert job.succeeds()


def test_the_address_that_this_node_was_given_is_enough(make_job, network):
    one, two = network.hosts
    network.name_hosts([])
    job = make_job("train-0.train")
    node = job.start("node1", on=one, address="train-0.train")
    node.wait_for_log("hosting the store")
    job.wait_for_world("node1").end()
    assert job.succeeds()


def test_an_endpoint_of_another_machine_is_not_recognised(make_job, network):
    network.name_hosts(network.hosts, {"node1": "node1.train.default.svc.cluster.local node1"})
    job = make_job("node1.elsewhere", conf=["join_timeout=2"])
    end = job.start("node1", on=network.hosts[0]).finish()
    assert end.status == 1 and "hosting the store" not in end.err, end
    assert 'host "node1.elsewhere" is not known' in end.err


def test_a_name_of_several_machines_is_said_by_each_of_them(make_job, network):
    """The name of a headless service has the addresses of all its pods, and each takes it for its own."""
    network.name_hosts(network.hosts, {"node1": "node1 service", "node2": "node2 service"})
    job = make_job("service")
    for name, host, other in zip(("node1", "node2"), network.hosts, reversed(network.hosts)):
        node = job.start(name, on=host)
        node.wait_for_log("is the name of several machines")
        assert re.search(rf"^W.*this one's address, and .*\b{re.escape(other.address)}\b.*POD-0\.service", node.err(), re.M)


def test_a_name_of_one_machine_with_several_addresses_is_not_complained_of(make_job, network):
    one = network.hosts[0]
    network.name_hosts(network.hosts, {"node1": "node1 head"})
    one.run("ip", "address", "add", "10.78.0.1/24", "dev", "eth0")
    network.hosts_file.write_text(network.hosts_file.read_text() + "10.78.0.1 head\n")
    job = make_job("head")
    node = job.start("node1", on=one)
    job.wait_for_world("node1").end()
    assert job.succeeds() and "several machines" not in node.err(), job.tell()


ANSWERS = {
    "http": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "nothing": None,
    "the end": b"",
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_program_at_the_endpoint_that_is_no_store_is_said_long_before_the_join_timeout(muster, answer):
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    kept.append(client)
                    if answer is not None:
                        client.sendall(answer)
                        client.close()

        threading.Thread(target=serve, daemon=True).start()
        job = Job(muster, "1:2", port=server.getsockname()[1])  # which would wait for 600 s
        node = job.start("node1")
        node.wait_for_log("is taken on this machine by a program that is no store")
        node.kill()
        server.shutdown(socket.SHUT_RDWR)


def test_an_endpoint_that_is_no_nodes_is_said_with_what_helps(muster):
    job = Job(muster, 2, host="192.0.2.200", conf=["join_timeout=1"])
    end = job.start("node1").finish()
    assert end.status == 1, end
    assert "192.0.2.200 is no address of any node that has come" in end.err
    assert "is_host=true, or --local-addr 192.0.2.200" in end.err


def add_fast_network(network):
    """Each machine has one more address, which a name of its own leads to."""
    hosts = network.hosts_file.read_text()
    for host in network.hosts:
        host.run("ip", "address", "add", f"10.78.0.{host.number}/24", "dev", "eth0")
        hosts += f"10.78.0.{host.number} {host.name}-fast\n"
    network.hosts_file.write_text(hosts)


@pytest.mark.parametrize("endpoint", ["node1-fast", "10.78.0.1"])
@pytest.mark.parametrize("conf", [(), ("is_host=true",)])
def test_workers_meet_where_the_nodes_have_met(make_job, network, endpoint, conf):
    """The host's own name may lead into a network that the others cannot use."""
    network.name_hosts(network.hosts)
    add_fast_network(network)
    job = make_job(endpoint)
    one = job.start("node1", on=network.hosts[0], conf=conf)
    one.wait_for_log("hosting the store")
    job.start("node2", on=network.hosts[1], conf=["is_host=false"] if conf else [])
    world = job.wait_for_world("node1", "node2")
    assert world.store.rsplit(":", 1)[0] == endpoint
    world.end()
    assert job.succeeds()


def test_workers_do_not_meet_at_a_name_of_several_machines(make_job, network):
    network.name_hosts(network.hosts, {"node1": "node1 service", "node2": "node2 service"})
    job = make_job("service", conf=["join_timeout=25"])
    one = job.start("node1", on=network.hosts[0], conf=["is_host=true"])
    one.wait_for_log("is the name of several machines")
    job.start("node2", on=network.hosts[1], conf=["is_host=false"])
    world = job.wait_for_world("node1", "node2")
    assert not world.store.startswith("service:")
    world.end()
    assert job.succeeds()

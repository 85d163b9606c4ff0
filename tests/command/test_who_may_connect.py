# SPDX-License-Identifier: BSD-3-Clause
"""Who reaches the ports that an agent opens."""

import json
import os
import subprocess

import pytest

from support.munge import Munge
from support.network import require_translation
from support.nodes import wait_until
from support.ports import free_port
from support.store import CHECK, SET, VALIDATE, RawClient, request

# A worker: how it finds its store, where its agent listens, and which of the store's addresses it reaches.
WORKER = """\
import json, os, pathlib, socket, sys, time
name, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
agent = f"/proc/{os.getppid()}/fd/"
own = {os.readlink(agent + fd) for fd in os.listdir(agent)}
listening = set()
for table in ("tcp", "tcp6"):
    for line in open(f"/proc/net/{table}").readlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
            address = fields[1].split(":")[0]
            words = [bytes.fromhex(address[at:at + 8])[::-1] for at in range(0, len(address), 8)]
            listening.add(socket.inet_ntop(socket.AF_INET6 if table == "tcp6" else socket.AF_INET, b"".join(words)))
reached = []
for family, _, _, _, place in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM):
    with socket.create_connection(place[:2], 10) as client:
        reached.append(place[0])
seen = {"name": name, "port": port, "listening": sorted(listening), "reached": sorted(set(reached))}
path = pathlib.Path(os.environ["SEEN"])
path.with_suffix(".part").write_text(json.dumps(seen))
path.with_suffix(".part").rename(path)
while path.exists():
    time.sleep(0.01)
"""

ONE_NODE = {
    "standalone": ["--standalone"],
    "nothing": [],
    "static": ["--master-addr", "127.0.0.1", "--master-port", "PORT"],
    "c10d at any port": ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"],
    "c10d at localhost": ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:PORT", "--rdzv-id", "job"],
}


def start_worker(muster, scratch, options, on=None):
    """The running job, and what its worker has seen."""
    script, seen = scratch / "worker.py", scratch / "seen.json"
    script.write_text(WORKER)
    words = [word.replace("PORT", str(free_port())) for word in options]
    job = muster.start(
        ["run", *words, script],
        env={"SEEN": seen, "PYTHON_EXEC": "/usr/bin/python3", "LOGLEVEL": "INFO"},
        on=on,
    )
    wait_until(seen.exists, "a worker")
    return job, json.loads(seen.read_text()), seen


@pytest.mark.parametrize("options", ONE_NODE.values(), ids=ONE_NODE.keys())
def test_a_job_of_one_node_listens_on_loopback_only(muster, scratch, options):
    job, seen, path = start_worker(muster, scratch, options)
    assert {"127.0.0.1"} <= set(seen["listening"]) <= {"127.0.0.1", "::1", *seen["reached"]}, seen
    path.unlink()
    assert job.finish().status == 0


def test_a_host_name_of_another_interface_is_not_reached_from_elsewhere(muster, scratch, make_network):
    """MASTER_ADDR is the host's name, as torchrun's; that name is the address of the network's interface."""
    one, two = make_network(2).hosts
    job, seen, path = start_worker(muster, scratch, ["--standalone"], on=one)
    assert seen["name"] == "node1" and one.address in seen["reached"], seen
    connect = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)"
    for address in (one.address, one.ipv6_address):
        end = subprocess.run(two.command(["/usr/bin/python3", "-c", connect, address, seen["port"]]), capture_output=True)
        assert end.returncode != 0, address
    path.unlink()
    assert job.finish().status == 0


def connect_as(user, port):
    """What a process of this user gets from the store for a handshake: the number it sent, or nothing."""
    script = (
        "import socket, sys\n"
        "client = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10)\n"
        "try:\n"
        "    client.sendall(bytes.fromhex('00cef7853c0d') + b'abcd')\n"
        "    print(client.recv(4).decode())\n"
        "except ConnectionError:\n"
        "    print()\n"
    )
    words = ["setpriv", f"--reuid={user}", "--clear-groups", "/usr/bin/python3", "-c", script, str(port)]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout.strip()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
@pytest.mark.parametrize("options, answer", [([], ""), (["--worker-store-from", "any"], "abcd")])
def test_the_store_serves_this_user_of_this_machine(muster, scratch, options, answer):
    job, seen, path = start_worker(muster, scratch, ["--standalone", *options])
    assert connect_as(0, seen["port"]) == "abcd"
    assert connect_as(12345, seen["port"]) == answer
    path.unlink()
    end = job.finish()
    assert end.status == 0
    assert ("it is a process of another user of this machine" in end.err) == (answer == ""), end


# What another user of this machine may try: every pair of addresses, and sockets bound to a device.
ATTEMPTS = """\
import socket, sys
port, own = int(sys.argv[1]), sys.argv[2]
V4, V6 = socket.AF_INET, socket.AF_INET6
ways = [
    (V4, None, "127.0.0.1", None), (V4, "127.0.0.2", "127.0.0.1", None), (V4, None, "127.0.0.3", None),
    (V4, None, "127.0.0.1", b"lo"), (V4, own, "127.0.0.1", None), (V4, None, own, None), (V4, "127.0.0.1", own, None),
    (V4, own, "127.0.0.1", b"lo"), (V6, "::ffff:" + own, "::ffff:127.0.0.1", None), (V6, None, "::1", None),
    (V6, None, "::1", b"lo"),
]
for family, source, to, device in ways:
    client = socket.socket(family)
    client.settimeout(5)
    try:
        if device:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
        if source:
            client.bind((source, 0))
        client.connect((to, port))
        client.sendall(bytes.fromhex("00cef7853c0d") + b"abcd")
        answer = client.recv(4)
    except ConnectionError:
        answer = b""
    except OSError:
        continue  # not possible on this machine, or for this user
    print(source, to, device, answer == b"abcd")
"""


def try_all_addresses(host, user, port, script):
    """{way: whether the store served it}"""
    script.write_text(ATTEMPTS)
    words = ["setpriv", f"--reuid={user}", "--clear-groups", "/usr/bin/python3", script, port, host.address]
    return dict(line.rsplit(" ", 1) for line in host.run(*words).splitlines())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
@pytest.mark.parametrize("token", [{}, {"MUSTER_JOB_TOKEN": "a secret of this job's nodes"}], ids=["open", "token"])
def test_another_user_of_this_machine_is_not_served_whatever_addresses_it_uses(make_job, make_network, scratch, token):
    """The worker's store of a job of several nodes is to be reached from elsewhere."""
    one = make_network(2).hosts[0]
    job = make_job("1:2", host=one.name)
    host = job.start(one.name, on=one, env=token)
    world = job.wait_for_world(one.name)
    port = world.store.rsplit(":", 1)[1]
    scratch.chmod(0o755)
    strangers, own = (try_all_addresses(one, user, port, scratch / "attempts.py") for user in (12345, 0))
    assert len(strangers) >= 8 and set(strangers.values()) == {"False"}, strangers
    assert strangers.keys() <= own.keys() and set(own.values()) == {"True"}, own
    assert "it is a process of another user of this machine" in host.err()
    world.end()
    assert job.succeeds()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_the_record_of_a_job_of_one_node_is_this_users_too(muster, scratch):
    port = free_port()
    options = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{port}", "--rdzv-id", "job"]
    job, _, path = start_worker(muster, scratch, options)
    assert [connect_as(user, port) for user in (0, 12345)] == ["abcd", ""]
    path.unlink()
    assert job.finish().status == 0


# Connects many times. Sends a value first, and resets every other connection.
FLEETING = """\
import socket, struct, sys
port, sent = int(sys.argv[1]), bytes.fromhex(sys.argv[2])
for i in range(100):
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        if i % 2:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(sent)
"""


def connect_fleetingly(user, port, sent=b""):
    words = ["setpriv", f"--reuid={user}", "--clear-groups", "/usr/bin/python3", "-c", FLEETING, str(port), sent.hex()]
    subprocess.run(words, check=True, timeout=60)


def test_who_only_looks_whether_the_port_is_open_is_not_spoken_of(muster, scratch):
    job, seen, path = start_worker(muster, scratch, ["--standalone"])
    connect_fleetingly(os.geteuid(), seen["port"])
    path.unlink()
    end = job.finish()
    assert end.status == 0 and "turned away" not in end.err and "another user" not in end.err, end.err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_another_user_who_is_gone_at_once_is_not_obeyed(muster, scratch):
    job, seen, path = start_worker(muster, scratch, ["--standalone"])
    connect_fleetingly(12345, seen["port"], VALIDATE + request(SET, b"/left behind", b"1"))
    with RawClient(seen["port"]) as client:
        client.send(request(CHECK, 1, b"/left behind"))
        assert client.receive(1) == b"\x01"  # there is none
    path.unlink()
    assert job.finish().status == 0


# Connections to 10.99.0.1 come to this machine itself, as those to a service of a cluster do.
SERVICE = (
    "add table ip nat; add chain ip nat out { type nat hook output priority -100 ; }; "
    "add rule ip nat out ip daddr 10.99.0.1 dnat to {ADDRESS}"
)


def test_whose_other_end_is_translated_on_this_machine_is_told_so(make_network, make_job):
    """It has an address of this machine's, and no process here has such a connection: nobody can tell whose it is."""
    one = make_network(1).hosts[0]
    require_translation(one)
    on_host = ("ip", "netns", "exec", one.namespace)
    subprocess.run([*on_host, "ip", "route", "add", "10.99.0.0/24", "dev", "eth0"], check=True, timeout=30)
    subprocess.run([*on_host, "nft", SERVICE.replace("{ADDRESS}", one.address)], check=True, timeout=30)
    job = make_job("1:2", host=one.name)
    host = job.start(one.name, on=one)
    world = job.wait_for_world(one.name)
    port = world.store.rsplit(":", 1)[1]
    assert [reach(one, f"{address}:{port}") for address in (one.address, "10.99.0.1")] == ["abcd", ""]
    host.wait_for_log("no process here has the other end, so nobody can tell whose it is")
    assert "another user" not in host.err()
    world.end()
    assert job.succeeds()


# The store of a round, and who is on other machines.


def reach(host, store):
    """What the store says to a program on this host that shakes hands: the number it sent, or nothing."""
    address, port = store.rsplit(":", 1)
    script = (
        "import socket, sys\n"
        "client = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)\n"
        "try:\n"
        "    client.sendall(bytes.fromhex('00cef7853c0d') + b'abcd')\n"
        "    print(client.recv(4).decode())\n"
        "except ConnectionError:\n"
        "    print()\n"
    )
    return host.run("/usr/bin/python3", "-c", script, address, port).strip()


def start_on(job, host, options=("--worker-store-from", "round"), **how):
    return job.start(host.name, *options, on=host, **how)


@pytest.fixture
def hosts(make_network):
    return make_network(3).hosts


@pytest.fixture
def job_there(make_job, hosts):
    return make_job("1:3", host=hosts[0].name)


def test_the_store_of_a_round_serves_the_rounds_nodes_on_other_machines(job_there, hosts):
    """A stranger's machine is let in when its node joins the next round, by either family."""
    one, two, three = hosts
    host = start_on(job_there, one)
    host.wait_for_log("hosting the store")
    start_on(job_there, two)
    world = job_there.wait_for_world("node1", "node2")
    port = world.store.rsplit(":", 1)[1]
    places = [world.store, f"{one.ipv6_address}:{port}"]
    assert [reach(two, place) for place in places] == ["abcd", "abcd"], job_there.tell()
    assert [reach(three, place) for place in places] == ["", ""]
    assert reach(one, world.store) == "abcd"
    host.wait_for_log("no node of this round has it")
    assert three.address in host.err()
    start_on(job_there, three)
    larger = job_there.wait_for_world("node1", "node2", "node3")
    port = larger.store.rsplit(":", 1)[1]
    assert [reach(each, larger.store) for each in hosts] == ["abcd"] * 3
    assert reach(three, f"{one.ipv6_address}:{port}") == "abcd"
    larger.end()
    assert job_there.succeeds()


def test_without_the_option_other_machines_are_served(job_there, hosts):
    one, two, three = hosts
    start_on(job_there, one, ()).wait_for_log("hosting the store")
    start_on(job_there, two, ())
    world = job_there.wait_for_world("node1", "node2")
    assert reach(three, world.store) == "abcd"
    world.end()
    assert job_there.succeeds()


def test_a_node_without_the_option_opens_the_store_of_the_round_and_is_named(job_there, hosts):
    one, two, three = hosts
    host = start_on(job_there, one)
    host.wait_for_log("hosting the store")
    start_on(job_there, two, ())
    world = job_there.wait_for_world("node1", "node2")
    host.wait_for_log("--worker-store-from round: node 1 (node2_")
    assert reach(three, world.store) == "abcd"
    world.end()
    assert job_there.succeeds()


def test_the_store_of_fixed_nodes_serves_strangers_no_more_when_all_nodes_are_known(muster, scratch, hosts):
    one, two, three = hosts
    words = ["run", "--nnodes", 2, "--master-addr", "node1", "--master-port", 29437, "--worker-store-from", "round"]
    script = ": >up.$RANK; while [ ! -e go ]; do sleep 0.01; done; [ $((RANK * (1 - TORCHELASTIC_RESTART_COUNT))) = 0 ]"
    nodes = [
        muster.start([*words, "--max-restarts", 1, "--node-rank", rank, "--no-python", "sh", "-c", script], on=host,
                     env={"LOGLEVEL": "INFO"})
        for rank, host in enumerate((one, two))
    ]  # fmt: skip
    wait_until(lambda: all((scratch / f"up.{rank}").exists() for rank in (0, 1)), "the workers")
    store = f"{one.address}:29437"
    assert [reach(each, store) for each in hosts] == ["abcd", "abcd", ""], nodes[0].err()
    assert "no node of this round has it" in nodes[0].err()
    (scratch / "go").touch()
    assert [node.finish().status for node in nodes] == [0, 0]  # after a restart


# Where nodes prove themselves.

TOKEN = {"MUSTER_JOB_TOKEN": "a secret of this job's nodes"}


@pytest.fixture(params=["token", "munge"])
def proof(request, muster):
    """The environment of nodes that prove themselves, in either way."""
    if request.param == "token":
        yield TOKEN
        return
    munge = Munge(muster)
    yield munge.env
    munge.end()


def test_nodes_that_prove_themselves_keep_strangers_away_without_any_option(job_there, hosts, proof):
    """Who is turned away is named once, with what would serve it."""
    one, two, three = hosts
    host = start_on(job_there, one, (), env=proof)
    host.wait_for_log("hosting the store")
    start_on(job_there, two, (), env=proof)
    world = job_there.wait_for_world("node1", "node2")
    assert [reach(each, world.store) for each in (one, two, three, three)] == ["abcd", "abcd", "", ""]
    host.wait_for_log("--worker-store-from user on all nodes serves it")
    assert reach(three, world.store) == ""
    lines = [line for line in host.err().splitlines() if "will be all from its address" in line]
    assert len(lines) == 1 and f"client {three.address}:" in lines[0], lines
    world.end()
    assert job_there.succeeds()


@pytest.mark.parametrize("option", ["user", "any"])
def test_nodes_that_prove_themselves_serve_all_where_they_are_told_to(job_there, hosts, option):
    one, two, three = hosts
    options = ("--worker-store-from", option)
    start_on(job_there, one, options, env=TOKEN).wait_for_log("hosting the store")
    start_on(job_there, two, options, env=TOKEN)
    world = job_there.wait_for_world("node1", "node2")
    assert reach(three, world.store) == "abcd"
    world.end()
    assert job_there.succeeds()


def start_hidden(job, network, options, env):
    """A job of node1 and of a node that has the address of node2 in the eyes of node1, where no node is."""
    one, two, three = network.hosts
    hidden = network.hide(two)
    host = start_on(job, one, options, env=env)
    host.wait_for_log("hosting the store")
    start_on(job, hidden, options, env=env)
    return host, hidden, job.wait_for_world("node1", hidden.name)


def test_a_node_behind_address_translation_is_served_as_the_jobs_store_sees_it(make_network, make_job, proof):
    network = make_network(3)
    three = network.hosts[2]
    job = make_job("1:3", host="node1")
    host, hidden, world = start_hidden(job, network, (), proof)
    assert [reach(each, world.store) for each in (hidden, three)] == ["abcd", ""], host.err()
    world.of(hidden.name).end(3)
    world = job.wait_for_world("node1", hidden.name)
    assert [reach(each, world.store) for each in (hidden, three)] == ["abcd", ""], host.err()
    world.end()
    assert job.succeeds()


def test_a_node_behind_address_translation_that_proves_nothing_is_turned_away(make_network, make_job):
    """Only a proof tells a node how it is seen; the line in the log says what helps."""
    network = make_network(3)
    job = make_job("1:3", host="node1")
    host, hidden, world = start_hidden(job, network, ("--worker-store-from", "round"), {})
    assert reach(hidden, world.store) == ""
    host.wait_for_log("--worker-store-from user on all nodes serves it")
    assert f"client {network.hosts[1].address}:" in host.err()
    world.end()
    assert job.succeeds()


def test_fixed_nodes_with_a_token_keep_strangers_away_when_all_are_known(muster, scratch, make_network):
    """One of them behind address translation."""
    network = make_network(3)
    one, two, three = network.hosts
    hidden = network.hide(two)
    words = ["run", "--nnodes", 2, "--master-addr", "node1", "--master-port", 29437]
    script = ": >up.$RANK; while [ ! -e go ]; do sleep 0.01; done"
    nodes = [
        muster.start([*words, "--node-rank", rank, "--no-python", "sh", "-c", script], on=host, env=TOKEN)
        for rank, host in enumerate((one, hidden))
    ]
    wait_until(lambda: all((scratch / f"up.{rank}").exists() for rank in (0, 1)), "the workers")
    store = f"{one.address}:29437"
    assert [reach(each, store) for each in (one, hidden, three)] == ["abcd", "abcd", ""], nodes[0].err()
    (scratch / "go").touch()
    assert [node.finish().status for node in nodes] == [0, 0]

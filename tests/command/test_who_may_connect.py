# SPDX-License-Identifier: BSD-3-Clause
"""Who reaches the ports that an agent opens."""

import json
import os
import subprocess

import pytest

from support.nodes import free_port, wait_until

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

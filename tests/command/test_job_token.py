# SPDX-License-Identifier: BSD-3-Clause
"""A job's token: nodes that prove themselves to each other, and what becomes of all others."""

import pathlib
import re

import pytest

from support.network import require_network
from support.nodes import Job, wait_until
from support.ports import free_port
from support.store import GET, SET, RawClient, request

TOKEN = "a secret of this job's nodes"
OTHER = "a secret of somebody else's job"


def environment_of(pid):
    return pathlib.Path(f"/proc/{pid}/environ").read_bytes()


def token_file(scratch, token=TOKEN, mode=0o600):
    path = scratch / "token"
    path.write_text(token + "\n", encoding="ascii")
    path.chmod(mode)
    return path


@pytest.fixture
def job(muster):
    return Job(muster, "1:2", env={"MUSTER_JOB_TOKEN": TOKEN})


def is_closed_after(port, data):
    """Whether a stranger who sends this is hung up on."""
    with RawClient(port) as client:
        client.send(data)
        try:
            return client.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def test_nodes_with_one_token_make_a_world_and_nobody_sees_it(job):
    job.start_host("node1")
    job.start("node2")
    world = job.wait_for_world("node1", "node2")
    for node in job.started:
        assert TOKEN.encode() not in environment_of(node.pid)
    for worker in world.workers:
        assert b"MUSTER_JOB_TOKEN" not in environment_of(worker.pid)
    world.end()
    assert job.succeeds()
    assert all(TOKEN not in node.err() for node in job.started), "the debug log has the token"
    assert all("is open to whoever" not in node.err() for node in job.started)


@pytest.mark.parametrize(
    "host, other, reason",
    [
        (TOKEN, OTHER, "it does not accept the job token of this node; give all nodes the same one"),
        (TOKEN, None, "it wants a job token, and none is given here; give all nodes the same one"),
        (None, TOKEN, "it wants no job token, so it cannot prove that it is this job's"),
    ],
    ids=["another token", "none", "none at the host"],
)
def test_a_node_with_another_token_ends_at_once(job, host, other, reason):
    first = job.start_host("node1", env={"MUSTER_JOB_TOKEN": host})
    job.wait_for_world("node1")
    end = job.start("node2", env={"MUSTER_JOB_TOKEN": other}).finish()
    assert end.status == 1, end
    assert f"the store at 127.0.0.1:{job.port}: {reason}" in end.err
    if host and other:
        assert re.search(r"client 127\.0\.0\.1:\d+: its job token is not the one of this store", first.err())
    for worker in job.workers():
        worker.end(0)
    assert first.finish().status == 0
    assert [worker.node for worker in job.workers()] == ["node1"]


def test_a_stranger_may_only_ping(job):
    node = job.start_host("node1")
    world = job.wait_for_world("node1")
    with RawClient(job.port) as client:
        client.ping()
        client.ping(b"more")
    assert is_closed_after(job.port, request(GET, b"/job"))
    assert is_closed_after(job.port, bytes([SET]))
    node.wait_for_log("asked for something without having proved that it has the job's token")
    assert re.search(r"store: client 127\.0\.0\.1:\d+: asked for something without", node.err())
    world.end()
    assert job.succeeds()


def test_auth_none_is_said_aloud(job):
    job.options += ["--auth", "none"]
    one = job.start_host("node1")
    job.start("node2", env={"MUSTER_JOB_TOKEN": None})
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()
    assert "--auth none: the nodes of this job do not prove themselves to each other" in one.err()


def test_the_host_alone_warns_of_a_store_that_is_open_to_everybody(muster):
    job = Job(muster, 2, env={"LOGLEVEL": "WARNING"})
    one, two = job.nodes("node1", "node2")
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()
    lines = [line for node in (one, two) for line in node.err().splitlines() if "open to whoever" in line]
    assert len(lines) == 1 and f"port {job.port}" in lines[0] and "MUSTER_JOB_TOKEN" in lines[0], lines


def test_a_token_is_wanted_that_is_not_there(muster):
    end = muster.run(["run", "--auth", "token", "--no-python", "true"])
    assert end.status == 2
    assert "--auth: token: there is none; set MUSTER_JOB_TOKEN or give --token-file" in end.err


# The file.


def run_with_file(muster, path, *options, **how):
    words = ["--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}"]
    words += ["--rdzv-id", "job", "--rdzv-conf", "last_call_timeout=1", "--token-file", path]
    return muster.run(["run", *words, "--no-python", "true"], **how)


def test_a_file_of_this_users_own_holds_the_token(muster, scratch):
    assert run_with_file(muster, token_file(scratch)).status == 0


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_a_file_that_others_may_read_is_refused(muster, scratch, mode):
    end = run_with_file(muster, token_file(scratch, mode=mode))
    assert end.status == 1
    assert f"has mode {mode:04o}, so that others may read or write it; chmod 600 it" in end.err


def test_a_file_that_holds_too_little_is_refused(muster, scratch):
    end = run_with_file(muster, token_file(scratch, "short"))
    assert end.status == 1
    assert "has only 5 bytes; give a random one of 16 to 4096 bytes" in end.err


def test_a_secret_that_kubernetes_mounts_is_taken_as_it_is(muster, scratch):
    """A read-only memory file system of root's, with a chain of symbolic links and mode 0644."""
    require_network()
    (scratch / "secret").mkdir()
    mount = (
        "mount -t tmpfs -o mode=755 none secret && mkdir secret/..data && printf '%s' \"$1\" >secret/..data/token"
        " && chmod 644 secret/..data/token && ln -s ..data/token secret/token"
    )
    enter = ["unshare", "--mount", "sh", "-ec"]
    words = ["run", "--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}",
             "--rdzv-id", "job", "--rdzv-conf", "last_call_timeout=1", "--token-file", "secret/token",
             "--no-python", "true"]  # fmt: skip
    for remount, status in [("mount -o remount,ro secret", 0), (":", 1)]:
        script = f'{mount}; {remount}; shift; exec "$@"'
        end = muster.start([*enter[1:], script, "sh", TOKEN, muster.binary, *words], program=enter[0]).finish()
        assert end.status == status, end


# Fixed nodes: workers use the same store.


def start_fixed(muster, port, rank, script, **environment):
    words = ["--nnodes", 2, "--node-rank", rank, "--master-addr", "127.0.0.1", "--master-port", port]
    return muster.start(["run", *words, "--no-python", "sh", "-c", script], env=environment)


def test_fixed_nodes_prove_themselves_and_leave_the_store_to_the_workers(muster, scratch):
    port = free_port()
    script = ": >up.$RANK; while [ ! -e go ]; do sleep 0.01; done"
    nodes = [start_fixed(muster, port, rank, script, MUSTER_JOB_TOKEN=TOKEN) for rank in (0, 1)]
    wait_until(lambda: all((scratch / f"up.{rank}").exists() for rank in (0, 1)), "the workers")
    with RawClient(port) as worker:
        worker.send(request(SET, b"/worker", b"1"))
        worker.send(request(GET, b"/worker"))
        assert worker.receive_blob() == b"1"
        worker.send(bytes([17]))
        names = [worker.receive_blob() for _ in range(worker.receive_number())]
    assert set(names) <= {b"/worker", b"init/"}, names  # the latter is every TCPStore's; the agents' are not told
    assert is_closed_after(port, request(GET, b"/none/torchelastic/role_info/0"))
    (scratch / "go").touch()
    assert [node.finish().status for node in nodes] == [0, 0]


@pytest.mark.parametrize("token, reason", [(OTHER, "does not accept"), (None, "it wants a job token")])
def test_a_fixed_node_with_another_token_ends_at_once(muster, token, reason):
    port = free_port()
    host = start_fixed(muster, port, 0, "true", MUSTER_JOB_TOKEN=TOKEN)
    end = start_fixed(muster, port, 1, "true", MUSTER_JOB_TOKEN=token).finish()
    assert end.status == 1 and reason in end.err, end
    host.kill()


# `muster store`.


def test_a_served_store_asks_for_the_token(muster, scratch):
    path = token_file(scratch)
    server = muster.start(["store", "serve", "--port", 0, "--token-file", path])
    wait_until(lambda: "PORT" in server.out(), "the store")
    place = ["--port", server.out().split()[1], "--host", "127.0.0.1"]
    assert muster.run(["store", "set", *place, "--token-file", path, "k", "v"]).status == 0
    assert muster.run(["store", "get", *place, "--token-file", path, "k"]).out == "v"
    end = muster.run(["store", "get", *place, "k"])
    assert end.status == 1 and "it wants a job token" in end.err
    server.process.terminate()
    assert server.finish().status == 0

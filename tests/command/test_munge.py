# SPDX-License-Identifier: BSD-3-Clause
"""Nodes that prove themselves by munge, with real daemons: one for each machine that a node plays to be on."""

import os
import signal

import pytest

from support.munge import Munge, require_munge
from support.nodes import Job, wait_until
from support.ports import free_port
from support.store import GET, SET, RawClient, request

MUNGE = ["--auth", "munge"]
REFUSAL = "asked for something without having proved that it has the job's token, or its user by munge"


@pytest.fixture
def job(muster):
    return Job(muster, "1:2", *MUNGE)


@pytest.fixture
def daemons(muster):
    """Makes daemons; they end with the test."""
    made = []

    def make(**how):
        made.append(Munge(muster, **how))
        return made[-1]

    yield make
    for munge in made:
        munge.end()


def expect_refusal(job, host, words, *options, env=None, start=None):
    """A second node ends at once with these words, and the host goes on."""
    node = start() if start else job.start("node2", *options, env=env)
    end = node.finish()
    assert end.status == 1, end
    assert f"the store at 127.0.0.1:{job.port}: " in end.err and words in end.err, end.err
    for worker in job.workers():
        worker.end(0)
    assert host.finish().status == 0
    assert [worker.node for worker in job.workers()] == ["node1"]


def test_nodes_whose_daemons_have_one_key_make_a_world(job, daemons):
    one, two = daemons(), daemons()
    job.start_host("node1", env=one.env)
    job.start("node2", env=two.env)
    world = job.wait_for_world("node1", "node2")
    world.of("node2").end(3)
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()
    assert all("is open to whoever" not in node.err() for node in job.started)


def test_nodes_that_prove_themselves_outlive_their_host(muster, scratch, daemons):
    register = scratch / "register"
    register.mkdir()
    job = Job(muster, "1:2", *MUNGE, "--rdzv-backend", "dir", path=register)
    job.start("node1", env=daemons().env, address="127.0.0.1").wait_for_log("this node hosts the store")
    job.start("node2", env=daemons().env, address="127.0.0.1")
    job.wait_for_world("node1", "node2")
    job.started[0].kill()
    job.wait_for_world("node2").end()
    assert job.succeeds()


def test_a_stranger_may_only_ping(job, daemons):
    node = job.start_host("node1", env=daemons().env)
    world = job.wait_for_world("node1")
    with RawClient(job.port) as client:
        client.ping()
    for asked in (request(GET, b"/job"), bytes([SET])):
        with RawClient(job.port) as client:
            client.send(asked)
            assert client.is_closed()
    with RawClient(job.port) as client:
        client.send(b"\xf0" + bytes(32))
        client.receive(32)
        client.send(b"\xf2\x01\x20\x00\x00")
        assert client.is_closed()
    node.wait_for_log(REFUSAL)
    node.wait_for_log("a munge credential that is empty, or longer than 4096 bytes")
    world.end()
    assert job.succeeds()


def test_what_is_no_credential_is_refused(job, daemons):
    node = job.start_host("node1", env=daemons().env)
    world = job.wait_for_world("node1")
    with RawClient(job.port) as client:
        client.send(b"\xf0" + bytes(32))
        client.receive(32)
        client.send(b"\xf2\x08\x00\x00\x00MUNGE:x:")
        assert client.receive(1) == b"\x01"  # of another key, or nonsense
        assert client.is_closed()
    node.wait_for_log("its munge credential is invalid here: its machine has another munge.key")
    world.end()
    assert job.succeeds()


def test_a_node_whose_daemon_has_another_key_ends_at_once(job, daemons):
    host = job.start_host("node1", env=daemons().env)
    job.wait_for_world("node1")
    words = "munge there calls the credential of this node invalid; give both machines the same munge.key"
    expect_refusal(job, host, words, env=daemons(key="another").env)
    assert "its machine has another munge.key (Invalid credential)" in host.err()


def test_a_node_of_a_job_with_another_id_ends_at_once(job, daemons):
    munge = daemons()
    host = job.start_host("node1", env=munge.env)
    job.wait_for_world("node1")
    expect_refusal(job, host, "it serves a job with another --rdzv-id", "--rdzv-id", "other", env=munge.env)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_another_users_node_ends_at_once(muster, scratch, job, daemons):
    munge = daemons()
    host = job.start_host("node1", env=munge.env)
    job.wait_for_world("node1")
    muster.share()
    home = scratch / "home"
    home.mkdir()
    os.chown(home, 12345, 12345)
    words = ["--reuid=12345", "--regid=12345", "--clear-groups", muster.binary, "run", *job.options]
    words += ["--rdzv-endpoint", job.endpoint, "--no-python", "true"]
    env = {**munge.env, "TMPDIR": home}
    expect_refusal(
        job, host, "run all nodes as the same user", start=lambda: muster.start(words, program="setpriv", env=env)
    )
    assert "its munge credential is another user's (user 12345, and this is user 0)" in host.err()


def test_a_node_without_munge_is_told_what_to_do(job, daemons):
    host = job.start_host("node1", env=daemons().env)
    job.wait_for_world("node1")
    words = "it wants munge's credentials, and this node uses none: munge is not to be had here (in a container mount"
    expect_refusal(job, host, words, "--auth", "none")


def test_a_node_with_munge_does_not_trust_a_host_without(muster, daemons):
    job = Job(muster, "1:2")
    host = job.start("node1", "--auth", "none")
    host.wait_for_log("hosting the store")
    job.wait_for_world("node1")
    words = "it wants no proof by munge, so it cannot prove that it is this job's; give its node munge, too"
    expect_refusal(job, host, words, *MUNGE, env=daemons().env)


@pytest.mark.parametrize("host_has_token", [True, False], ids=["token at the host", "munge at the host"])
def test_a_token_and_munge_do_not_meet(muster, daemons, host_has_token):
    munge = {"env": daemons().env}
    token = {"env": {"MUSTER_JOB_TOKEN": "a secret of this job's nodes"}}
    job = Job(muster, "1:2")
    host = job.start("node1", *([] if host_has_token else MUNGE), **(token if host_has_token else munge))
    host.wait_for_log("hosting the store")
    job.wait_for_world("node1")
    if host_has_token:
        expect_refusal(job, host, "it wants a job token, and none is given here", *MUNGE, **munge)
    else:
        expect_refusal(job, host, "it wants munge's credentials, and this node has a job token", **token)


def test_a_daemon_that_comes_back_lets_a_waiting_node_in(job, daemons):
    """Who cannot be checked now may be later: the node tries again."""
    one, two = daemons(), daemons()
    host = job.start_host("node1", env=one.env)
    job.wait_for_world("node1")
    one.end()
    job.start("node2", env=two.env)
    host.wait_for_log("munge cannot be asked here now")
    one.start()
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()


def test_a_daemon_that_stands_still_holds_up_nobody_who_is_in(job, daemons):
    one, two = daemons(), daemons()
    host = job.start_host("node1", env=one.env)
    world = job.wait_for_world("node1")
    one.running.process.send_signal(signal.SIGSTOP)
    job.start("node2", env=two.env)
    world.of("node1").end(3)
    job.wait_for_world("node1")  # again, while munge is asked about the other
    one.running.process.send_signal(signal.SIGCONT)
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()


def test_a_job_that_wants_munge_ends_where_there_is_none(muster, job):
    require_munge()
    end = job.start("node1").finish()
    assert end.status == 1
    socket = muster.scratch / "no-munge"
    assert f"--auth munge: there is no socket of munge's daemon at {socket}; start munged" in end.err


def test_a_socket_that_nobody_serves_is_said_to_be_so(job, daemons):
    munge = daemons()
    munge.running.kill()
    end = job.start("node1", env=munge.env).finish()
    munge.start()
    assert end.status == 1
    assert f"--auth munge: munge's daemon at {munge.socket} does not answer: " in end.err and "start munged" in end.err


def test_fixed_nodes_prove_themselves_and_leave_the_store_to_the_workers(muster, scratch, daemons):
    munge = daemons()
    port = free_port()
    words = ["run", "--nnodes", 2, "--master-addr", "127.0.0.1", "--master-port", port, *MUNGE]
    script = ": >up.$RANK; while [ ! -e go ]; do sleep 0.01; done"
    nodes = [
        muster.start([*words, "--node-rank", rank, "--no-python", "sh", "-c", script], env=munge.env)
        for rank in (0, 1)
    ]
    wait_until(lambda: all((scratch / f"up.{rank}").exists() for rank in (0, 1)), "the workers")
    with RawClient(port) as worker:
        worker.send(request(SET, b"/worker", b"1"))
        worker.send(request(GET, b"/worker"))
        assert worker.receive_blob() == b"1"
    (scratch / "go").touch()
    assert [node.finish().status for node in nodes] == [0, 0]


# What a job of several machines does when nobody says anything.

STRANGER = (
    "import socket, sys\n"
    "client = socket.create_connection(('node1', int(sys.argv[1])), 10)\n"
    "client.sendall(bytes.fromhex('00cef7853c') + bytes([2]))\n"
    "try:\n"
    "    assert client.recv(1) == b''\n"
    "except ConnectionResetError:\n"
    "    pass\n"
)


@pytest.fixture
def hosts(make_network):
    return make_network(2).hosts


def test_nodes_of_several_machines_use_munge_where_both_have_it(make_job, hosts, daemons):
    job = make_job("1:2", host=hosts[0].name)
    one, two = daemons(), daemons()
    host = job.start("node1", on=hosts[0], env=one.env)
    host.wait_for_log("hosting the store")
    job.start("node2", on=hosts[1], env=two.env)
    world = job.wait_for_world("node1", "node2")
    hosts[1].run("/usr/bin/python3", "-c", STRANGER, job.port)
    host.wait_for_log(REFUSAL)
    world.end()
    assert job.succeeds()
    assert "is open to whoever" not in host.err()


@pytest.mark.parametrize(
    "host_has_munge, words",
    [(True, "it wants munge's credentials, and this node uses none"), (False, "it wants no proof by munge")],
    ids=["munge at the host", "none at the host"],
)
def test_a_machine_without_munge_and_one_with_it_do_not_meet(make_job, hosts, daemons, host_has_munge, words):
    """As in a container that cannot reach the socket."""
    envs = [daemons().env, {}]
    first, second = envs if host_has_munge else reversed(envs)
    job = make_job("1:2", host=hosts[0].name)
    host = job.start("node1", on=hosts[0], env=first)
    host.wait_for_log("hosting the store")
    world = job.wait_for_world("node1")
    end = job.start("node2", on=hosts[1], env=second).finish()
    assert end.status == 1 and words in end.err, end.err
    world.end()
    assert host.finish().status == 0


@pytest.mark.parametrize("is_stopped", [True, False], ids=["it stands still", "it is gone"])
def test_a_daemon_that_does_not_answer_does_not_open_a_job_that_would_use_it(make_job, hosts, daemons, is_stopped):
    """Any user of the machine can keep a daemon busy. Nobody is served meanwhile, and then the node ends."""
    job, munge = make_job("1:2", host=hosts[0].name), daemons()
    if is_stopped:
        munge.running.process.send_signal(signal.SIGSTOP)
    else:
        munge.running.kill()
    end = job.start("node1", on=hosts[0], env=munge.env).finish()
    assert end.status == 1 and "hosting the store" not in end.err, end.err
    assert f"munge's daemon at {munge.socket}" in end.err and "with --auth none on all nodes" in end.err, end.err
    if is_stopped:
        munge.running.process.send_signal(signal.SIGCONT)
    else:
        munge.start()


def test_who_says_so_does_without_a_daemon_that_stands_still(make_job, hosts, daemons):
    job, munge = make_job("1:2", host=hosts[0].name), daemons()
    munge.running.process.send_signal(signal.SIGSTOP)
    job.start("node1", "--auth", "none", on=hosts[0], env=munge.env)
    job.wait_for_world("node1").end()
    assert job.succeeds()
    munge.running.process.send_signal(signal.SIGCONT)


def test_a_loopback_endpoint_needs_no_munge(muster, daemons):
    job = Job(muster, 2)
    job.start_host("node1", env=daemons().env)
    job.start("node2")
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()


def test_the_status_is_told_to_who_proves_himself_as_the_nodes_do(muster, job, daemons, scratch):
    one, two, stranger = daemons(), daemons(), daemons(key="another key")
    job.start_host("node1", env=one.env)
    job.start("node2", env=two.env)
    world = job.wait_for_world("node1", "node2")

    def ask(env, *words):
        return muster.run(
            ["status", "--rdzv-endpoint", job.endpoint, "--rdzv-id", "job", "--timeout", "20", *words],
            env={**env, "MUSTER_RUNTIME_DIR": scratch / "nobody"},
        )

    told = wait_until(lambda: (told := ask(two.env, *MUNGE)).status == 0 and "not all" not in told.out and told, "the status")
    assert "2 of 2 nodes" in told.out, told
    refused = ask(two.env, "--auth", "none")
    assert refused.status == 1 and not refused.out and "munge" in refused.err, refused
    refused = ask(stranger.env, *MUNGE)
    assert refused.status == 1 and not refused.out, refused
    world.end()
    assert job.succeeds()

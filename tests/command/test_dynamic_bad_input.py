# SPDX-License-Identifier: BSD-3-Clause
"""What a node may find at the endpoint it was given, and must not be led astray by: each has an error that
names things and status 1, and nothing there is damaged."""

import base64
import contextlib
import http.server
import pickle
import pickletools
import signal
import socket
import threading

import pytest

from support.nodes import IMPATIENT, wait_until
from support.records import Strange, records, spelled, state_of  # noqa: F401 (a fixture)
from support.store import Server

RECORD = b"/torch.rendezvous.job"


def short(text):
    return b"\x8c" + bytes([len(text)]) + text.encode()


def million_nodes(records):
    """By hand, as CPython would take its time: an empty record, with the participants put in."""
    node = short(records.__name__) + short("_NodeDesc") + b"\x93\x94"  # and remembered as number 0
    fields = b")\x81}(" + short("addr") + b"%b" + short("pid") + b"K\x01" + short("local_id") + b"K\x00ubK\x00"
    nodes = [(b"h\x00" if number else node) + fields % short(f"n{number}") for number in range(1_000_000)]
    empty = pickletools.optimize(pickle.dumps(state_of(records), 4)).replace(b"\x94", b"")
    before, after = empty.split(short("participants") + b"}")
    return base64.b64encode(before + short("participants") + b"}(" + b"".join(nodes) + b"u" + after)


BAD_RECORDS = {
    "no base64": (lambda records: b"!! not base64 !!", "base64"),
    "no pickle": (lambda records: base64.b64encode(b"hello"), "pickle"),
    "half a record": (lambda records: spelled(state_of(records))[:100], "cannot be used"),
    "an old protocol": (lambda records: spelled(state_of(records), protocol=0), "cannot be used"),
    "a field missing": (lambda records: spelled(state_of(records, wait_list=Strange)), "wait_list"),
    "a field of another kind": (lambda records: spelled(state_of(records, round="one")), "round"),
    "another object": (lambda records: spelled({"round": 0}), "cannot be used"),
    "a command": (lambda records: base64.b64encode(b"\x80\x02cos\nsystem\nX\x0e\x00\x00\x00touch executed\x85R."), "os.system"),
    "a command in a new pickle": (
        lambda records: base64.b64encode(b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0etouch executed\x85R."),
        "os.system",
    ),
    "100 MB": (lambda records: base64.b64encode(bytes(75_000_000)), "the server sent a length of 100000000, the limit is "),
    "a million nodes": (million_nodes, "more than "),
}


@pytest.mark.parametrize("kind", BAD_RECORDS)
def test_a_record_that_is_none_is_refused_and_left_as_it_is(make_job, muster, scratch, records, kind):
    write, expected = BAD_RECORDS[kind]
    record = write(records)
    server = Server(muster, "--maximum-value-bytes", 1 << 28)
    with server.client(timeout=60) as client:
        client.set(RECORD, record)
        job = make_job("1:2", port=server.port, conf=["is_host=false"])
        end = job.start("node1").finish()
        assert end.status == 1, end
        error = end.err.splitlines()[-1]
        assert "the record of job 'job' in the store (key torch.rendezvous.job) cannot be used: " in error, error
        assert expected in error, error
        assert "it is left as it is" in error and len(error) < 1000, error
        assert client.get(RECORD) == record
    assert not (scratch / "executed").exists() and job.workers() == []


def test_a_reason_in_the_record_cannot_control_the_terminal(make_job, muster, records):
    server = Server(muster)
    reason = "\x1b]0;owned\x07\x1b[2J\x9b5n\nforged"
    state = state_of(records, closed=True, muster_failed=True, muster_reason=reason)
    with server.client() as client:
        client.set(RECORD, spelled(state))
    end = make_job("1:2", port=server.port, conf=["is_host=false"]).start("node1").finish()
    assert end.status == 1, end
    assert "?]0;owned??[2J?5n?forged" in end.err, end


def test_a_record_that_turns_bad_ends_the_nodes_and_is_left_as_it_is(make_job, muster):
    server = Server(muster)
    job = make_job(2, port=server.port, conf=["is_host=false"])
    job.nodes("node1", "node2")
    world = job.wait_for_world("node1", "node2")
    with server.client() as client:
        client.set(RECORD, b"!! not base64 !!")
        world.of("node1").end(3)
        for name, end in job.finish().items():
            assert end.status == 1 and "(key torch.rendezvous.job) cannot be used: " in end.err, job.tell()
        assert client.get(RECORD) == b"!! not base64 !!"
    for worker in world.workers:
        worker.wait_until_gone()


def test_a_job_of_another_size_under_the_same_id_is_refused_and_disturbs_nobody(make_job_anywhere):
    job = make_job_anywhere("1:2")
    job.start_host()
    world = job.wait_for_world("node1")
    end = job.start("stranger", "--nnodes", "2:4").finish()
    assert end.status == 1, end
    assert "a job 'job' with other settings uses this store: it has --nnodes 1:2, this node was given 2:4" in end.err
    assert world.of("node1").is_running()
    world.end()
    assert job.started[0].finish().status == 0, job.tell()
    assert job.is_newest(world)


def test_jobs_of_different_ids_share_a_store(make_job, muster):
    server = Server(muster)
    job = make_job(2, port=server.port, conf=["is_host=false"])
    for run_id in ("job", "another"):
        job.start(f"{run_id}-1", "--rdzv-id", run_id)
        job.start(f"{run_id}-2", "--rdzv-id", run_id)
    wait_until(lambda: len(job.worlds()) == 2 and all(world.is_whole() for world in job.worlds()), "two worlds")
    assert sorted(world.nodes for world in job.worlds()) == [["another-1", "another-2"], ["job-1", "job-2"]]
    for world in job.worlds():
        world.end()
    assert job.succeeds()


@pytest.mark.parametrize("run_id", ["a/b/../c", "a b  c", "ü 漢", "x" * 256, "-v", "{}", "%s%n"])
def test_a_job_may_have_any_name(make_job, run_id):
    job = make_job(2, f"--rdzv-id={run_id}")
    job.nodes("node1", "node2")
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()


def test_a_name_that_does_not_resolve_is_named(make_job):
    name = "a" * 64 + ".invalid"  # a label has 63 letters at most, so no name server is asked, which may be slow
    job = make_job(2, host=name, conf=["join_timeout=2"])
    end = job.start("node1").finish()
    assert end.status == 1, end
    assert f'host "{name}" is not known' in end.err.splitlines()[-1], end


def test_a_port_where_nobody_listens_is_named(make_job):
    job = make_job(2, conf=["join_timeout=1", "is_host=false"])
    end = job.start("node1").finish()
    assert end.status == 1, end
    error = end.err.splitlines()[-1]
    assert f"no store at 127.0.0.1 port {job.port} within 1 s, after " in error, error
    assert f"127.0.0.1:{job.port}: Connection refused (errno 111)" in error, error
    assert "is --rdzv-endpoint right, and has the node it names, which hosts the store, been started?" in error


@contextlib.contextmanager
def silent_listener():
    """Accepts connections, reads nothing, answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@contextlib.contextmanager
def web_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *_: None
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    "server, expected", [(silent_listener, "it accepts connections, but does not answer"), (web_server, "no store")]
)
def test_what_is_no_store_is_named(make_job, server, expected):
    with server() as port:
        job = make_job(2, port=port, conf=["join_timeout=2"])
        end = job.start("node1").finish()
    assert end.status == 1, end
    error = end.err.splitlines()[-1]
    assert f"127.0.0.1:{port}" in error and expected in error, error


def test_a_store_that_falls_silent_ends_the_job_in_time(make_job, muster):
    server = Server(muster)
    job = make_job(2, port=server.port, conf=["is_host=false", "join_timeout=3", *IMPATIENT])
    job.nodes("node1", "node2")
    world = job.wait_for_world("node1", "node2")
    server.running.signal(signal.SIGSTOP)
    for worker in world.workers:
        worker.wait_until_gone()
    for name, end in job.finish().items():
        assert end.status == 1 and f"127.0.0.1:{server.port}" in end.err.splitlines()[-1], job.tell()
    server.running.signal(signal.SIGCONT)


@pytest.mark.parametrize(
    "path, content, expected",
    [
        ("no/such/directory/record", None, "No such file or directory"),
        (".", None, "Is a directory"),
        ("noise", b"\xff" * 3000, "is no FileStore"),
        ("text", b"Dear reader, this file is about something else.\n" * 50, "is no FileStore"),
    ],
)
def test_a_file_that_is_no_store_is_named_and_left_as_it_is(make_job, scratch, path, content, expected):
    if content:
        (scratch / path).write_bytes(content)
    job = make_job(2, path=scratch / path, conf=["store_type=file", "join_timeout=2"])
    end = job.start("node1").finish()
    assert end.status == 1, end
    error = end.err.splitlines()[-1]
    assert str(scratch / path) in error and expected in error, error
    assert content is None or (scratch / path).read_bytes() == content

# SPDX-License-Identifier: BSD-3-Clause
"""`muster rendezvous show`: the record of a rendezvous in words."""

import datetime
import re

import pytest

from support.ports import free_port
from support.records import node_of, records, spelled, state_of  # noqa: F401 (a fixture)
from support.store import Server
from support.transcripts import transcript

RECORD = b"/torch.rendezvous.job"


def show(muster, port, *words):
    return muster.run(["rendezvous", "show", "--rdzv-endpoint", f"127.0.0.1:{port}", *words])


@pytest.fixture
def shown(muster, records):  # noqa: F811
    """What is shown of a record with such members, without its first line."""

    def ask(**members):
        server = Server(muster)
        with server.client() as client:
            client.set(RECORD, spelled(state_of(records, **members)))
            end = show(muster, server.port, "--rdzv-id", "job")
            assert client.get(RECORD) == spelled(state_of(records, **members))
        assert (end.status, end.err) == (0, ""), end
        lines = end.out.splitlines()
        assert lines[0] == "job 'job'"
        return lines[1:]

    return ask


def without_passing(text):
    text = re.sub(r"process \d+", "process 4711", text)
    text = re.sub(r" on \S+ failed", " on node2 failed", text)
    return re.sub(r"heartbeat [\d :-]+ UTC \(.*?\)", "heartbeat 2026-11-20 09:03:02 UTC (5 s ago)", text)


def test_a_job_that_has_restarted(make_job, muster):
    job = make_job(2)
    job.start_host("node1")
    job.start("node2")
    world = job.wait_for_world("node1", "node2")
    world.of("node2").end(3)
    again = job.wait_for_world("node1", "node2")
    end = show(muster, job.port, "--rdzv-id", "job")
    assert end.status == 0, end
    command = "rendezvous show --rdzv-endpoint node1:29400 --rdzv-id job"
    assert without_passing(end.out).splitlines() == transcript(command), end
    assert show(muster, job.port).out.splitlines()[:2] == end.out.splitlines()[:2]
    again.end()
    assert set(job.statuses().values()) == {0}


def test_an_open_round_with_its_deadline_and_lists(shown, records):  # noqa: F811
    one, two, three = (node_of(records, number) for number in (1, 2, 3))
    then = datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    lines = shown(round=7, deadline=then, participants={two: 0, one: 0}, wait_list={three}, last_heartbeats={one: then})
    ago = r"2020-01-02 03:04:05 UTC \(\d+ s ago\)"
    expected = [
        rf"round 7: open, there are enough participants; more may come until {ago}",
        r"participants: 2",
        r"  node2, process 1, torchrun's",
        rf"  node1, process 1, torchrun's, last heartbeat {ago}",
        r"wait list, for the next round: 1",
        r"  node3, process 1, torchrun's",
        r"redundancy list, the spares: 0",
    ]
    assert len(lines) == len(expected), lines
    for line, pattern in zip(lines, expected):
        assert re.fullmatch(pattern, line), line


def test_ranks_are_in_order_and_spares_are_named(shown, records):  # noqa: F811
    one, two, three = (node_of(records, number) for number in (1, 2, 3))
    lines = shown(complete=True, participants={two: 1, one: 0}, redundancy_list={three})
    assert lines == [
        "round 0: complete, its participants have their ranks",
        "participants: 2",
        "  rank 0: node1, process 1, torchrun's",
        "  rank 1: node2, process 1, torchrun's",
        "wait list, for the next round: 0",
        "redundancy list, the spares: 1",
        "  node3, process 1, torchrun's",
    ]


def test_whose_workers_are_done_is_told_of_participants(shown, records):  # noqa: F811
    one, two = node_of(records, 1), node_of(records, 2)
    lines = shown(complete=True, participants={one: 0}, muster_done={one, two})
    assert "  rank 0: (done) node1, process 1, torchrun's" in lines and not any("node2" in line for line in lines)


def test_what_muster_notes(shown):
    lines = shown(
        complete=True, muster_restarts=2, muster_wanted=3, muster_signal=15, muster_draining=True,
        muster_doubted=True, muster_ranked=1, muster_reason="a worker failed",
    )  # fmt: skip
    assert lines == [
        "round 0: complete, its participants have their ranks",
        "begun because: a worker failed",
        "participants: 0",
        "wait list, for the next round: 0",
        "redundancy list, the spares: 0",
        "restarts used: 2",
        "wanted: the round is complete with 3 participants",
        "signal: a node was told to end by SIGTERM",
        "draining: the workers of a participant are done, so no node is admitted",
        "doubted: a participant doubts a failure, so all are asked to answer",
        "ranked: the host of the store tells each node the ranks of its workers",
    ]


def test_a_closed_record_says_why_and_does_nothing_to_the_terminal(shown):
    lines = shown(closed=True, muster_failed=True, muster_reason="\x1b]0;owned\x07\nforged")
    assert lines[:3] == [
        "round 0: open, more participants are waited for",
        "closed after a failure: no node may join any more",
        "closed because: ?]0;owned??forged",
    ]


def test_of_several_records_one_has_to_be_named(muster, records):  # noqa: F811
    server = Server(muster)
    with server.client() as client:
        for name in (b"second", b"first", b"first/muster/changes", b"first.0/MASTER_ADDR"):
            client.set(b"/torch.rendezvous." + name, spelled(state_of(records)))
        client.ping()
    end = show(muster, server.port)
    assert end.status == 2 and end.out == "", end
    assert end.err.splitlines() == transcript("rendezvous show --rdzv-endpoint node1:29400")
    assert show(muster, server.port, "--rdzv-id", "second").out.startswith("job 'second'\n")


BAD = {
    "none": (None, "has no record of job 'job' (key torch.rendezvous.job)"),
    "empty": (b"", "has no record of job 'job'"),
    "torchrun's word for none": (b"Y2FuaW1hZGFt", "has no record of job 'job'"),
    "damaged": (b"!! not base64 !!", "the record of job 'job' (key torch.rendezvous.job) cannot be read: "),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_record_is_said_in_one_line(muster, kind):
    value, expected = BAD[kind]
    server = Server(muster)
    if value is not None:
        with server.client() as client:
            client.set(RECORD, value)
            client.ping()
    end = show(muster, server.port, "--rdzv-id", "job")
    assert (end.status, end.out, end.err.count("\n")) == (1, "", 1) and expected in end.err, end


def test_a_store_without_records_and_none_at_all(muster):
    server = Server(muster)
    end = show(muster, server.port)
    assert end.status == 1 and "the store has no record of a rendezvous" in end.err, end
    end = show(muster, free_port(), "--timeout", "0.2")
    assert (end.status, end.err.count("\n")) == (1, 1) and "no store at 127.0.0.1 port" in end.err, end


def test_a_store_that_wants_a_token(muster, scratch, records):  # noqa: F811
    for name in ("right", "wrong"):
        path = scratch / name
        path.write_text(f"{name}-token-0123456789abcdef\n", encoding="ascii")
        path.chmod(0o600)
    server = Server(muster, "--token-file", scratch / "right")
    value = spelled(state_of(records)).decode()
    words = ["store", "set", RECORD[1:].decode(), value, "--host", "127.0.0.1", "--port", server.port]
    assert muster.run([*words, "--token-file", scratch / "right"]).status == 0
    assert show(muster, server.port, "--token-file", scratch / "right").status == 0
    for words in (["--token-file", scratch / "wrong"], []):
        end = show(muster, server.port, *words)
        assert (end.status, end.out, end.err.count("\n")) == (1, "", 1) and "token" in end.err, end


@pytest.mark.parametrize("words, expected", [
    ([], "--rdzv-endpoint: is needed"),
    (["--rdzv-endpoint", "a:b:c"], "--rdzv-endpoint"),
    (["--rdzv-endpoint", "localhost:0"], "port 0 is none"),
    (["--rdzv-endpoint", "localhost", "--rdzv-id", ""], "--rdzv-id: must not be empty"),
    (["--rdzv-endpoint", "localhost", "--timeout", "-1"], "--timeout: must not be negative"),
    (["--rdzv-endpoint", "localhost", "more"], "more"),
])
def test_mistakes_are_status_2(muster, words, expected):
    end = muster.run(["rendezvous", "show", *words])
    assert end.status == 2 and end.out == "" and expected in end.err, end

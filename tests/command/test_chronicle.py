# SPDX-License-Identifier: BSD-3-Clause
"""The chronicle that a node writes beside its logs: what has happened, in which order, and why."""

import json

import pytest

from support.nodes import wait_until


def entries(directory):
    """Of the one run in a directory of logs."""
    (path,) = directory.glob("*/events.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def start_host(job, *options):
    job.start("node1", *options).wait_for_log("hosting the store")


def kinds(told, *, without=("host",)):
    return [entry["kind"] for entry in told if entry["kind"] not in without]


def test_a_failure_is_told_on_each_node_and_its_cost_once(make_job, scratch):
    job = make_job(2)
    start_host(job, "--log-dir", scratch / "logs1")
    job.start("node2", "--log-dir", scratch / "logs2")
    culprit = job.wait_for_world("node1", "node2").of("node2")
    culprit.end(7)
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()
    there, here = entries(scratch / "logs2"), entries(scratch / "logs1")
    again = ["stopped", "world", "joined", "restart", "started", "stopping", "stopped", "ended"]
    assert kinds(there) == ["waiting", "world", "joined", "started", "worker_failed", "stopping", *again]
    assert kinds(here) == ["waiting", "world", "joined", "started", "stopping", *again]
    failed = next(entry for entry in there if entry["kind"] == "worker_failed")
    assert (failed["rank"], failed["local_rank"], failed["exit"], failed["first"]) == (culprit.rank, 0, 7, True)
    assert failed["pid"] == culprit.pid
    for told in (here, there):
        assert [entry["seq"] for entry in told] == list(range(1, len(told) + 1))
        assert [entry["time"] for entry in told] == sorted(entry["time"] for entry in told)
        (restart,) = (entry for entry in told if entry["kind"] == "restart")
        assert (restart["used"], restart["max"], restart["cause"]) == (1, 3, "worker_failed")
        assert [entry["charged"] for entry in told if entry["kind"] == "world"] == [False, True]
        assert told[-1]["result"] == "succeeded"
    reason = next(entry["reason"] for entry in here if entry["kind"] == "stopping")
    assert reason == f"rank {culprit.rank} (local_rank 0) on node2 failed: exit code 7"


def test_a_node_that_is_killed_is_named_by_the_other(make_job, scratch):
    job = make_job("1:2", conf=["keep_alive_interval=1"])
    start_host(job, "--log-dir", scratch / "logs1")
    lost = job.start("node2")
    job.wait_for_world("node1", "node2")
    lost.kill()
    job.wait_for_world("node1").end()
    assert job.succeeds()
    told = entries(scratch / "logs1")
    (gone,) = (entry for entry in told if entry["kind"] == "node_lost")
    assert gone["node"] == "node2" and f"(pid {lost.pid})" in gone["reason"]
    assert [entry["cause"] for entry in told if "cause" in entry] == ["node_lost"]
    assert not [entry for entry in told if entry["kind"] == "restart"]


def test_a_node_that_joins_costs_nothing(make_job, scratch):
    job = make_job("1:2")
    start_host(job, "--log-dir", scratch / "logs1")
    job.wait_for_world("node1")
    job.start("node2")
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()
    told = entries(scratch / "logs1")
    assert [entry["cause"] for entry in told if "cause" in entry] == ["scale_up"]
    assert [entry["nodes"] for entry in told if entry["kind"] == "world"] == [1, 2]
    assert [entry["charged"] for entry in told if entry["kind"] == "world"] == [False, False]


def test_words_of_an_error_file_are_told(muster, scratch):
    words = {"message": {"message": "ValueError: boom", "extraInfo": {"py_callstack": "…", "timestamp": "1"}}}
    (scratch / "error").write_text(json.dumps(words))
    command = 'cp error "$TORCHELASTIC_ERROR_FILE"; exit 3'
    end = muster.run(["run", "--log-dir", "logs", "--max-restarts", 1, "--no-python", "sh", "-c", command])
    assert end.status == 1
    told = entries(scratch / "logs")
    assert [entry["text"] for entry in told if entry["kind"] == "worker_failed"] == ["ValueError: boom"] * 2
    assert told[-1]["result"] == "failed"


def test_a_hostile_error_cannot_forge_an_entry_or_move_a_cursor(muster, scratch):
    words = '"}\n{"schema":"muster.event/1","seq":1}\x1b[2J\u202e<script>' + "\\" * 5000
    (scratch / "error").write_text(json.dumps({"message": words}))
    command = 'cp error "$TORCHELASTIC_ERROR_FILE"; exit 3'
    muster.run(["run", "--log-dir", "logs", "--no-python", "sh", "-c", command])
    (path,) = (scratch / "logs").glob("*/events.jsonl")
    lines = path.read_text().splitlines()
    assert len(lines) == len({json.loads(line)["seq"] for line in lines})
    assert all(len(line) < 1024 for line in lines)
    assert not set("\x1b\u202e") & set(path.read_text())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--log-dir", "logs", "--chronicle", "here.jsonl"], "here.jsonl"),
        (["--log-dir", "logs", "--chronicle", "off"], None),
        (["--log-dir", "/dev/null"], None),
        ([], None),
    ],
)
def test_where_the_chronicle_is_written(muster, scratch, options, expected):
    (scratch / "tmp").mkdir()
    end = muster.run(["run", *options, "--no-python", "true"], env={"TMPDIR": scratch / "tmp"})
    assert end.status == 0
    assert not list(scratch.glob("**/events.jsonl"))
    assert [path.name for path in scratch.glob("here*")] == ([expected] if expected else [])
    assert not list((scratch / "tmp").iterdir())


def test_a_chronicle_that_cannot_be_written_is_said_once_and_costs_nothing(muster, scratch):
    command = "test $TORCHELASTIC_RESTART_COUNT = 2"
    end = muster.run(
        ["run", "--chronicle", "missing/events.jsonl", "--max-restarts", 2, "--no-python", "sh", "-c", command]
    )
    assert end.status == 0, end
    assert end.err.count("events are lost") == 1, end
    assert "were not written" not in end.err, end


def test_a_chronicle_on_a_full_disk_is_said_once(muster, scratch):
    end = muster.run(["run", "--chronicle", "/dev/full", "--no-python", "true"])
    assert end.status == 0, end
    assert end.err.count("'/dev/full' does not take them") == 1, end


def test_several_agents_may_share_a_file(make_job, scratch):
    job = make_job(2, "--chronicle", scratch / "all.jsonl")
    job.nodes("node1", "node2")
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()
    told = [json.loads(line) for line in (scratch / "all.jsonl").read_text().splitlines()]
    assert sorted(entry["node"] for entry in told if entry["kind"] == "ended") == ["node1", "node2"]


def test_entries_come_while_the_job_runs(make_job, scratch):
    job = make_job(1, "--chronicle", scratch / "all.jsonl")
    job.start("node1")
    world = job.wait_for_world("node1")
    path = scratch / "all.jsonl"
    wait_until(lambda: path.exists() and '"kind":"started"' in path.read_text(), "the entry of a start")
    world.end()
    assert job.succeeds()

# SPDX-License-Identifier: BSD-3-Clause
"""Event records (--event-log-handler console), member by member, beside torchrun's."""

import json
import re
import subprocess

import pytest

import chosen_differences
from support import timers
from support.ports import free_port
from support.side_by_side import Side, SideBySide

pytestmark = pytest.mark.timeout(180)

OPTIONS = ["--standalone", "--nproc-per-node", "2", "--event-log-handler", "console"]

RECORDED = """
import os, time
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("boom")
    time.sleep(60)

main()
"""

# Those that stop their launcher wait for a second: torchrun leaves a worker behind whose start a signal interrupts.
JOBS = {
    "succeeds": (["plain.py"], "pass\n"),
    "exits with 3": (["plain.py"], "import os, sys, time\nsys.exit(3) if os.environ['RANK'] == '1' else time.sleep(60)\n"),
    "is killed": (["plain.py"], "import os, time\nos.kill(os.getpid(), 9) if os.environ['RANK'] == '1' else time.sleep(60)\n"),
    "restarts": (
        ["--max-restarts", "2", "plain.py"],
        "import os, sys\nsys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0')\n",
    ),
    "has an error file": (["plain.py"], RECORDED),
    "cannot be started": (["--no-python", "./nowhere"], ""),
    "has a role": (["--role", "trainer", "--no-python", "true"], ""),
    "is stopped": (
        ["plain.py"],
        "import os, time\ntime.sleep(1)\nos.kill(os.getppid(), 15) if os.environ['RANK'] == '1' else None\ntime.sleep(60)\n",
    ),
    "runs a module": (["-m", "this"], ""),
    "runs a path": (["--run-path", "plain.py"], "pass\n"),
}  # fmt: skip


def records(side):
    text = side.end.err.replace(str(side.directory), "<dir>")
    found = [json.loads(line) for line in text.splitlines() if line.startswith('{"name"')]
    assert found, side.end
    return found


def comparable(record):
    """The record with its inner document opened, and what differs from run to run replaced."""
    metadata = dict(record["metadata"])
    inner = json.loads(metadata.pop("metadata"))
    # each side is started with the same interpreter under another of its names
    inner["entry_point"] = re.sub(r"^python3\.\d+$", "python3", inner["entry_point"])
    if inner.get("worker_pid", [None]) != [None]:
        assert str(inner["worker_pid"][0]) == metadata["worker_id"]
        inner["worker_pid"] = "<pid>"
    for name in ("run_id", "worker_id", "duration_ms"):
        assert metadata[name] is None or metadata[name] != ""
        metadata[name] = type(metadata[name]).__name__
    metadata["total_run_time"] = type(metadata["total_run_time"]).__name__
    if metadata["raw_error"] is not None:
        metadata["raw_error"] = comparable_error(metadata)
    # the order of members counts too
    return [list(record), record["name"], record["source"], list(metadata.items()), list(inner.items())]


def comparable_error(metadata):
    if metadata["worker_id"] == "NoneType":
        return "<why the agent failed>"  # a traceback there, a sentence here
    error = json.loads(metadata["raw_error"])
    if isinstance(error["message"], dict):
        error["message"]["extraInfo"]["timestamp"] = "<seconds>"
    return error


def assert_time(side, record):
    if side.name == "torchrun":
        assert record["timestamp"] == 0, f"no longer so: {chosen_differences.EVENTS}"
    else:
        assert record["timestamp"] > 1_700_000_000_000


@pytest.mark.parametrize("job", JOBS)
def test_records_are_torchruns(muster, peer, scratch, job):
    options, script = JOBS[job]
    sides = SideBySide(muster, peer, scratch).run([*OPTIONS, *options], files={"plain.py": script})
    for side in sides:
        for record in records(side):
            assert_time(side, record)
    theirs, ours = ([comparable(record) for record in records(side)] for side in sides)
    theirs = [with_chosen_ends(record) for record in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == other


def test_records_of_two_nodes_are_torchruns(muster, peer, scratch):
    """Each node tells its own place. (When one fails, torchrun's other node waits for its workers.)"""
    told = []
    for program, spawn, first in ((peer.torchrun, peer.spawn, []), (muster.binary, subprocess.Popen, ["run"])):
        port = free_port()
        options = ["--nnodes", 2, "--nproc-per-node", 2, "--master-addr", "localhost", "--master-port", port]
        nodes = [
            muster.start(
                [*first, *options, "--node-rank", rank, "--event-log-handler", "console", "--no-python", "true"],
                program=program, spawn=spawn,
            )
            for rank in range(2)
        ]  # fmt: skip
        sides = [Side(str(program), scratch, node.finish(120)) for node in nodes]
        told.append([[comparable(record) for record in records(side)] for side in sides])
    theirs, ours = told
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == [with_chosen_ends(record) for record in other]
    assert [dict(mine[-1][3])["group_rank"] for mine in ours] == [0, 1]


def with_chosen_ends(record):
    """torchrun's record as it were with chosen_differences.EVENTS: a worker's own end."""
    form, name, source, metadata, inner = record
    metadata, inner = dict(metadata), dict(inner)
    if metadata["state"] == "FAILED" and inner.get("exit_code") == [-15]:
        metadata.update(state="TERMINATED", raw_error=None)
        inner.update(exit_code=[None], worker_pid=[None])
    elif metadata["state"] == "TERMINATED":
        metadata["state"] = "SUCCEEDED"
    name = f"torchelastic.worker.status.{metadata['state']}"
    if isinstance(metadata["raw_error"], dict) and inner.get("exit_code", [0])[0] is not None:
        # one failure's traits colour the next there
        if inner["exit_code"][0] < 0:
            metadata["raw_error"].pop("errorTraits", None)
    return [form, name, source, list(metadata.items()), list(inner.items())]


# torchrun, with a file where it lets one be put for its rendezvous' own records; debug, as some are kept only then
RECORDING = """
import logging, sys
from torch.distributed.elastic.events import handlers
logging.getLogger("torch.distributed.elastic").setLevel("DEBUG")
handlers._log_handlers["dynamic_rendezvous"] = logging.FileHandler(sys.argv[1])
from torch.distributed.run import main
main(sys.argv[2:])
"""


def rendezvous_records(path):
    """Those of the rendezvous alone, with what differs from run to run replaced."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    mine = [record for record in found if "node_state" in record]
    for record in mine:
        for name in ("message", "hostname"):
            record[name] = re.sub(r"localhost_\d+_\d+", "<node>", record[name]).replace(str(record["pid"]), "<pid>")
        record["pid"] = type(record["pid"]).__name__
        record["local_id"] = type(record["local_id"]).__name__
        if record["node_state"] == "INIT":
            record["hostname"] = "<host>"  # this machine's name there, --local-addr here
    return [list(record.items()) for record in mine]


def test_the_rendezvous_own_records_are_torchruns(muster, peer, scratch):
    """What one node's rendezvous records from beginning to end, but for heartbeats, which follow the clock."""
    options = [
        "--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-id", "job7", "--local-addr", "localhost",
        "--rdzv-conf", "last_call_timeout=1,keep_alive_interval=600", "--no-python",
    ]  # fmt: skip
    endpoints = [["--rdzv-endpoint", f"localhost:{free_port()}"] for _ in range(2)]
    ours, theirs = scratch / "ours", scratch / "theirs"
    end = muster.run(["run", *endpoints[0], *options, "--event-log-handler", f"file:{ours}", "true"])
    assert end.status == 0, end
    there = [peer.python, "-c", RECORDING, theirs, *endpoints[1], *options, "true"]
    recorded = subprocess.run(there, cwd=scratch, timeout=120, capture_output=True, text=True)
    assert recorded.returncode == 0, recorded.stderr
    assert rendezvous_records(ours) == rendezvous_records(theirs)


def test_a_lone_nodes_rendezvous_is_recorded_in_a_file_and_not_on_the_console(muster, peer, scratch):
    """It agrees with nobody: of torchrun's records it has those of a beginning, a joining and an end."""
    options = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "job7", "--local-addr", "localhost"]
    end = muster.run(["run", *options, "--event-log-handler", "file:events", "--no-python", "true"])
    assert end.status == 0, end
    mine = [dict(record) for record in rendezvous_records(scratch / "events")]
    assert [record["message"] for record in mine] == [
        "Process <pid> hosts the TCP store for the C10d rendezvous backend.",
        "The node '<node>' attempts to join the next round of the rendezvous 'job7'.",
        "The node '<node>' has joined round 0 of the rendezvous 'job7' as rank 0 in a world of size 1.",
        "The node '<node>' has closed the rendezvous 'job7'.",
    ]
    read_back = (
        "import sys; from torch.distributed.elastic.events.api import Event, RdzvEvent\n"
        "for line in sys.stdin: (RdzvEvent if 'node_state' in line else Event).deserialize(line)\n"
    )
    read = subprocess.run(
        [peer.python, "-c", read_back], input=(scratch / "events").read_text(), text=True, cwd=scratch, timeout=60
    )
    assert read.returncode == 0
    end = muster.run(["run", *options, "--event-log-handler", "console", "--no-python", "true"])
    assert end.status == 0 and "node_state" not in end.err, end


def test_the_same_handlers_are_known(peer, muster, scratch):
    """And `dynamic_rendezvous`, which PyTorch lets other programs fill, writes nothing by itself."""
    names = subprocess.run(
        [peer.python, "-c", "from torch.distributed.elastic.events import handlers; print(*handlers._log_handlers)"],
        cwd=scratch, timeout=60, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert "dynamic_rendezvous" in names
    pair = SideBySide(muster, peer, scratch)
    for name in names:
        for side in pair.run(["--standalone", "--event-log-handler", name, "--no-python", "true"]):
            assert side.end.status == 0, side.end
            assert ('"metadata"' in side.end.err) == (name == "console"), side.end


WATCHED = {
    "a timer that asks for no kill": ("acquire('a', 0.1, 0)\n", ["watchdog started", "timer expired", "watchdog stopped"]),
    # the agent there ends itself with the worker, and records no more
    "a kill": (
        "acquire('b', 0.2)\nacquire('c', 60)\n",
        ["watchdog started", "timer expired", "kill worker process"],
    ),
    "the first signal of several decides": (
        "write(request('late', -5, 15) + request('later', -4, 9))\n",
        ["watchdog started", "timer expired", "kill worker process"],
    ),
}


@pytest.mark.parametrize("what", WATCHED)
def test_watchdog_records_are_torchruns(muster, peer, scratch, what):
    lines, names = WATCHED[what]
    script = timers.PREAMBLE + "time.sleep(0.5)\n" + lines + "time.sleep(3)\n"
    environment = {"TORCHELASTIC_ENABLE_FILE_TIMER": "1"}
    options = ["--standalone", "--event-log-handler", "console", "timed.py"]
    sides = SideBySide(muster, peer, scratch).run(options, files={"timed.py": script}, env=environment)
    told = []
    for side in sides:
        mine = [record for record in records(side) if not record["name"].startswith("torchelastic.")]
        told.append([watchdog_form(record) for record in mine][: len(names)])
    assert told[0] == told[1]
    assert [form[0] for form in told[1]] == names


WATCHED_JOBS = {
    "succeeds": ([], "pass\n"),
    "fails": ([], "import sys\nsys.exit(3)\n"),
    "restarts": (["--max-restarts", "1"], "import os, sys\nsys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0')\n"),
    "is stopped": ([], "import os, time\ntime.sleep(1)\nos.kill(os.getppid(), 15)\ntime.sleep(60)\n"),
    "cannot be started": (["--no-python"], None),
}  # fmt: skip


@pytest.mark.parametrize("job", WATCHED_JOBS)
def test_the_watchdogs_records_have_torchruns_place_among_the_others(muster, peer, scratch, job):
    options, script = WATCHED_JOBS[job]
    sides = SideBySide(muster, peer, scratch).run(
        ["--standalone", "--event-log-handler", "console", *options, "job.py" if script else "./nowhere"],
        files={"job.py": script or ""}, env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1"},
    )  # fmt: skip
    theirs, ours = ([record["name"] for record in records(side)] for side in sides)
    assert ours == theirs
    assert ours.count("watchdog stopped") == ours.count("watchdog started") > 0


def watchdog_form(record):
    inner = json.loads(record["metadata"]["metadata"])
    for name in inner.keys() & {"worker_pid", "expiration_time"}:
        float(inner[name])
        inner[name] = "<number>"
    members = dict(record["metadata"], run_id="<id>", metadata="<opened below>", total_run_time="<seconds>")
    return [record["name"], record["source"], list(members.items()), list(inner.items())]


@pytest.mark.parametrize("handler", ["console", "file:events"])
def test_the_watchdog_records_what_it_does(muster, scratch, handler):
    script = "acquire('a', 0.2, 0)\nacquire('b', 0.3)\ntime.sleep(60)"
    end = timers.start(muster, script, "--event-log-handler", handler, workers=1).finish()
    assert end.status == 1, end
    text = end.err if handler == "console" else (scratch / "events").read_text()
    found = [json.loads(line) for line in text.splitlines() if line.startswith('{"name"')]
    mine = [record for record in found if "watchdog_event" in str(record)]
    assert [record["name"] for record in mine] == [
        "watchdog started", "timer expired", "timer expired", "kill worker process", "watchdog stopped",
    ]  # fmt: skip
    worker = next(record for record in found if record["name"].endswith("START"))["metadata"]["worker_id"]
    kill = json.loads(mine[3]["metadata"]["metadata"])
    assert (kill["scope_id"], kill["signal"], kill["worker_pid"]) == ("b", "9", worker)
    assert all(isinstance(value, str) for value in kill.values())

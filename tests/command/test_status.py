# SPDX-License-Identifier: BSD-3-Clause
"""`muster status` and `muster events`: what the agents of this machine know of their job."""

import json
import os
import re
import socket

import pytest

from support.json_schema import check
from support.nodes import wait_until


@pytest.fixture
def place(scratch):
    """Where the agents of a test announce themselves."""
    return scratch / "announced"


@pytest.fixture
def ask(muster, place):
    def ask(*words):
        return muster.run([*words], env={"MUSTER_RUNTIME_DIR": place})

    return ask


@pytest.fixture
def make_seen_job(make_job, place):
    return lambda *words, **how: make_job(*words, env={"MUSTER_RUNTIME_DIR": place}, **how)


def sockets(place):
    return sorted(place.glob("ask-*"))


def wait_for_agents(place, count):
    wait_until(lambda: len([path for path in place.glob("job-*") if '"socket"' in path.read_text()]) == count, "the agents")


def status(ask, *words):
    told = ask("status", "--json", "--nodes", *words)
    return told.status, check(json.loads(told.out), "status")


def wait_for_state(ask, state):
    def find():
        told = ask("status", "--json", "--nodes")
        found = json.loads(told.out) if told.out else None
        return found if found and found["job"]["state"] == state else None

    return check(wait_until(find, f"the state {state}"), "status")


def entries(ask, *words):
    told = ask("events", "--json", *words)
    assert told.status == 0, told
    return [check(json.loads(line), "event") for line in told.out.splitlines()]


def test_a_job_is_found_from_its_agents_start_before_it_has_workers(make_seen_job, ask, place):
    job = make_seen_job(2)
    job.start("node1")
    wait_for_agents(place, 1)
    code, told = status(ask)
    assert (code, told["job"]["state"], told["job"]["nodes"]) == (3, "waiting", {"here": None, "min": 2, "max": 2})
    assert told["job"]["round"] is None and told["job"]["workers"] is None
    shown = ask("status")
    assert shown.status == 3 and shown.out.startswith("job  waiting  2:2 nodes, for "), shown
    assert " only" not in shown.out.splitlines()[0], shown  # the node hosts the store
    (path,) = place.glob("job-*")
    announced = json.loads(path.read_text())
    assert announced["endpoint"] == job.endpoint and announced["backend"] == "c10d"
    assert announced["state"] == "waiting" and announced["node"] == "node1" and "port" not in announced
    job.started[0].signal(15)
    job.finish()
    assert not list(place.iterdir())


def test_a_failure_is_one_recovery_whose_phases_and_account_add_up(make_seen_job, ask, place):
    job = make_seen_job("2:3")
    job.start_host("node1")
    job.nodes("node2", "node3")
    culprit = job.wait_for_world("node1", "node2", "node3").of("node2")
    culprit.end(7)
    world = job.wait_for_world("node1", "node2", "node3")
    told = wait_for_state(ask, "running")
    assert told["seen"]["complete"] and sorted(told["seen"]["nodes"]) == ["node1", "node2", "node3"]
    assert told["job"]["nodes"] == {"here": 3, "min": 2, "max": 3}
    assert told["job"]["restarts"] == {"used": 1, "max": 3}
    (recovery,) = told["recoveries"]
    assert (recovery["cause"], recovery["rank"], recovery["node"]) == ("worker_failed", culprit.rank, "node2")
    assert (recovery["exit"], recovery["charged"], recovery["over"]) == (7, True, True)
    assert list(recovery["phases"]) == ["noticed", "stopped", "agreed", "started"]
    assert sum(phase["took"] for phase in recovery["phases"].values()) == pytest.approx(recovery["took"], abs=1e-5)
    account = told["account"]
    assert account["recovering"] == {"worker_failed": pytest.approx(recovery["took"], abs=1e-5)}
    parts = [account[name] for name in ("running", "starting", "waiting", "ending")] + list(account["recovering"].values())
    assert sum(parts) == pytest.approx(account["wall"], abs=1e-5)
    nodes = dict(zip(told["nodes"]["name"], zip(told["nodes"]["state"], told["nodes"]["failed_first"])))
    assert nodes == {"node1": ("running", 0), "node2": ("running", 1), "node3": ("running", 0)}
    shown = ask("status")
    assert shown.status == 0 and f"rank {culprit.rank} on node2: exit code 7\n" in shown.out, shown
    assert " only" not in shown.out.splitlines()[0], shown
    world.end()
    assert job.succeeds()
    assert ask("status").status == 1


def test_a_killed_node_is_shown_as_lost(make_seen_job, ask, place):
    job = make_seen_job("1:2", conf=["keep_alive_interval=1"])
    job.start_host("node1")
    lost = job.start("node2")
    job.wait_for_world("node1", "node2")
    wait_for_agents(place, 2)
    lost.kill()
    world = job.wait_for_world("node1")
    told = wait_for_state(ask, "running")
    assert dict(zip(told["nodes"]["name"], told["nodes"]["state"])) == {"node1": "running", "node2": "lost"}
    assert [recovery["cause"] for recovery in told["recoveries"]] == ["node_lost"]
    assert told["recoveries"][0]["node"] == "node2" and not told["recoveries"][0]["charged"]
    assert len(sockets(place)) == 1  # who looks removes what the killed agent has left
    world.end()
    assert job.succeeds()


def test_events_are_those_of_all_agents_in_the_order_of_their_times(make_seen_job, ask, scratch):
    job = make_seen_job(2, "--chronicle", scratch / "all.jsonl")
    job.start_host("node1")
    job.start("node2")
    world = job.wait_for_world("node1", "node2")
    wait_until(lambda: (scratch / "all.jsonl").read_text().count('"started"') == 2, "the starts")
    told = entries(ask)
    assert told == sorted(told, key=lambda entry: entry["time"])
    written = [json.loads(line) for line in (scratch / "all.jsonl").read_text().splitlines()]
    assert sorted(map(str, told)) == sorted(map(str, written))
    assert {entry["node"] for entry in entries(ask, "--node", "node2")} == {"node2"}
    assert [entry["kind"] for entry in entries(ask, "--kind", "started")] == ["started"] * 2
    shown = ask("events", "--kind", "started", "--node", "node1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} node1 started attempt=0 from_standby=0\n", shown.out)
    mistake = ask("events", "--kind", "explosion")
    assert mistake.status == 2 and "unknown kind: 'explosion'" in mistake.err
    world.end()
    assert job.succeeds()


def test_who_follows_hears_of_the_end(make_seen_job, muster, place, scratch):
    job = make_seen_job(1, "--log-dir", scratch / "logs")
    job.start("node1")
    world = job.wait_for_world("node1")
    wait_for_agents(place, 1)
    follower = muster.start(["events", "--follow", "--json"], env={"MUSTER_RUNTIME_DIR": place})
    follower.wait_until(lambda: '"started"' in follower.out(), "the start", 30)
    world.end()
    assert job.succeeds()
    end = follower.finish()
    kinds = [json.loads(line)["kind"] for line in end.out.splitlines() if '"host"' not in line]
    assert kinds == ["waiting", "world", "joined", "started", "stopping", "stopped", "ended"]


def test_nobody_and_several_are_told_apart(make_seen_job, muster, ask, place):
    nobody = ask("status")
    assert nobody.status == 1 and f"announces itself on this machine to this user (in {place})" in nobody.err
    job = make_seen_job(1)
    job.start("node1")
    world = job.wait_for_world("node1")
    other = muster.start(
        ["run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "other", "--no-python", "sleep", "600"],
        env={"MUSTER_RUNTIME_DIR": place},
    )
    wait_for_agents(place, 2)
    several = ask("status")
    assert several.status == 2 and "several jobs run on this machine" in several.err
    assert f"  job    at {job.endpoint}, agent " in several.err and "  other    at " in several.err
    assert status(ask, "other")[1]["job"]["id"] == "other"
    missing = ask("status", "third")
    assert missing.status == 1 and "no agent of job 'third'" in missing.err
    other.signal(15)
    other.finish()
    world.end()
    assert job.succeeds()


def ask_raw(path, question, length=1 << 20):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(os.fspath(path))
        client.sendall(question)
        answer = b""
        while len(answer) < length and (more := client.recv(65536)):
            answer += more
        return answer


def test_nonsense_and_askers_that_wait_leave_the_job_and_others_alone(make_seen_job, ask, place):
    job = make_seen_job(1)
    job.start("node1")
    world = job.wait_for_world("node1")
    wait_for_agents(place, 1)
    (path,) = sockets(place)
    for question in (b"\n\n", b"POST /v1/status HTTP/1.1\r\n\r\n", b"GET /v1/events?after=x HTTP/1.1\r\n\r\n", b"GET  \n\n"):
        assert ask_raw(path, question).startswith(b"HTTP/1.1 404 "), question
    assert ask_raw(path, b"x" * 4095).startswith(b"HTTP/1.1 404 ")
    whole = ask_raw(path, b"GET /v1/status HTTP/1.1\r\n\r\n")
    head, body = whole.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 200 OK\r\n") and b"Content-Length: %d\r\n" % len(body) in head
    check(json.loads(body), "status")
    silent = [socket.socket(socket.AF_UNIX) for _ in range(7)]
    for client in silent:
        client.connect(os.fspath(path))
    assert ask("status").status == 0
    for client in silent:
        client.close()
    world.end()
    assert job.succeeds()


def test_a_hostile_name_of_a_job_is_shown_as_text(muster, ask, place):
    name = 'x"\x1b[2J<script>'
    running = muster.start(
        ["run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", name, "--no-python", "sleep", "600"],
        env={"MUSTER_RUNTIME_DIR": place},
    )
    wait_for_agents(place, 1)
    wait_until(lambda: ask("status").status == 0, "the job to run")
    assert "\x1b" not in ask("status").out
    assert "\x1b" not in json.dumps(status(ask)[1], ensure_ascii=False)
    running.signal(15)
    running.finish()


@pytest.mark.parametrize(
    "squeue, said",
    [
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", "runs: slurm_load_jobs error: Invalid job id specified"),
        ("sleep 60", "runs: squeue has not answered in time"),
        (None, "runs: squeue is not there, or cannot be run"),
        ("echo '4711.batch n1'", "job 4711 has no step that runs (squeue --steps --jobs=4711)"),
        ("printf '4711.0 n[1-2]\\n4711.1 n[1-2]\\n'", "job 4711 has 2 steps; write which one is meant, as --slurm-job 4711."),
        ("echo '4711.0 n1'", "step 4711.0 runs on n1 alone; ask there: srun --overlap --jobid 4711 muster status"),
    ],
)
def test_slurm_is_asked_for_a_job_and_what_it_says_is_told(muster, scratch, squeue, said):
    if squeue is not None:
        (scratch / "squeue").write_text(f"#!/bin/sh\n{squeue}\n")
        (scratch / "squeue").chmod(0o755)
    path = f"{scratch}:{os.environ['PATH']}" if squeue is not None else scratch
    end = muster.run(["status", "--slurm-job", "4711", "--timeout", "1"], env={"PATH": path})
    assert end.status == (2 if "2 steps" in said else 1) and said in end.err, end

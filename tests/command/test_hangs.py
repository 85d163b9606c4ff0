# SPDX-License-Identifier: BSD-3-Clause
"""`--hang-after` and `--hang-action`: a job whose workers live, and take no steps any more."""

import json
import os
import re
import shlex
import signal
import sys
import urllib.request

import pytest

from support.binary import ROOT
from support.disks import make_disk
from support.json_schema import check
from support.nodes import wait_until
from support.ports import free_port

# Each attempt takes ten steps. In the first one, all wait then for a rank that is elsewhere, as in an all-reduce.
WORKER = f"""
import os, signal, sys, time
sys.path.insert(0, {str(ROOT / "python")!r})
import muster.progress
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])

def note(name):
    open("%s.%d.%d" % (name, rank, attempt), "w").close()

def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)

def take_steps(count=10):
    for _ in range(count):
        time.sleep(0.01)
        take_steps.last += 1
        muster.progress.step(take_steps.last)

def all_reduce():
    os.mkfifo("gate.%d" % rank)
    open("gate.%d" % rank).read()

note("ready")
for other in range(int(os.environ["WORLD_SIZE"])):
    wait_for("ready.%d.%d" % (other, attempt))
take_steps.last = 0
take_steps()
if attempt == 0:
    BODY
"""


@pytest.fixture
def place(scratch):
    return scratch / "announced"


@pytest.fixture
def start(muster, scratch, place):
    """Starts a job of one node whose workers do this after their first steps, in the first attempt."""

    def start(body, *options, workers=3, **env):
        write_worker(scratch, body)
        job = ["run", "--standalone", "--nproc-per-node", workers, "--max-restarts", 1, "--log-dir", "logs"]
        words = [*job, "--chronicle", "events", *options, "worker.py"]
        variables = {"PYTHON_EXEC": sys.executable, "MUSTER_RUNTIME_DIR": place, **env}
        return muster.start(list(map(str, words)), env=variables, cwd=scratch)

    return start


def write_worker(scratch, body):
    lines = body.strip("\n").replace("\n", "\n    ")
    (scratch / "worker.py").write_text(WORKER.replace("BODY", lines))


@pytest.fixture
def status(muster, place):
    def status(*words):
        return muster.run(["status", *words], env={"MUSTER_RUNTIME_DIR": place})

    return status


def entries_of(path, *kinds):
    entries = [check(json.loads(line), "event") for line in path.read_text().splitlines()]
    return [entry for entry in entries if not kinds or entry["kind"] in kinds]


def open_gates(scratch):
    for gate in scratch.glob("gate.*"):
        gate.write_text("")  # once somebody waits there
        gate.unlink()


ELSEWHERE = """
if rank == 1:
    wait_for("data")
else:
    all_reduce()
take_steps()
wait_for("end")
"""


def test_a_rank_that_sleeps_in_its_data_loader_is_told_once_and_the_job_goes_on(start, status, scratch):
    job = start(ELSEWHERE, "--hang-after", 2)
    job.wait_until(lambda: "hang: " in job.err(), "the hang")
    told = status("--json")
    assert told.status == 3, told
    found = check(json.loads(told.out), "status")
    assert found["job"]["state"] == "hanging" and found["job"]["hangs"] == 1
    assert (found["hang"]["rank"], found["hang"]["node"]) == (1, found["seen"]["nodes"][0])
    assert found["account"]["hanging"] > 0
    shown = status().out
    assert f"  hang, on {found['hang']['node']}: no rank has taken a step for " in shown and ": rank 1 " in shown, shown
    (scratch / "data").touch()
    open_gates(scratch)
    wait_until(lambda: json.loads(status("--json").out)["job"]["state"] == "training", "the steps")
    went_on = check(json.loads(status("--json").out), "status")
    assert went_on["hang"] is None and went_on["job"]["hangs"] == 1
    parts = [went_on["account"][name] for name in ("training_kept", "redone", "hanging", "starting", "waiting", "ending")]
    assert sum(parts) == pytest.approx(went_on["account"]["wall"], abs=1e-5)
    (scratch / "end").touch()
    ended = job.finish()
    assert ended.status == 0 and ended.err.count("hang: ") == 1, ended
    (hang,) = entries_of(scratch / "events", "hang", "worker_failed", "restart")
    assert (hang["kind"], hang["rank"], hang["severity"]) == ("hang", 1, "error")
    assert hang["what"].startswith("no rank has taken a step for ") and "ranks 0,2 " in hang["what"]
    assert hang["where"] in hang["what"] and hang["silence"] > 0
    reports = sorted(path.parent.name for path in scratch.glob("logs/*/attempt_0/*/hang_evidence.txt"))
    assert reports == ["0", "1", "2"]
    report = next(scratch.glob("logs/*/attempt_0/1/hang_evidence.txt"))
    assert "no worker of this node has taken a step for " in report.read_text() and str(report) in ended.err
    assert "before it is ended" not in report.read_text()


def expect_restart(ended, scratch, rank):
    assert ended.status == 0, ended
    entries = entries_of(scratch / "events")
    kinds = [entry["kind"] for entry in entries]
    hang, failed, restart = (entries[kinds.index(kind)] for kind in ("hang", "worker_failed", "restart"))
    assert kinds.count("hang") == kinds.count("worker_failed") == kinds.count("restart") == 1
    assert hang["rank"] == failed["rank"] == rank and failed["signal"] == signal.SIGKILL
    assert failed["text"] == hang["what"]
    assert restart["cause"] == "hang" and entries[kinds.index("stopping")]["cause"] == "hang"


def test_a_rank_that_is_stopped_counts_as_failed_and_the_job_restarts(muster, start, scratch):
    job = start('if rank == 2:\n    os.kill(os.getpid(), signal.SIGSTOP)\nall_reduce()', "--hang-after", 2, "--hang-action", "restart")
    ended = job.finish()
    expect_restart(ended, scratch, 2)
    assert ": rank 2 stopped" in ended.err, ended
    report = muster.run(["report", "--json", str(scratch / "events")])
    (recovery,) = check(json.loads(report.out), "status")["recoveries"]
    assert (recovery["cause"], recovery["rank"]) == ("hang", 2)
    (hang,) = entries_of(scratch / "events", "hang")
    assert recovery["what"] == hang["what"]
    assert recovery["phases"]["noticed"]["took"] >= hang["silence"]  # it has failed with the last step of all


# Whoever starts a program waits uninterruptibly, but for SIGKILL, until the child executes it: never here.
SPAWN = """
if rank == 0:
    os.mkfifo("never-opened")
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "never-opened", os.O_RDONLY, 0)])
all_reduce()
"""


def test_a_rank_in_uninterruptible_sleep_is_to_blame(start, scratch):
    ended = start(SPAWN, "--hang-after", 2, "--hang-action", "restart", "--shutdown-timeout", 0.5).finish()
    expect_restart(ended, scratch, 0)
    assert ": rank 0 in uninterruptible sleep" in ended.err, ended


def test_a_rank_that_the_kernel_does_not_let_die_ends_the_job_without_a_restart(start, scratch):
    disk = make_disk(scratch)
    body = 'if rank == 1:\n    file = os.open("disk/file", os.O_WRONLY | os.O_CREAT)\n    note("opened")\n    wait_for("frozen")\n    os.write(file, b"x")\nall_reduce()'
    try:
        job = start(body, "--hang-after", 2, "--hang-action", "restart", workers=2)
        job.wait_until((scratch / "opened.1.0").exists, "the file")
        disk.freeze()
        (scratch / "frozen").touch()
        job.wait_until(lambda: "(local_rank 1) has been in uninterruptible sleep for" in job.err(), "the end of patience")
    finally:
        disk.end()
    ended = job.finish()
    assert ended.status == 1 and "hang: ending worker " in ended.err, ended
    assert not entries_of(scratch / "events", "restart")


def test_a_job_without_restarts_ends_with_where_its_ranks_were(start, scratch):
    ended = start(ELSEWHERE, "--hang-after", 2, "--hang-action", "restart", "--max-restarts", 0).finish()
    assert ended.status == 1, ended
    assert "killed by the agent, since no rank has taken a step for " in ended.err, ended
    assert ended.err.index("hang: no rank") < ended.err.index("ChildFailedError"), ended


def test_a_job_that_steps_is_never_ended(start):
    """One of its ranks does, longer than the others may rest."""
    ended = start("if rank == 2:\n    take_steps(600)", "--hang-after", 4, "--hang-action", "restart").finish()
    assert ended.status == 0 and "hang: " not in ended.err, ended


@pytest.mark.parametrize("after", [1, "auto"])
def test_a_job_that_never_steps_does_not_hang(muster, scratch, after):
    job = ["run", "--standalone", "--nproc-per-node", 2, "--hang-after", after, "--hang-action", "restart", "--no-python"]
    ended = muster.run([*map(str, job), "sleep", "4"])
    assert ended.status == 0 and "hang: " not in ended.err, ended


def test_a_job_whose_first_worker_is_done_does_not_hang(start):
    job = start("if rank > 0:\n    sys.exit(0)\ntime.sleep(6)", "--hang-after", 2, "--hang-action", "restart")
    ended = job.finish()
    assert ended.status == 0 and "hang: " not in ended.err, ended


def test_steps_of_the_same_number_are_steps(start):
    body = "for _ in range(600):\n    time.sleep(0.01)\n    muster.progress.step(10)"
    ended = start(body, "--hang-after", 4, "--hang-action", "restart").finish()
    assert ended.status == 0 and "hang: " not in ended.err, ended


def test_steps_that_grow_tenfold_are_no_hang(start):
    body = "for pause in 0.01, 0.1:\n    for _ in range(20):\n        time.sleep(pause)\n        take_steps(1)"
    ended = start(body, "--hang-after", "auto", "--hang-action", "restart").finish()
    assert ended.status == 0 and "hang: " not in ended.err, ended


def test_without_evidence_the_hang_is_told_and_nothing_is_written(start, scratch):
    job = start(ELSEWHERE, "--hang-after", 2, "--evidence", "off")
    job.wait_until(lambda: "hang: " in job.err(), "the hang")
    (scratch / "data").touch()
    (scratch / "end").touch()
    open_gates(scratch)
    ended = job.finish()
    assert ended.status == 0 and ": rank 1 " in ended.err and "hang_evidence.txt" not in ended.err, ended
    assert not list(scratch.glob("logs/*/attempt_0/*/hang_evidence.txt"))


def test_a_second_hang_is_told_too(start, scratch):
    job = start('for name in "data", "more":\n    wait_for(name)\n    take_steps()', "--hang-after", 2)
    for count, name in enumerate(("data", "more"), 1):
        job.wait_until(lambda: job.err().count("hang: ") == count, "the hang")
        (scratch / name).touch()
    assert job.finish().status == 0
    assert len(entries_of(scratch / "events", "hang")) == 2


def test_hangs_are_counted(start, scratch):
    port = free_port()
    job = start(ELSEWHERE, "--hang-after", 2, TORCHELASTIC_HEALTH_CHECK_PORT=port)

    def is_counted():
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
        return re.search(r"^muster_job_hangs_total\{.*\} 1$", page, re.MULTILINE) and re.search(r"kind=\"hanging\"\} [0-9.]*[1-9]", page)

    job.wait_until(lambda: "hang: " in job.err(), "the hang")
    wait_until(is_counted, "the metrics")  # they tell what cannot change any more, seconds later
    job.signal(signal.SIGTERM)
    job.finish()


# Several nodes.


def start_nodes(job, scratch, body, *options, names=("node1", "node2", "node3")):
    """Nodes with two workers each, whose chronicles are files of their own."""
    write_worker(scratch, body)
    script = job.muster.script("start.sh", f"exec {shlex.quote(sys.executable)} -u worker.py\n")
    for name in names:
        words = ["--nproc-per-node", 2, "--chronicle", f"events.{name}", *options]
        job.start(name, *words, script=script, env={"MUSTER_RUNTIME_DIR": scratch / "announced"})
    return job


def finish(job, scratch):
    open_gates(scratch)
    ends = job.finish()
    assert {end.status for end in ends.values()} == {0}, job.tell()
    return ends


def entries_of_all(scratch, kind):
    """Of the nodes that have any, by their names."""
    found = {path.name.rpartition(".")[2]: entries_of(path, kind) for path in scratch.glob("events.*")}
    return {name: entries for name, entries in found.items() if entries}


def test_of_several_nodes_the_one_with_the_odd_rank_restarts_the_job(make_job, scratch):
    job = make_job(3, restarts=1)
    body = "if rank == 3:\n    signal.pause()\nall_reduce()"
    start_nodes(job, scratch, body, "--hang-after", 2, "--hang-action", "restart")
    ends = job.finish()
    assert {end.status for end in ends.values()} == {0}, job.tell()
    ((name, (hang,)),) = entries_of_all(scratch, "hang").items()
    ((failed_on, (failed,)),) = entries_of_all(scratch, "worker_failed").items()
    assert (hang["rank"], failed["rank"], failed_on, failed["text"]) == (3, 3, name, hang["what"])
    assert "ranks 0-2,4-5 " in hang["what"] and ": rank 3 " in hang["what"]
    restarts = entries_of_all(scratch, "restart")
    assert {node: [entry["cause"] for entry in restarts[node]] for node in ends} == {node: ["hang"] for node in ends}


def test_as_long_as_one_node_takes_steps_the_job_does_not_hang(make_job, scratch):
    job = make_job(3, restarts=0)
    body = 'if os.environ["NODE"] == "node3":\n    while not os.path.exists("end"):\n        take_steps(1)\nelse:\n    all_reduce()'
    start_nodes(job, scratch, body, "--hang-after", 2, "--hang-action", "restart", names=("node1", "node2"))
    start_nodes(job, scratch, body, "--hang-after", 600, "--hang-action", "restart", names=("node3",))
    stands = "no worker of this node has taken a step for "
    wait_until(lambda: sum(stands in node.err() for node in job.started) == 2, "two nodes that stand still")
    open_gates(scratch)  # whoever would end the job has had the time of an answer
    wait_until(lambda: entries_of_all(scratch, "progress"), "news")
    (scratch / "end").touch()
    finish(job, scratch)
    assert not entries_of_all(scratch, "hang") and not entries_of_all(scratch, "worker_failed"), job.tell()


def test_fixed_nodes_find_a_hang_too(muster, scratch):
    write_worker(scratch, "if rank == 3:\n    signal.pause()\nall_reduce()")
    port = free_port()
    options = ["--nnodes", 2, "--nproc-per-node", 2, "--max-restarts", 1, "--master-addr", "127.0.0.1", "--master-port", port]
    nodes = []
    for rank in 0, 1:
        words = ["run", *options, "--node-rank", rank, "--local-addr", f"node{rank}", "--chronicle", f"events.node{rank}"]
        words += ["--hang-after", 2, "--hang-action", "restart", "worker.py"]
        env = {"PYTHON_EXEC": sys.executable, "MUSTER_RUNTIME_DIR": scratch / "announced"}
        nodes.append(muster.start(list(map(str, words)), env=env, cwd=scratch))
    for node in nodes:
        ended = node.finish()
        assert ended.status == 0, ended
    ((name, (hang,)),) = entries_of_all(scratch, "hang").items()
    assert (name, hang["rank"]) == ("node1", 3) and "ranks 0-2 " in hang["what"], hang
    assert len(entries_of_all(scratch, "restart")) == 2


def test_where_no_agent_hosts_the_store_a_node_tells_of_itself_and_ends_nothing(make_job, muster, scratch):
    port = free_port()
    store = muster.start(["store", "serve", "--port", str(port)])
    job = make_job(2, port=port, restarts=0, conf=["is_host=false"])
    try:
        start_nodes(job, scratch, "all_reduce()", "--hang-after", 2, "--hang-action", "restart", names=("node1", "node2"))
        alone = "hang: of this node no rank has taken a step for "
        wait_until(lambda: all(alone in node.err() for node in job.started), "both nodes", 60)
        finish(job, scratch)
        assert not entries_of_all(scratch, "hang") and not entries_of_all(scratch, "worker_failed")
    finally:
        store.signal(signal.SIGTERM)
        store.finish()

# SPDX-License-Identifier: BSD-3-Clause
"""What an operator may set about restarts: the check of nodes, attempts that get no further, pauses between them."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from support.binary import ROOT
from support.json_schema import check
from support.nodes import wait_until
from support.ports import free_port

UNFIT = 76


@pytest.fixture
def play(muster, scratch):
    """One node alone, whose worker is a shell script; `entries` are its chronicle."""

    def play(body, *options, restarts=5, env=None):
        script = muster.script("worker.sh", body)
        words = ["run", "--standalone", "--max-restarts", restarts, "--chronicle", scratch / "events", *options]
        ran = muster.run([*map(str, words), "--no-python", "sh", script], env=env or {})
        path = scratch / "events"
        ran.entries = [check(json.loads(line), "event") for line in path.read_text().splitlines()] if path.exists() else []
        return ran

    return play


def reasons(ran, kind):
    return [entry.get("reason") for entry in ran.entries if entry["kind"] == kind]


# The check of a node.


def test_a_node_that_passes_its_check_runs(play, scratch):
    ran = play("echo ran >>runs", "--node-check", f"echo well; pwd >{scratch}/checked")
    assert ran.status == 0, ran
    assert (scratch / "runs").read_text() == "ran\n" and (scratch / "checked").exists()
    assert "excluded" not in [entry["kind"] for entry in ran.entries]


def test_a_node_that_fails_its_check_starts_no_worker_and_says_why(play, scratch):
    ran = play("echo ran >>runs", "--node-check", "echo much; echo 'GPU 3 is broken'; exit 4")
    assert ran.status == UNFIT, ran
    assert "the check of this node has failed: GPU 3 is broken (exit status 4)" in ran.err
    assert not (scratch / "runs").exists()
    assert reasons(ran, "excluded") == ["the check of this node has failed: GPU 3 is broken (exit status 4)"]
    assert reasons(ran, "ended") == reasons(ran, "excluded")


@pytest.mark.parametrize(
    "command, words",
    [
        ("echo slow; sleep 60", "slow (it has not ended within 0.3 s (--node-check-timeout))"),
        ("sleep 60 & exec sleep 60", "it has not ended within 0.3 s"),
        ("echo tired; kill -9 $$", "tired (exit status 137)"),
        ("no-such-program-here", "not found (exit status 127)"),
        (r"printf 'a\033[31mred\007\nlast\000line\n\n'; exit 1", "last?line (exit status 1)"),
        ("head -c 300000 /dev/zero | tr '\\0' x; exit 1", "xxx (exit status 1)"),
        ("exit 3", "has failed: exit status 3"),
    ],
)
def test_checks_that_end_badly(play, command, words):
    ran = play("true", "--node-check", command, "--node-check-timeout", "0.3" if "sleep" in command else "20")
    assert ran.status == UNFIT and words in ran.err, ran
    assert "\033[31m" not in ran.err and "\007" not in ran.err


def test_what_a_check_leaves_behind_is_ended(play, scratch):
    ran = play("true", "--node-check", f"sleep 300 & echo $! >{scratch}/left; exit 0")
    assert ran.status == 0, ran
    left = int((scratch / "left").read_text())
    wait_until(lambda: not os.path.exists(f"/proc/{left}"), "the end of what the check had left")


def test_after_a_failure_here_the_node_is_checked_before_its_next_start(play, scratch):
    ran = play("echo ran >>runs; exit 7", "--node-check", f"test ! -e {scratch}/runs || ! echo 'the device is gone'")
    assert ran.status == UNFIT, ran
    assert (scratch / "runs").read_text() == "ran\n"
    assert "the check of this node has failed: the device is gone (exit status 1)" in ran.err
    assert "exitcode  : 7" in ran.err  # and the worker's failure is reported, too


def test_a_check_that_passes_after_a_failure_lets_the_workers_start_again(play, scratch):
    ran = play("echo ran >>runs; test $TORCHELASTIC_RESTART_COUNT = 1", "--node-check", f"echo checked >>{scratch}/checks")
    assert ran.status == 0, ran
    assert (scratch / "runs").read_text() == "ran\n" * 2 and (scratch / "checks").read_text() == "checked\n" * 2


def test_a_signal_ends_a_node_that_is_being_checked(muster, scratch):
    words = ["run", "--standalone", "--node-check", f"echo $$ >{scratch}/pid; exec sleep 300", "--no-python", "true"]
    node = muster.start(words)
    pid = wait_until(lambda: (scratch / "pid").exists() and (scratch / "pid").read_text(), "the check")
    node.signal(signal.SIGTERM)
    assert node.finish().status == 1
    wait_until(lambda: not os.path.exists(f"/proc/{int(pid)}"), "the end of the check")


def test_the_others_go_on_without_a_node_that_is_unfit(make_job, scratch, muster):
    """node2 is well at first; after a failure there its check fails, and the spare takes its place."""
    place = scratch / "announced"
    place.mkdir(mode=0o700)
    job = make_job("2:2", "--node-check", f"test ! -e {scratch}/broken.$NODE || ! echo 'GPU 1 has fallen off the bus'")
    env = {"MUSTER_RUNTIME_DIR": place}
    job.start_host("node1", env=env)
    broken = job.start("node2", env=env)
    world = job.wait_for_world("node1", "node2")
    spare = job.start("node3", env=env)
    spare.wait_for_log("a spare")
    (scratch / "broken.node2").touch()
    world.of("node2").end(3)
    end = broken.finish()
    assert end.status == UNFIT and "GPU 1 has fallen off the bus (exit status 1)" in end.err, end
    world = job.wait_for_world("node1", "node3")
    words = ["--rdzv-endpoint", job.endpoint, "--rdzv-id", "job"]
    elsewhere = {"MUSTER_RUNTIME_DIR": scratch / "nobody"}

    def find():
        told = muster.run(["status", "--json", *words], env=elsewhere)
        return told if told.status == 0 and "excluded" in told.out else None

    told = wait_until(find, "the status")
    status = check(json.loads(told.out), "status")
    assert status["job"]["excluded"]["node"] == "node2" and status["job"]["excluded"]["count"] == 1
    shown = muster.run(["status", *words], env=elsewhere).out
    assert "a node stays out: node2, since" in shown and "GPU 1 has fallen off the bus" in shown
    world.end()
    assert {name: node.status for name, node in job.finish().items()} == {"node1": 0, "node2": UNFIT, "node3": 0}


def test_the_other_fixed_nodes_cannot_go_on_without_one_that_is_unfit(muster, scratch):
    port = free_port()

    def node(rank):
        words = ["run", "--nnodes", 2, "--node-rank", rank, "--master-addr", "127.0.0.1", "--master-port", port]
        words += ["--max-restarts", 3, "--node-check", f"test ! -e {scratch}/ran.{rank} || ! echo broken"]
        body = f"touch ran.1; sleep 1; exit {9 if rank else 0}" if rank else "sleep 60"
        return muster.start([*map(str, words), "--no-python", "sh", "-c", body])

    one, two = node(0), node(1)
    assert two.finish().status == UNFIT
    assert one.finish().status == 1


@pytest.mark.parametrize(
    "options, words",
    [
        (["--node-check-timeout", "0"], "invalid value 0: give seconds above 0"),
        (["--node-check-timeout", "-1"], "give seconds above 0"),
        (["--node-check-timeout", "nan"], "--node-check-timeout"),
        (["--no-progress-restarts", "-1"], "invalid value -1: give a number of attempts from 1 to 1000000000, or 0 for no limit"),
        (["--restart-window", "-1"], "invalid value -1: give seconds above 0, or 0 for no window"),
        (
            ["--restart-window", "60", "--max-restarts", "101"],
            "counts no more than 100 restarts, and --max-restarts is 101; give fewer, or leave the window out",
        ),
        (["--no-progress-restarts", "1.5"], "--no-progress-restarts"),
        (["--restart-backoff", "-0.1"], "invalid value -0.1: give seconds from 0 to 3600"),
        (["--restart-backoff", "3601"], "invalid value 3601: give seconds from 0 to 3600"),
        (
            ["--restart-backoff", "31", "--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:1", "--rdzv-conf", "join_timeout=60"],
            "invalid value 31: give seconds from 0 to 30, half of the time for which nodes wait for each other",
        ),
    ],
)
def test_values_that_cannot_be(muster, options, words):
    refused = muster.run(["run", *options, "--no-python", "true"])
    assert refused.status == 2 and words in refused.err, refused


def test_the_example_says_which_gpu_is_broken(scratch):
    """With a stand-in for nvidia-smi: real ones have no broken GPU to offer."""
    example = ROOT / "examples" / "node_check" / "check_gpus.sh"

    def ask(answer, expected="2", status=0):
        smi = scratch / "smi"
        smi.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\nexit {status}\n")
        smi.chmod(0o755)
        return subprocess.run(
            ["sh", example, expected], env={**os.environ, "NVIDIA_SMI": str(smi)}, capture_output=True, text=True, check=False
        )

    well = "0, 00000000:19:00.0, 0, No, None\n1, 00000000:3B:00.0, [N/A], [N/A], None"
    assert (ask(well).returncode, ask(well).stdout) == (0, "2 GPUs are well\n")
    few = ask(well, "8")
    assert (few.returncode, few.stdout) == (1, "2 GPUs are there, and 8 are expected\n")
    for row, words in [
        ("1, 00000000:3B:00.0, 2, No, None", "GPU 1 (00000000:3B:00.0) has had 2 uncorrected memory errors\n"),
        ("1, 00000000:3B:00.0, 0, Yes, None", "GPU 1 (00000000:3B:00.0) has failed to remap a bad row of its memory\n"),
        ("1, 00000000:3B:00.0, 0, No, Reset", "GPU 1 (00000000:3B:00.0) needs: Reset\n"),
    ]:
        broken = ask("0, 00000000:19:00.0, 0, No, None\n" + row)
        assert (broken.returncode, broken.stdout) == (1, words)
    away = ask("Unable to determine the device handle for GPU1: Unknown Error", status=15)
    assert away.returncode == 1 and "Unknown Error" in away.stdout


# Attempts that get no further.


def test_the_job_ends_with_the_first_cause_of_attempts_that_get_no_further(play, scratch):
    ran = play('echo ran >>runs; exit $((TORCHELASTIC_RESTART_COUNT + 11))', "--no-progress-restarts", 3, "--exit-code", "worker")
    assert (scratch / "runs").read_text() == "ran\n" * 3, ran
    assert "3 attempts in a row have got no further (--no-progress-restarts)" in ran.err
    assert "exit code 11" in ran.err or "exitcode  : 11" in ran.err, ran
    assert ran.status == 11, ran
    assert "have got no further" in reasons(ran, "ended")[0]


STEPS = f"""
import os, sys
sys.path.insert(0, {str(ROOT / "python")!r})
import muster.progress
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
"""


@pytest.fixture
def train(muster, scratch):
    def train(body, *options, restarts=8):
        program = scratch / "program.py"
        program.write_text(STEPS + textwrap.dedent(body))
        words = ["run", "--standalone", "--max-restarts", restarts, *options, program]
        ran = muster.run([*map(str, words)], env={"PYTHON_EXEC": sys.executable, "LOGLEVEL": "INFO"})
        ran.attempts = len((scratch / "runs").read_text().splitlines())
        return ran

    return train


def test_an_attempt_with_a_new_step_begins_the_row_anew(train):
    ran = train(
        """
        with open("runs", "a") as runs:
            runs.write("ran\\n")
        # Steps: 1 to 10; nothing new; 11; nothing new, twice in a row.
        for n in ([*range(1, 11)], [5, 6], [11], [11], [8])[min(attempt, 4)]:
            muster.progress.step(n)
        sys.exit(attempt + 20)
        """,
        "--no-progress-restarts", 2, "--exit-code", "worker",
    )
    assert ran.attempts == 5, ran
    assert ran.status == 23, ran  # that of the fourth attempt: the first of the two


def test_without_the_option_restarts_alone_count(play, scratch):
    ran = play("echo ran >>runs; exit 1", restarts=4)
    assert ran.status == 1 and (scratch / "runs").read_text() == "ran\n" * 5


def test_attempts_that_get_no_further_are_apart(play, scratch):
    ran = play("date +%s%N >>runs; exit 1", "--restart-backoff", "0.2", restarts=3, env={"LOGLEVEL": "INFO"})
    times = [int(line) / 1e9 for line in (scratch / "runs").read_text().split()]
    pauses = [later - earlier for earlier, later in zip(times, times[1:])]
    assert len(times) == 4
    assert pauses[0] >= 0.09 and pauses[1] >= 0.19 and pauses[2] >= 0.19, pauses
    assert "2 attempts in a row have got no further: they start after a pause of 0.2 s (--restart-backoff)" in ran.err


def test_the_nodes_of_a_job_wait_for_the_one_that_pauses_and_end_with_the_first_cause(make_job):
    job = make_job(2, "--no-progress-restarts", 3, "--restart-backoff", "0.4", restarts=9)
    job.start_host("node1")
    job.start("node2")
    for name, status in (("node2", 31), ("node1", 32), ("node2", 33)):
        job.wait_for_world("node1", "node2").of(name).end(status)
    ends = job.finish()
    assert [ends[name].status for name in ("node1", "node2")] == [1, 1], job.tell()
    assert "3 attempts in a row have got no further" in ends["node2"].err
    assert "exit code 31" in ends["node1"].err + ends["node2"].err


# A window of time.


def test_restarts_that_are_older_than_the_window_are_given_back(play, scratch):
    """Two restarts within 0.6 s are allowed: attempts that last 0.4 s never use them up, and short ones do."""
    ran = play("echo ran >>runs; test $(wc -l <runs) -gt 6 || sleep 0.4; exit 1", "--restart-window", "0.6", restarts=2)
    runs = len((scratch / "runs").read_text().splitlines())
    assert ran.status == 1 and runs >= 7, ran
    assert "no restart is left of 2 within the time of --restart-window (--max-restarts)" in ran.err
    used = [(entry["used"], entry["max"]) for entry in ran.entries if entry["kind"] == "restart"]
    assert len(used) == runs - 1 and all(1 <= count <= 2 and most == 2 for count, most in used), used


def test_all_nodes_count_alike_also_one_that_came_later(make_job):
    job = make_job("2:3", "--restart-window", 600, restarts=2)
    job.start_host("node1")
    job.start("node2")
    job.wait_for_world("node1", "node2").of("node2").end(3)
    job.wait_for_world("node1", "node2").of("node1").end(4)
    job.wait_for_world("node1", "node2")
    late = job.start("node3")
    world = job.wait_for_world("node1", "node2", "node3")
    assert world.restarts == {2}
    world.of("node3").end(5)
    assert late.finish().status == 1
    assert "no restart is left of 2 within the time of --restart-window" in late.err()
    job.finish()


def test_the_record_tells_how_old_restarts_are(make_job, muster):
    job = make_job("2:2", "--restart-window", 600, restarts=5)
    job.start_host("node1")
    job.start("node2")
    job.wait_for_world("node1", "node2").of("node2").end(3)
    world = job.wait_for_world("node1", "node2")
    job.started[0].wait_for_log("restarts 1 recent 1 charged")
    world.end()
    assert job.succeeds()


def test_the_window_holds_for_fixed_nodes(muster, scratch):
    port = free_port()
    script = muster.script("short.sh", "echo ran >>runs.$GROUP_RANK; sleep 0.3; test $GROUP_RANK = 0 && sleep 60; exit 6")
    words = ["run", "--nnodes", 2, "--master-addr", "127.0.0.1", "--master-port", port, "--max-restarts", 1, "--restart-window"]
    words += ["0.2", "--no-progress-restarts", 4]
    nodes = [muster.start([*map(str, words), "--node-rank", rank, "--no-python", "sh", script]) for rank in ("0", "1")]
    ends = [node.finish() for node in nodes]
    assert [end.status for end in ends] == [1, 1]
    assert (scratch / "runs.1").read_text().count("ran") == 4, ends[1]


def test_the_window_holds_for_nodes_that_delegate(make_job):
    job = make_job("2:2", "--restart-window", "0.2", restarts=1, conf=["delegation=true"])
    job.start_host("node1")
    job.start("node2")
    for _ in range(3):
        world = job.wait_for_world("node1", "node2")
        time.sleep(0.3)
        world.of("node2").end(3)
    world = job.wait_for_world("node1", "node2")
    assert world.restarts == {3}
    world.end()
    assert job.succeeds()


# Nodes that fail first.

EXCLUDED = 75


@pytest.mark.parametrize("conf", [[], ["delegation=true"]])
def test_a_node_whose_workers_fail_first_too_often_leaves_for_a_spare(make_job, muster, scratch, conf):
    job = make_job("2:2", "--exclude-after", 2, restarts=9, conf=conf)
    job.start_host("node1")
    bad = job.start("node2")
    job.wait_for_world("node1", "node2").of("node2").end(3)
    job.wait_for_world("node1", "node2").of("node1").end(4)
    world = job.wait_for_world("node1", "node2")
    job.start("node3").wait_for_log("a spare")
    world.of("node2").end(5)
    end = bad.finish()
    assert end.status == EXCLUDED, job.tell()
    assert "the workers of this node have failed first 2 times, before all others" in end.err
    world = job.wait_for_world("node1", "node3")
    assert world.restarts == {3}
    words = ["--rdzv-endpoint", job.endpoint, "--rdzv-id", "job"]
    elsewhere = {"MUSTER_RUNTIME_DIR": scratch / "nobody"}
    told = wait_until(lambda: "stays out" in (told := muster.run(["status", *words], env=elsewhere).out) and told, "the status")
    assert "a node stays out: node2, since" in told and "have failed first 2 times" in told
    world.end()
    assert {name: node.status for name, node in job.finish().items()} == {"node1": 0, "node2": EXCLUDED, "node3": 0}


def test_a_node_that_is_needed_stays_and_the_status_says_why(make_job, muster, scratch):
    job = make_job("2:2", "--exclude-after", 1, restarts=9)
    job.start_host("node1")
    job.start("node2")
    job.wait_for_world("node1", "node2").of("node2").end(3)
    world = job.wait_for_world("node1", "node2")
    words = ["--rdzv-endpoint", job.endpoint, "--rdzv-id", "job"]
    elsewhere = {"MUSTER_RUNTIME_DIR": scratch / "nobody"}
    why = "node node2 stays, though its workers failed first 1 time: there is no spare, and the others are too few"
    def find():
        status = check(json.loads(muster.run(["status", "--json", *words], env=elsewhere).out), "status")
        return status if "kept" in status["job"] else None

    status = wait_until(find, "the status")
    assert status["job"]["kept"]["node"] == "node2" and "excluded" not in status["job"]
    assert why in muster.run(["status", *words], env=elsewhere).out
    world.of("node1").end(4)
    world = job.wait_for_world("node1", "node2")  # the host of the store stays, too
    job.started[0].wait_for_log("stays, though its workers failed first 1 time: it hosts the job's store")
    world.end()
    assert job.succeeds()


def test_where_enough_nodes_are_left_the_others_go_on_with_fewer(make_job, scratch):
    register = scratch / "register"
    register.mkdir(mode=0o700)
    job = make_job("2:3", "--exclude-after", 1, "--rdzv-backend", "dir", path=register, restarts=9)
    job.start("node1").wait_for_log("this node hosts the store")
    job.start("node2")
    job.start("node3")
    world = job.wait_for_world("node1", "node2", "node3")
    world.of("node1").end(3)  # the host of the store hands it over
    world = job.wait_for_world("node2", "node3")
    assert job.started[0].finish().status == EXCLUDED
    world.of("node3").end(4)
    world = job.wait_for_world("node2", "node3")
    world.end()
    assert {name: node.status for name, node in job.finish().items()} == {"node1": EXCLUDED, "node2": 0, "node3": 0}


def test_fixed_nodes_are_told_that_none_can_leave(muster):
    ran = muster.run(["run", "--standalone", "--exclude-after", "2", "--no-python", "true"])
    assert ran.status == 0 and "--exclude-after has no effect" in ran.err, ran

# SPDX-License-Identifier: BSD-3-Clause
"""Standby workers of programs that are not Python's: muster/standby.h under the real agent, with real kills."""

import os
import pathlib
import re
import shutil
import signal
import time

import pytest

from support.binary import ROOT
from support.leaks import wait_until_gone
from support.standby_jobs import pids_below

BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build")).resolve()
WORKER = BUILD / "tests/probes/standby_worker"
TRAIN = BUILD / "examples/train"
AFTER = 0.2  # --standby-after


class Job:
    """Two workers of one program, and what they have told about themselves."""

    def __init__(self, muster, scratch, *command, restarts=3, **environment):
        self.scratch = scratch
        self.running = muster.start(
            ["run", "--standalone", "--standby", "on", "--standby-after", AFTER, "--nproc-per-node", 2,
             "--max-restarts", restarts, "--no-python", *command],
            env={"LOGLEVEL": "INFO", **environment},
        )  # fmt: skip

    def story(self):
        path = self.scratch / "story"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [dict(word.split("=", 1) for word in line.split()) for line in lines if line.endswith("\n")]

    def attempt(self, number):
        """What the two workers of an attempt told, by rank; waits for them."""
        mine = []

        def have_told():
            mine[:] = [line for line in self.story() if line["attempt"] == str(number)]
            return len(mine) == 2

        self.running.wait_until(have_told, f"attempt {number}", timeout=60)
        return sorted(mine, key=lambda line: line["rank"])

    def wait_until_ready(self, times=1):
        self.wait_for_log("standby workers ready: 2 of 2", times)

    def wait_for_log(self, words, times=1):
        self.running.wait_until(lambda: self.running.err().count(words) >= times, words, timeout=60)

    def spares(self):
        known = {int(line["pid"]) for line in self.story()}
        return sorted(pids_below(self.running.pid) - known)

    def end(self, attempt):
        (self.scratch / f"end.{attempt}").touch()
        return self.running.finish()


def kill(line):
    os.kill(int(line["pid"]), signal.SIGKILL)


def test_a_standby_program_becomes_the_worker(muster, scratch):
    job = Job(muster, scratch, WORKER)
    first = job.attempt(0)
    job.wait_until_ready()
    spares = job.spares()
    kill(first[0])
    second = job.attempt(1)
    assert sorted(int(line["pid"]) for line in second) == spares
    end = job.end(1)
    assert end.status == 0, end
    assert [line["waited"] for line in first + second] == ["0", "0", "1", "1"]
    assert {(line["descriptors"], line["standby"]) for line in first + second} == {("4", "unset")}  # and the record, for its steps
    # Once from each process, at the time when it is a worker.
    assert end.out.count("initialised\n") == 4 and end.out.count("of attempt 1\n") == 2, end


def test_a_large_environment_comes_through_the_gate(muster, scratch):
    job = Job(muster, scratch, WORKER, LARGE="x" * 100_000, **{f"LARGE{number}": "x" * 50_000 for number in range(4)})
    first = job.attempt(0)
    job.wait_until_ready()
    kill(first[1])
    assert [(line["waited"], line["large"]) for line in job.attempt(1)] == [("1", "100000")] * 2
    assert job.end(1).status == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_standby_program_that_fails_is_replaced_by_a_cold_start(muster, scratch, number):
    job = Job(muster, scratch, WORKER)
    first = job.attempt(0)
    job.wait_until_ready()
    os.kill(job.spares()[0], number)
    kill(first[0])
    assert sorted(line["waited"] for line in job.attempt(1)) == ["0", "1"]
    assert job.end(1).status == 0


def test_a_standby_program_that_runs_slowly_is_waited_for(muster, scratch):
    job = Job(muster, scratch, WORKER)
    first = job.attempt(0)
    job.wait_until_ready()
    os.kill(job.spares()[0], signal.SIGUSR1)
    kill(first[0])
    job.wait_for_log("takes long to become the worker; it runs, and is waited for")
    (scratch / "hurry").touch()
    assert [line["waited"] for line in job.attempt(1)] == ["1", "1"]
    end = job.end(1)
    assert end.status == 0 and "does not answer" not in end.err, end


def test_a_standby_program_that_runs_for_ever_is_replaced_by_a_cold_start(muster, scratch):
    job = Job(muster, scratch, WORKER)
    first = job.attempt(0)
    job.wait_until_ready()
    os.kill(job.spares()[0], signal.SIGUSR1)
    kill(first[0])
    assert sorted(line["waited"] for line in job.attempt(1)) == ["0", "1"]
    end = job.end(1)
    assert end.status == 0 and end.err.count("does not answer; the worker is started anew") == 1, end


def test_a_program_that_prints_too_much_has_no_standby_workers(muster, scratch):
    job = Job(muster, scratch, WORKER, "loud")
    first = job.attempt(0)
    job.wait_for_log("the program has printed more than 65536 bytes before the gate")
    kill(first[0])
    assert [line["waited"] for line in job.attempt(1)] == ["0", "0"]
    assert job.spares() == []
    end = job.end(1)
    assert end.status == 0 and "xxx" not in end.out, end


@pytest.mark.parametrize("command", [[WORKER, "never"], ["sh", "-c", f"{WORKER} & wait"]], ids=["never", "wrapper"])
def test_a_program_that_does_not_come_to_the_gate_runs_as_ever(muster, scratch, command):
    """A wrapper that forks is not the process that the agent has started: there the gate is of no use."""
    job = Job(muster, scratch, *command)
    first = job.attempt(0)
    time.sleep(5 * AFTER)  # in which standby workers would have come
    kill(first[0]) if command[0] == WORKER else os.kill(parent_of(first[0]), signal.SIGKILL)
    assert [line["waited"] for line in job.attempt(1)] == ["0", "0"]
    end = job.end(1)
    assert end.status == 0 and "standby workers ready" not in end.err, end


def parent_of(line):
    return int(pathlib.Path(f"/proc/{line['pid']}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_killed_agent_leaves_no_standby_program(muster, scratch):
    job = Job(muster, scratch, WORKER)
    job.attempt(0)
    job.wait_until_ready()
    job.running.signal(signal.SIGKILL)
    job.running.finish()
    assert wait_until_gone(scratch) == []


def test_the_example_trains_to_the_same_bits_through_kills(muster, scratch):
    """The job has no end of its own: how fast machines are must not matter."""
    shutil.copy(ROOT / "examples/data/energy.csv", scratch)
    job = Job(muster, scratch, TRAIN, "energy.csv", "checkpoint", 10**9)
    for attempt in range(3):
        job.wait_until_ready(attempt + 1)
        kill({"pid": re.search(rf"pid (\d+), attempt {attempt},", job.running.out()).group(1)})
        job.wait_for_log("started from standby: 2 of 2 workers", attempt + 1)
    job.running.wait_until(lambda: job.running.out().count("was a standby worker") >= 6, "the last start")
    job.running.signal(signal.SIGTERM)
    said = job.running.finish().out
    assert said.count("was a standby worker") == 6, said
    last = max(int(step) for step in re.findall(r"(?:from step|step) (\d+)", said)) + 400
    losses = []
    for checkpoint in ("checkpoint", "undisturbed"):
        command = ["run", "--nproc-per-node", 2, "--no-python", TRAIN, "energy.csv", checkpoint, last]
        losses += re.findall(r"final loss (\S+)", muster.run(command, timeout=120).out)
    assert len(losses) == 2 and len(set(losses)) == 1

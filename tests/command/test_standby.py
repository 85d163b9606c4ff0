# SPDX-License-Identifier: BSD-3-Clause
"""Standby workers, as real processes: who takes a worker's place, with what, and what is left behind."""

import json
import os
import signal
import sys
import time

import pytest

# Each worker notes what it is in a line of its own, and lives until it is told to end.
WORKER = """
import json, os, sys, time
import decimal, xml.dom.minidom
environment = os.environ
with open("story", "a") as file:
    file.write(json.dumps({
        "attempt": int(environment["TORCHELASTIC_RESTART_COUNT"]), "rank": int(environment["RANK"]), "pid": os.getpid(),
        "parent": os.getppid(), "arguments": sys.argv, "directory": os.getcwd(), "session": os.getsid(0),
        "names": sorted(environment), "port": environment["MASTER_PORT"], "error": environment["TORCHELASTIC_ERROR_FILE"],
        "input": os.readlink("/proc/self/fd/0"), "score": open("/proc/self/oom_score_adj").read().strip(),
        "born": os.stat("/proc/self").st_ctime,
    }) + "\\n")
print("attempt", environment["TORCHELASTIC_RESTART_COUNT"], "rank", environment["RANK"], flush=True)
while not os.path.exists("end." + environment["TORCHELASTIC_RESTART_COUNT"]):
    time.sleep(0.01)
"""

AFTER = 0.3  # --standby-after


class Job:
    """A job with standby workers, and what its workers have told."""

    def __init__(self, muster, scratch, *options, workers=2, restarts=3, script=WORKER, standby="on", **environment):
        self.scratch, self.workers = scratch, workers
        (scratch / "worker.py").write_text(script)
        python = environment.pop("PYTHON_EXEC", sys.executable)
        self.running = muster.start(
            ["run", "--standalone", "--standby", standby, "--standby-after", AFTER, "--nproc-per-node", workers,
             "--max-restarts", restarts, *options, "worker.py", "one", "two"],
            env={"PYTHON_EXEC": python, "LOGLEVEL": "INFO", **environment},
        )

    def story(self, attempt):
        path = self.scratch / "story"
        lines = path.read_text().splitlines() if path.exists() else []
        told = [json.loads(line) for line in lines]
        return sorted((line for line in told if line["attempt"] == attempt), key=lambda line: line["rank"])

    def wait_for(self, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not what():
            assert self.running.process.poll() is None, self.running.err()
            assert time.monotonic() < deadline, self.running.err()
            time.sleep(0.01)

    def attempt(self, number):
        """The workers of an attempt, once all run."""
        self.wait_for(lambda: len(self.story(number)) == self.workers)
        return self.story(number)

    def said(self, words):
        return self.running.err().count(words)

    def wait_until_ready(self, times=1):
        self.wait_for(lambda: self.said("standby workers ready") >= times)

    def spares(self):
        """Pids of the agent's children that are neither workers nor gone."""
        known = {line["pid"] for attempt in range(100) for line in self.story(attempt)} if self.workers else set()
        with open(f"/proc/{self.running.pid}/task/{self.running.pid}/children") as file:
            children = {int(pid) for pid in file.read().split()}
        return sorted(children - known)

    def end(self, attempt):
        (self.scratch / f"end.{attempt}").write_text("")
        return self.running.finish()


def test_a_standby_worker_is_the_worker_in_everything(muster, scratch):
    job = Job(muster, scratch)
    first = job.attempt(0)
    job.wait_until_ready()
    spares = job.spares()
    assert len(spares) == 2
    os.kill(first[0]["pid"], signal.SIGKILL)
    second = job.attempt(1)
    assert sorted(line["pid"] for line in second) == spares
    assert job.said("started from standby: 2 of 2 workers") == 1
    for before, after in zip(first, second):
        same = ("rank", "arguments", "directory", "names", "input", "score", "parent")
        assert {name: before[name] for name in same} == {name: after[name] for name in same}
        assert after["session"] == after["pid"]
        assert f"/attempt_1/{after['rank']}/" in after["error"]
        assert not any(name.startswith(("MUSTER_STANDBY", "PYTHONPATH")) for name in after["names"])
    end = job.end(1)
    assert end.status == 0, end
    assert sorted(end.out.splitlines()) == [f"attempt {attempt} rank {rank}" for attempt in (0, 1) for rank in (0, 1)]

# SPDX-License-Identifier: BSD-3-Clause
"""Jobs with standby workers whose workers tell what they are, and who is among the agent's processes."""

import json
import os
import signal
import sys
import time

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
line = "attempt %s rank %s\\n" % (environment["TORCHELASTIC_RESTART_COUNT"], environment["RANK"])
print(line, end="", flush=True)  # in one piece
while not os.path.exists("end." + environment["TORCHELASTIC_RESTART_COUNT"]):
    time.sleep(0.01)
"""

AFTER = 0.3  # --standby-after
PARENT = "muster-parent"  # as it calls itself when it has imported everything


def read_line(line):
    """A worker that was killed while it wrote has left a part of a line, behind which the next one went on."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return json.loads(line[line.rindex('{"attempt"') :])


def read_story(scratch, attempt):
    """What the workers of an attempt have told so far, by rank. The last line may not be whole yet."""
    path = scratch / "story"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    told = [read_line(line) for line in lines if line.endswith("\n")]
    return sorted((line for line in told if line["attempt"] == attempt), key=lambda line: line["rank"])


class Job:
    """A job with standby workers, and what its workers have told."""

    def __init__(self, muster, scratch, *options, workers=2, restarts=3, script=WORKER, standby="on", popen=None,
                 before=(), **environment):
        self.scratch, self.workers = scratch, workers
        (scratch / "worker.py").write_text(script)
        python = environment.pop("PYTHON_EXEC", sys.executable)
        words = [*before, muster.binary][1:]  # a program that runs the agent, if there is one
        self.running = muster.start(
            [*words, "run", "--standalone", "--standby", standby, "--standby-after", AFTER, "--nproc-per-node", workers,
             "--max-restarts", restarts, *options, "worker.py", "one", "two"],
            env={"PYTHON_EXEC": python, "LOGLEVEL": "INFO", **environment},
            program=before[0] if before else None, **(popen or {}),
        )

    def story(self, attempt):
        return read_story(self.scratch, attempt)

    def wait_for(self, what, seconds=100):
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
        """Pids of the agent's children that are neither workers nor gone, nor the parent of standby workers."""
        known = {line["pid"] for attempt in range(100) for line in self.story(attempt)} if self.workers else set()
        return sorted(pid for pid in pids_below(self.running.pid) - known if name_of(pid) != PARENT)

    def parents(self):
        """Pids of processes that have imported everything and fork standby workers."""
        return [pid for pid in pids_below(self.running.pid) if name_of(pid) == PARENT]

    def end(self, attempt):
        (self.scratch / f"end.{attempt}").write_text("")
        return self.running.finish()


def kill(pid, number=signal.SIGKILL):
    os.kill(pid, number)


def ready_job(muster, scratch, *options, **keywords):
    """A job whose standby workers are ready, with its first workers and the pids of the standby workers."""
    job = Job(muster, scratch, *options, **keywords)
    first = job.attempt(0)
    job.wait_until_ready()
    job.wait_for(lambda: len(job.spares()) == job.workers)  # what forks one may be about to end
    spares = job.spares()
    return job, first, spares


def pids_below(pid):
    """The children of an agent without its witness, which is there as soon as workers have run for a while."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return {int(child) for child in file.read().split() if name_of(child) != "muster-witness"}
    except (FileNotFoundError, ProcessLookupError):  # the latter when it goes while it is read
        return set()


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None


def exists(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter when it goes while it is read
        return False


# A module that a standby worker imports as long as there is the file `slow`, and says so. Workers do not wait.
WAITING = """
import os, time
if "muster-standby" in os.readlink("/proc/self/fd/1"):
    os.mknod("imports.%d" % os.getpid())  # Python tells nobody of that.
    while os.path.exists("slow"):
        time.sleep(0.01)
"""


def importing(scratch):
    """Pids of the standby workers that have begun to import it."""
    return sorted(int(path.suffix[1:]) for path in scratch.glob("imports.*"))

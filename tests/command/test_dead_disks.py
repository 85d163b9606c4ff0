# SPDX-License-Identifier: BSD-3-Clause
"""A disk that never answers costs what is on it: workers are signalled, other nodes hear, the agent ends."""

import os
import pathlib
import re

import pytest

from support.binary import ROOT
from support.nodes import exists

BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))

pytestmark = pytest.mark.plain_build

# Worker 0 fails once the other one is there, and takes the disk with it, so that nobody can tell why. The other
# one would run for ever.
FAIL = """
echo $$ >pid.$RANK.$TORCHELASTIC_RESTART_COUNT
test "$TORCHELASTIC_RESTART_COUNT" = "$LAST_ATTEMPT" && exit 0
if [ "$RANK" = 0 ]; then
    until test -e up; do sleep 0.01; done
    echo '{"message": "boom"}' >"$TORCHELASTIC_ERROR_FILE"
    touch dead
    exit 3
fi
trap 'touch signalled; exit 1' TERM
touch up
while true; do sleep 0.01; done
"""


@pytest.fixture
def dead_disk(scratch):
    """Makes an environment in which all that ends with `path` is on a disk that dies when there is a file `dead`."""
    shim = BUILD / "tests" / "libhung_disk.so"
    assert shim.is_file(), f"{shim} is not built"
    return lambda path: {"LD_PRELOAD": shim, "HUNG_PATH": path, "HUNG_SINCE": scratch.resolve() / "dead"}


def run_workers(muster, script, *options, env):
    path = muster.script("worker.sh", script)
    return muster.start(["run", "--nproc-per-node", 2, *options, "--no-python", "sh", path], env=env)


def workers_left(scratch):
    pids = [int(path.read_text(encoding="ascii")) for path in scratch.glob("pid.*")]
    assert pids
    return [pid for pid in pids if exists(pid)]


def test_a_worker_that_fails_on_a_dead_disk_ends_the_others_and_is_reported(muster, scratch, dead_disk):
    end = run_workers(muster, FAIL, env=dead_disk("/error.json")).finish()
    assert end.status == 1, end
    assert (scratch / "signalled").exists()
    root_cause = end.err[end.err.index("Root Cause") : end.err.index("Failures:")]
    assert "exitcode  : 3 " in root_cause, end
    assert "unreadable error file: cannot read " in root_cause, end
    assert "/attempt_0/0/error.json: the disk did not answer in time" in root_cause, end
    assert workers_left(scratch) == []


def test_nobody_waits_for_a_dead_disk_to_hear_of_a_failure(muster, dead_disk):
    env = {**dead_disk("/0/error.json"), "LOGLEVEL": "DEBUG"}
    end = run_workers(muster, FAIL, env=env).finish()
    assert end.status == 1, end
    given_up = end.err.index("going on without an error file: cannot read ")
    assert end.err.index("-> signal_workers") < given_up, end
    assert end.err.index("<- worker_exited rank=1") < given_up, end


def test_a_dead_disk_keeps_nobody_from_a_restart(muster, scratch, dead_disk):
    env = {**dead_disk("/0/error.json"), "LAST_ATTEMPT": "1"}
    end = run_workers(muster, FAIL, "--max-restarts", 1, env=env).finish()
    assert end.status == 0, end
    assert (scratch / "signalled").exists() and (scratch / "pid.1.1").exists()


def test_a_signal_ends_an_agent_whose_disk_is_dead(muster, scratch, dead_disk):
    running = run_workers(muster, FAIL, env=dead_disk("/error.json"))
    running.wait_until((scratch / "dead").exists, "the end of the disk")
    running.signal(15)
    end = running.finish()
    assert end.status == 1, end
    assert (scratch / "signalled").exists()
    assert workers_left(scratch) == []


def test_other_nodes_hear_of_a_failure_on_a_dead_disk(make_job, scratch, dead_disk):
    job = make_job(2, restarts=0)
    job.start_host("node1")
    job.start("node2", env=dead_disk("/error.json"))
    culprit = job.wait_for_world("node1", "node2").of("node2")
    (scratch / "dead").touch()
    culprit.end(7)
    ends = job.finish()
    assert {name: end.status for name, end in ends.items()} == {"node1": 1, "node2": 1}, job.tell()
    for end in ends.values():
        root_cause = end.err[end.err.index("Root Cause") : end.err.index("Failures:")]
        assert f"exitcode  : 7 (pid: {culprit.pid})" in root_cause, job.tell()
        assert "unreadable error file: cannot read " in root_cause, job.tell()


def test_a_signal_ends_an_agent_that_waits_for_a_log_directory(muster, scratch, dead_disk):
    env = {**dead_disk("/attempt_1"), "LOGLEVEL": "DEBUG"}
    running = run_workers(muster, FAIL, "--max-restarts", 1, env=env)
    running.wait_until(lambda: running.err().count("-> start_workers") == 2, "the second start")
    running.signal(15)
    end = running.finish()
    assert end.status == 1, end
    assert "stopped by SIGTERM" in end.err, end
    assert workers_left(scratch) == [] and not list(scratch.glob("pid.*.1"))


def test_a_signal_ends_an_agent_that_waits_for_a_log_file(muster, scratch, dead_disk):
    env = {**dead_disk("/attempt_0/1/stdout.log"), "LOGLEVEL": "DEBUG"}
    (scratch / "dead").touch()
    running = run_workers(muster, FAIL, "--redirects", 3, env=env)
    running.wait_until(lambda: "-> start_workers" in running.err(), "the start")
    running.signal(15)
    end = running.finish()
    assert end.status == 1, end
    assert "stopped by SIGTERM" in end.err, end
    assert not list(scratch.glob("pid.*"))


def test_a_dead_disk_keeps_the_parents_error_file_and_no_more(muster, scratch, dead_disk):
    env = {**dead_disk("/parent.json"), "TORCHELASTIC_ERROR_FILE": scratch.resolve() / "parent.json"}
    end = run_workers(muster, FAIL, env=env).finish()
    assert end.status == 1, end
    assert '"boom"' not in end.err and "  traceback : boom" in end.err, end
    path = scratch.resolve() / "parent.json"
    assert f"TORCHELASTIC_ERROR_FILE: cannot write the error file {path}: no answer within 5 s" in end.err, end


def test_a_signal_ends_an_agent_that_waits_for_the_first_log_directory(muster, scratch, dead_disk):
    (scratch / "dead").touch()
    running = run_workers(muster, FAIL, "--log-dir", "logs", env=dead_disk("/logs"))
    words = "waiting for the log directory logs: its disk does not answer"
    running.wait_until(lambda: words in running.err(), "the agent's words")
    running.signal(15)
    end = running.finish(timeout=20)
    assert end.status == 1, end
    assert "stopped by SIGTERM" in end.err, end
    assert not list(scratch.glob("pid.*"))


def test_a_signal_ends_an_agent_that_waits_for_the_interpreter(muster, scratch, dead_disk):
    (scratch / "dead").touch()
    script = muster.script("train.py", "print('up')\n")
    running = muster.start(["run", "--nproc-per-node", 1, script], env=dead_disk("/python3"))
    words = "waiting for the training script and the interpreter on PATH: its disk does not answer"
    running.wait_until(lambda: words in running.err(), "the agent's words")
    running.signal(15)
    end = running.finish(timeout=20)
    assert end.status == 1, end
    assert "stopped by SIGTERM" in end.err, end


@pytest.mark.timeout(120)
def test_an_agent_does_not_wait_for_ever_for_the_first_log_directory(muster, scratch, dead_disk):
    (scratch / "dead").touch()
    end = run_workers(muster, FAIL, "--log-dir", "logs", env=dead_disk("/logs")).finish(timeout=100)
    assert end.status == 1, end
    assert "cannot make the log directory logs: no answer within 30 s" in end.err, end
    assert not list(scratch.glob("pid.*"))


# Worker 0 has something to say when its disk dies, and then fails.
SPEAK = FAIL.replace("    exit 3", "    echo nobody hears this\n    exit 3")


def test_an_agent_whose_log_files_hang_ends_and_reports(muster, scratch, dead_disk):
    end = run_workers(muster, SPEAK, "--redirects", 3, env=dead_disk("/0/stdout.log")).finish()
    assert end.status == 1, end
    assert (scratch / "signalled").exists()
    assert "exitcode  : 3 " in end.err[end.err.index("Root Cause") : end.err.index("Failures:")], end
    assert "the workers' last output may be missing: the disk of " in end.err, end


def test_a_report_goes_without_last_lines_that_are_on_a_dead_disk(muster, scratch, dead_disk):
    end = run_workers(muster, FAIL, "--redirects", 2, env=dead_disk("/0/stderr.log")).finish()
    assert end.status == 1, end
    assert (scratch / "signalled").exists()
    root_cause = end.err[end.err.index("Root Cause") : end.err.index("Failures:")]
    assert "exitcode  : 3 " in root_cause and "/0/stderr.log\n" in root_cause, end
    assert "last lines of log_file" not in root_cause, end
    assert re.search(r"the report is without the last lines of \S+/0/stderr.log: no answer within 5 s", end.err), end


def test_announcing_a_job_on_a_dead_disk_keeps_nobody_waiting_but_the_end(muster, scratch, dead_disk):
    (scratch / "dead").touch()
    end = muster.run(["run", "--standalone", "--no-python", "sh", "-c", "touch ran"], env=dead_disk("/announced"))
    assert end.status == 0 and (scratch / "ran").exists(), end
    assert not (scratch / "announced").exists()

# SPDX-License-Identifier: BSD-3-Clause
"""Where records of events go, when it takes none: it costs the events, and nothing else."""

import json
import os
import pathlib
import signal
import sys

import pytest

from support.binary import ROOT
from support.nodes import wait_until

BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))

RESTARTED = 'test "$TORCHELASTIC_RESTART_COUNT" = 3 && echo done'


@pytest.fixture
def hung_disk(scratch):
    """An environment in which writes into `events` never come back."""
    shim = BUILD / "tests" / "libhung_disk.so"
    assert shim.is_file(), f"{shim} is not built"
    return {"LD_PRELOAD": shim, "HUNG_FILE": scratch.resolve() / "events"}


@pytest.mark.plain_build
def test_a_disk_that_never_answers_holds_up_no_job(muster, scratch, hung_disk):
    options = ["--max-restarts", 3, "--event-log-handler", "file:events", "--no-python"]
    end = muster.run(["run", *options, "sh", "-c", RESTARTED], env=hung_disk)
    assert end.status == 0, end
    assert end.out == "done\n"
    assert "events were not written to 'events': it does not answer" in end.err, end
    assert (scratch / "events").read_bytes() == b""


def test_a_file_that_cannot_be_opened_is_told_of_with_what_to_do(muster):
    end = muster.run(["run", "--event-log-handler", "file:/proc/none/events", "--no-python", "true"])
    assert end.status != 0 and "cannot write events to '/proc/none/events'" in end.err, end
    assert "file:PATH names a file that this user may write" in end.err, end


def test_a_full_disk_is_told_of_once_and_the_loss_counted(muster, scratch):
    options = ["--max-restarts", 3, "--event-log-handler", "file:/dev/full", "--no-python"]
    end = muster.run(["run", *options, "sh", "-c", RESTARTED])
    assert end.status == 0 and end.out == "done\n", end
    assert end.err.count("events are lost, '/dev/full' does not take them: write: No space left on device") == 1, end
    assert end.err.count("events were not written to '/dev/full'") == 1, end


def test_a_limit_on_file_sizes_is_named_and_ends_no_agent(muster, scratch):
    """Neither where the events reach it, nor where the agent's own words do."""
    job = f"{muster.binary} run --standalone --max-restarts 9 --event-log-handler file:events --no-python false"
    end = muster.start(["-c", f"(ulimit -f 1; {job}) 2>&1 >/dev/null | cat"], program="bash").finish()
    assert "events were not written to 'events': write: File too large" in end.out, end
    end = muster.start(["-c", f"(ulimit -f 1; {job} 2>words; echo $?) | cat"], program="bash").finish()
    assert end.out == "1\n", end
    assert (scratch / "words").stat().st_size == 1024


def test_events_on_the_console_are_the_log_threads_to_write(muster, scratch):
    """So that a console that takes nothing holds up the log thread alone."""
    running = muster.start(["run", "--event-log-handler", "console", "--no-python", "sh", "-c", "touch up; until test -e go; do sleep 0.02; done"])
    running.wait_until((scratch / "up").exists, "the worker")
    tasks = pathlib.Path(f"/proc/{running.pid}/task").iterdir()
    assert "muster-logs\n" in [(task / "comm").read_text() for task in tasks]
    (scratch / "go").touch()
    end = running.finish()
    assert end.status == 0 and '"torchelastic.worker.status.SUCCEEDED"' in end.err, end


# A program that gets the records.


def run_with_program(muster, text, *command, name="sink"):
    muster.script(name, text)
    return muster.run(["run", "--max-restarts", 3, "--event-log-handler", f"exec:./{name}", "--no-python",
                       *(command or ("sh", "-c", RESTARTED))])


def test_a_program_gets_each_record_as_a_line(muster, scratch):
    end = run_with_program(muster, f"#!{sys.executable}\nimport sys\nopen('got', 'w').write(sys.stdin.read())\n", name="a sink")
    assert end.status == 0 and end.out == "done\n", end
    records = [json.loads(line) for line in (scratch / "got").read_text().splitlines()]
    names = [record["name"] for record in records]
    assert names.count("torchelastic.worker.status.START") == 4, names
    assert names[-1] == "torchelastic.worker.status.SUCCEEDED", names
    assert "lost" not in end.err and "killed" not in end.err, end


def test_a_program_may_take_its_time_after_the_last_record(muster, scratch):
    """It ends when it has read the end of its input, and the agent has waited for that."""
    run_with_program(muster, "#!/bin/sh\ncat >/dev/null\ntouch ended\n")
    assert (scratch / "ended").exists()


def test_a_program_that_ends_early_costs_the_events_alone(muster):
    end = run_with_program(muster, "#!/bin/sh\nexec <&-\ntouch gone\n", "sh", "-c", f"until test -e gone; do sleep 0.02; done; {RESTARTED}")
    assert end.status == 0 and end.out == "done\n", end
    assert end.err.count("events are lost, './sink' does not take them: write: Broken pipe") == 1, end
    assert end.err.count("events were not written to './sink'") == 1, end


def test_a_program_that_does_not_read_is_killed_at_the_end(muster, scratch):
    end = run_with_program(muster, "#!/bin/sh\necho $$ >pid\nexec sleep 1000\n")
    assert end.status == 0 and end.out == "done\n", end
    assert end.err.count("'./sink', which gets events, is killed: it has not ended within 5 s") == 1, end
    assert not pathlib.Path("/proc", (scratch / "pid").read_text().strip()).exists()


def test_a_program_outlives_a_killed_agent_to_read_the_end(muster, scratch):
    muster.script("sink", "#!/bin/sh\ncat >got\nmv got whole\n")
    running = muster.start(["run", "--event-log-handler", "exec:./sink", "--no-python", "sh", "-c", "touch up; sleep 1000"])
    running.wait_until((scratch / "up").exists, "the worker")
    os.kill(running.pid, signal.SIGKILL)
    wait_until((scratch / "whole").exists, "the end of the records")
    assert "worker.status.START" in (scratch / "whole").read_text()


def test_a_program_that_cannot_be_started_is_named_with_the_reason(muster):
    end = muster.run(["run", "--event-log-handler", "exec:./nowhere", "--no-python", "true"])
    assert end.status == 1 and "cannot execute './nowhere': No such file or directory" in end.err, end
    assert end.err.count("exec:PROGRAM names a program") == 1, end

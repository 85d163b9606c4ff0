# SPDX-License-Identifier: BSD-3-Clause
"""Where records of events go, when it takes none: it costs the events, and nothing else."""

import os
import pathlib

import pytest

from support.binary import ROOT

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

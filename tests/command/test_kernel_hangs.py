# SPDX-License-Identifier: BSD-3-Clause
"""Workers that hang in the kernel, where no signal reaches them, and disks that hang the agent's own files."""

import pathlib
import re

import pytest

from support import timers
from support.disks import make_disk

# Whoever starts a program waits uninterruptibly, but for SIGKILL, until the child executes it: never here.
SPAWN = """
os.mkfifo(f"never-opened.{RANK}")

def hang():
    os.posix_spawn("/bin/true", ["true"], {},
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, f"never-opened.{RANK}", os.O_RDONLY, 0)])

"""

WRITE = """
file = os.open(f"disk/file.{RANK}", os.O_WRONLY | os.O_CREAT)
with open("new", "w") as note:
    note.write(str(os.getpid()))
os.rename("new", f"pid.{RANK}")
while not os.path.exists("frozen"):
    time.sleep(0.01)
os.write(file, b"x")
time.sleep(1000)
"""


@pytest.fixture
def disk(scratch):
    disk = make_disk(scratch)
    yield disk
    disk.end()


def report_of(scratch, rank=0):
    return next(scratch.glob(f"logs/*/attempt_0/{rank}/hang_evidence.txt")).read_text(encoding="utf-8")


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]


def test_a_worker_in_uninterruptible_sleep_is_told_to_be_there(muster, scratch):
    end = timers.start(muster, SPAWN + "acquire('step', 0.3)\nhang()\n", "--log-dir", "logs",
                       "--shutdown-timeout", 0.2, workers=1).finish()
    assert end.status == 1, end
    report = report_of(scratch)
    assert "State:\tD (disk sleep)" in report
    assert re.search(r"in uninterruptible sleep in clone3?( \(\w+\))? \[\d+ ", report), report
    assert "child, or child's child" in report
    assert re.search(r"evidence: process \d+ \(local_rank 0\) is in uninterruptible sleep in clone", end.err), end
    assert "killed by the watchdog: timer 'step' expired; before that it was in uninterruptible sleep" in end.err


def test_a_worker_that_is_stuck_too_long_is_looked_at(muster, scratch):
    """And the look is over before the others are asked to end, which would end this one too."""
    end = timers.start(
        muster, SPAWN + "hang()\n", "--log-dir", "logs", "--shutdown-timeout", 0.2, workers=2,
        TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT="0.5",
    ).finish()
    assert end.status == 1, end
    reports = [path.read_text(encoding="utf-8") for path in scratch.glob("logs/*/attempt_0/*/hang_evidence.txt")]
    stuck = [report for report in reports if "it has been in uninterruptible sleep for too long" in report]
    assert stuck, reports  # of the other worker, too, if it was as early
    for report in stuck:
        assert "in uninterruptible sleep in clone" in report
    assert end.err.index("evidence: process") < end.err.index("closing signal SIGTERM"), end


def start_writer(muster, disk, *options):
    """A worker that hangs in a write to the disk, and its pid."""
    running = timers.start(muster, WRITE, "--log-dir", "logs", *options, workers=1)
    note = muster.scratch / "pid.0"
    running.wait_until(note.exists, "the worker")
    pid = int(note.read_text(encoding="utf-8"))
    disk.freeze()
    (muster.scratch / "frozen").touch()
    running.wait_until(lambda: state_of(pid) == "D", "the worker to hang")
    return running, pid


def test_a_worker_that_hangs_on_a_disk_hangs_nobody_else(muster, scratch, disk):
    running, pid = start_writer(muster, disk)
    timers.expire_together(scratch / "timers", [pid])
    running.wait_until(lambda: "watchdog: ending process" in running.err(), "the kill")
    report = report_of(scratch)
    assert "State:\tD (disk sleep)" in report
    assert re.search(r"in uninterruptible sleep in write( \(\w+\))? \[\d+ ", report), report
    assert "\n      [<0>] " in report, "root may see the kernel's stack"
    assert "-> /" in report and "/disk/file.0\n" in report
    assert muster.run(["timer", "list", "--file", scratch / "timers"]).status == 0, "the agent serves on"
    assert state_of(pid) == "D"
    disk.thaw()
    end = running.finish()
    assert end.status == 1, end
    assert "before that it was in uninterruptible sleep in write" in end.err


@pytest.mark.timeout(120)
def test_the_agent_ends_without_a_worker_that_cannot(muster, scratch, disk):
    """It has half a minute to vanish after SIGKILL."""
    running, _ = start_writer(muster, disk, "--shutdown-timeout", 0.2)
    running.signal(15)
    end = running.finish(timeout=100)
    assert end.status == 1, end
    assert "some processes did not end after SIGKILL (they hang in the kernel) and were left behind" in end.err
    assert "it did not end in time when asked to" in report_of(scratch)
    assert "is in uninterruptible sleep in write" in end.err


def test_a_disk_that_hangs_keeps_nothing_from_the_console(muster, scratch, disk):
    script = """
with open("new", "w") as note:
    note.write(str(os.getpid()))
os.rename("new", "pid")
time.sleep(1000)
"""
    running = timers.start(muster, script, "--log-dir", "disk/logs", "--evidence-timeout", 0.5, workers=1)
    running.wait_until((scratch / "pid").exists, "the worker")
    disk.freeze()
    timers.expire_together(scratch / "timers", [int((scratch / "pid").read_text(encoding="utf-8"))])
    running.wait_until(lambda: "watchdog: ending process" in running.err(), "the kill")
    assert re.search(
        r"evidence: process \d+ \(local_rank 0\) is sleeping in .*; not everything was looked at within 0.5 s; see ",
        running.err()), running.err()
    disk.thaw()
    assert running.finish().status == 1

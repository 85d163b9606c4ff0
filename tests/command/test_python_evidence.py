# SPDX-License-Identifier: BSD-3-Clause
"""The Python stacks that a worker says itself, where the hook of standby workers runs in it. The Python that runs the
tests is used: when it has a table for debuggers, its stacks are read without asking it."""

import re
import sys

import pytest

HANGING = """
import json, os, signal, sys, time
RANK, SIGNAL = int(os.environ["RANK"]), 50

def caught():
    with open("/proc/self/status", encoding="ascii") as status:
        return [int(line.split()[1], 16) >> SIGNAL - 1 & 1 for line in status if line.startswith("SigCgt")] == [1]

def hang():
    with open(f"{RANK}.new", "w", encoding="ascii") as file:
        json.dump(SEEN, file)
    os.rename(f"{RANK}.new", f"{RANK}.hangs")
    while True: time.sleep(1000)

if os.environ["TORCHELASTIC_RESTART_COUNT"] != "0":
    sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if RANK == 0:
    while not os.path.exists("1.hangs"):
        time.sleep(0.01)
    sys.exit(3)
SEEN = caught()
"""


def run(muster, script, *options):
    """A job whose second worker hangs and is killed, so that its evidence is looked at. (the end, the evidence)"""
    path = muster.script("train.py", HANGING + script)
    end = muster.run(
        ["run", "--standalone", "--nproc-per-node", 2, "--max-restarts", 1, "--log-dir", "logs", "--shutdown-timeout", 0.3,
         "--standby", "on", *options, path], env={"PYTHON_EXEC": sys.executable})
    assert end.status == 0, end
    (report,) = muster.scratch.glob("logs/*/attempt_0/1/hang_evidence.txt")
    return end, report.read_text(encoding="utf-8")


def test_a_worker_that_hangs_is_told_by_its_line(muster, scratch):
    end, report = run(muster, "hang()\n")
    assert (scratch / "1.hangs").read_text(encoding="ascii") == "true"
    line = HANGING.split("time.sleep(1000)")[0].count("\n") + 1
    assert f"train.py:{line} in hang\n" in report
    assert re.search(rf"evidence: process \d+ \(local_rank 1\) is .* at \S*train.py:{line} in hang; see ", end.err), end


@pytest.mark.parametrize("options", [("--evidence-signal", "off"), ("--evidence-signal", 60), ("--evidence", "off")])
def test_the_signal_is_the_users_choice(muster, scratch, options):
    path = muster.script("train.py", HANGING + "hang()\n")
    muster.run(["run", "--standalone", "--nproc-per-node", 2, "--max-restarts", 1, "--shutdown-timeout", 0.3,
                "--standby", "on", *options, path], env={"PYTHON_EXEC": sys.executable})
    assert (scratch / "1.hangs").read_text(encoding="ascii") == "false"


def test_a_worker_that_has_become_another_program_is_not_killed_by_the_signal(muster, scratch):
    shell = "trap '' TERM; : >1.hangs; while :; do sleep 1; done"
    end, report = run(muster, f"os.execvp('sh', ['sh', '-c', {shell!r}])\n")
    assert "Python was not asked for its stacks: it has no handler for the signal (any more)\n" in report
    assert "SIGRTM" not in end.err and "signal 50" not in end.err.lower(), end


def test_a_worker_that_has_closed_all_files_is_not_asked(muster, scratch):
    if sys.version_info >= (3, 13):
        pytest.skip("the stacks of this Python are read without asking it")
    _, report = run(muster, "os.closerange(3, 65536)\nhang()\n")
    assert "Python was not asked for its stacks: it has closed the file for them\n" in report
    assert "train.py" not in report.split("not asked")[1].split("open files")[0]


def test_a_program_sees_nothing_of_it(muster, scratch):
    """What a program may look at is the same with and without the signal."""
    path = muster.script("look.py", """
import os, signal, sys
loaded = sorted(sys.modules)
import faulthandler, threading
with open(os.environ["NAME"], "w", encoding="utf-8") as file:
    print(loaded, [signal.getsignal(number) for number in range(1, 65) if number not in (32, 33)],
          faulthandler.is_enabled(), threading.active_count(), signal.pthread_sigmask(signal.SIG_BLOCK, ()),
          sorted(os.listdir("/proc/self/fd")), dict(sorted(os.environ.items())).keys(), file=file)
""")
    for name, choice in (("with", 50), ("without", "off")):
        end = muster.run(["run", "--standalone", "--max-restarts", 1, "--standby", "on", "--evidence-signal", choice, path],
                         env={"PYTHON_EXEC": sys.executable, "NAME": str(scratch / name)})
        assert end.status == 0, end
    assert (scratch / "with").read_text(encoding="utf-8") == (scratch / "without").read_text(encoding="utf-8")


@pytest.mark.parametrize("value", ["33", "65", "-1", "", "SIGUSR1", "0"])
def test_another_value_is_refused(muster, value):
    end = muster.run(["run", "--standalone", f"--evidence-signal={value}", "train.py"])
    assert end.status == 2, end
    assert f"invalid value {value}: give the number of a real-time signal, 34 to 64, or off" in end.err

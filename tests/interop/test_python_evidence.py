# SPDX-License-Identifier: BSD-3-Clause
"""What is told of real Python workers that hang."""

import pathlib
import re

import pytest

from support import timers

HANGING = """
import threading

def wait_here():
    with open(f"hangs.{RANK}", "w") as file:
        file.write(str(os.getpid()))
    threading.Event().wait()

for rank in range(8):
    exec(f"def hang_of_rank_{rank}(): wait_here()")
globals()[f"hang_of_rank_{RANK}"]()
"""


def waits(pid):
    return "futex" in pathlib.Path(f"/proc/{pid}/wchan").read_text(encoding="utf-8")


@pytest.mark.timeout(120)
def test_workers_that_hang_together_are_each_told_by_their_own_line(muster, peer, scratch):
    agent = timers.start(muster, HANGING, "--log-dir", "logs", workers=8, PYTHON_EXEC=peer.python)
    notes = [scratch / f"hangs.{rank}" for rank in range(8)]
    agent.wait_until(lambda: all(note.exists() and note.read_text() for note in notes), "all workers", timeout=60)
    pids = [int(note.read_text()) for note in notes]
    agent.wait_until(lambda: all(waits(pid) for pid in pids), "all to hang", timeout=60)
    timers.expire_together(scratch / "timers", pids)
    end = agent.finish()
    assert end.status == 1, end
    line = (scratch / "worker.py").read_text().split("threading.Event().wait()")[0].count("\n") + 1
    for rank, pid in enumerate(pids):
        report = next(scratch.glob(f"logs/*/attempt_0/{rank}/hang_evidence.txt")).read_text()
        assert f"worker.py:{line} in wait_here\n" in report
        assert f" in hang_of_rank_{rank}\n" in report
        assert re.search(rf"evidence: process {pid} \(local_rank {rank}\) is sleeping in futex .* at ", end.err), end
    assert end.err.rindex("evidence: process") < end.err.index("watchdog: ending process"), end


STUBBORN = """
import subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)

def deep_inside(depth):
    if depth > 0:
        deep_inside(depth - 1)
    elif RANK == 1:
        note("is_deep_inside")
        time.sleep(1000)

if RANK == 0:
    while not os.path.exists("is_deep_inside.1.0"):
        time.sleep(0.01)
    sys.exit(3)
deep_inside(5)
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("evidence", ["basic", "full", "off"])
def test_a_worker_that_ignores_sigterm_is_told_by_its_line(muster, peer, scratch, evidence):
    end = timers.start(
        muster, STUBBORN, "--log-dir", "logs", "--shutdown-timeout", 1, "--evidence", evidence, "--evidence-timeout", 30,
        PYTHON_EXEC=peer.python,
    ).finish()
    assert end.status == 1, end
    reports = [path.read_text(encoding="utf-8") for path in scratch.glob("logs/*/attempt_0/1/hang_evidence.txt")]
    if evidence == "off":
        assert (reports, "evidence:" in end.err) == ([], False)
        return
    (report,) = reports
    line = (scratch / "worker.py").read_text().split("time.sleep(1000)")[0].count("\n") + 1
    assert f"worker.py:{line} in deep_inside\n" in report
    assert report.count("in deep_inside\n") == 6
    assert ("\ngdb of process" in report) == (evidence == "full")
    assert re.search(rf"evidence: process \d+ \(local_rank 1\) is sleeping in .* at .*worker.py:{line} in deep_inside; see ",
                     end.err), end
    assert "before that it was sleeping" in end.err

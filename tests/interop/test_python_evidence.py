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

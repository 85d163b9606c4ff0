# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own timer client (torch.distributed.elastic.timer) against our watchdog."""

import re
import shutil

import pytest

from support.binary import ROOT


def run(muster, peer, scratch, *options, hang=1.0):
    shutil.copy(ROOT / "tests/interop/scripts/timed_steps.py", scratch)
    return muster.run(
        ["run", "--standalone", "--nproc-per-node", 2, *options, scratch / "timed_steps.py", hang],
        env={"PYTHON_EXEC": peer.python, "TORCHELASTIC_ENABLE_FILE_TIMER": "1", "OMP_NUM_THREADS": 1},
        timeout=100,
    )


@pytest.mark.timeout(120)
def test_a_hanging_step_costs_one_restart(muster, peer, scratch):
    end = run(muster, peer, scratch, "--max-restarts", 1)
    assert end.status == 0, end
    assert sorted(re.findall(r"rank \d done in attempt \d", end.out)) == [
        "rank 0 done in attempt 1",
        "rank 1 done in attempt 1",
    ]
    assert "with SIGKILL, its timers expired: 'the step that hangs'" in end.err
    assert list(scratch.glob("watchdog_timer_*")) == []


@pytest.mark.timeout(120)
def test_evidence_names_the_python_line_it_hung_in(muster, peer, scratch):
    end = run(muster, peer, scratch, "--max-restarts", 1, "--log-dir", "logs")
    assert end.status == 0, end
    text = (ROOT / "tests/interop/scripts/timed_steps.py").read_text(encoding="utf-8")
    line = text[: text.index("time.sleep(600)")].count("\n") + 1
    reports = list(scratch.glob("logs/*/attempt_0/*/hang_evidence.txt"))
    assert [path.parent.name for path in reports] == ["1"]
    assert f"timed_steps.py:{line} in <module>" in reports[0].read_text(encoding="utf-8")
    assert f"timed_steps.py:{line} in <module>; see " in end.err


@pytest.mark.timeout(120)
def test_without_restarts_the_report_names_the_step(muster, peer, scratch):
    end = run(muster, peer, scratch)
    assert end.status == 1, end
    root = end.err.split("Root Cause")[1].split("Failures:")[0]
    assert "rank      : 1 (local_rank: 1)" in root
    assert "killed by the watchdog: timer 'the step that hangs' expired" in root

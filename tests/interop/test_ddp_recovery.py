# SPDX-License-Identifier: BSD-3-Clause
"""Real, unmodified PyTorch training on a real data file, with workers killed on the way."""

import fcntl
import os
import re
import shutil

import pytest

from support.binary import ROOT, Muster
from support.leaks import ScratchDirectory

STEPS = 64
TOLERANCE = 1e-6


class Training:
    """The DDP example in a scratch directory that the peer sees too."""

    def __init__(self, muster, python, scratch):
        self.muster, self.python, self.scratch = muster, python, scratch
        shutil.copy(ROOT / "examples/pytorch/train_ddp.py", scratch)
        shutil.copy(ROOT / "examples/data/energy.csv", scratch)
        shutil.copy(ROOT / "tests/interop/scripts/killed_training.py", scratch)

    def run(self, *options, workers, kills="", max_restarts=0, timeout=200, env=None):
        """Runs the training from the start; returns (how it ended, final loss)."""
        checkpoint = self.scratch / "checkpoint.pt"
        checkpoint.unlink(missing_ok=True)
        end = self.muster.run(
            ["run", "--standalone", "--nproc-per-node", workers, "--max-restarts", max_restarts, *options,
             self.scratch / "killed_training.py", self.scratch / "train_ddp.py",
             self.scratch / "energy.csv", checkpoint, STEPS],
            env={"PYTHON_EXEC": self.python, "KILLS": kills, "OMP_NUM_THREADS": 1, **(env or {})},
            timeout=timeout,
        )
        assert end.status == 0, end
        return end, float(re.search(r"final loss (\S+)", end.out).group(1))


@pytest.fixture
def training(muster, peer, scratch):
    """Its workers have torch when they begin: else the imports would be most of what a test takes."""
    return Training(muster, peer.forks.worker_python(), scratch)


@pytest.fixture(scope="module")
def undisturbed(binary, peer, tmp_path_factory):
    """undisturbed(4): the final loss of four workers to whom nothing happens. xdist's workers know each other's."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def train(workers):
        directory = ScratchDirectory()
        _, loss = Training(Muster(binary, directory.path), peer.python, directory.path).run(workers=workers)
        assert directory.end() == []
        return loss

    def look(workers):
        with open(folder / f"undisturbed.{workers}", "a+", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            known = file.read()
            if not known:
                known = repr(train(workers))
                file.write(known)
        return float(known)

    return look


@pytest.mark.timeout(300)
@pytest.mark.parametrize("workers, kill, is_imported", [(2, "0@23", False), (4, "3@41", True)])
def test_a_killed_worker_costs_one_restart_and_no_precision(training, peer, undisturbed, workers, kill, is_imported):
    if not is_imported:
        training.python = peer.python
    end, recovered = training.run(workers=workers, kills=kill, max_restarts=1)
    step = int(kill.split("@")[1])
    assert f"attempt 1: from step {step - step % 5}" in end.out
    assert "attempt 2:" not in end.out
    assert abs(recovered - undisturbed(workers)) < TOLERANCE


@pytest.mark.timeout(300)
def test_with_a_directory_in_memory_no_step_is_lost(training, undisturbed):
    end, recovered = training.run("--scratch", "64M", workers=2, kills="0@23,1@41,1@59", max_restarts=3)
    first_steps = [int(step) for step in re.findall(r"attempt \d: from step (\d+)", end.out)]
    assert len(first_steps) == 4 and first_steps[0] == 0, end
    for step, kill in zip(first_steps[1:], [23, 41, 59]):
        assert kill - 1 <= step <= kill, end  # worker 0 may have died while it wrote the last one
    assert "no checkpoints in memory" not in end.out
    assert abs(recovered - undisturbed(2)) < TOLERANCE


@pytest.mark.timeout(300)
def test_memory_that_cannot_be_written_leaves_the_disk(training, undisturbed, scratch):
    end, recovered = training.run(workers=2, kills="0@23", max_restarts=1, env={"MUSTER_SCRATCH": scratch / "nowhere"})
    assert "no checkpoints in memory any more" in end.out and "attempt 1: from step 20" in end.out, end
    assert abs(recovered - undisturbed(2)) < TOLERANCE


# Each of two ranks ten times; before the group exists, at the first step, just before and just after a
# checkpoint, in between, at the last step.
TWENTY_KILLS = [
    (0, -1), (1, -1), (0, 0), (1, 0), (0, 1), (1, 4), (0, 5), (1, 6), (0, 10), (1, 14),
    (0, 19), (1, 20), (1, 26), (0, 29), (1, 31), (0, 37), (0, 44), (1, 50), (0, 55), (1, 63),
]  # fmt: skip


@pytest.mark.timeout(700)
def test_twenty_of_twenty_kills_recover_whichever_rank_and_step(training, undisturbed):
    kills = ",".join(f"{rank}@{step}" for rank, step in TWENTY_KILLS)
    end, recovered = training.run(workers=2, kills=kills, max_restarts=len(TWENTY_KILLS), timeout=680)
    attempts = re.findall(r"attempt (\d+): from step (\d+)", end.out)
    print(f"{len(TWENTY_KILLS)} of {len(TWENTY_KILLS)} kills recovered: {attempts}")
    # attempts killed before the group existed say nothing; the last one did the last steps
    assert attempts[-1] == (str(len(TWENTY_KILLS)), "60")
    assert abs(recovered - undisturbed(2)) < TOLERANCE

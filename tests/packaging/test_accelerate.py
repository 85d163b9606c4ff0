# SPDX-License-Identifier: BSD-3-Clause
"""Hugging Face's `accelerate launch`, which fills a namespace and calls torch.distributed.run.run, with Muster in its place."""

import subprocess

import pytest

from support.binary import clean_environment
from support.python_package import install_package

# The second process of the first attempt fails, so the job ends well only if the launcher starts it again.
SCRIPT = """\
import os, sys
import torch, torch.distributed as distributed
assert os.environ["ACCELERATE_MIXED_PRECISION"] == "no"
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and os.environ["RANK"] == "1":
    sys.exit(3)
distributed.init_process_group("gloo")
total = torch.ones(1) * (distributed.get_rank() + 1)
distributed.all_reduce(total)
launcher = open(f"/proc/{os.getppid()}/comm").read()  # it ends the line, which is written by one call
sys.stdout.write(f"sum {int(total)} of {distributed.get_world_size()} {sys.argv[1:]} under {launcher}")
distributed.destroy_process_group()
"""


@pytest.fixture
def accelerate(peer, portable, scratch):
    """accelerate(WORD...): `accelerate launch WORD...`; a skip where the peer's packages have no accelerate."""
    found = subprocess.run([peer.python, "-c", "import accelerate"], capture_output=True, text=True, cwd=scratch)
    if found.returncode != 0:
        pytest.skip("the peer has no python3-accelerate; run `make peers`")
    site = install_package(scratch, portable("x86_64"))

    def launch(*words):
        command = [peer.python, "-m", "muster.replace_torchrun", "accelerate.commands.launch", "--multi_gpu",
                   "--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=scratch,
                              env=clean_environment(PYTHONPATH=site, HOME=scratch, HF_HUB_OFFLINE="1"))

    return launch


def test_a_job_of_accelerate_recovers_under_muster(accelerate, scratch):
    (scratch / "script.py").write_text(SCRIPT)
    result = accelerate("--max_restarts", "1", "script.py", "--lr", "0.1")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["sum 3 of 2 ['--lr', '0.1'] under muster"] * 2, result.stderr


def test_a_failure_is_that_of_muster(accelerate, scratch):
    (scratch / "script.py").write_text("import sys; sys.exit(3)\n")
    result = accelerate("script.py")
    assert result.returncode == 1, result.stderr
    assert "exitcode  : 3" in result.stderr
    assert "Traceback" not in result.stderr

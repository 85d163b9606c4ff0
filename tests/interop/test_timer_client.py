# SPDX-License-Identifier: BSD-3-Clause
"""The C timer client (libmuster-timer, through the example that uses it) against PyTorch's own server and
under our agent."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from support.binary import ROOT

EXAMPLE = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build")) / "examples/timed_steps"


@pytest.fixture
def torch_server(peer, scratch):
    """PyTorch's FileTimerServer, as the path of its FIFO."""
    shutil.copy(ROOT / "tests/interop/scripts/serve_timers.py", scratch)
    path = scratch / "torch timers"
    server = subprocess.Popen(
        [peer.python, scratch / "serve_timers.py", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout.readline() == "serving\n"
    yield path
    server.communicate("", timeout=60)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("hanging_step", [0, 3])
def test_torchs_server_ends_what_hangs(torch_server, hanging_step):
    end = subprocess.run(
        [EXAMPLE, "3", str(hanging_step), str(signal.SIGUSR1.value)],
        env={"TORCHELASTIC_TIMER_FILE": str(torch_server)}, capture_output=True, text=True, timeout=60,
    )
    assert end.returncode == (-signal.SIGUSR1 if hanging_step else 0), end
    assert end.stdout == "step 1\nstep 2\nstep 3\n"


def test_our_agent_ends_what_hangs_and_starts_it_again(muster):
    end = muster.run(
        ["run", "--standalone", "--nproc-per-node", 2, "--max-restarts", 1, "--no-python", EXAMPLE, "3", "2"],
        env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1"},
    )
    assert end.status == 0, end
    assert re.search(r"with SIGKILL, its timers expired: '\S*timed_steps\.c:\d+'", end.err)
    assert end.out.count("step 3") == 2

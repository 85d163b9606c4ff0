# SPDX-License-Identifier: BSD-3-Clause
"""Training with a PyTorch of before 2.1, whose workers know no handshake with the store. It needs a Python that has one:

    MUSTER_OLD_PYTHON=/path/to/python3 /usr/bin/python3 -m pytest tests/by_hand/test_old_pytorch.py

Debian 12's package python3-torch is 1.13. It brings some hundred packages, so the tests that run by themselves replay what its
client says (tests/command/test_old_clients.py).
"""

import os
import signal

import pytest

from support.standby_jobs import read_story

pytestmark = pytest.mark.timeout(300)

TRAINING = """
import json, os, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, attempt = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(5):
    loss = model(torch.randn(16, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weights = [weight.hex() for weight in model.module.weight.flatten().tolist()]
told = {"attempt": attempt, "rank": rank, "pid": os.getpid(), "version": torch.__version__, "weights": weights}
with open("story", "a") as file:
    file.write(json.dumps(told) + "\\n")
while not os.path.exists("end"):
    time.sleep(0.02)
"""


@pytest.fixture
def old_python():
    if "MUSTER_OLD_PYTHON" not in os.environ:
        pytest.skip("MUSTER_OLD_PYTHON names no Python with a PyTorch of before 2.1")
    return os.environ["MUSTER_OLD_PYTHON"]


@pytest.mark.parametrize("token", [None, "a secret of this job's nodes"], ids=["open", "token"])
@pytest.mark.parametrize("standby", ["off", "on"])
def test_old_workers_train_on_after_a_kill(muster, scratch, old_python, standby, token):
    (scratch / "train.py").write_text(TRAINING)
    words = ["run", "--nnodes", 1, "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "job"]
    words += ["--nproc-per-node", 2, "--max-restarts", 2, "--standby", standby, "--standby-rest", 0, "train.py"]
    env = {"PYTHON_EXEC": old_python, "OMP_NUM_THREADS": 1, "LOGLEVEL": "INFO", "MUSTER_JOB_TOKEN": token}
    agent = muster.start(words, env=env)
    for attempt in range(3):
        agent.wait_until(lambda: len(read_story(scratch, attempt)) == 2, f"attempt {attempt} to train", timeout=60)  # noqa: B023
        first, second = read_story(scratch, attempt)
        assert first["version"].startswith(("1.", "2.0")) and first["weights"] == second["weights"]
        if attempt == 2:
            break
        if standby == "on":
            ready = lambda: agent.err().count("standby workers ready") > attempt  # noqa: B023, E731
            agent.wait_until(ready, "the standby workers", timeout=60)
        os.kill(second["pid"], signal.SIGKILL)
    (scratch / "end").touch()
    assert agent.finish().status == 0
    assert agent.err().count("started from standby: 2 of 2") == (2 if standby == "on" else 0)

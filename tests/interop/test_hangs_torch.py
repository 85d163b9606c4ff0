# SPDX-License-Identifier: BSD-3-Clause
"""A hang of real PyTorch is found without a line in the program (`--hang-after`): its optimizers count the steps."""

import json

import pytest

from support.json_schema import check

pytestmark = pytest.mark.timeout(600)

TRAINING = """
import os, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def load(n):
    if {loads_slowly}:
        time.sleep(600)
    return torch.randn(16, 8)

def validate(n):
    if {leaves_one_out}:
        time.sleep(600)
    dist.all_reduce(torch.ones(1))

for n in range(1, 31):
    loss = model(load(n)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if n % 10 == 0:
        validate(n)
os._exit(0)  # on a busy machine an orderly end takes as long as a hang here
"""

ODD = "attempt == 0 and rank == 1 and n == 20"


@pytest.mark.parametrize(
    ("odd", "others", "where"),
    [
        ({"loads_slowly": ODD, "leaves_one_out": False}, "_engine_run_backward (graph.py:", "load (worker.py:"),
        ({"loads_slowly": False, "leaves_one_out": ODD}, "all_reduce (distributed_c10d.py:", "validate (worker.py:"),
    ],
    ids=["data loader", "all-reduce"],
)
def test_the_rank_that_the_others_wait_for_is_ended_and_the_job_restarts(muster, peer, odd, others, where):
    scratch = muster.scratch
    (scratch / "worker.py").write_text(TRAINING.format(**odd))
    options = ["--standby", "on", "--hang-after", "10", "--hang-action", "restart", "--chronicle", "events", "--shutdown-timeout", "5"]
    ran = muster.run(
        ["run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1", *options, "worker.py"],
        env={"PYTHON_EXEC": peer.python, "OMP_NUM_THREADS": 1}, cwd=scratch, timeout=300,
    )
    assert ran.status == 0, ran
    entries = [check(json.loads(line), "event") for line in (scratch / "events").read_text().splitlines()]
    (hang,) = [entry for entry in entries if entry["kind"] == "hang"]
    (failed,) = [entry for entry in entries if entry["kind"] == "worker_failed"]
    assert hang["rank"] == failed["rank"] == 1 and failed["text"] == hang["what"], entries
    assert hang["where"].startswith(where) and f"; rank 0 in {others}" in hang["what"], hang

# SPDX-License-Identifier: BSD-3-Clause
"""The processes that a real PyTorch worker starts itself, its loaders of data and its nested multiprocessing, are the
same below a standby worker that has taken a killed worker's place; and none of them is anything to the agent."""

import json
import os
import signal

import pytest

pytestmark = pytest.mark.timeout(600)

# One line for each attempt, of all that its processes have told; the loader's processes stay until the end.
WORKER = """
import json, os, time
import torch, torch.multiprocessing
from torch.utils.data import DataLoader, Dataset, get_worker_info

ATTEMPT = int(os.environ["TORCHELASTIC_RESTART_COUNT"])

def trace():
    import colorsys
    with open(f"processes.{ATTEMPT}", "a") as file:
        file.write(f"{os.getpid()}\\n")
    names = sorted(name for name in os.environ if "STANDBY" in name or name == "PYTHONPATH")
    return [os.environ["RANK"], __name__, names, torch.get_num_threads()]

class Numbers(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, at):
        info = get_worker_info()
        return torch.rand(2) + at, [info.id, info.num_workers, info.seed, *trace()]

def inner(tensor, told):
    tensor += 1
    told.put(trace())

def outer(at, tensor, method):
    trace()
    context = torch.multiprocessing.get_context(method)
    told = context.SimpleQueue()
    child = context.Process(target=inner, args=(tensor, told))
    child.start()
    child.join()
    assert child.exitcode == 0 and told.get()[0] == os.environ["RANK"]

if __name__ == "__main__":
    method, story = os.environ["METHOD"], []
    torch.manual_seed(7)
    data = DataLoader(Numbers(), batch_size=None, shuffle=True, num_workers=2, multiprocessing_context=method,
                      persistent_workers=True)
    for epoch in range(2):
        for item, told in data:
            story.append([item.tolist(), told])
    shared = torch.zeros(3).share_memory_()
    torch.multiprocessing.start_processes(outer, args=(shared, method), nprocs=1, start_method=method)
    model = torch.nn.Linear(64, 64)
    model(torch.ones(256, 64)).square().mean().backward()
    story += [shared.tolist(), model.weight.grad.sum().item().hex(), torch.get_num_threads()]
    with open("/proc/self/environ") as own:
        was_spare = "role=spare" in own.read()
    learned = "colorsys" in __import__("sys").modules
    with open(f"story.{ATTEMPT}.new", "w") as file:
        json.dump({"pid": os.getpid(), "warm": was_spare, "learned": learned, "story": story}, file)
    os.rename(f"story.{ATTEMPT}.new", f"story.{ATTEMPT}")
    while not os.path.exists("end"):
        time.sleep(0.02)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_loaders_and_nested_processes_are_the_same_below_a_standby_worker(muster, peer, scratch, method):
    """One worker, so PyTorch has all threads that the machine allows."""
    (scratch / "worker.py").write_text(WORKER)
    job = muster.start(
        ["run", "--standalone", "--standby", "on", "--standby-rest", 0, "--max-restarts", 2, "worker.py"],
        env={"PYTHON_EXEC": peer.python, "LOGLEVEL": "INFO", "METHOD": method})

    def attempt(number):
        path = scratch / f"story.{number}"
        job.wait_until(path.exists, f"attempt {number}", timeout=240)
        return json.loads(path.read_text())

    def processes(number):
        return [int(line) for line in (scratch / f"processes.{number}").read_text().split()]

    first = attempt(0)
    job.wait_until(lambda: "standby workers ready: 1 of 1" in job.err(), "the standby worker", timeout=240)
    os.kill(first["pid"], signal.SIGKILL)
    second = attempt(1)
    job.wait_until(lambda: "started from standby: 1 of 1" in job.err(), "what the agent says", timeout=60)
    assert (first["warm"], second["warm"]) == (False, True)
    assert second["story"] == first["story"]
    assert (first["learned"], second["learned"]) == (False, False), "a child has recorded what it imported"
    # Twelve items of two loaders, and two processes inside each other; none of them is the worker.
    for number, worker in enumerate((first, second)):
        assert len(processes(number)) == 14 and len(set(processes(number))) == 4
        assert worker["pid"] not in processes(number)
    are_gone = lambda: not any(os.path.exists(f"/proc/{pid}") for pid in processes(0))  # noqa: E731
    job.wait_until(are_gone, "the old loaders to end", timeout=120)
    (scratch / "end").touch()
    end = job.finish()
    assert end.status == 0, end
    assert "no standby workers" not in end.err

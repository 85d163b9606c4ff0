# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch programs cannot tell whether they were started cold, cold with the hook, or as a standby worker."""

import re
import textwrap

import pytest

from support.gatekeeper import Gatekeeper

LOADER = """
    import os, sys, torch
    from torch.utils.data import DataLoader, Dataset, get_worker_info

    class Numbers(Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, at):
            info = get_worker_info()
            names = [int(os.environ["RANK"]), int("PYTHONPATH" in os.environ)]
            return torch.tensor([at, info.id, info.num_workers, *names])

    if __name__ == "__main__":
        torch.manual_seed(1)
        how = {"num_workers": int(sys.argv[2]), "multiprocessing_context": sys.argv[1]}
        for batch in DataLoader(Numbers(), batch_size=2, shuffle=True, **how):
            print(batch.tolist())
"""

SPAWN = """
    import os, torch, torch.multiprocessing

    def child(rank, tensor):
        tensor[rank] = rank + int(os.environ["RANK"])
        if len(tensor) == 3:
            raise ValueError("in a child")

    if __name__ == "__main__":
        shared = torch.zeros(2).share_memory_()
        torch.multiprocessing.spawn(child, args=(shared,), nprocs=2)
        print(shared.tolist())
        try:
            torch.multiprocessing.spawn(child, args=(torch.zeros(3),), nprocs=1)
        except torch.multiprocessing.ProcessRaisedException as error:
            print(error)
"""

SAVE = """
    import os, torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

    torch.manual_seed(3)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model.layer(torch.ones(4, 2)).square().sum()
    loss.backward()
    optimizer.step()
    torch.save(model.state_dict(), "state.pt")
    torch.save(model, "model.pt")
    loaded = torch.load("model.pt", weights_only=False)
    print(type(loaded) is Model, Model.__module__, loaded.layer.weight, torch.load("state.pt"), loss)
    print(torch.get_num_threads(), torch.get_default_dtype(), torch.initial_seed(), torch.is_grad_enabled())
    loaded.layer(torch.ones(3))
"""

GROUP = """
    import os, torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="0")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    torch.manual_seed(5)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(5):
        optimizer.zero_grad()
        loss = model(torch.full((2, 4), float(step))).sum()
        loss.backward()
        optimizer.step()
        print(step, loss.item())
    dist.destroy_process_group()
"""


@pytest.fixture
def keeper(peer, scratch):
    keeper = Gatekeeper(peer.python, scratch, seconds=240)
    with keeper.closing:
        yield keeper


def shown(run):
    """What a run shows. Python's own resource tracker now and then warns of a semaphore that is just being removed."""
    status, out, err = run.visible()
    warning = rb"^\S*resource_tracker\.py:\d+: UserWarning: .*\n  warnings\.warn.*\n"
    return status, out, re.sub(warning, b"", err, flags=re.MULTILINE)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("text, arguments", [
    (LOADER, ["fork", 2]), (LOADER, ["spawn", 1]), (SPAWN, []), (SAVE, []), (GROUP, []),
], ids=["loader-fork", "loader-spawn", "spawn", "save", "group"])
def test_a_pytorch_program_runs_as_if_started_cold(keeper, scratch, text, arguments):
    (scratch / "script.py").write_text(textwrap.dedent(text))
    words, names = ["script.py", *arguments], {"OMP_NUM_THREADS": "1"}
    cold = keeper.cold(words, **names)
    recorded = keeper.recorded(words, **names)
    assert shown(recorded) == shown(cold)
    spare = keeper.spare(words, **names)
    modules, skipped, _, _ = spare.warm(recorded.modules())
    assert modules > 1000 and skipped < 20
    spare.open_gate(keeper.streams())
    warm = spare.finish()
    assert shown(warm) == shown(cold)
    assert "torch" not in warm.modules()

# SPDX-License-Identifier: BSD-3-Clause
"""Training by the libraries that most people train with: their workers start from standby, and train as cold ones do.
While they are imported they read the rank, open the device and set variables, as no made-up library does."""

import os
import signal
import subprocess

import pytest

from support.gpu import opened_devices
from support.gpu_jobs import TELL, Job

pytestmark = pytest.mark.timeout(600)

LIGHTNING = TELL + """
import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

class Small(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.losses = torch.nn.Linear(64, 1), []

    def training_step(self, batch, number):
        loss = self.layer(batch[0]).square().mean()
        self.losses.append(loss.item().hex())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

lightning.seed_everything(7)
model = Small()
quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
trainer = lightning.Trainer(max_epochs=1, accelerator="gpu", devices=1, strategy="ddp", **dict.fromkeys(quiet, False))
trainer.fit(model, DataLoader(TensorDataset(torch.randn(96, 64)), 16))
tell(losses=model.losses)
stay()
"""

TRANSFORMERS = TELL + """
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        tokens = torch.arange(index, index + 16) % 64
        return {"input_ids": tokens, "labels": tokens}

set_seed(7)
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2))
settings = dict(max_steps=4, per_device_train_batch_size=4, logging_steps=1, report_to=[], save_strategy="no", disable_tqdm=True)
trainer = Trainer(model, TrainingArguments("out", **settings), train_dataset=Tokens())
trainer.train()
tell(losses=[one["loss"] for one in trainer.state.log_history if "loss" in one])
stay()
"""

ACCELERATE = TELL + """
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

set_seed(7)
accelerator = Accelerator()
model = torch.nn.Linear(64, 1)
data = DataLoader(TensorDataset(torch.randn(96, 64)), 16)
model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01), data)
losses = []
for (batch,) in data:
    loss = model(batch).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item().hex())
tell(losses=losses)
stay()
"""

PROGRAMS = {"lightning": LIGHTNING, "transformers": TRANSFORMERS, "accelerate": ACCELERATE}


@pytest.mark.parametrize("library", PROGRAMS)
def test_what_a_library_trains_is_the_same_from_standby(muster, gpu, library):
    if subprocess.run([gpu.python, "-c", f"import {library}"], capture_output=True).returncode != 0:
        pytest.skip(f"{gpu.python} has no {library}")
    job = Job(muster, gpu, 1, "on", PROGRAMS[library], restarts=2, HF_HUB_OFFLINE=1)
    told = []
    for attempt in range(2):
        told += job.attempt(attempt)
        job.await_spares(attempt + 1)
        assert [opened_devices(pid) for pid in job.spares()] == [set()]
        os.kill(told[-1]["pid"], signal.SIGKILL)
    told += job.attempt(2)
    print(job.finish().err)
    assert [one["losses"] for one in told] == [told[0]["losses"]] * 3
    assert told[0]["losses"]
    assert [one["warm"] for one in told] == [False, True, True]

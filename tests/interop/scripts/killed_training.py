# SPDX-License-Identifier: BSD-3-Clause
"""The PyTorch example, with workers that kill themselves: `killed_training.py EXAMPLE OPTIONS`.

KILLS is a list `rank@step,rank@step,...`: in attempt N the worker of that rank dies by SIGKILL just
before that step; step -1 is before the process group exists.
"""

import importlib.util
import os
import signal
import sys

import torch.distributed as dist

EXAMPLE, DATA, CHECKPOINT, STEPS = sys.argv[1:5]
ATTEMPT = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
KILLS = [entry.split("@") for entry in os.environ.get("KILLS", "").split(",") if entry]


def die_when_chosen(step):
    if ATTEMPT < len(KILLS):
        rank, chosen_step = KILLS[ATTEMPT]
        if int(rank) == int(os.environ["RANK"]) and int(chosen_step) == step:
            os.kill(os.getpid(), signal.SIGKILL)


def main():
    spec = importlib.util.spec_from_file_location("example", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    die_when_chosen(-1)
    dist.init_process_group("gloo")
    loss = example.train(*example.prepare(DATA), CHECKPOINT, int(STEPS), before_step=die_when_chosen)
    if dist.get_rank() == 0:
        print(f"final loss {loss:.9f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

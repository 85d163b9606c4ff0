# SPDX-License-Identifier: BSD-3-Clause
"""The PyTorch example, with pauses: `paused_training.py EXAMPLE DATA CHECKPOINT STEPS NODE`.

Before each step that PAUSES lists (20,40) a worker writes into facts/ which world it is in, and goes on
when there is a file pass.STEP.
"""

import importlib.util
import json
import os
import pathlib
import sys
import time

import torch.distributed as dist

EXAMPLE, DATA, CHECKPOINT, STEPS, NODE = sys.argv[1:6]
PAUSES = [int(step) for step in os.environ.get("PAUSES", "").split(",") if step]
VARIABLES = """RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_WORLD_SIZE MASTER_ADDR MASTER_PORT
TORCHELASTIC_RESTART_COUNT""".split()


def write_facts(step):
    name = f"{NODE}.{os.environ['LOCAL_RANK']}.{os.getpid()}"
    facts = {variable: os.environ[variable] for variable in VARIABLES}
    facts |= {"name": name, "node": int(NODE), "pid": os.getpid(), "step": step}
    folder = pathlib.Path("facts")
    folder.mkdir(exist_ok=True)
    (folder / f".{name}").write_text(json.dumps(facts))
    (folder / f".{name}").rename(folder / name)


def pause(step):
    if step in PAUSES:
        write_facts(step)
        while not os.path.exists(f"pass.{step}"):
            time.sleep(0.02)


def main():
    spec = importlib.util.spec_from_file_location("example", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    dist.init_process_group("gloo")
    loss = example.train(*example.prepare(DATA), CHECKPOINT, int(STEPS), before_step=pause)
    if dist.get_rank() == 0:
        print(f"final loss {loss:.9f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

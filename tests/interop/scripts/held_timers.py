# SPDX-License-Identifier: BSD-3-Clause
"""A worker that holds PyTorch's own countdown timers, one story per name: `held_timers.py STORY`. The
test watches and leads it through files in the working directory."""

import contextlib
import os
import sys
import time

import torch.distributed.elastic.timer as timer

RANK, ATTEMPT = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])


def note(name):
    open(f"{name}.{RANK}.{ATTEMPT}", "w").close()


def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)


def nested():
    """The inner one expires, then the outer one after the inner was released, then neither does."""
    with timer.expires(after=60 if ATTEMPT != 1 else 1, scope="outer"):
        with timer.expires(after=60 if ATTEMPT != 0 else 1, scope="inner"):
            if ATTEMPT == 0:
                time.sleep(600)
        note("left_inner")
        if ATTEMPT == 1:
            time.sleep(600)
        wait_for("leave")


def just_in_time():
    with timer.expires(after=4, scope="step"):
        wait_for("leave")
    note("left")
    wait_for("end")


def many():
    with contextlib.ExitStack() as scopes:
        for number in range(100):
            scopes.enter_context(timer.expires(after=300, scope=f"scope {number}"))
        note("holds")
        wait_for("leave")
    note("left")
    wait_for("end")


timer.configure(timer.FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))
{"nested": nested, "just_in_time": just_in_time, "many": many}[sys.argv[1]]()
print(f"rank {RANK} done in attempt {ATTEMPT}", flush=True)

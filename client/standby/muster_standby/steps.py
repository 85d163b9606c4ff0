# SPDX-License-Identifier: BSD-3-Clause
"""Counts the steps of PyTorch's optimizers, as a worker that does not tell of its steps itself: of the first optimizer
that has taken one, into the page that it shares with the agent (include/muster/progress.h). The hook for it is PyTorch's
public one. A program that tells by muster.progress ends this."""
import os
import sys

from muster_standby import borrow, pass_for_importlib

PAGE, OFFSET, WORDS, MAGIC = 4096, 2048, 14, 0x3153534552474F52
MARK, COUNT, STEP, STEPPED, FIRST_STEP, FIRST, SOURCE = 0, 3, 4, 5, 6, 7, 8
OPTIMIZER = 1
MODULE = "torch.optim.optimizer"


def count_steps(fd):
    """A function to be called at each import, and once at the end of them. It has the steps counted as soon as the program
    has imported PyTorch's optimizers, and returns whether it is still to be called."""
    is_due = os.fstat(fd).st_size >= PAGE

    @pass_for_importlib
    def attempt():
        nonlocal is_due
        module = sys.modules.get(MODULE) if is_due else None
        if module is not None:
            try:
                if not module.__spec__._initializing:
                    is_due = False
                    register(module, fd)
            except Exception:
                is_due = False
        return is_due

    return attempt


@pass_for_importlib
def register(module, fd):
    memory = borrow("mmap").mmap(fd, PAGE)
    page = memoryview(memory)[OFFSET : OFFSET + 8 * WORDS].cast("Q")
    now, getpid, pid, first = borrow("time").monotonic_ns, os.getpid, os.getpid(), None

    def stepped(optimizer, args, kwargs):
        nonlocal first
        if first is None:
            first = id(optimizer)
        if id(optimizer) != first or getpid() != pid or page[MARK] != MAGIC:
            return
        if page[SOURCE] > OPTIMIZER:
            handle.remove()
            return
        time, count = now(), page[COUNT] + 1
        if count == 1:
            page[FIRST_STEP], page[FIRST], page[SOURCE] = 1, time, OPTIMIZER
        page[STEP], page[STEPPED], page[COUNT] = count, time, count

    handle = module.register_optimizer_step_post_hook(stepped)

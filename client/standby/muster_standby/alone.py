# SPDX-License-Identifier: BSD-3-Clause
"""The hook in a worker of a job without standby workers: it has the steps of PyTorch's optimizers counted (steps.py), is
done when they have been imported, and leaves nothing behind."""
import os

from muster_standby import pass_for_importlib, watch_imports
from muster_standby.steps import count_steps


def begin(told):
    def after():
        try:
            if os.readlink("/proc/self/fd/" + told["fd"]).startswith("/memfd:"):
                watch(int(told["fd"]))
        except Exception:
            pass  # A wrapper did not pass the descriptors on, for example.

    return after


def watch(fd):
    look = count_steps(fd)

    @pass_for_importlib
    def found(name, origin):
        if not look():
            end()

    end = watch_imports(found)

# SPDX-License-Identifier: BSD-3-Clause
"""`python -m muster.replace_torchrun MODULE ARGUMENT...` is `python -m MODULE ARGUMENT...`, with Muster in the place of
`torch.distributed.run`. It is for launchers that start their jobs by calling that module in process."""

import runpy
import sys

from muster.run import LaunchFailed, exit_status, main, run


def replace_torchrun():
    """From now on, jobs that this process would start with torch.distributed.run are run by Muster."""
    import torch.distributed.run

    torch.distributed.run.main = main
    torch.distributed.run.run = run


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m muster.replace_torchrun MODULE [ARGUMENT...]")
    replace_torchrun()
    del sys.argv[0]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except LaunchFailed as failed:
        sys.exit(exit_status(failed))

# SPDX-License-Identifier: BSD-3-Clause
"""`python -m muster.replace_torchrun MODULE ARGUMENT...` is `python -m MODULE ARGUMENT...`, with Muster in the place of
`torch.distributed.run`. It is for launchers that start their jobs by calling that module in process. What is not launched
by Muster all the same is said on stderr."""

import functools
import runpy
import sys

from muster import library as muster_library
from muster.run import LaunchFailed, exit_status, main, run

REPLACED = "torch.distributed.run"
# Where PyTorch's own agent starts, also for programs that do not ask REPLACED.
BELOW = "torch.distributed.launcher.api"

_launches = []


def replace_torchrun():
    """From now on, jobs that this process would start with torch.distributed.run are run by Muster."""
    import torch.distributed.run

    torch.distributed.run.main = _noted(main)
    torch.distributed.run.run = _noted(run)
    below = sys.modules.get(BELOW)
    if below is not None:
        below.launch_agent = _launched(below)


def _noted(launch):
    @functools.wraps(launch)
    def noted(*arguments, **named):
        _launches.append("Muster")
        return launch(*arguments, **named)

    return noted


def _launched(below):
    """launch_agent by Muster, with PyTorch's exception. What is no LaunchConfig, and no libmuster, is left to PyTorch."""
    theirs = _told(below.launch_agent)

    @functools.wraps(theirs)
    def launched(config, *arguments, **named):
        if not hasattr(config, "nproc_per_node"):
            return theirs(config, *arguments, **named)
        try:
            from muster import launcher

            muster_library.load()
        except ImportError as missing:
            _say(str(missing))
            return theirs(config, *arguments, **named)
        _launches.append("Muster")
        try:
            return launcher.launch_agent(config, *arguments, **named)
        except launcher.ChildFailedError as failed:
            raise _as_theirs(failed) from failed

    return launched


def _as_theirs(failed):
    try:
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
    except ImportError:
        return failed
    failures = failed.failures or ({failed.root_cause[0]: failed.root_cause[1]} if failed.root_cause else {})
    return ChildFailedError(failed.name, {
        rank: ProcessFailure(each.local_rank, each.pid, each.exitcode, each.error_file) for rank, each in failures.items()
    }) if failures else failed


def _told(launch_agent):
    @functools.wraps(launch_agent)
    def told(*arguments, **named):
        _launches.append("PyTorch")
        _say(f"this job is launched by PyTorch's agent, not by Muster: it is started by {BELOW}, below {REPLACED}")
        return launch_agent(*arguments, **named)

    return told


def _say(words):
    print(f"muster.replace_torchrun: {words}", file=sys.stderr, flush=True)


def _run(module):
    if module in (REPLACED, f"{REPLACED}.__main__"):  # runpy would execute the file anew, with PyTorch's functions
        main(sys.argv[1:])
        return
    replace_torchrun()
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code:
            raise
    if not _launches:
        _say(f"{module} has ended well and has not called {REPLACED}: whatever it has started was not launched by Muster")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m muster.replace_torchrun MODULE [ARGUMENT...]")
    del sys.argv[0]
    try:
        _run(sys.argv[0])
    except LaunchFailed as failed:
        sys.exit(exit_status(failed))

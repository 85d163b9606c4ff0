# SPDX-License-Identifier: BSD-3-Clause
"""Runs a job and returns when it has ended: `muster.run.main([...])` where a program would call
`torch.distributed.run.main([...])`, and `muster.run.run(namespace)` where it would call `torch.distributed.run.run(namespace)`.
The arguments are those of `muster run`."""

import ctypes
import os
import signal
import subprocess
import sys
import threading

from muster import PROGRAM, environment
from muster.namespace import arguments_of, environment_of

PR_SET_PDEATHSIG = 1
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)


class LaunchFailed(RuntimeError):
    """The job has failed; what failed was said on stderr. `status` is the launcher's exit status, negative where a
    signal ended it."""

    def __init__(self, status):
        super().__init__(f"muster run ended with status {status}")
        self.status = status


class UsageMistake(LaunchFailed, ValueError):
    """No job was started: the arguments or the environment have a mistake. torch.distributed.run raises a ValueError, too."""


USAGE_STATUS = 2


def exit_status(failed):
    """With which a program ends whose job has failed so."""
    return failed.status if failed.status > 0 else 128 - failed.status


def main(args=None):
    """Runs a job with these arguments (default: those of this program). Raises LaunchFailed if it does not succeed.

    Signals that this process gets meanwhile go to the launcher, if this is the main thread. If this process is killed,
    the launcher ends the job."""
    _launch(sys.argv[1:] if args is None else [os.fspath(word) for word in args], environment())


def run(namespace):
    """The same for what torch.distributed.run's argument parser makes of its arguments."""
    _launch(arguments_of(namespace), environment_of(namespace, environment()))


def _launch(arguments, environment):
    libc = ctypes.CDLL(None)  # before the fork: nothing is to be loaded after it
    parent = os.getpid()

    def end_with_parent():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    sys.stdout.flush()
    forwarding = _Forwarding()
    try:
        forwarding.process = subprocess.Popen([PROGRAM, "run", *arguments], env=environment,
                                              preexec_fn=end_with_parent, close_fds=False)
        status = forwarding.wait()
    finally:
        forwarding.end()
    if status != 0:
        raise UsageMistake(status) if status == USAGE_STATUS else LaunchFailed(status)


class _Forwarding:
    """Passes signals on to a process while it is there."""

    def __init__(self):
        self.process = None
        self.missed = []
        is_main = threading.current_thread() is threading.main_thread()
        self.replaced = {number: signal.signal(number, self._pass_on) for number in FORWARDED if is_main}

    def _pass_on(self, number, frame):
        if number == signal.SIGINT and _is_in_foreground():
            return  # the terminal has sent it to the launcher, too
        if self.process is None:
            self.missed.append(number)
        else:
            self.process.send_signal(number)

    def wait(self):
        for number in self.missed:
            self.process.send_signal(number)
        return self.process.wait()

    def end(self):
        for number, handler in self.replaced.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _is_in_foreground():
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


if __name__ == "__main__":
    try:
        main()
    except LaunchFailed as failed:
        sys.exit(exit_status(failed))

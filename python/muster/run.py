# SPDX-License-Identifier: BSD-3-Clause
"""Runs a job and returns when it has ended: `muster.run.main([...])` where a program would call
`torch.distributed.run.main([...])`, and `muster.run.run(namespace)` where it would call `torch.distributed.run.run(namespace)`.
The arguments are those of `muster run`; `--event-log-handler` may also be a name that the program has given to
register_event_handler."""

import ctypes
import os
import signal
import subprocess
import sys
import threading

from muster import PROGRAM, environment
from muster.event_handlers import event_handler, register_event_handler
from muster.namespace import arguments_of, environment_of, options_of, words_of

__all__ = ["LaunchFailed", "UsageMistake", "exit_status", "main", "register_event_handler", "run"]

PR_SET_PDEATHSIG = 1
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)

PATIENCE = 5  # in seconds, with a handler of events when the job has ended


class LaunchFailed(RuntimeError):
    """The job has failed; what failed was said on stderr. `status` is the launcher's exit status, negative where a
    signal ended it."""

    def __init__(self, status):
        super().__init__(f"muster run ended with status {status}")
        self.status = status


class UsageMistake(LaunchFailed, ValueError):
    """No job was started: the arguments or the environment have a mistake. torch.distributed.run raises a ValueError, too."""


USAGE_STATUS = 2
LOGS = ("--logs-specs", "--log-dir", "--redirects", "--tee")
EVENTS, EVENTS_VARIABLE = "--event-log-handler", "PET_EVENT_LOG_HANDLER"


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
    options, program = options_of(arguments)
    name = dict(options).get(LOGS[0]) or "default"
    if name != "default":
        _launch_here(name, options, program, environment)
        return
    libc = ctypes.CDLL(None)  # before the fork: nothing is to be loaded after it
    parent = os.getpid()

    def end_with_parent():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    sys.stdout.flush()
    forwarding, events = _Forwarding(), _Events(arguments, environment)
    try:
        forwarding.process = subprocess.Popen([PROGRAM, "run", *events.arguments], env=environment,
                                              preexec_fn=end_with_parent, close_fds=False)
        events.begin()
        status = forwarding.wait()
    finally:
        forwarding.end()
        events.end()
    _judge(status)


def _judge(status):
    if status != 0:
        raise UsageMistake(status) if status == USAGE_STATUS else LaunchFailed(status)


def _launch_here(name, options, program, environment):
    """By an agent of this process, which can call the class that `--logs-specs` names."""
    from muster import launcher
    from muster.logs_specs import logs_specs_of

    given = dict(options)
    handler = given.get(EVENTS, environment.get(EVENTS_VARIABLE, "null"))
    left = [(option, value) for option, value in options if option not in LOGS and (option != EVENTS or event_handler(handler) is None)]
    try:
        logs = logs_specs_of(name, *(given.get(option) for option in LOGS[1:]), given.get("--local-ranks-filter"))
        agent = launcher.agent_of_command([*words_of(left), *program], logs, environment, handler)
    except ValueError as mistake:
        print(f"muster run: error: {mistake}", file=sys.stderr, flush=True)
        raise UsageMistake(USAGE_STATUS) from mistake
    forwarding = _Forwarding(is_of_one_terminal=False)
    try:
        forwarding.process = _Here(agent)
        status = forwarding.wait()
    finally:
        forwarding.end()
        agent.free()
    _judge(status)


class _Here:
    """An agent, as the process of the launcher is seen. It leads a session of its own, which no terminal signals."""

    def __init__(self, agent):
        self._agent, self.send_signal = agent, agent.stop

    def wait(self):
        return self._agent.wait().exit_status


class _Forwarding:
    """Passes signals on to a process while it is there."""

    def __init__(self, is_of_one_terminal=True):
        self.process, self.is_of_one_terminal = None, is_of_one_terminal
        self.missed = []
        is_main = threading.current_thread() is threading.main_thread()
        self.replaced = {number: signal.signal(number, self._pass_on) for number in FORWARDED if is_main}

    def _pass_on(self, number, frame):
        if number == signal.SIGINT and self.is_of_one_terminal and _is_in_foreground():
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


class _Events:
    """Hands what the launcher records to a handler of this process, by a pipe that the launcher opens as a file."""

    def __init__(self, arguments, environment):
        options, program = options_of(arguments)
        self.arguments, self.thread, self.reading, self.writing = list(arguments), None, None, None
        self.handler = event_handler(dict(options).get(EVENTS, environment.get(EVENTS_VARIABLE)))
        if self.handler is not None:
            self.reading, self.writing = os.pipe()
            os.set_inheritable(self.writing, True)
            others = [(option, value) for option, value in options if option != EVENTS]
            self.arguments = [f"{EVENTS}=file:/proc/self/fd/{self.writing}", *words_of(others), *program]

    def begin(self):
        if self.handler is not None:
            os.close(self.writing)
            self.writing = None
            self.thread = threading.Thread(target=self._read, name="muster-events", daemon=True)
            self.thread.start()

    def _read(self):
        with open(self.reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self.handler(line.rstrip("\n"))

    def end(self):
        if self.thread is not None:
            self.thread.join(PATIENCE)
        elif self.writing is not None:
            os.close(self.writing)
            os.close(self.reading)


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

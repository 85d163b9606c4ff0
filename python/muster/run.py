# SPDX-License-Identifier: BSD-3-Clause
"""Runs a job and returns when it has ended: `muster.run.main([...])` where a program would call
`torch.distributed.run.main([...])`, and `muster.run.run(namespace)` where it would call `torch.distributed.run.run(namespace)`.
The arguments are those of `muster run`; `--event-log-handler` may also be a name that the program has given to
register_event_handler."""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading

from muster import PROGRAM, environment
from muster.namespace import arguments_of, environment_of

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


_event_handlers = {}


def register_event_handler(name, handler):
    """Makes `--event-log-handler NAME` of jobs that this process runs a handler of its own, as TorchElastic's are: a
    logging.Handler, whose records have an event as text in JSON, or a function that is called with this text. It is called on
    a thread, one event after the other, until 5 seconds after the end of the job. One that raises costs that event."""
    if name in ("null", "console", "dynamic_rendezvous") or not name or ":" in name:
        raise ValueError(f"{name!r} cannot be the name of a handler of one's own")
    _event_handlers[name] = handler


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
    forwarding, events = _Forwarding(), _Events(arguments, environment)
    try:
        forwarding.process = subprocess.Popen([PROGRAM, "run", *events.arguments], env=environment,
                                              preexec_fn=end_with_parent, close_fds=False)
        events.begin()
        status = forwarding.wait()
    finally:
        forwarding.end()
        events.end()
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


class _Events:
    """Hands what the launcher records to a handler of this process, by a pipe that the launcher opens as a file."""

    OPTION = "--event-log-handler"

    def __init__(self, arguments, environment):
        self.arguments, self.handler, self.thread = list(arguments), None, None
        self.reading = self.writing = None
        place, name = self._place(), environment.get("PET_EVENT_LOG_HANDLER")
        if place is not None:
            name = self.arguments[place].split("=", 1)[1] if "=" in self.arguments[place] else self.arguments[place + 1]
        self.handler = _event_handlers.get(name)
        if self.handler is not None:
            self.reading, self.writing = os.pipe()
            os.set_inheritable(self.writing, True)
            words = [f"{self.OPTION}=file:/proc/self/fd/{self.writing}"]
            if place is None:
                self.arguments[:0] = words
            else:
                self.arguments[place:place + (1 if "=" in self.arguments[place] else 2)] = words

    def _place(self):
        """Where the option stands first."""
        spellings = (self.OPTION, self.OPTION.replace("-", "_").replace("__", "--", 1))
        for place, word in enumerate(self.arguments):
            if word == "--":
                return None
            if word.split("=", 1)[0] in spellings and ("=" in word or place + 1 < len(self.arguments)):
                return place
        return None

    def begin(self):
        if self.handler is not None:
            os.close(self.writing)
            self.writing = None
            self.thread = threading.Thread(target=self._read, name="muster-events", daemon=True)
            self.thread.start()

    def _read(self):
        with open(self.reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    self._handle(line.rstrip("\n"))
                except Exception:
                    logging.getLogger(__name__).exception("the handler of events has failed, and the job goes on")

    def _handle(self, line):
        if isinstance(self.handler, logging.Handler):
            self.handler.handle(logging.LogRecord("torchelastic", logging.INFO, __file__, 0, line, None, None))
        else:
            self.handler(line)

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

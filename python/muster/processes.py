# SPDX-License-Identifier: BSD-3-Clause
"""A function or a program as several processes of this node, each with arguments and an environment of its own: start_processes and
PContext of torch.distributed.elastic.multiprocessing, with Muster's agent and without PyTorch.

    with start_processes("trainer", train, {0: ("a",), 1: ("b",)}, {0: {}, 1: {"DEBUG": "1"}}) as context:
        result = context.wait()

The processes are the workers of a job of this node, which is not restarted: they have its ranks and a place to meet, too, and when
one fails the others are stopped. They end with the program, however that ends. A prefix of their lines is one for all, the
template of `muster run`."""

import dataclasses
import errno
import os
import pathlib
import shutil
import signal
import time
import uuid
from typing import Any, Dict

from muster import launcher
from muster.launcher import DefaultLogsSpecs, LaunchConfig, ProcessFailure

LIFE_SIGN = 0.1  # seconds between the looks of a wait that ends


@dataclasses.dataclass
class RunProcsResult:
    """All by local rank. `stdouts` and `stderrs` are files below the log directory, or empty texts. A program returns None."""

    return_values: Dict[int, Any] = dataclasses.field(default_factory=dict)
    failures: Dict[int, ProcessFailure] = dataclasses.field(default_factory=dict)
    stdouts: Dict[int, str] = dataclasses.field(default_factory=dict)
    stderrs: Dict[int, str] = dataclasses.field(default_factory=dict)

    def is_failed(self):
        return bool(self.failures)


class PContext:
    """Several processes, once they are started."""

    def __init__(self, name, entrypoint, args, envs, logs_specs=None, log_line_prefix_template=None, start_method="spawn",
                 numa_options=None, duplicate_stdout_filters=None, duplicate_stderr_filters=None):
        if sorted(args) != list(range(len(args))) or sorted(envs) != sorted(args):
            raise RuntimeError(f"the ranks of args {sorted(args)} and of envs {sorted(envs)} have to be 0 to {len(args) - 1}")
        self.name, self.entrypoint, self.args, self.envs, self.nprocs = name, entrypoint, args, envs, len(args)
        self._result = None
        self._logs, self._run_id = logs_specs or DefaultLogsSpecs(), str(uuid.uuid4().int)
        self._job = launcher.Job(LaunchConfig(
            1, 1, len(args), logs_specs=self._logs, run_id=self._run_id, role=name, max_restarts=0, start_method=start_method,
            log_line_prefix_template=log_line_prefix_template, numa_options=numa_options,
            duplicate_stdout_filters=duplicate_stdout_filters, duplicate_stderr_filters=duplicate_stderr_filters),
            entrypoint, args, envs)  # fmt: skip

    def start(self):
        """Until they run, or it is known why not."""
        if isinstance(self.entrypoint, str) and shutil.which(self.entrypoint) is None and not os.path.exists(self.entrypoint):
            raise FileNotFoundError(errno.ENOENT, "no such program", self.entrypoint)
        self._job.__enter__()
        self._job.agent.wait(is_enough=lambda: len(self.pids()) == self.nprocs)

    def wait(self, timeout=-1, period=1):
        """A RunProcsResult when all have ended, or one has failed; None when the time is up. `period` has no meaning here."""
        if self._result is None:
            ended = self._job.agent.wait(None if timeout < 0 else timeout)
            self._result = ended and self._result_of(ended)
        return self._result

    def _result_of(self, ended):
        values = {worker.local_rank: self._job.value_of(worker.global_rank)
                  for worker in ended.workers[:ended.worker_count] if worker.exitcode == 0}
        failures = {failure.local_rank: failure for failure in launcher.failures_of(ended).values()}
        return RunProcsResult({} if failures else values, failures, self.stdouts, self.stderrs)

    @property
    def stdouts(self):
        return self._files("stdout.log")

    @property
    def stderrs(self):
        return self._files("stderr.log")

    def _files(self, name):
        place = self._logs.log_dir
        found = pathlib.Path(place).glob(f"{self._run_id}_*/attempt_0/*/{name}") if place else ()
        return {**dict.fromkeys(range(self.nprocs), ""), **{int(path.parent.name): str(path) for path in found}}

    def pids(self):
        """By local rank, of those that were started."""
        return self._job.agent.worker_group(lambda group: {
            worker.local_rank: worker.pid for worker in group.workers[:group.worker_count] if worker.pid}) or {}  # fmt: skip

    def close(self, death_sig=None, timeout=30):
        """Ends those that run: with the signal, and after the time with SIGKILL."""
        if self._job.agent is None:
            return
        try:
            self._job.agent.stop(death_sig or signal.SIGTERM)
            end = time.monotonic() + timeout
            while self.wait(LIFE_SIGN) is None:
                if time.monotonic() > end:
                    self._job.agent.kill()
        finally:
            self._job.__exit__()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def start_processes(name, entrypoint, args, envs, logs_specs=None, log_line_prefix_template=None, start_method="spawn", **options):
    """`args` and `envs` are by local rank. The PContext, which is to be closed."""
    context = PContext(name, entrypoint, args, envs, logs_specs, log_line_prefix_template, start_method, **options)
    context.start()
    return context

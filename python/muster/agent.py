# SPDX-License-Identifier: BSD-3-Clause
"""The agent of a node, to be extended: WorkerSpec, SimpleElasticAgent and LocalElasticAgent of torch.distributed.elastic.agent.server
(api.py, local_elastic_agent.py), with Muster's agent (muster/agent.h) and without PyTorch.

    class Careful(LocalElasticAgent):
        def _restart_workers(self, worker_group):
            if not gpus_are_well():
                raise RuntimeError("a GPU is lost")  # this node ends, and the others go on
            super()._restart_workers(worker_group)

    handler = DynamicRendezvousHandler.from_backend("job", store, backend, min_nodes=2, max_nodes=4)
    result = Careful(WorkerSpec("trainer", 8, handler, entrypoint=train)).run()

The agent runs as a process of its own, a copy of the program as it is when run() is called. The methods that are overridden, the
rendezvous backend and the alive callback are called there: what they change in memory the program does not see, and of what the
program has open they have only the standard streams and the backend's watch_fd. The agent waits for them, so they have to return
soon. An exception of _start_workers or _restart_workers ends the node; those of the others are logged, and the job goes on.

What the methods of SimpleElasticAgent do in PyTorch the agent does itself, after they have returned."""

import abc
import ctypes
import dataclasses
import enum
import logging
import signal
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from muster import launcher
from muster import library as muster_library
from muster.library import Failure
from muster.launcher import DefaultLogsSpecs, LaunchConfig, ProcessFailure

DEFAULT_ROLE = "default"

logger = logging.getLogger(__name__)


class WorkerState(str, enum.Enum):
    UNKNOWN = "UNKNOWN"
    INIT = "INIT"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @staticmethod
    def is_running(state):
        return state in (WorkerState.HEALTHY, WorkerState.UNHEALTHY)


_STATES = [WorkerState[name] for name in ("UNKNOWN", "STOPPED", "SUCCEEDED", "FAILED", "INIT", "HEALTHY")]  # of muster/agent.h


@dataclasses.dataclass
class WorkerSpec:
    """The members of PyTorch's class. `rdzv_handler` is one that muster.rendezvous has made, or any object with the methods of
    RendezvousHandler, PyTorch's included; None: the job has this node alone. `args` may be {local rank: arguments}, and `envs` is {local rank: variables}."""

    role: str
    local_world_size: int
    rdzv_handler: Any = None
    fn: Optional[Callable] = None
    entrypoint: Union[Callable, str, None] = None
    args: Union[Tuple, Dict[int, Tuple]] = ()
    max_restarts: int = 3
    monitor_interval: float = 0.1
    master_port: Optional[int] = None
    master_addr: Optional[str] = None
    local_addr: Optional[str] = None
    event_log_handler: str = "null"
    numa_options: Any = None
    duplicate_stdout_filters: Optional[List[str]] = None
    duplicate_stderr_filters: Optional[List[str]] = None
    virtual_local_rank: bool = False
    envs: Optional[Dict[int, Dict[str, str]]] = None

    def __post_init__(self):
        self.entrypoint = self.fn or self.entrypoint
        if self.local_world_size <= 0 or self.monitor_interval <= 0 or not self.entrypoint:
            raise AssertionError("a worker spec has workers, an interval and an entrypoint")

    def get_entrypoint_name(self):
        return self.entrypoint if isinstance(self.entrypoint, str) else self.entrypoint.__qualname__


@dataclasses.dataclass
class Worker:
    """`id` is its pid, or None."""

    local_rank: int
    global_rank: int = -1
    role_rank: int = -1
    world_size: int = -1
    role_world_size: int = -1
    id: Optional[int] = None


@dataclasses.dataclass
class WorkerGroup:
    """The workers of a node since its last rendezvous."""

    spec: WorkerSpec
    workers: List[Worker] = dataclasses.field(default_factory=list)
    store: Any = None
    group_rank: Optional[int] = None
    group_world_size: Optional[int] = None
    state: WorkerState = WorkerState.INIT
    master_addr: Optional[str] = None
    master_port: Optional[int] = None
    restarts: int = 0

    def __post_init__(self):
        self.workers = self.workers or [Worker(rank) for rank in range(self.spec.local_world_size)]


@dataclasses.dataclass
class RunResult:
    """Both by global rank."""

    state: WorkerState
    return_values: Dict[int, Any] = dataclasses.field(default_factory=dict)
    failures: Dict[int, ProcessFailure] = dataclasses.field(default_factory=dict)

    def is_failed(self):
        return self.state == WorkerState.FAILED


class ElasticAgent(abc.ABC):
    @abc.abstractmethod
    def run(self, role=DEFAULT_ROLE):
        """Runs the job on this node until it is over."""

    @abc.abstractmethod
    def get_worker_group(self, role=DEFAULT_ROLE):
        """The workers as they are."""


class SimpleElasticAgent(ElasticAgent):
    """What of an agent can be overridden. The methods are called before the agent does what they are named after."""

    def _start_workers(self, worker_group):
        """The group has its ranks; it is the first one, or follows one that has ended."""
        return {}

    def _restart_workers(self, worker_group):
        """The workers have ended, and the node is about to join a round again."""

    def _stop_workers(self, worker_group):
        """They are to be stopped, for any reason but that all have succeeded."""

    def _monitor_workers(self, worker_group):
        """Every monitor_interval. UNHEALTHY or FAILED: the worker of the first failure, or of local rank 0, is killed and counts as
        failed."""
        return RunResult(WorkerState.HEALTHY)

    def _shutdown(self, death_sig=signal.SIGTERM, timeout=30):
        """The workers have ended, and the agent is about to."""


class LocalElasticAgent(SimpleElasticAgent):
    """`health_check_server` is a HealthCheckServer that the agent serves: whoever asks it learns of the agent's health, and of the
    program's by its alive callback. `exit_barrier_timeout` is how long this node waits for the others at the end."""

    def __init__(self, spec, logs_specs=None, start_method="spawn", exit_barrier_timeout=300, log_line_prefix_template=None,
                 shutdown_timeout=None, health_check_server=None):
        self._spec, self._logs, self._start_method = spec, logs_specs or DefaultLogsSpecs(), start_method
        self._exit_barrier_timeout, self._template = exit_barrier_timeout, log_line_prefix_template
        self._shutdown_timeout, self._health, self._job = shutdown_timeout, health_check_server, None
        self._worker_group = WorkerGroup(spec)

    def run(self, role=DEFAULT_ROLE):
        with launcher.Job(self._config(), self._spec.entrypoint, self._spec.args, self._spec.envs, self._spec.rdzv_handler,
                          **self._fields()) as self._job:
            try:
                result = self._job.wait()
                values = self._job.values_of(result) if _STATES[result.state] == WorkerState.SUCCEEDED else {}
                if result.message is not None:
                    logger.error("%s", result.message.decode("utf-8", "replace"))
                return RunResult(_STATES[result.state], values, launcher.failures_of(result))
            finally:
                self.get_worker_group()
                self._job = None

    def get_worker_group(self, role=DEFAULT_ROLE):
        """As the agent has told of it last; also from another thread, while run() waits."""
        job = self._job
        return job and job.agent.worker_group(self._group_of) or self._worker_group

    def _group_of(self, found):
        workers = [Worker(each.local_rank, each.global_rank, each.role_rank, each.world_size, each.role_world_size, each.pid or None)
                   for each in found.workers[:found.worker_count]]
        self._worker_group = WorkerGroup(self._spec, workers, self._job and self._job.store, found.group_rank, found.group_world_size, _STATES[found.state],
                           found.master_addr.decode(), found.master_port, found.restarts)
        return self._worker_group

    def _config(self):
        spec = self._spec
        return LaunchConfig(
            1, 1, spec.local_world_size, logs_specs=self._logs, role=spec.role, max_restarts=spec.max_restarts,
            monitor_interval=spec.monitor_interval, start_method=self._start_method, log_line_prefix_template=self._template,
            local_addr=spec.local_addr, event_log_handler=spec.event_log_handler, numa_options=spec.numa_options,
            duplicate_stdout_filters=spec.duplicate_stdout_filters, duplicate_stderr_filters=spec.duplicate_stderr_filters,
            virtual_local_rank=spec.virtual_local_rank, shutdown_timeout=self._shutdown_timeout,
            exit_barrier_timeout=self._exit_barrier_timeout)

    def _fields(self):
        fields = {name: make(getattr(self, method)) for name, method, make in (
            ("start_workers", "_start_workers", self._asking), ("restart_workers", "_restart_workers", self._asking),
            ("stop_workers", "_stop_workers", self._stopping), ("monitor_workers", "_monitor_workers", self._monitoring),
            ("shutdown", "_shutdown", self._shutting_down)) if self._is_overridden(method)}  # fmt: skip
        if self._spec.master_addr:
            fields["master_addr"] = self._spec.master_addr.encode()
        if self._spec.master_port:
            fields["master_port"] = self._spec.master_port
        if self._health is not None:
            fields["alive_callback"] = _ALIVE(lambda _context: _answer(lambda: int(self._health.alive_callback()), 0))
            fields["variables"] = {"TORCHELASTIC_HEALTH_CHECK_PORT": self._health.port,
                                   "MUSTER_HEALTH_CHECK_TIMEOUT": self._health.timeout}  # fmt: skip
        return fields

    def _is_overridden(self, method):
        return getattr(getattr(self, method), "__func__", None) is not getattr(SimpleElasticAgent, method)

    # What the agent calls; it knows no exceptions.

    def _asking(self, method):
        def call(group):
            method(self._group_of(group.contents))
            return muster_library.OK

        return _ASK(lambda _context, group, failure: _answer(lambda: call(group), muster_library.SYSTEM, failure))

    def _stopping(self, method):
        def stop(_context, group, _number):
            _answer(lambda: method(self._group_of(group.contents)))

        return _TELL(stop)

    def _shutting_down(self, method):
        def shut_down(_context, _group, number):
            _answer(lambda: method(signal.Signals(number or signal.SIGTERM)))

        return _TELL(shut_down)

    def _monitoring(self, method):
        def monitor(failure, found):
            group = self._group_of(found)
            result = method(group)
            if result is None or result.state not in (WorkerState.UNHEALTHY, WorkerState.FAILED):
                return -1
            rank = min(result.failures, default=group.workers[0].global_rank)
            _say(failure, getattr(result.failures.get(rank), "message", "") or "_monitor_workers has found it unhealthy")
            return rank - group.workers[0].global_rank

        return _MONITOR(lambda _context, group, failure: _answer(lambda: monitor(failure, group.contents), -1))


_GROUP, _FAILURE = ctypes.POINTER(launcher.WorkerGroup), ctypes.POINTER(Failure)
_ASK = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _GROUP, _FAILURE)
_TELL = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, _GROUP, ctypes.c_int)
_MONITOR = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _GROUP, _FAILURE)
_ALIVE = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


def _say(failure, text):
    failure.contents.message = text.encode("utf-8", "replace")[:1023].replace(b"\0", b"?")


def _answer(function, otherwise=None, failure=None):
    muster_library.enter_copy()
    try:
        return function()
    except Exception as wrong:
        logger.exception("a method of the agent has failed")
        if failure:
            _say(failure, f"{type(wrong).__name__}: {wrong}")
        return otherwise

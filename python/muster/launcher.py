# SPDX-License-Identifier: BSD-3-Clause
"""Runs a function, or a program, as the workers of this node: LaunchConfig, elastic_launch and launch_agent of
torch.distributed.launcher, with Muster's agent (muster/agent.h) and without PyTorch.

    from muster.launcher import LaunchConfig, elastic_launch
    values = elastic_launch(LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=4), train)(3, "data")

`values` has what each worker's function has returned, by global rank; of a program it is None. A job that fails raises
ChildFailedError. What a function returns can be pickled. With the start method `spawn` workers are told the function as
multiprocessing does: it has a name in a module, its arguments can be pickled, and the program's main module is guarded by
`if __name__ == "__main__"`. With `fork` workers are copies of this process as it is now, as notebooks need it: any function will
do, but the locks that other threads hold stay held."""

import abc
import contextlib
import ctypes
import dataclasses
import datetime
import json
import os
import pathlib
import pickle
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import uuid
from multiprocessing import spawn
from typing import Any, Callable, Dict, List, Optional, Union

from muster import library as muster_library
from muster.event_handlers import event_handler
from muster.handler_rounds import HandlerRounds, check_handler, use_agent_store
from muster.library import Failure, error_of, raising

STATES = ("UNKNOWN", "STOPPED", "SUCCEEDED", "FAILED")  # enum muster_worker_state
HEALTHY = 5
# Where a worker finds this package, and the directory of its job. They are no arguments: these are the same on all nodes.
PLACES = ("MUSTER_LAUNCH_PACKAGE", "MUSTER_LAUNCH_DIRECTORY")
BOOT = (f"import os, sys; package, directory = map(os.environ.pop, {PLACES!r}); sys.path.insert(0, package); "
        "from muster.launcher import _work; _work(directory)")
JOB = "job"
ERROR_FILE_BYTES = 1 << 20

_TEXT, _TEXTS = ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)


@dataclasses.dataclass
class LogsDest:
    """Paths by local rank, in directories that are there; of what has none the file is below the log directory."""

    stdouts: Dict[int, str] = dataclasses.field(default_factory=dict)
    stderrs: Dict[int, str] = dataclasses.field(default_factory=dict)
    error_files: Dict[int, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class LogsSpecs(abc.ABC):
    """Where the workers' output goes, as --log-dir, --redirects, --tee and --local-ranks-filter of `muster run` say. A number, a text
    or {local rank: number}. A class of the program's own says the paths, too."""

    log_dir: Optional[str] = None
    redirects: Any = 0
    tee: Any = 0
    local_ranks_filter: Optional[set] = None

    @abc.abstractmethod
    def reify(self, envs):
        """LogsDest of the attempt whose workers have these variables, by local rank. It is called in the agent's process."""


class DefaultLogsSpecs(LogsSpecs):
    def reify(self, envs):
        return LogsDest()


@dataclasses.dataclass
class LaunchConfig:
    """The members of PyTorch's class. An empty run_id is a new one; a job of one node without an endpoint needs no backend."""

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = ""
    rdzv_configs: Dict[str, Any] = dataclasses.field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: Optional[str] = None
    metrics_cfg: Dict[str, str] = dataclasses.field(default_factory=dict)
    local_addr: Optional[str] = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: Optional[List[str]] = None
    duplicate_stderr_filters: Optional[List[str]] = None
    virtual_local_rank: bool = False
    shutdown_timeout: Optional[int] = None
    exit_barrier_timeout: Optional[float] = None  # Muster's own: `muster run --exit-barrier-timeout`


@dataclasses.dataclass
class ProcessFailure:
    """How a worker has failed. `message` is its traceback, where it has left one, and `error_file_data` what its error file holds."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    message: str = ""
    timestamp: Optional[float] = None
    error_file_data: Dict[str, Any] = dataclasses.field(init=False)

    def __post_init__(self):
        self.error_file_data, found = _read_error(self.error_file)
        self.message = self.message or str(found.get("py_callstack", ""))
        if self.timestamp is None:
            said = str(found.get("timestamp", ""))
            self.timestamp = float(said) if said.isdecimal() else time.time()

    def signal_name(self):
        try:
            return signal.Signals(-self.exitcode).name if self.exitcode < 0 else "<N/A>"
        except ValueError:
            return "<Unknown>"

    def timestamp_isoformat(self):
        return datetime.datetime.fromtimestamp(self.timestamp).isoformat("_", "seconds")


class ChildFailedError(Exception):
    """Workers have failed: `failures` has them by global rank; it is empty where only other nodes know."""

    def __init__(self, name, failures, root_cause=None, reason=None):
        self.name, self.failures, self.root_cause = name, failures, root_cause
        super().__init__(self._text(reason))

    def get_first_failure(self):
        """(global rank, ProcessFailure) of the root cause."""
        if self.root_cause is not None:
            return self.root_cause
        rank = min(self.failures, key=lambda rank: self.failures[rank].timestamp)
        return rank, self.failures[rank]

    def _text(self, reason):
        if not self.failures and self.root_cause is None:
            return f"{self.name} has failed: {reason or 'another node has ended the job'}"
        rank, first = self.get_first_failure()
        why = f"signal {first.signal_name()}" if first.exitcode < 0 else f"exit status {first.exitcode}"
        return (f"{self.name} has failed: rank {rank} (local rank {first.local_rank}, process {first.pid}) was the first to fail, "
                f"with {why}{': ' if first.message else ''}{first.message}; in all {len(self.failures)} failed on this node")


class elastic_launch:  # noqa: N801
    """Calls the function, or runs the program, with the arguments of the call in each worker."""

    def __init__(self, config, entrypoint):
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args):
        return launch_agent(self._config, self._entrypoint, list(args))


def launch_agent(config: LaunchConfig, entrypoint: Union[Callable, str, None], args: List[Any]) -> Dict[int, Any]:
    """The same, with the arguments as a list."""
    with Job(config, entrypoint, args, handler=_handler_of(config)) as job:
        try:
            return job.run()
        finally:
            job.shut_down()


def _handler_of(config):
    """Of a backend that the program, or a package, has registered (muster.rendezvous_registry)."""
    from muster.rendezvous_api import RendezvousParameters
    from muster.rendezvous_registry import get_rendezvous_handler, is_registered

    if config.rdzv_backend in ("", "c10d", "static") or not is_registered(config.rdzv_backend):
        return None
    return get_rendezvous_handler(RendezvousParameters(
        config.rdzv_backend, config.rdzv_endpoint, config.run_id or str(uuid.uuid4().int), config.min_nodes, config.max_nodes,
        config.local_addr, **config.rdzv_configs))


class Job:
    """What an agent runs, and what its workers return, until the end of `with`. `handler` takes the place of what the
    configuration says of the rendezvous. `args` and `envs` may be {local rank: …}; `variables` are for all workers and the agent.
    `fields` are further members of the agent's settings."""

    def __init__(self, config, entrypoint, args=(), envs=None, handler=None, variables=None, **fields):
        self._rounds, self._handler = None, handler  # the agent calls its backend as long as it lives
        if handler is not None and not _is_agents_own(handler):
            config, envs = self._follow(handler, config, envs)
            handler = None
        config, own = (config, {}) if handler is None else _taken_over(config, handler)
        self._config, self._entrypoint, self._args, self._directory, self.agent = config, entrypoint, args, None, None
        self._fields, self._variables = {**own, **self._asked(), **fields}, variables or {}
        if envs:
            texts = ([f"{name}={value}" for name, value in envs.get(rank, {}).items()] for rank in range(config.nproc_per_node))
            self._fields["rank_env"] = _lists(texts)
        self.name = entrypoint if isinstance(entrypoint, str) else getattr(entrypoint, "__qualname__", repr(entrypoint))

    def _follow(self, handler, config, envs):
        """The handler says where this node is."""
        check_handler(handler)
        config = dataclasses.replace(config, min_nodes=1, max_nodes=1, rdzv_backend="", rdzv_endpoint="", rdzv_configs={}, rdzv_timeout=-1,
                                     run_id=handler.get_run_id())
        self._rounds = HandlerRounds(handler, config)
        told = {"TORCHELASTIC_USE_AGENT_STORE": str(use_agent_store(handler))}
        return config, {rank: {**told, **(envs or {}).get(rank, {})} for rank in range(config.nproc_per_node)}

    def _asked(self):
        if self._rounds is None:
            return {}
        return {"rdzv_backend": _encoded(self._handler.get_backend()), "rdzv_endpoint": None, "rdzv_configs": None,
                "next_rendezvous": _NEXT(lambda _context, restarts: self._rounds.ask_for_round(restarts)),
                "exit_barrier": _BARRIER(lambda _context: self._rounds.ask_for_barrier())}

    @property
    def store(self):
        """That of the last round of a handler, or None."""
        return self._rounds and self._rounds.store

    def shut_down(self):
        """A handler of the program's. What signals raise leaves it open, so that other nodes go on."""
        wrong = sys.exc_info()[1]
        if self._rounds is not None and (wrong is None or isinstance(wrong, Exception)):
            self._handler.shutdown()

    def __enter__(self):
        try:
            self.agent = self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.agent is not None:
            self.agent.free()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _start(self):
        config, entrypoint, args = self._config, self._entrypoint, self._args
        if isinstance(entrypoint, str):
            if isinstance(args, dict):
                self._fields["rank_args"] = _lists(map(str, args.get(rank, ())) for rank in range(config.nproc_per_node))
                args = ()
            return self._agent([entrypoint, *map(str, args)])
        if not callable(entrypoint):
            raise TypeError(f"the entrypoint is a function or the name of a program, not {entrypoint!r}")
        self._directory = pathlib.Path(tempfile.mkdtemp(prefix="muster-launch-"))
        if config.start_method == "fork":
            return self._agent(None, _Forked(self._directory, entrypoint, args).function)
        _write_job(self._directory / JOB, entrypoint, args)
        self._variables.update(zip(PLACES, (pathlib.Path(__file__).resolve().parent.parent, self._directory)))
        return self._agent([sys.executable, "-c", BOOT])

    def _agent(self, words, function=None):
        logs = self._config.logs_specs
        if _names_files(logs):
            self._fields["reify_logs"] = _Logs(logs).function
        if self._variables:
            self._fields["env"] = _texts_of(f"{name}={value}" for name, value in {**os.environ, **self._variables}.items())
        return _Agent(self._config, words, function, self._fields)

    def value_of(self, rank):
        """What the worker of that global rank has returned."""
        return None if self._directory is None else _read_value(self._directory, rank)

    def run(self):
        """What all have returned. When an exception, such as Control-C's, ends the wait, the job is ended."""
        return self.values_of(self.wait())

    def wait(self):
        return self.agent.wait() if self._rounds is None else self._rounds.run(self.agent)

    def values_of(self, result):
        if result.state == STATES.index("SUCCEEDED"):
            return {worker.global_rank: self.value_of(worker.global_rank) for worker in result.workers[:result.worker_count]}
        root = result.root_cause.contents.copied() if result.root_cause else None
        reason = _decoded(result.message) or (f"signal {result.signal} has ended the agent" if result.signal else None)
        raise ChildFailedError(self.name, failures_of(result), root, reason)


def failures_of(result):
    return dict(each.copied() for each in result.failures[:result.failure_count])


def _lists(lists):
    """Lists of texts, each up to a NULL."""
    made = []
    for texts in lists:
        words = [os.fsencode(text) for text in texts]
        made.append((ctypes.c_char_p * (len(words) + 1))(*words, None))
    outer = (ctypes.c_void_p * len(made))(*[ctypes.addressof(each) for each in made])
    outer._lists = made  # which it points to
    return outer


def _texts_of(texts):
    """What a member like `env` takes."""
    words = [os.fsencode(text) for text in texts]
    return ctypes.cast((ctypes.c_char_p * (len(words) + 1))(*words, None), _TEXTS)


def place_of(store):
    """Where nodes reach a store, Muster's or PyTorch's, as muster/agent.h has it."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    if hasattr(store, "path"):
        return os.path.abspath(store.path)
    return _joined(store.host, store.port)


def _is_agents_own(handler):
    """Whether the agent does what the handler would: then it learns of changes at once."""
    from muster.dynamic_rendezvous import DynamicRendezvousHandler
    from muster.rendezvous_registry import AgentRendezvous, StaticTCPRendezvous

    kinds = (AgentRendezvous, DynamicRendezvousHandler, StaticTCPRendezvous)
    return type(handler) in kinds and (type(handler) is not DynamicRendezvousHandler or _is_reached(handler._store))


def _is_reached(store):
    """By other processes, if there is one."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return store is None or hasattr(store, "path") or hasattr(store, "port")


def _taken_over(config, handler):
    """The configuration with what a rendezvous of the program's says, and members of the agent's settings."""
    from muster.c10d_rendezvous_backend import C10dRendezvousBackend
    from muster.rendezvous_registry import AgentRendezvous, StaticTCPRendezvous

    if isinstance(handler, AgentRendezvous):
        params = handler.params
        return dataclasses.replace(
            config, min_nodes=params.min_nodes, max_nodes=params.max_nodes, rdzv_backend=params.backend,
            rdzv_endpoint=params.endpoint, run_id=params.run_id, rdzv_configs=params.config,
            local_addr=config.local_addr or params.local_addr), {}  # fmt: skip
    if isinstance(handler, StaticTCPRendezvous):
        return dataclasses.replace(
            config, min_nodes=handler.world_size, max_nodes=handler.world_size, rdzv_backend="static", run_id=handler.run_id,
            rdzv_endpoint=_joined(handler.master_addr, handler.master_port), rdzv_timeout=-1,
            rdzv_configs={"rank": handler.rank, "timeout": int(handler.timeout.total_seconds())}), {}  # fmt: skip
    settings, place = handler.settings, None if handler._store is None else place_of(handler._store)
    config = dataclasses.replace(config, local_addr=config.local_addr or handler._local_addr)
    if not isinstance(handler._backend, C10dRendezvousBackend):
        return config, {"rendezvous": handler._node._handle.value, "rdzv_store": _encoded(place), "min_nodes": 1, "max_nodes": 1,
                        "rdzv_backend": None, "rdzv_endpoint": None, "run_id": None, "rdzv_configs": None}  # fmt: skip
    configs = {f"{name}_timeout": max(1, round(getattr(settings.timeout, name).total_seconds()))
               for name in ("join", "last_call", "close")}  # fmt: skip
    configs.update(keep_alive_interval=max(1, round(settings.keep_alive_interval.total_seconds())),
                   keep_alive_max_attempt=settings.keep_alive_max_attempt, store_type="file" if place.startswith("/") else "tcp")
    return dataclasses.replace(config, min_nodes=settings.min_nodes, max_nodes=settings.max_nodes, rdzv_backend="c10d",
                               rdzv_endpoint=place, run_id=settings.run_id, rdzv_timeout=-1, rdzv_configs=configs), {}


def _joined(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# The function's way to the workers, and its values' way back.


def _write_job(path, function, arguments):
    preparation = spawn.get_preparation_data("muster-worker")
    preparation["authkey"] = bytes(preparation["authkey"])  # which may be told: the directory is this user's
    try:
        path.write_bytes(pickle.dumps(preparation) + pickle.dumps((function, arguments)))
    except (pickle.PicklingError, AttributeError, TypeError) as wrong:
        raise ValueError(f"the function {function!r} and its arguments cannot be told to workers: {wrong}. Give a function that "
                         "has a name in a module, and arguments that can be pickled") from wrong


def _work(directory):
    """A worker that is told its function."""
    def read_and_call():
        with open(pathlib.Path(directory, JOB), "rb") as job:
            spawn.prepare(pickle.load(job))
            function, arguments = pickle.load(job)
        return function(*_own_arguments(arguments))

    _keep_value(directory, read_and_call)


def _own_arguments(arguments):
    return arguments[int(os.environ["LOCAL_RANK"])] if isinstance(arguments, dict) else arguments


def _keep_value(directory, function):
    try:
        value = pickle.dumps(function())
    except SystemExit as end:
        if end.code not in (0, None):
            raise
        value = pickle.dumps(None)
    except BaseException as wrong:
        _write_error(wrong)
        raise
    rank = os.environ["RANK"]
    half = pathlib.Path(directory, f"{rank}.{os.getpid()}")
    half.write_bytes(value)
    half.replace(pathlib.Path(directory, rank))


class _Forked:
    """What a worker calls that is a copy of this process, forked by C."""

    def __init__(self, directory, function, arguments):
        self._directory, self._function, self._arguments = directory, function, arguments
        self.function = _FUNCTION(self._take)

    def _take(self, _context, _out_value):
        status = 1
        try:
            muster_library.enter_copy()
            _reload_environment()
            _keep_value(self._directory, lambda: self._function(*_own_arguments(self._arguments)))
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:
            with contextlib.suppress(Exception):  # no exception may get into C, and streams may be anything
                traceback.print_exc()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        return status & 0xFF


def _reload_environment():
    """C has given this process its rank; os.environ is as it was when the interpreter began."""
    if hasattr(os, "reload_environ"):
        os.reload_environ()
        return
    place, found = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ"), {}
    for number in range(sys.maxsize):
        if not place[number]:
            break
        name, _, value = place[number].partition(b"=")
        found[name] = value
    os.environ._data.clear()
    os.environ._data.update(found)


def _write_error(wrong):
    """As PyTorch's `record` does, unless the function has done so."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path or os.path.exists(path):
        return
    text = {"message": f"{type(wrong).__name__}: {wrong}",
            "extraInfo": {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}}  # fmt: skip
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text(json.dumps({"message": text}), encoding="utf-8")


def _read_error(path):
    """What an error file holds, and its extraInfo."""
    with contextlib.suppress(OSError, ValueError), open(path or "", encoding="utf-8") as file:
        data = json.loads(file.read(ERROR_FILE_BYTES))
        if isinstance(data, dict) and "message" in data:
            found = data["message"].get("extraInfo") if isinstance(data["message"], dict) else None
            return data, found if isinstance(found, dict) else {}
    return {"message": "<NONE>"}, {}


def _read_value(directory, rank):
    path = directory / str(rank)
    return pickle.loads(path.read_bytes()) if path.exists() else None


# muster/agent.h.


class _Failure(ctypes.Structure):
    """struct muster_process_failure."""

    _fields_ = [
        ("global_rank", ctypes.c_int), ("local_rank", ctypes.c_int), ("pid", ctypes.c_long), ("exitcode", ctypes.c_int),
        ("timestamp", ctypes.c_double), ("hostname", _TEXT), ("error_file", _TEXT), ("message", _TEXT), ("evidence", _TEXT),
    ]  # fmt: skip

    def copied(self):
        return self.global_rank, ProcessFailure(self.local_rank, self.pid, self.exitcode, _decoded(self.error_file),
                                                _decoded(self.message), self.timestamp)


class _Exit(ctypes.Structure):
    """struct muster_worker_exit."""

    _fields_ = [
        ("global_rank", ctypes.c_int), ("local_rank", ctypes.c_int), ("pid", ctypes.c_long), ("exitcode", ctypes.c_int),
        ("data", ctypes.c_void_p), ("length", ctypes.c_size_t),
    ]  # fmt: skip


class _Result(ctypes.Structure):
    """struct muster_run_result."""

    _fields_ = [
        ("state", ctypes.c_int), ("exit_status", ctypes.c_int), ("signal", ctypes.c_int), ("restarts", ctypes.c_int),
        ("message", _TEXT), ("workers", ctypes.POINTER(_Exit)), ("worker_count", ctypes.c_size_t),
        ("failures", ctypes.POINTER(_Failure)), ("failure_count", ctypes.c_size_t), ("root_cause", ctypes.POINTER(_Failure)),
    ]  # fmt: skip


class _Settings(ctypes.Structure):
    """struct muster_agent_settings."""

    _fields_ = [
        ("size", ctypes.c_size_t), ("entrypoint", _TEXT), ("args", _TEXTS), ("function", ctypes.c_void_p),
        ("function_context", ctypes.c_void_p), ("env", _TEXTS), ("role", _TEXT), ("local_world_size", ctypes.c_int),
        ("max_restarts", ctypes.c_int), ("monitor_interval", ctypes.c_double), ("min_nodes", ctypes.c_int),
        ("max_nodes", ctypes.c_int), ("rdzv_backend", _TEXT), ("rdzv_endpoint", _TEXT), ("run_id", _TEXT), ("rdzv_configs", _TEXT),
        ("log_dir", _TEXT), ("redirects", _TEXT), ("tee", _TEXT), ("options", _TEXTS), ("event", ctypes.c_void_p),
        ("metric", ctypes.c_void_p), ("ended", ctypes.c_void_p), ("context", ctypes.c_void_p), ("stdout_fd", ctypes.c_int),
        ("stderr_fd", ctypes.c_int), ("master_addr", _TEXT), ("master_port", ctypes.c_int), ("rank_env", ctypes.c_void_p),
        ("rank_args", ctypes.c_void_p), ("rendezvous", ctypes.c_void_p), ("rdzv_store", _TEXT), ("start_workers", ctypes.c_void_p),
        ("restart_workers", ctypes.c_void_p), ("stop_workers", ctypes.c_void_p), ("monitor_workers", ctypes.c_void_p),
        ("shutdown", ctypes.c_void_p), ("alive_callback", ctypes.c_void_p), ("reify_logs", ctypes.c_void_p),
        ("next_rendezvous", ctypes.c_void_p), ("exit_barrier", ctypes.c_void_p),
    ]  # fmt: skip


class _Event(ctypes.Structure):
    """struct muster_agent_event."""

    _fields_ = [
        ("kind", ctypes.c_int), ("name", _TEXT), ("state", _TEXT), ("timestamp", ctypes.c_double), ("run_id", _TEXT), ("role", _TEXT),
        ("hostname", _TEXT), ("raw_error", _TEXT), ("message", _TEXT), ("group_rank", ctypes.c_int),
        ("group_world_size", ctypes.c_int), ("global_rank", ctypes.c_int), ("local_rank", ctypes.c_int), ("pid", ctypes.c_long),
        ("has_exit_code", ctypes.c_int), ("exit_code", ctypes.c_int), ("restarts", ctypes.c_int), ("duration_ms", ctypes.c_double),
        ("json", _TEXT),
    ]  # fmt: skip


_EVENT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Event))


class _Round(ctypes.Structure):
    """struct muster_agent_round."""

    _fields_ = [
        ("size", ctypes.c_size_t), ("group_rank", ctypes.c_int), ("group_world_size", ctypes.c_int), ("global_rank", ctypes.c_int),
        ("world_size", ctypes.c_int), ("role_rank", ctypes.c_int), ("role_world_size", ctypes.c_int), ("master_addr", _TEXT),
        ("master_port", ctypes.c_int),
    ]  # fmt: skip


_NEXT, _BARRIER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int), ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Worker(ctypes.Structure):
    """struct muster_worker."""

    _fields_ = [
        ("local_rank", ctypes.c_int), ("global_rank", ctypes.c_int), ("role_rank", ctypes.c_int), ("world_size", ctypes.c_int),
        ("role_world_size", ctypes.c_int), ("pid", ctypes.c_long),
    ]  # fmt: skip


class WorkerGroup(ctypes.Structure):
    """struct muster_worker_group."""

    _fields_ = [
        ("state", ctypes.c_int), ("group_rank", ctypes.c_int), ("group_world_size", ctypes.c_int), ("restarts", ctypes.c_int),
        ("run_id", _TEXT), ("role", _TEXT), ("master_addr", _TEXT), ("master_port", ctypes.c_int),
        ("workers", ctypes.POINTER(Worker)), ("worker_count", ctypes.c_size_t),
    ]  # fmt: skip


class _WorkerLogs(ctypes.Structure):
    """struct muster_worker_logs."""

    _fields_ = [("stdouts", _TEXT), ("stderrs", _TEXT), ("error_files", _TEXT)]


_REIFY = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(WorkerGroup), ctypes.POINTER(_WorkerLogs), ctypes.POINTER(Failure))


class _Logs:
    """How the agent asks a LogsSpecs."""

    def __init__(self, specs):
        self._specs, self._held = specs, None
        self.function = _REIFY(self._take)

    def _take(self, _context, group, out, failure):
        muster_library.enter_copy()
        try:
            found = group.contents
            common = {"TORCHELASTIC_RUN_ID": found.run_id.decode(), "TORCHELASTIC_RESTART_COUNT": str(found.restarts),
                      "GROUP_RANK": str(found.group_rank), "ROLE_NAME": found.role.decode()}  # fmt: skip
            paths = self._specs.reify({
                worker.local_rank: {**common, "LOCAL_RANK": str(worker.local_rank), "RANK": str(worker.global_rank),
                                    "ROLE_RANK": str(worker.role_rank), "WORLD_SIZE": str(worker.world_size)}
                for worker in found.workers[:found.worker_count]})  # fmt: skip
            self._held = [{name: _encoded(getattr(paths, name).get(rank)) for name, _ in _WorkerLogs._fields_}
                          for rank in range(found.worker_count)]  # fmt: skip
            for rank, each in enumerate(self._held):
                out[rank] = _WorkerLogs(**each)
            return muster_library.OK
        except Exception as wrong:
            failure.contents.message = f"{type(wrong).__name__}: {wrong}".encode("utf-8", "replace")[:1023].replace(b"\0", b"?")
            return muster_library.SYSTEM


_FUNCTION = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def _library():
    handle, failure = ctypes.c_void_p, ctypes.POINTER(Failure)
    return muster_library.functions({
        "muster_agent_start": (ctypes.c_int, [ctypes.POINTER(_Settings), ctypes.POINTER(handle), failure]),
        "muster_agent_fd": (ctypes.c_int, [handle]),
        "muster_agent_process": (ctypes.c_int, [handle, failure]),
        "muster_agent_result": (ctypes.c_int, [handle, ctypes.POINTER(ctypes.POINTER(_Result)), failure]),
        "muster_agent_stop": (ctypes.c_int, [handle, ctypes.c_int, failure]),
        "muster_agent_kill": (ctypes.c_int, [handle, failure]),
        "muster_agent_worker_group": (ctypes.c_int, [handle, ctypes.POINTER(ctypes.POINTER(WorkerGroup)), failure]),
        "muster_agent_set_round": (ctypes.c_int, [handle, ctypes.POINTER(_Round), failure]),
        "muster_agent_end_round": (ctypes.c_int, [handle, _TEXT, failure]),
        "muster_agent_free": (None, [handle]),
    })  # fmt: skip


class _Agent:
    """One job's, from its start to its end."""

    def __init__(self, config, words, function=None, fields=None, settings=None):
        self._library, self._handle, self._failure = _library(), ctypes.c_void_p(), Failure()
        self._lock = threading.RLock()  # a signal's handler may stop the agent
        handler = event_handler(config.event_log_handler)
        if handler is not None:
            config = dataclasses.replace(config, event_log_handler="null")
            fields = {"event": _EVENT(lambda _context, event: handler(_decoded(event.contents.json))), **(fields or {})}
        self._function, self._fields = function, fields or {}  # workers and the agent call them as long as they live
        settings = settings or _settings_of(config, words or [])
        for name, value in self._fields.items():
            setattr(settings, name, ctypes.cast(value, ctypes.c_void_p) if isinstance(value, (ctypes.Array, ctypes._CFuncPtr)) else value)
        if function is not None:
            settings.function = ctypes.cast(function, ctypes.c_void_p)
        # The thread keeps the interpreter's lock, so that its copies have it.
        start = self._library.muster_agent_start
        start = ctypes.PYFUNCTYPE(ctypes.c_int, *start.argtypes)(ctypes.cast(start, ctypes.c_void_p).value)
        sys.stdout.flush()
        with muster_library.ready_for_fork():
            code = start(settings, self._handle, self._failure)
        self._check(code)

    def wait(self, timeout=None, is_enough=lambda: False):
        """The result, which is good until free(); None when the time is up, or it is enough."""
        poll, result = select.poll(), ctypes.POINTER(_Result)()
        poll.register(self._library.muster_agent_fd(self._handle), select.POLLIN)
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            ready = poll.poll(None if end is None else max(0, (end - time.monotonic()) * 1000))
            with self._lock, raising():
                self._check(self._library.muster_agent_process(self._handle, self._failure))
                code = self._library.muster_agent_result(self._handle, result, self._failure)
            if code == muster_library.OK:
                return result.contents
            if code != muster_library.STATE:
                self._check(code)
            if is_enough() or (end is not None and (not ready or time.monotonic() >= end)):
                return None

    def worker_group(self, make):
        """What `make` makes of its WorkerGroup; None before the first rendezvous. Any thread may ask."""
        group = ctypes.POINTER(WorkerGroup)()
        with self._lock:
            code = self._library.muster_agent_worker_group(self._handle, group, None)
            return make(group.contents) if code == muster_library.OK else None

    def is_healthy(self):
        return self.worker_group(lambda group: group.state) == HEALTHY

    def set_round(self, **members):
        """It may have ended."""
        with self._lock:
            code = self._library.muster_agent_set_round(self._handle, _Round(size=ctypes.sizeof(_Round), **members), self._failure)
            if code != muster_library.STATE:
                self._check(code)

    def end_round(self, reason):
        """It may have ended."""
        with self._lock:
            self._library.muster_agent_end_round(self._handle, reason.encode(), None)

    def stop(self, number=0):
        """It may have ended."""
        with self._lock:
            self._library.muster_agent_stop(self._handle, number, None)

    def kill(self):
        with self._lock:
            self._library.muster_agent_kill(self._handle, None)

    def free(self):
        with self._lock:
            handle, self._handle = self._handle, ctypes.c_void_p()
            self._library.muster_agent_free(handle)

    def _check(self, code):
        if code != muster_library.OK:
            raise error_of(code, self._failure.text(), {})


def agent_of_command(words, logs, variables, handler):
    """An agent for the command line `muster run WORDS`, whose files are those of the LogsSpecs."""
    settings = _Settings(
        size=ctypes.sizeof(_Settings), options=_texts_of(words), env=_texts_of(f"{name}={value}" for name, value in variables.items()),
        local_world_size=1, monitor_interval=0.1, min_nodes=1, max_nodes=1, stdout_fd=-1, stderr_fd=-1, **_logs_of(logs))
    fields = {"reify_logs": _Logs(logs).function} if _names_files(logs) else {}
    return _Agent(LaunchConfig(1, 1, 1, event_log_handler=handler), None, None, fields, settings)


def _settings_of(config, words):
    logs = config.logs_specs if config.logs_specs is not None else DefaultLogsSpecs()
    is_alone = config.max_nodes == 1 and not config.rdzv_endpoint
    configs = dict(config.rdzv_configs)
    node_rank = configs.pop("rank", None)
    if config.rdzv_timeout != -1:
        configs["timeout"] = config.rdzv_timeout
    if config.rdzv_backend != "static":
        configs.pop("timeout", None)  # PyTorch's launcher gives it to all, and only etcd and static know it
    options = _options_of(config, logs, node_rank)
    backend, endpoint = (config.rdzv_backend, config.rdzv_endpoint) if not is_alone else ("c10d", "localhost:0")
    arguments = (ctypes.c_char_p * len(words))(*[os.fsencode(word) for word in words[1:]], None) if words else None
    return _Settings(
        size=ctypes.sizeof(_Settings), entrypoint=os.fsencode(words[0]) if words else None, args=arguments, role=_encoded(config.role),
        local_world_size=config.nproc_per_node, max_restarts=config.max_restarts, monitor_interval=config.monitor_interval,
        min_nodes=config.min_nodes, max_nodes=config.max_nodes, rdzv_backend=_encoded(backend),
        rdzv_endpoint=_encoded(endpoint), run_id=_encoded(config.run_id or str(uuid.uuid4().int)),
        rdzv_configs=_encoded(",".join(f"{name}={value}" for name, value in configs.items())) if not is_alone else None,
        **_logs_of(logs),
        options=(ctypes.c_char_p * (len(options) + 1))(*[option.encode() for option in options], None), stdout_fd=-1, stderr_fd=-1)


def _logs_of(logs):
    """The members of the settings."""
    return {"log_dir": _encoded(_member(logs, "log_dir", "root_log_dir", "_root_log_dir")),
            "redirects": _encoded(_streams(_member(logs, "redirects", "_redirects") or (3 if _names_files(logs) else None))),
            "tee": _encoded(_streams(_member(logs, "tee", "_tee")))}


def _names_files(logs):
    """A class of the program's, made of Muster's or of PyTorch's."""
    return callable(getattr(logs, "reify", None)) and type(logs).__name__ != "DefaultLogsSpecs"


def _options_of(config, logs, node_rank):
    """Those that the agent's settings have no member for."""
    def listed(texts):
        return ",".join(text.replace(",", ",,") for text in texts or ())

    ranks = _member(logs, "local_ranks_filter", "_local_ranks_filter")
    values = {
        "node-rank": node_rank, "local-ranks-filter": ",".join(map(str, sorted(ranks))) if ranks else None,
        "log-line-prefix-template": config.log_line_prefix_template, "local-addr": config.local_addr,
        "event-log-handler": config.event_log_handler, "signals-to-handle": config.signals_to_handle,
        "shutdown-timeout": config.shutdown_timeout, "exit-barrier-timeout": getattr(config, "exit_barrier_timeout", None),
        "duplicate-stdout-filters": listed(config.duplicate_stdout_filters), "duplicate-stderr-filters": listed(config.duplicate_stderr_filters),
        "numa-binding": getattr(getattr(config.numa_options, "affinity_mode", config.numa_options), "value", config.numa_options),
    }  # fmt: skip
    options = [f"--{name}={value}" for name, value in values.items() if value not in (None, "")]
    return options + (["--virtual-local-rank"] if config.virtual_local_rank else [])


def _member(logs, *names):
    """PyTorch's classes have some of these under other names."""
    return next((getattr(logs, name) for name in names if getattr(logs, name, None)), None)


def _streams(value):
    """As --redirects has it. PyTorch's enumeration is of numbers."""
    if isinstance(value, dict):
        return ",".join(f"{rank}:{int(number)}" for rank, number in value.items())
    return value if isinstance(value, str) or value is None else str(int(value))


def _encoded(text):
    return os.fsencode(text) if text else None


def _decoded(text):
    return "" if text is None else text.decode("utf-8", "replace")

# SPDX-License-Identifier: BSD-3-Clause
"""muster.agent, muster.processes and muster.health: an agent that a program extends, on a rendezvous of its own."""

import ast
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from support.own_library import environment, import_module
from support.ports import free_port

agent = import_module("muster.agent")
health = import_module("muster.health")
launcher = import_module("muster.launcher")
processes = import_module("muster.processes")
rendezvous = import_module("muster.rendezvous")

pytestmark = pytest.mark.plain_build


def read_rank():
    return int(os.environ["RANK"])


def fail_at_first():
    sys.exit(0 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "1" else 3)


def wait_at_first():
    while os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        signal.pause()


class Noting(agent.LocalElasticAgent):
    """Its methods are called in another process."""

    notes = None

    def note(self, moment, group=None):
        with open(self.notes, "a", encoding="utf-8") as notes:
            notes.write(f"{moment} {group.restarts if group else ''}\n")

    def _start_workers(self, worker_group):
        self.note("start", worker_group)
        return super()._start_workers(worker_group)

    def _restart_workers(self, worker_group):
        self.note("restart", worker_group)

    def _stop_workers(self, worker_group):
        self.note("stop", worker_group)

    def _shutdown(self, death_sig=signal.SIGTERM, timeout=30):
        self.note(f"shutdown {death_sig.name}")


def run(kind, scratch, entrypoint, **members):
    spec = agent.WorkerSpec("trainer", 2, entrypoint=entrypoint, monitor_interval=0.02, **members)
    made = kind(spec, start_method="fork")
    made.notes = scratch / "notes"
    return made.run()


def test_methods_are_called_at_their_moments(scratch):
    result = run(Noting, scratch, fail_at_first, max_restarts=1)
    assert not result.is_failed() and result.return_values == {0: None, 1: None}
    assert (scratch / "notes").read_text().split("\n") == [
        "start 0", "stop 1", "restart 1", "start 1", "shutdown SIGTERM ", ""]  # fmt: skip


class Refusing(Noting):
    def _restart_workers(self, worker_group):
        raise RuntimeError("a GPU is lost")


def test_a_refused_restart_ends_the_node(scratch, caplog):
    result = run(Refusing, scratch, fail_at_first, max_restarts=3)
    assert result.is_failed() and {failure.exitcode for failure in result.failures.values()} <= {3, -15}
    assert "restart_workers: RuntimeError: a GPU is lost" in caplog.text


class Monitoring(Noting):
    def _monitor_workers(self, worker_group):
        if worker_group.restarts > 0:
            return agent.RunResult(agent.WorkerState.HEALTHY)
        failure = agent.ProcessFailure(1, 0, 1, "", "its loss is no number", 0)
        return agent.RunResult(agent.WorkerState.UNHEALTHY, failures={1: failure})


def test_an_unhealthy_worker_is_ended_and_the_group_restarted(scratch):
    assert run(Monitoring, scratch, wait_at_first, max_restarts=1).state == agent.WorkerState.SUCCEEDED
    failed = run(Monitoring, scratch, wait_at_first, max_restarts=0)
    assert failed.failures[1].exitcode == -signal.SIGKILL


# A rendezvous of the program's own: a class that is written for PyTorch's.

NODE = '''\
import fcntl, os, pathlib, sys, time
from muster.agent import LocalElasticAgent, WorkerSpec
from muster.launcher import LaunchConfig, elastic_launch
from muster.rendezvous import (
    C10dRendezvousBackend, DynamicRendezvousHandler, RendezvousBackend, RendezvousParameters, get_rendezvous_handler,
    rendezvous_handler_registry,
)
from muster.store import FileStore

class Files(RendezvousBackend):
    def __init__(self, folder):
        self._folder = pathlib.Path(folder)

    @property
    def name(self):
        return "files"

    def get_state(self):
        try:
            text = (self._folder / "record").read_bytes()
        except FileNotFoundError:
            return None
        return text[8:], text[:8]

    def set_state(self, state, token=None):
        with open(self._folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = self.get_state()
            if (found and found[1]) != token:
                return (*found, False) if found else None
            number = int.from_bytes(token or bytes(8), "big") + 1
            (self._folder / "new").write_bytes(number.to_bytes(8, "big") + state)
            (self._folder / "new").rename(self._folder / "record")
            return (*self.get_state(), True)

def work(folder):
    world = os.environ["WORLD_SIZE"]
    pathlib.Path(folder, f"{world}.{os.environ['RANK']}").touch()
    while not os.path.exists(f"{folder}/go"):
        time.sleep(0.01)
    return world

def make(params):
    return DynamicRendezvousHandler.from_backend(params.run_id, FileStore(params.get("store")), Files(params.endpoint),
                                                 params.min_nodes, params.max_nodes, "127.0.0.1")

if __name__ == "__main__":
    how, folder, rank = sys.argv[1:]
    if how != "launch":
        store = FileStore(folder + "/store")
        if how == "own":
            handler = DynamicRendezvousHandler.from_backend("job", store, Files(folder), 2, 3, "127.0.0.1")
        elif how == "c10d":
            handler = DynamicRendezvousHandler.from_backend("job", store, C10dRendezvousBackend(store, "job"), 2, 2, "127.0.0.1")
        else:
            handler = get_rendezvous_handler(RendezvousParameters("static", f"127.0.0.1:{how}", "job", 2, 2, rank=rank))
        result = LocalElasticAgent(WorkerSpec("trainer", 1, handler, entrypoint=work, args=(folder,)),
                                   start_method="fork" if how == "own" else "spawn").run()
        print(result.state.value, list(result.return_values.values()))
    else:
        rendezvous_handler_registry.register("files", make)
        config = LaunchConfig(2, 2, 1, run_id="job", rdzv_backend="files", rdzv_endpoint=folder,
                              rdzv_configs={"store": folder + "/store"})
        print(elastic_launch(config, work)(folder))
'''


@pytest.fixture
def start_nodes(scratch):
    script = scratch / "node.py"
    script.write_text(NODE)
    started = []

    def start(how, count):
        for rank in range(count):
            started.append(subprocess.Popen(
                [sys.executable, script, how, scratch, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env={**os.environ, **environment(), "TMPDIR": str(scratch)}))
        return started

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def wait_for_world(scratch, size):
    while not all((scratch / f"{size}.{rank}").exists() for rank in range(size)):
        time.sleep(0.02)


def test_agents_on_a_backend_of_their_own_go_on_without_one(scratch, start_nodes):
    nodes = start_nodes("own", 3)
    wait_for_world(scratch, 3)
    nodes[1].kill()
    wait_for_world(scratch, 2)
    (scratch / "go").touch()
    for node in (nodes[0], nodes[2]):
        assert node.communicate()[0] == "SUCCEEDED ['2']\n"


@pytest.mark.parametrize("kind", ["c10d", "static"])
def test_agents_take_the_handlers_of_the_package(scratch, start_nodes, kind):
    nodes = start_nodes(kind if kind == "c10d" else str(free_port()), 2)
    wait_for_world(scratch, 2)
    (scratch / "go").touch()
    for node in nodes:
        out, err = node.communicate()
        assert out == "SUCCEEDED ['2']\n", err
        assert "another program" not in err and "knows no setting" not in err


def test_a_registered_backend_is_launched_by_its_name(scratch, start_nodes):
    nodes = start_nodes("launch", 2)
    wait_for_world(scratch, 2)
    (scratch / "go").touch()
    values = [ast.literal_eval(node.communicate()[0]) for node in nodes]
    assert sorted(rank for each in values for rank in each) == [0, 1]


class Logs(launcher.LogsSpecs):
    def reify(self, envs):
        count = envs[0]["TORCHELASTIC_RESTART_COUNT"]
        return launcher.LogsDest(stdouts={rank: f"{self.log_dir}/{count}.{env['RANK']}.out" for rank, env in envs.items()})


def test_logs_go_where_a_class_of_the_program_says(scratch):
    spec = agent.WorkerSpec("trainer", 2, entrypoint="sh", args=("-c", "echo $RANK; exit $((1 - TORCHELASTIC_RESTART_COUNT))"))
    assert not agent.LocalElasticAgent(spec, Logs(log_dir=str(scratch))).run().is_failed()
    assert [(scratch / f"1.{rank}.out").read_text() for rank in range(2)] == ["0\n", "1\n"]
    assert (scratch / "0.0.out").exists()


class NoLogs(launcher.LogsSpecs):
    def reify(self, envs):
        raise OSError("the disk is away")


def test_logs_that_cannot_be_had_end_the_node(scratch, caplog):
    spec = agent.WorkerSpec("trainer", 1, entrypoint="true")
    assert agent.LocalElasticAgent(spec, NoLogs(log_dir=str(scratch))).run().is_failed()
    assert "reify_logs: OSError: the disk is away" in caplog.text


# Processes.


def give(word, number):
    return word, number, os.environ["COLOUR"]


def test_each_process_has_arguments_and_variables_of_its_own():
    envs = {0: {"COLOUR": "red"}, 1: {"COLOUR": "blue"}}
    with processes.start_processes("t", give, {0: ("a", 1), 1: ("b", 2)}, envs, start_method="fork") as context:
        assert len(set(context.pids().values())) == 2
        assert context.wait().return_values == {0: ("a", 1, "red"), 1: ("b", 2, "blue")}


def test_each_program_has_arguments_of_its_own(scratch):
    arguments = {rank: ("-c", f"echo $COLOUR > {scratch}/{rank}") for rank in range(2)}
    with processes.start_processes("t", "sh", arguments, {0: {"COLOUR": "red"}, 1: {"COLOUR": "blue"}}) as context:
        assert not context.wait().is_failed()
    assert [(scratch / f"{rank}").read_text() for rank in range(2)] == ["red\n", "blue\n"]


def test_processes_that_run_are_not_waited_for_and_end_when_closed():
    context = processes.start_processes("t", "sleep", {0: ("1000",)}, {0: {}})
    pid = context.pids()[0]
    assert context.wait(0) is None
    context.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(RuntimeError, match="0 to 0"):
        processes.start_processes("t", "true", {1: ()}, {1: {}})


def fail_by_rank():
    if os.environ["RANK"] == "1":
        os.write(2, b"rank 1 is about to fail\n")
        raise ValueError("the loss is no number")
    signal.pause()


def test_a_process_that_fails_has_left_its_error_and_its_lines(scratch):
    logs = launcher.DefaultLogsSpecs(str(scratch), redirects={0: 3, 1: 2})
    with processes.start_processes("t", fail_by_rank, {0: (), 1: ()}, {0: {}, 1: {}}, logs, start_method="fork") as context:
        result = context.wait()
    assert result.failures[1].error_file_data["message"]["message"] == "ValueError: the loss is no number"
    assert pathlib.Path(result.stderrs[1]).read_text().startswith("rank 1 is about to fail\n")
    assert [bool(path) for path in (*result.stdouts.values(), *result.stderrs.values())] == [True, False, True, True]


@pytest.mark.parametrize("text", ["", "[]", "{}", "no JSON", '{"message": 3}', '{"message": {"extraInfo": 3}}', None])
def test_an_error_file_that_says_nothing(scratch, text):
    if text is not None:
        (scratch / "error.json").write_text(text)
    failure = launcher.ProcessFailure(0, 17, -9, str(scratch / "error.json"))
    assert (failure.message, failure.signal_name()) == ("", "SIGKILL")
    assert "message" in failure.error_file_data


def test_a_program_that_is_not_there_is_not_started():
    with pytest.raises(FileNotFoundError, match="is-not-there"):
        processes.start_processes("t", "is-not-there", {0: ()}, {0: {}})


def test_an_agent_meets_where_only_agents_can(scratch):
    handler = rendezvous.get_rendezvous_handler(rendezvous.RendezvousParameters("dir", str(scratch), "job", 1, 1))
    spec = agent.WorkerSpec("trainer", 2, handler, entrypoint=read_rank)
    assert agent.LocalElasticAgent(spec, start_method="fork").run().return_values == {0: 0, 1: 1}
    assert list(scratch.iterdir())
    with pytest.raises(rendezvous.RendezvousStateError, match="is for an agent"):
        handler.next_rendezvous()


# Health.


def status_of(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code


def test_health_is_what_the_callback_says():
    progress = [time.time()]
    server = health.create_healthcheck_server(lambda: progress[0], 0, 3600)
    server.start()
    try:
        assert status_of(server.port) == 200
        progress[0] = 1
        assert status_of(server.port) == 503
    finally:
        server.stop()
    server.stop()


def ask(port, folder):
    first = status_of(port)
    open(f"{folder}/old", "w").close()
    return first, status_of(port)


def test_an_agent_is_as_healthy_as_its_program(scratch):
    port = free_port()
    server = health.HealthCheckServer(lambda: 1 if (scratch / "old").exists() else time.time(), port, 3600)
    spec = agent.WorkerSpec("trainer", 1, entrypoint=ask, args=(port, str(scratch)))
    assert agent.LocalElasticAgent(spec, start_method="fork", health_check_server=server).run().return_values == {0: (200, 503)}

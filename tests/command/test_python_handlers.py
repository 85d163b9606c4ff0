# SPDX-License-Identifier: BSD-3-Clause
"""muster.handler_rounds: agents whose rendezvous is a class of the program's own, which knows nothing of Muster's."""

import os
import subprocess
import sys
import time

import pytest

from support.own_library import environment, import_module

agent = import_module("muster.agent")
launcher = import_module("muster.launcher")
rounds = import_module("muster.handler_rounds")
store = import_module("muster.store")

pytestmark = pytest.mark.plain_build

# Nodes meet in a file. A round begins when all nodes that live wait for it, and there are enough of them.
NODE = '''\
import collections, fcntl, json, os, pathlib, sys, time
from muster.agent import LocalElasticAgent, WorkerSpec
from muster.launcher import LaunchConfig, elastic_launch
from muster.rendezvous import rendezvous_handler_registry
from muster.store import FileStore, PrefixStore

Round = collections.namedtuple("Round", "store rank world_size bootstrap_store_info")

class Own:
    use_agent_store = False

    def __init__(self, folder, least):
        self._place, self._least, self._number = pathlib.Path(folder, "record"), least, 0
        self._store, self._world = FileStore(f"{folder}/store"), []

    def get_backend(self):
        return "own"

    def get_run_id(self):
        return "job"

    def _change(self, change):
        with open(f"{self._place}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            record = json.loads(self._place.read_text()) if self._place.exists() else {"round": 0, "nodes": [], "waiting": [], "world": []}
            record["nodes"] = [pid for pid in record["nodes"] if os.path.exists(f"/proc/{pid}/fd")
                               and "zombie" not in pathlib.Path(f"/proc/{pid}/status").read_text()]
            found = change(record)
            new = pathlib.Path(f"{self._place}.new")  # the node may be killed meanwhile
            new.write_text(json.dumps(record))
            new.rename(self._place)
            return found

    def _try(self, record):
        me = os.getpid()
        if record["round"] > self._number and me in record["world"]:
            return record
        for name in ("nodes", "waiting"):
            record[name] = sorted({*record[name], me})
        record["waiting"] = [pid for pid in record["waiting"] if pid in record["nodes"]]
        if len(record["waiting"]) >= self._least and record["waiting"] == record["nodes"]:
            record.update(round=record["round"] + 1, world=record["waiting"], waiting=[])
            return record
        return None

    def next_rendezvous(self):
        while True:
            record = self._change(self._try)
            if record:
                self._number, self._world = record["round"], record["world"]
                store = PrefixStore(f"{self._number}", self._store)
                return Round(store, self._world.index(os.getpid()), len(self._world), None)
            time.sleep(0.01)

    def num_nodes_waiting(self):
        return self._change(lambda record: len(record["waiting"]) + len(set(self._world) - set(record["nodes"])))

    def is_closed(self):
        return False

    def set_closed(self):
        pass

    def shutdown(self):
        print("shut down", flush=True)
        return True

def creator():
    return lambda params: Own(params.endpoint, params.min_nodes)

def tell(folder):
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE",
             "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE")
    count = os.environ["TORCHELASTIC_RESTART_COUNT"]
    found = {name: os.environ[name] for name in names}
    new = pathlib.Path(folder, f"new.{os.getpid()}")
    new.write_text(json.dumps(found))
    new.rename(f"{folder}/{found['WORLD_SIZE']}.{found['RANK']}.{count}")
    return found

def wait(folder):
    tell(folder)
    while not os.path.exists(f"{folder}/go"):
        time.sleep(0.01)
    return os.environ["WORLD_SIZE"]

def fail_at_first(folder):
    tell(folder)
    if os.environ["ROLE_NAME"] == "b" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        sys.exit(3)
    return wait(folder)

def follow_first(folder):
    """Rank 1 ends when the node of rank 0 is in the exit barrier."""
    if os.environ["RANK"] == "1":
        PrefixStore("1", FileStore(f"{folder}/store")).wait(["torchelastic/agent/terminal_state/num_members"])

if __name__ == "__main__":
    what, folder, role, workers, least = sys.argv[1:]
    if role == "launched":
        rendezvous_handler_registry.register("own", creator())
    if role in ("launched", "packaged"):
        config = LaunchConfig(int(least), int(least), int(workers), rdzv_backend="own", rdzv_endpoint=folder, run_id="job")
        print(sorted(elastic_launch(config, globals()[what])(folder)))
    else:
        spec = WorkerSpec(role, int(workers), Own(folder, int(least)), entrypoint=globals()[what], args=(folder,), max_restarts=1,
                          monitor_interval=0.05, event_log_handler=f"file:{folder}/events.{role}")
        result = LocalElasticAgent(spec, start_method="fork").run()
        print(result.state.value, sorted(result.return_values.items()), flush=True)
'''


@pytest.fixture
def start_node(scratch):
    script = scratch / "node.py"
    script.write_text(NODE)
    started = []

    def start(what, role="a", workers=1, least=2):
        started.append(subprocess.Popen(
            [sys.executable, script, what, scratch, role, str(workers), str(least)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**os.environ, **environment(), "TMPDIR": str(scratch)}))
        return started[-1]

    start.nodes = started
    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_for(start_node, scratch, *names):
    while not all((scratch / name).exists() for name in names):
        for node in start_node.nodes:
            assert node.poll() in (None, -9), node.communicate()
        time.sleep(0.02)


def test_workers_start_anew_when_nodes_come_and_go(scratch, start_node):
    nodes = [start_node("wait") for _ in range(2)]
    wait_for(start_node, scratch, "2.0.0", "2.1.0")
    nodes.append(start_node("wait"))
    wait_for(start_node, scratch, *(f"3.{rank}.0" for rank in range(3)))
    for name in ("2.0.0", "2.1.0"):
        (scratch / name).unlink()
    nodes[1].kill()
    wait_for(start_node, scratch, "2.0.0", "2.1.0")
    (scratch / "go").touch()
    ends = [node.communicate() for node in (nodes[0], nodes[2])]
    assert sorted(out for out, _ in ends) == ["SUCCEEDED [(0, '2')]\n", "SUCCEEDED [(1, '2')]\n"], ends


def test_ranks_are_those_of_the_round_and_a_failure_costs_its_node_a_restart(scratch, start_node):
    nodes = [start_node("fail_at_first", "a", 2), start_node("fail_at_first", "b", 1)]
    while len(list(scratch.glob("3.?.1"))) < 1 or len(list(scratch.glob("3.?.0"))) < 3:
        wait_for(start_node, scratch, "record")
        time.sleep(0.02)
    (scratch / "go").touch()
    ends = [node.communicate() for node in nodes]
    found = [dict(eval(out.removeprefix("SUCCEEDED "))) for out, _ in ends]  # noqa: S307
    assert sorted({**found[0], **found[1]}) == [0, 1, 2] and [len(each) for each in found] == [2, 1], ends
    told = [eval(path.read_text()) for path in sorted(scratch.glob("3.?.0"))]  # noqa: S307
    assert {(each["ROLE_WORLD_SIZE"], each["GROUP_WORLD_SIZE"], each["TORCHELASTIC_RUN_ID"]) for each in told} == {
        ("2", "2", "job"), ("1", "2", "job")}
    assert sorted((each["ROLE_WORLD_SIZE"], each["ROLE_RANK"]) for each in told) == [("1", "0"), ("2", "0"), ("2", "1")]
    assert {each["TORCHELASTIC_USE_AGENT_STORE"] for each in told} == {"False"}
    events = (scratch / "events.b").read_text()
    assert events.count('"state": "SUCCEEDED"') == 2 and "C10d" not in events and events.count('"rdzv_backend": "own"') == 8 and '"agent_restarts": 1' in events, events


def test_a_node_that_is_done_waits_for_the_others(scratch, start_node):
    nodes = [start_node("follow_first") for _ in range(2)]
    assert [node.communicate()[0].split()[0] for node in nodes] == ["SUCCEEDED"] * 2


@pytest.mark.parametrize("how", ["launched", "packaged"])
def test_a_registered_handler_is_launched_and_shut_down(scratch, start_node, how):
    if how == "packaged":
        (scratch / "fake-1.0.dist-info").mkdir()
        (scratch / "fake-1.0.dist-info/entry_points.txt").write_text("[torchrun.handlers]\nown = node:creator\n")
    nodes = [start_node("tell", how) for _ in range(2)]
    outs = [node.communicate() for node in nodes]
    assert sorted(out for out, _ in outs) == ["shut down\n[0]\n", "shut down\n[1]\n"], outs


# One node.


class Alone:
    def __init__(self, scratch, **members):
        self.store, self.members = store.FileStore(str(scratch / "store")), members

    def next_rendezvous(self):
        wrong = self.members.pop("wrong", None)
        if wrong is not None:
            raise wrong
        return type("Round", (), {"rank": 0, "world_size": 1, "store": self.store, **self.members})

    def num_nodes_waiting(self):
        return 0

    def get_run_id(self):
        return "job"

    is_closed = set_closed = shutdown = get_backend = num_nodes_waiting


def run(handler, entrypoint="true"):
    made = agent.LocalElasticAgent(agent.WorkerSpec("trainer", 1, handler, entrypoint=entrypoint))
    return made, made.run


def test_a_handler_says_no_more_than_it_has_to(scratch):
    made, begin = run(Alone(scratch))
    assert made.get_worker_group().state == agent.WorkerState.INIT
    assert made.get_worker_group().workers == [agent.Worker(0)]
    assert begin().state == agent.WorkerState.SUCCEEDED
    assert made.get_worker_group().store is not None and made.get_worker_group().group_rank == 0


def test_what_is_no_handler_is_refused():
    with pytest.raises(TypeError, match="is no RendezvousHandler: it has no next_rendezvous, set_closed"):
        run(object())[1]()


class RendezvousGracefulExitError(Exception):
    """PyTorch's, which is none of Muster's."""


def test_what_a_handler_raises_is_raised_and_no_worker_is_started(scratch):
    with pytest.raises(ConnectionError, match="the network is away"):
        run(Alone(scratch, wrong=ConnectionError("the network is away")), f"{scratch}/not-there")[1]()
    ended = run(Alone(scratch, wrong=RendezvousGracefulExitError("not needed")))[1]()
    assert ended.state == agent.WorkerState.STOPPED


class Stopping(Alone):
    def next_rendezvous(self):
        self.made._job.agent.stop()
        return super().next_rendezvous()


def test_an_agent_that_is_stopped_while_its_handler_waits_has_a_result(scratch):
    handler = Stopping(scratch)
    handler.made, begin = run(handler, f"{scratch}/not-there")
    assert begin().state == agent.WorkerState.STOPPED


@pytest.mark.parametrize("name, value, said", [
    ("rank", -1, "rank of a round is -1"), ("rank", None, "rank of a round is None"), ("rank", 1, "rank of a round is 1, and not a number of 0 to 0"),
    ("world_size", 65537, "1 to 65536"), ("world_size", True, "world_size of a round is True"),
    ("bootstrap_store_info", launcher.LogsDest(), "master_addr"),
    ("bootstrap_store_info", type("Meeting", (), {"master_addr": "a b", "master_port": 1}), "space"),
    ("bootstrap_store_info", type("Meeting", (), {"master_addr": "a", "master_port": 65536}), "master_port is 65536"),
])  # fmt: skip
def test_a_round_that_cannot_be_is_refused(scratch, name, value, said):
    with pytest.raises((ValueError, AttributeError), match=said):
        run(Alone(scratch, **{name: value}))[1]()


@pytest.mark.parametrize("text", [b"", b"\xff", b"3", b"[1, 2]", b"[0, 1, 0, -1]", b"[0, true, 0, 1]", b"{}"])
def test_ranks_in_the_store_that_make_no_sense_are_refused(scratch, text):
    place = store.FileStore(str(scratch / "store"))
    place.set("torchelastic/assigned_ranks/1", text)
    with pytest.raises(ValueError, match="torchelastic/assigned_ranks/1"):
        rounds.assign_ranks(place, 1, 2, "trainer", 1)


@pytest.mark.parametrize("text", [b"", b"[]", b'{"role": "a"}', b'{"role": "a", "local_world_size": 0}', b'{"local_world_size": 1e9}'])
def test_roles_in_the_store_that_make_no_sense_are_refused(scratch, text):
    place = store.FileStore(str(scratch / "store"))
    place.set("torchelastic/role_info/1", text)
    with pytest.raises(ValueError, match=r"torchelastic/role_info/1|local_world_size"):
        rounds.assign_ranks(place, 0, 2, "trainer", 1)


def test_equal_nodes_need_not_tell_their_roles(monkeypatch):
    monkeypatch.setenv("TORCH_ELASTIC_WORKER_IDENTICAL", "1")
    assert rounds.assign_ranks(None, 1, 3, "trainer", 2) == (2, 6, 2, 6)

# SPDX-License-Identifier: BSD-3-Clause
"""Real PyTorch training on several nodes that fail, come and go: on loopback and on hosts of their own."""

import functools
import os
import re
import shutil
import signal

import pytest

from support.binary import ROOT, Muster
from support.etcd import Etcd, require_etcd
from support.mixed_nodes import MixedJob
from support.leaks import ScratchDirectory

pytestmark = pytest.mark.timeout(180)

FILES = ["tests/interop/scripts/paused_training.py", "examples/pytorch/train_ddp.py", "examples/data/energy.csv"]
STEPS = 40
PAUSE = 20  # a checkpoint has just been written
TOLERANCE = 1e-6
# Else new workers may meet the keys of dead ones where the store for the workers is torchrun's, and fail.
UNSHARED = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": 1}


def training_command(scratch):
    """The worker; its node's number is still to be added."""
    return [*(shutil.copy(ROOT / path, scratch) for path in FILES), scratch / "checkpoint.pt", STEPS]


def final_loss(said):
    (loss,) = re.findall(r"final loss (\S+)", said)
    return float(loss)


class Training(MixedJob):
    """Nodes of one worker each, which pause at one step until they are let go. Workers have torch when they begin: else the
    imports would be most of what a test takes."""

    def __init__(self, muster, peer, pause=PAUSE, **settings):
        self.pause = pause
        super().__init__(
            muster, peer, worker=training_command(muster.scratch), env={"PAUSES": pause},
            **{"python": peer.forks.worker_python(), **settings}
        )  # fmt: skip

    def start_all(self, kinds, hosts=None, env=None):
        """Starts the nodes, the first of which hosts the store; returns their world."""
        for number, kind in enumerate(kinds, 1):
            where = {"on": hosts[number - 1]} if hosts else {"is_host": number == 1}
            self.start(kind, number, env=env, **where)
        return self.wait_for_world({number: 1 for number in range(1, len(kinds) + 1)})

    def go_on(self):
        (self.scratch / f"pass.{self.pause}").touch()

    def said(self):
        return "".join(node.running.out() for node in self.nodes)

    def loss(self):
        """What the last world came to, which continued from the pause's checkpoint."""
        said = self.said()
        assert re.findall(r"from step (\d+)", said)[-1] == str(PAUSE), said
        return final_loss(said)


@pytest.fixture
def make_training(muster, peer):
    return lambda **settings: Training(muster, peer, **settings)


@pytest.fixture(scope="module")
def undisturbed(binary, peer):
    """undisturbed(2): the final loss of two workers to whom nothing happens."""

    @functools.cache
    def run(size):
        directory = ScratchDirectory()
        end = Muster(binary, directory.path).run(
            ["run", "--standalone", "--nproc-per-node", size, *training_command(directory.path), 1],
            env={"PYTHON_EXEC": peer.python, "OMP_NUM_THREADS": 1},
        )
        assert end.status == 0 and directory.end() == [], end
        return final_loss(end.out)

    return run


@pytest.mark.parametrize("size, victim, is_imported", [(2, 0, False), (3, 2, True)])
def test_a_killed_worker_costs_one_restart_and_no_precision(make_training, peer, undisturbed, size, victim, is_imported):
    python = {} if is_imported else {"python": peer.python}
    training = make_training(nodes=size, options=["--max-restarts", 1], **python)
    world = training.start_all(["muster"] * size)
    os.kill(world.pid[victim], signal.SIGKILL)
    world = training.wait_for_world({number: 1 for number in range(1, size + 1)}, after=world)
    assert world.TORCHELASTIC_RESTART_COUNT == ["1"] * size
    training.go_on()
    training.finish()
    assert abs(training.loss() - undisturbed(size)) < TOLERANCE


def test_a_killed_agent_is_replaced_and_costs_no_restart(make_training, undisturbed):
    training = make_training(nodes=2)
    world = training.start_all(["muster"] * 2)
    training.nodes[1].running.kill()
    training.start("muster", 3, is_host=False)
    world = training.wait_for_world({1: 1, 3: 1}, after=world)
    assert world.TORCHELASTIC_RESTART_COUNT == ["0"] * 2
    training.go_on()
    training.finish({1: 0, 2: -signal.SIGKILL, 3: 0})
    assert abs(training.loss() - undisturbed(2)) < TOLERANCE


def test_steps_in_memory_are_lost_only_with_their_node(make_training, undisturbed):
    training = make_training(nodes=2, pause=23, options=["--max-restarts", 1, "--scratch", "16M"])
    world = training.start_all(["muster"] * 2)
    os.kill(world.pid[1], signal.SIGKILL)
    world = training.wait_for_world({1: 1, 2: 1}, after=world)
    training.wait_until(lambda: "from step 23" in training.said(), "the step in memory")
    training.nodes[1].running.kill()
    training.start("muster", 3, is_host=False)
    training.wait_for_world({1: 1, 3: 1}, after=world)
    training.go_on()
    training.finish({1: 0, 2: -signal.SIGKILL, 3: 0})
    said = training.said()
    assert sorted(re.findall(r"from step (\d+)", said)) == ["0", "20", "23"], said  # 20 is on disk
    assert abs(final_loss(said) - undisturbed(2)) < TOLERANCE


@pytest.mark.timeout(600)
def test_every_first_node_is_lost_where_a_directory_is_the_register(make_training, undisturbed, scratch):
    """Each of them hosts the store and has rank 0, and another node takes its place. One of them is told to end."""
    (scratch / "register").mkdir(mode=0o700)
    training = make_training(nodes="2:3", backend="dir", endpoint=scratch / "register")
    host = training.start("muster", 1)
    training.wait_until(lambda: "this node hosts the store" in host.running.err(), "the first host")
    for number in (2, 3):
        training.start("muster", number)
    world = training.wait_for_world({1: 1, 2: 1, 3: 1})
    for first, how in ((1, signal.SIGKILL), (2, signal.SIGTERM), (3, signal.SIGKILL)):
        training.nodes[first - 1].running.signal(how)
        training.start("muster", first + 3)
        world = training.wait_for_world({number: 1 for number in range(first + 1, first + 4)}, after=world)
    assert world.TORCHELASTIC_RESTART_COUNT == ["0"] * 3
    training.go_on()
    training.finish({1: -signal.SIGKILL, 2: 1, 3: -signal.SIGKILL, **dict.fromkeys((4, 5, 6), 0)})
    assert abs(training.loss() - undisturbed(3)) < TOLERANCE


def test_nodes_are_killed_join_and_leave(make_training):
    training = make_training(nodes="1:3")
    world = training.start_all(["muster"] * 3)
    training.nodes[2].running.kill()
    world = training.wait_for_world({1: 1, 2: 1}, after=world)
    training.start("muster", 4, is_host=False)
    world = training.wait_for_world({1: 1, 2: 1, 4: 1}, after=world)
    training.nodes[1].running.signal(signal.SIGTERM)
    world = training.wait_for_world({1: 1, 4: 1}, after=world)
    assert world.TORCHELASTIC_RESTART_COUNT == ["0"] * 2
    training.go_on()
    training.finish({1: 0, 2: 1, 3: -signal.SIGKILL, 4: 0})
    assert training.loss() < 1


@pytest.mark.parametrize("kinds", [("torchrun", "muster"), ("muster", "torchrun")], ids="-".join)
def test_nodes_of_both_kinds_train_on_after_a_failure(make_training, undisturbed, kinds):
    training = make_training(nodes=2, options=["--max-restarts", 1])
    world = training.start_all(kinds, env=UNSHARED)
    os.kill(world.pid[1], signal.SIGKILL)
    training.wait_for_world({1: 1, 2: 1}, after=world)
    training.go_on()
    training.finish()
    assert abs(training.loss() - undisturbed(2)) < TOLERANCE


@pytest.fixture
def hosts(make_network):
    return lambda count: make_network(count).hosts


def test_hosts_of_their_own_lose_a_worker(make_training, undisturbed, hosts):
    two = hosts(2)
    training = make_training(nodes=2, endpoint="node1:29400", options=["--max-restarts", 1])
    world = training.start_all(["muster"] * 2, two)
    assert set(world.MASTER_ADDR) == {"node1"}
    os.kill(world.pid[1], signal.SIGKILL)
    training.wait_for_world({1: 1, 2: 1}, after=world)
    training.go_on()
    training.finish()
    assert abs(training.loss() - undisturbed(2)) < TOLERANCE


@pytest.mark.parametrize("returns", [False, True])
def test_hosts_of_their_own_lose_one_of_them(make_training, undisturbed, hosts, returns):
    three = hosts(3)
    training = make_training(nodes="1:3", endpoint=f"{three[0].address}:29400")
    world = training.start_all(["muster"] * 3, three)
    three[2].unplug()
    world = training.wait_for_world({1: 1, 2: 1}, after=world, without=[3])
    training.wait_until(lambda: 3 not in training.living().node, "the end of the worker that is cut off")
    if returns:
        three[2].plug()
        training.wait_for_world({1: 1, 2: 1, 3: 1}, after=world)
    training.go_on()
    training.finish({1: 0, 2: 0, 3: 0} if returns else {1: 0, 2: 0})
    assert abs(training.loss() - undisturbed(3 if returns else 2)) < (TOLERANCE if returns else 1)


@pytest.fixture
def make_etcd(tmp_path):
    require_etcd()
    made = []

    def make(members, **how):
        made.append(Etcd(tmp_path, members, **how))
        return made[-1]

    yield make
    for etcd in made:
        etcd.end()


def register_in_etcd(make_etcd, scratch, hosts):
    return {"backend": "etcd", "endpoint": make_etcd(3, hosts=hosts).endpoints}


def register_in_a_directory(make_etcd, scratch, hosts):
    """It is no machine: who is cut off from the others still reaches it."""
    (scratch / "register").mkdir(mode=0o700)
    return {"backend": "dir", "endpoint": scratch / "register"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("make_register", [register_in_etcd, register_in_a_directory], ids=["etcd", "dir"])
def test_every_host_of_its_own_is_cut_off(make_training, undisturbed, hosts, make_etcd, scratch, make_register):
    """The first one hosts the store and has rank 0; each comes back. The last host is killed, and replaced."""
    six = hosts(6)
    training = make_training(nodes="2:3", **make_register(make_etcd, scratch, six[3:]))
    for number, host in enumerate(six[:3], 1):
        node = training.start("muster", number, on=host)
        if number == 1:
            training.wait_until(lambda: "this node hosts the store" in node.running.err(), "the first host")
    world = training.wait_for_world({1: 1, 2: 1, 3: 1})
    for number, host in enumerate(six[:3], 1):
        host.unplug()
        others = dict.fromkeys({1, 2, 3} - {number}, 1)
        world = training.wait_for_world(others, after=world, without=[number])
        host.plug()
        world = training.wait_for_world({1: 1, 2: 1, 3: 1}, after=world)
    training.nodes[0].running.kill()
    training.start("muster", 4, on=six[0])
    world = training.wait_for_world({2: 1, 3: 1, 4: 1}, after=world)
    assert world.TORCHELASTIC_RESTART_COUNT == ["0"] * 3
    training.go_on()
    training.finish({1: -signal.SIGKILL, 2: 0, 3: 0, 4: 0})
    assert abs(training.loss() - undisturbed(3)) < TOLERANCE

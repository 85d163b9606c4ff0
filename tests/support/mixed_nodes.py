# SPDX-License-Identifier: BSD-3-Clause
"""Jobs whose nodes may be of both kinds, muster's and torchrun's (support.nodes has those of muster's alone).

    job = MixedJob(muster, peer, nodes="1:3")
    job.start("torchrun", 1)                # its address is 127.0.0.1, and it hosts the store
    job.start("muster", 2, workers=2)       # 127.0.0.2: its ranks come after
    world = job.wait_for_world({1: 1, 2: 2})
    job.fail(2, local_rank=1)
    job.wait_for_world({1: 1, 2: 2}, after=world)
    job.let_go()
    job.finish()
"""

import base64
import json
import shutil
import subprocess
import time

from support.binary import ROOT
from support.nodes import exists
from support.ports import free_port
from support.store import CHECK, RawClient, request

# So that a test does not take minutes; torchrun's own defaults are 30, 600 and 5 s.
CONF = {"last_call_timeout": 1, "join_timeout": 60, "keep_alive_interval": 1, "keep_alive_max_attempt": 4}
PATIENCE = 100  # seconds; a torchrun takes a few to start, and more on a busy machine


class Node:
    """One agent."""

    def __init__(self, kind, number, running):
        self.kind, self.number, self.running = kind, number, running

    def __repr__(self):
        status = self.running.process.poll()
        return (
            f"-- node {self.number} ({self.kind}), {'running' if status is None else f'status {status}'}\n"
            f"{self.running.out()[-2000:]}{self.running.err()[-6000:]}"
        )


class World:
    """What the workers of one round say of it, by rank."""

    def __init__(self, members):
        self.members = sorted(members, key=lambda facts: int(facts["RANK"]))

    def __getattr__(self, name):
        """One of their variables, of all of them: world.RANK."""
        return [facts[name] for facts in self.members]

    @property
    def place(self):
        """The one address where they meet."""
        (place,) = set(zip(self.MASTER_ADDR, self.MASTER_PORT))
        return place[0], int(place[1])

    def is_whole(self, sizes):
        """Whether the nodes (a dictionary of their sizes) are one world, with nobody else."""
        names = sorted((facts["node"], int(facts["LOCAL_RANK"])) for facts in self.members)
        expected = sorted((node, local) for node, workers in sizes.items() for local in range(workers))
        return names == expected and all(
            [int(facts["RANK"]) for facts in self.members] == list(range(len(expected)))
            and facts["WORLD_SIZE"] == str(len(expected))
            and facts["GROUP_WORLD_SIZE"] == str(len(sizes))
            and facts["LOCAL_WORLD_SIZE"] == str(sizes[facts["node"]])
            for facts in self.members
        )

    def assert_has_met(self):
        """Every member has left its name at the one store."""
        address, port = self.place
        names = [b"member." + facts["name"].encode() for facts in self.members]
        with RawClient(port, address) as store:
            store.send(request(CHECK, len(names), *names))
            met = {facts["name"]: facts["has_met"] for facts in self.members}
            assert store.receive(1) == b"\x00", f"not all have met at {address}:{port}: {met}"


class MixedJob:
    """Nodes are numbered from 1; on loopback the number is the end of the address, so it orders the ranks."""

    def __init__(
        self, muster, peer, nodes="2", options=(), backend="c10d", endpoint=None, conf=None, env=None, worker=None,
        python=None,
    ):  # fmt: skip
        self.muster, self.peer, self.scratch = muster, peer, muster.scratch
        self.python = python or peer.python  # of muster's workers; of torchrun's, too, where it is given
        self.of_torchrun = {"PYTHON_EXEC": python} if python else {}
        self.endpoint = endpoint or f"127.0.0.1:{free_port()}"
        self.options = ["--nnodes", nodes, "--rdzv-id", "job", "--rdzv-backend", backend, *options]
        self.conf, self.env, self.nodes = {**CONF, **(conf or {})}, env or {}, []
        self.worker = worker or self.install_worker()

    def install_worker(self):
        shutil.copy(ROOT / "tests/support/store.py", self.scratch)
        return [shutil.copy(ROOT / "tests/interop/scripts/meeting_worker.py", self.scratch)]

    def start(self, kind, number, *options, workers=1, is_host=None, env=None, on=None):
        """Starts one node; on a host of support.network it finds out its address itself."""
        conf = {**self.conf, **({} if is_host is None else {"is_host": is_host})}
        words = [
            *self.options, "--rdzv-endpoint", self.endpoint,
            "--rdzv-conf", ",".join(f"{key}={value}" for key, value in conf.items()),
            *([] if on else ["--local-addr", f"127.0.0.{number}"]),
            "--nproc-per-node", workers, *options, *self.worker, number,
        ]  # fmt: skip
        env = {"OMP_NUM_THREADS": 1, "LOGLEVEL": "INFO", **self.env, **(env or {})}
        if kind == "muster":
            running = self.muster.start(["run", *words], env={"PYTHON_EXEC": self.python, **env}, on=on)
        else:
            spawn = subprocess.Popen if on else self.peer.spawn
            running = self.muster.start(words, program=self.peer.torchrun, env={**self.of_torchrun, **env}, on=on, spawn=spawn)
        node = Node(kind, number, running)
        self.nodes.append(node)
        return node

    def __repr__(self):
        facts = "\n".join(json.dumps(facts) for facts in self.facts())
        return "\n".join(repr(node) for node in self.nodes) + f"\n-- workers\n{facts}"

    def wait_until(self, condition, what, timeout=PATIENCE):
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, f"waited {timeout} s for {what}\n{self!r}"
            time.sleep(0.01)

    def wait_until_known(self, number):
        """Until the record knows a node that may get no world."""

        def is_known():
            with RawClient(int(self.endpoint.rsplit(":", 1)[1])) as store:
                return f"127.0.0.{number}".encode() in base64.b64decode(store.get(b"/torch.rendezvous.job"))

        self.wait_until(is_known, f"node {number} in the record")

    def facts(self):
        """What every worker ever started has said."""
        return [json.loads(path.read_text()) for path in sorted(self.scratch.glob("facts/[0-9]*"))]

    def starts(self, number):
        """How often the first worker of that node was started."""
        return sum(facts["node"] == number and facts["LOCAL_RANK"] == "0" for facts in self.facts())

    def living(self, without=()):
        return World([facts for facts in self.facts() if exists(facts["pid"]) and facts["node"] not in without])

    def wait_for_world(self, sizes, after=None, without=(), timeout=PATIENCE):
        """Until these nodes ({number: workers}) are one world, none of it left over from the one before.
        Workers of nodes it shall be `without` may still run."""
        old = set(after.pid) if after else set()
        world = None

        def has_come():
            nonlocal world
            ended = [node for node in self.nodes if node.number in sizes and node.running.process.poll() is not None]
            assert not ended, f"a node has ended\n{self!r}"
            world = self.living(without)
            return world.is_whole(sizes) and not old & set(world.pid)

        self.wait_until(has_come, f"a world of {sizes}", timeout)
        assert len(set(zip(world.MASTER_ADDR, world.MASTER_PORT))) == 1, f"two addresses in one world\n{self!r}"
        return world

    def fail(self, number, local_rank=0):
        """Makes one worker fail."""
        (self.scratch / f"fail.{number}.{local_rank}").touch()

    def let_go(self, number=None):
        """Lets the workers of one node succeed, or those of all."""
        (self.scratch / ("go" if number is None else f"go.{number}")).touch()

    def finish(self, statuses=None, timeout=PATIENCE):
        """Waits for the nodes' ends, which are successes unless said otherwise ({number: status})."""
        for node in self.nodes:
            if statuses is not None and node.number not in statuses:
                continue
            self.wait_until(lambda: node.running.process.poll() is not None, f"the end of node {node.number}", timeout)
            assert node.running.process.returncode == (statuses or {}).get(node.number, 0), repr(self)

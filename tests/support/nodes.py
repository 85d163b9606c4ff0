# SPDX-License-Identifier: BSD-3-Clause
"""A job of several nodes that come and go: agents with the dynamic rendezvous, and workers that do as told.

    job = Job(muster, "1:3")
    one, two = job.nodes("node1", "node2")
    world = job.wait_for_world("node1", "node2")
    world.of("node2").end(3)                            # that worker exits with status 3
    again = job.wait_for_world("node1", "node2")        # a later world of these two
    again.end()                                         # every worker exits with status 0
    assert job.statuses() == {"node1": 0, "node2": 0}

Worlds are told apart by the address of their workers' store, which is another one in every round.
"""

import contextlib
import os
import re
import time

from support.ports import free_port

# Settings with which a node is missed within two seconds where nothing but its heartbeats tell.
IMPATIENT = ["keep_alive_interval=1", "keep_alive_max_attempt=2"]

WAIT = 30  # seconds until a test gives up on something that takes milliseconds

# Says where it is, then waits for the status it shall exit with.
WORKER = """\
mkfifo order.$$
echo "node=$NODE rank=$RANK/$WORLD_SIZE local=$LOCAL_RANK/$LOCAL_WORLD_SIZE group=$GROUP_RANK/$GROUP_WORLD_SIZE\
 role=$ROLE_NAME:$ROLE_RANK/$ROLE_WORLD_SIZE store=$MASTER_ADDR:$MASTER_PORT restarts=$TORCHELASTIC_RESTART_COUNT\
 pid=$$" >>worlds
read -r status <order.$$
exit "$status"
"""


def exists(pid):
    """Whether the process is there and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition, what, timeout=WAIT):
    """The condition's value as soon as it holds."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s for {what}")
        time.sleep(0.005)


class Worker:
    """One worker, as it described itself."""

    def __init__(self, scratch, line):
        self.scratch, self.line = scratch, line
        fields = dict(word.split("=", 1) for word in line.split())
        self.node, self.store = fields["node"], fields["store"]
        self.rank, self.world_size = self.pair(fields["rank"])
        self.local_rank, self.local_world_size = self.pair(fields["local"])
        self.group_rank, self.group_world_size = self.pair(fields["group"])
        self.role, role_rank = fields["role"].split(":")
        self.role_rank, self.role_world_size = self.pair(role_rank)
        self.restarts, self.pid = int(fields["restarts"]), int(fields["pid"])

    def __repr__(self):
        return self.line

    @staticmethod
    def pair(text):
        return tuple(int(part) for part in text.split("/"))

    def is_running(self):
        return exists(self.pid)

    def end(self, status=0):
        """Makes it exit; a worker that is gone already is left alone."""
        order = self.scratch / f"order.{self.pid}"

        def tell():
            if not self.is_running():
                return True
            try:
                fd = os.open(order, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                return False  # it is not listening yet
            with contextlib.suppress(BrokenPipeError):  # it is gone in this moment
                os.write(fd, f"{status}\n".encode())
            os.close(fd)
            return True

        wait_until(tell, f"worker {self.pid} to listen")

    def wait_until_gone(self):
        wait_until(lambda: not self.is_running(), f"the end of worker {self.pid}")


class World:
    """The workers of one round, by rank."""

    def __init__(self, workers):
        """`workers`: in the order in which they started."""
        self.key = workers[0].line
        self.workers = sorted(workers, key=lambda worker: worker.rank)
        self.store = self.workers[0].store
        self.nodes = []  # by group rank
        for worker in self.workers:
            if worker.node not in self.nodes:
                self.nodes.append(worker.node)
        self.restarts = {worker.restarts for worker in self.workers}

    def __repr__(self):
        return "\n".join(map(repr, self.workers))

    def is_whole(self):
        size = self.workers[0].world_size
        return [worker.rank for worker in self.workers] == list(range(size)) and all(
            worker.world_size == size for worker in self.workers
        )

    def of(self, node):
        """That node's first worker."""
        return next(worker for worker in self.workers if worker.node == node)

    def end(self, status=0):
        for worker in self.workers:
            worker.end(status)


class Node:
    """One agent."""

    def __init__(self, name, running):
        self.name, self.running, self.was_killed = name, running, False

    @property
    def pid(self):
        return self.running.pid

    def signal(self, number):
        self.running.signal(number)

    def kill(self):
        """Without a chance to say anything; its end is waited for."""
        self.was_killed = True
        self.running.kill()

    def is_running(self):
        return self.running.process.poll() is None

    def err(self):
        return self.running.err()

    def wait_for_log(self, words, count=1, timeout=WAIT):
        self.running.wait_until(lambda: self.err().count(words) >= count, f"{words!r} from {self.name}", timeout)

    def wait_until_done(self):
        """Until the node is in the exit barrier, and the record says so: before, it is missed however it ends."""
        is_told = re.compile(r"-> write[^\n]* draining\b[^\n]*\n(.*\n)*.*<- written won|<- record[^\n]* draining\b")
        self.wait_for_log("round <- counted")
        self.running.wait_until(lambda: is_told.search(self.err()), f"{self.name} to be done")

    def finish(self, timeout=WAIT):
        return self.running.finish(timeout)


def job_in_a_file(muster, nnodes, *options, conf=(), **how):
    """A job whose record is in a file; there heartbeats tell who is gone."""
    path = muster.scratch / "record"
    return Job(muster, nnodes, *options, path=path, conf=["store_type=file", *IMPATIENT, *conf], **how)


class Job:
    """Agents that meet at one endpoint; options given here are those of every node."""

    def __init__(self, muster, nnodes, *options, host="127.0.0.1", port=None, path=None, conf=(), restarts=3, env=None):
        """`conf`: settings of the rendezvous, which come after a short last call; `path`: of a file store."""
        self.muster, self.scratch, self.env = muster, muster.scratch, env or {}
        self.port = port or free_port()
        self.is_tcp = path is None
        self.endpoint = f"{host}:{self.port}" if self.is_tcp else path
        self.options = [
            "--nnodes", nnodes, "--rdzv-backend", "c10d", "--rdzv-id", "job", "--max-restarts", restarts,
            *options,
        ]  # fmt: skip
        self.conf = ["last_call_timeout=1", *conf]
        self.started, self.seen_worlds = [], set()
        self.script = muster.script("worker.sh", WORKER)

    def start(self, name, *options, on=None, conf=(), address=None, env=None, script=None, is_pod=False):
        """Starts a node of this name, which is its address too unless that is given or it runs on a host.

        A pod's agent is the first process of its container. Killing the node kills all of it.
        """
        if address is None and on is None:
            address = name
        words = ["run", *self.options, "--rdzv-endpoint", self.endpoint, "--rdzv-conf", ",".join([*self.conf, *conf])]
        words += ["--local-addr", address] if address else []
        words += [*options, "--no-python", "sh", script or self.script]
        how = {"env": {"NODE": name, "LOGLEVEL": "DEBUG", **self.env, **(env or {})}, "on": on}
        if is_pod:
            words = ["--pid", "--fork", "--mount-proc", "--kill-child", self.muster.binary, *words]
            how["program"] = "unshare"
        running = self.muster.start(words, **how)
        self.started.append(Node(name, running))
        return self.started[-1]

    def start_host(self, name="node1", **how):
        """A node that hosts the store, before any other can (with a file store: any node)."""
        host = self.start(name, **how)
        if self.is_tcp:
            host.wait_for_log("hosting the store")
        return host

    def nodes(self, *names, **how):
        return [self.start(name, **how) for name in names]

    def workers(self):
        """All that ever started, in that order."""
        try:
            text = (self.scratch / "worlds").read_text(encoding="ascii")
        except FileNotFoundError:
            return []
        return [Worker(self.scratch, line) for line in text.split("\n")[:-1]]

    def worlds(self):
        """All that ever were, whole or not, in the order of their first workers."""
        worlds, of_store = [], {}
        for worker in self.workers():
            world = of_store.get(worker.store)
            if world is None or any(other.rank == worker.rank for other in world):
                world = of_store[worker.store] = []  # the port of a former world's store may be taken again
                worlds.append(world)
            world.append(worker)
        return [World(workers) for workers in worlds]

    def is_newest(self, world):
        """Whether no world came after this one. Where fewer nodes are enough, one may have come before it."""
        return self.worlds()[-1].key == world.key

    def wait_for_world(self, *names, timeout=WAIT):
        """The newest world, once it is whole, is of these nodes, and was not waited for before."""

        def find():
            worlds = self.worlds()
            if not worlds or worlds[-1].key in self.seen_worlds or not worlds[-1].is_whole():
                return None
            return worlds[-1] if sorted(worlds[-1].nodes) == sorted(names) else None

        try:
            world = wait_until(find, f"a world of {', '.join(names)}", timeout)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.tell()}") from None
        self.seen_worlds.add(world.key)
        return world

    def wait_for_largest_world(self, size, timeout=WAIT):
        """The newest world, once it is whole and of this many nodes, whichever they are."""

        def find():
            worlds = self.worlds()
            return worlds[-1] if worlds and worlds[-1].is_whole() and len(worlds[-1].nodes) == size else None

        try:
            return wait_until(find, f"a world of {size} nodes", timeout)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.tell()}") from None

    def wait_for_log_of_any(self, words, timeout=WAIT):
        wait_until(lambda: any(words in node.err() for node in self.started), f"{words!r} from any node", timeout)

    def tell(self):
        """What the nodes said, for whoever looks into a failure."""
        worlds = "\n\n".join(map(repr, self.worlds()))
        return worlds + "".join(
            f"\n\n== {node.name} (pid {node.pid}, status {node.running.process.poll()})\n{node.err()}"
            for node in self.started
        )

    def finish(self, timeout=WAIT):
        """Every node's end, by its name; of namesakes that of the last."""
        try:
            return {node.name: node.finish(timeout) for node in self.started}
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.tell()}") from None

    def statuses(self, timeout=WAIT):
        return {name: end.status for name, end in self.finish(timeout).items()}

    def succeeds(self, timeout=WAIT):
        """Whether every node that was not killed here ends with status 0; else shows what they said."""
        self.finish(timeout)
        assert all(node.running.process.returncode == 0 for node in self.started if not node.was_killed), self.tell()
        return True


def start_nodes(job, count, timeout=WAIT):
    """Nodes node1, node2, … of a job with a register, of which the first hosts the store."""
    for number in range(1, count + 1):
        job.start(f"node{number}", address="127.0.0.1")
        if number == 1:
            job.started[0].wait_for_log("this node hosts the store", timeout=timeout)
    return job.wait_for_world(*(f"node{number}" for number in range(1, count + 1)), timeout=timeout)

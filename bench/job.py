# SPDX-License-Identifier: BSD-3-Clause
"""A job of several agents on this machine, and the notes that its workers (noting_worker) write."""

import collections
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

CHECK = 0.005  # seconds between two looks at the notes; the times come from the notes themselves
PATIENCE = 120  # seconds until the bench gives up waiting
SHOWN = 4  # agents whose output is shown on a failure

Note = collections.namedtuple("Note", "what time node rank world pid")

ESTABLISHED, LISTENING = "01", "0A"
DIRECTORY = "dir"


def free_port():
    with socket.socket(socket.AF_INET6) as listener:
        listener.bind(("::", 0))
        return listener.getsockname()[1]


def sockets(port, state, end):
    """Inodes of the machine's TCP sockets in this state whose local (1) or remote (2) port is this one."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path("/proc/net", table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == state and int(words[end].rsplit(":", 1)[1], 16) == port:
                found.add(words[9])
    return found


def processes_below(pid):
    found = [pid]
    for task in pathlib.Path("/proc", str(pid), "task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                found += processes_below(int(child))
    return found


def processor_time(pid):
    """Nanoseconds that the threads of a process have run."""
    tasks = pathlib.Path("/proc", str(pid), "task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks)


class Agent:
    def __init__(self, job, node, on, variables):
        self.job, self.node = job, node
        self.output = job.directory / f"{node}.output"
        environment = {**os.environ, **job.environment, "TMPDIR": str(job.directory), "OMP_NUM_THREADS": "1"}
        environment.update(variables, NOTES=str(job.notes_file), NODE=node)
        words = [*job.launcher.words, *job.options, "--local-addr", on.address if on else "127.0.0.1"]
        words += job.worker_words
        with open(self.output, "wb") as output:
            self.started = time.monotonic_ns()
            self.process = subprocess.Popen(
                on.command(words) if on else words, cwd=job.directory, env=environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

    def kill(self):
        """Kills the agent with SIGKILL; returns the instant."""
        when = time.monotonic_ns()
        self.process.kill()
        self.process.wait()
        return when

    def end(self):
        """Tells the agent to end, as Slurm and Kubernetes do; returns the instant."""
        when = time.monotonic_ns()
        self.process.terminate()
        return when

    def processor_time(self):
        """Nanoseconds of processor time of the agent and its helper processes, without its workers."""
        workers = {note.pid for note in self.job.notes()}
        return sum(processor_time(pid) for pid in processes_below(self.process.pid) if pid not in workers)


class Job:
    """Agents of one launcher that meet at one endpoint, with one worker each. Use it in a `with`."""

    workers = 1  # of each agent

    def __init__(self, launcher, build, directory, nodes, conf="", address="127.0.0.1", register=None, **environment):
        """`register` says which node hosts the store: DIRECTORY, one of the job's own, or the members of an etcd."""
        self.launcher, self.environment = launcher, environment
        self.directory = pathlib.Path(directory) / f"{launcher.name.split()[0]}-{time.monotonic_ns()}"
        self.directory.mkdir()
        self.worker = shutil.copy(self.program(build), self.directory)  # where a chroot sees it
        self.worker_words = self.command(str(self.worker))
        self.notes_file = self.directory / "notes"
        self.notes_file.touch()
        self.noted, self.half, self.unread = [], "", open(self.notes_file, encoding="ascii")
        self.port = free_port()
        self.options = ["--nnodes", str(nodes), "--nproc-per-node", str(self.workers), "--max-restarts", "1000"]
        self.register = register
        self.options += [*self.place(address), "--rdzv-id", self.directory.name]  # jobs share an etcd
        if conf:
            self.options += ["--rdzv-conf", conf]
        self.agents = {}

    def place(self, address):
        """Where the nodes meet: at the host of the store, or at the register."""
        if self.register is None:
            return ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{address}:{self.port}"]
        if self.register != DIRECTORY:
            return ["--rdzv-backend", "etcd", "--rdzv-endpoint", self.register]
        path = self.directory / "register"
        path.mkdir(mode=0o700)
        return ["--rdzv-backend", "dir", "--rdzv-endpoint", str(path)]

    def program(self, build):
        """Path of the worker that is copied into the job's directory."""
        return build / "bench" / "noting_worker"

    def command(self, worker):
        """What follows the launcher's options, to start that copy."""
        return ["--no-python", worker]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Kills everything: the measurement is over, and torchrun would take long to end."""
        for agent in self.agents.values():
            agent.process.kill()
        for pid in {note.pid for note in self.notes()}:  # a killed torchrun leaves its workers
            with contextlib.suppress(OSError):
                if os.fsencode(self.worker) in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)
        for agent in self.agents.values():
            agent.process.wait()
        self.unread.close()

    def start(self, node, on=None, **variables):
        self.agents[node] = Agent(self, node, on, variables)
        return self.agents[node]

    def start_host(self, node, on=None):
        """Starts the agent that shall host the store, and waits until the store runs. With a register only the
        agent's log tells of that."""
        agent = self.start(node, on, **({} if self.register is None else {"LOGLEVEL": "INFO"}))
        self.wait_until(lambda: self.is_hosted(agent), PATIENCE, f"{node} to host the store")
        return agent

    def is_hosted(self, agent):
        if self.register is None:
            return sockets(self.port, LISTENING, 1)
        return "this node hosts the store" in agent.output.read_text(errors="replace")

    def fail(self, why):
        """Ends the bench with the output of a few agents; agents that have ended come first."""
        agents = sorted(self.agents.values(), key=lambda agent: agent.process.poll() is None)
        told = [f"bench: {self.launcher.name}: {why}"]
        for agent in agents[:SHOWN]:
            told.append(f"-- {agent.node}, status {agent.process.poll()}")
            told.append(agent.output.read_text(errors="replace")[-1000:])
        raise SystemExit("\n".join([*told, "-- notes", self.notes_file.read_text()[-1000:]]))

    def wait_until(self, condition, seconds, what, check=CHECK):
        """Waits until the condition is true and returns its value; ends the bench when that never happens."""
        deadline = time.monotonic() + seconds
        while not (answer := condition()):
            if time.monotonic() > deadline:
                self.fail(f"waited {seconds} s for {what}")
            time.sleep(check)
        return answer

    def notes(self):
        """All notes so far, in the order of writing. Each was one write, of which a part can be there already where
        a page ends: the rest of such a line is read the next time."""
        *lines, self.half = (self.half + self.unread.read()).split("\n")
        for line in lines:
            what, time, node, rank, world, pid = line.split()
            self.noted.append(Note(what, int(time), node, rank, int(world), int(pid)))
        return self.noted

    def world(self, nodes, since=0):
        """The newest note of each of these nodes' workers, if they make up a world that began after an instant."""
        latest = {note.node: note for note in self.notes() if note.what == "start" and note.time > since}
        world = [latest[node] for node in nodes if node in latest]
        ranks = {str(rank) for rank in range(len(nodes))}
        whole = {note.rank for note in world} == ranks and {note.world for note in world} == {len(nodes)}
        return world if whole else None

    def await_world(self, nodes, since=0):
        """Waits for the world of these nodes; returns the instant at which its last worker started."""
        what = f"a world of {', '.join(nodes)}"
        return last_start(self.wait_until(lambda: self.world(nodes, since), PATIENCE, what))

    def await_world_within(self, nodes, since, seconds):
        """The same, but None when there is no such world within that many seconds."""
        deadline = since + seconds * 10**9
        while not (world := self.world(nodes, since)):
            if time.monotonic_ns() > deadline:
                return None
            time.sleep(CHECK)
        return last_start(world)

    def fail_worker(self, node):
        """Makes a node's worker fail; returns the last instant that it noted."""
        worker = [note for note in self.notes() if note.what == "start" and note.node == node][-1]
        os.kill(worker.pid, signal.SIGUSR1)
        ends = lambda: [note.time for note in self.notes() if note.what == "end" and note.pid == worker.pid]  # noqa: E731
        return self.wait_until(ends, PATIENCE, f"the end of {node}'s worker")[0]


def last_start(world):
    return max(note.time for note in world)

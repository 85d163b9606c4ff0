# SPDX-License-Identifier: BSD-3-Clause
"""One storm: a job and what happens to it, both made up from a seed, and what was left behind.

The seed decides the plan: the job, the faults, and when they come. What they hit is decided by who is there then."""

import collections
import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from invariants import check_end, check_flatness, check_ranks, check_size, check_worlds, longest_overlap, read_notes, worlds_of
from support.binary import clean_environment
from support.disks import Disk
from support.leaks import processes_with
from support.lossy_network import BUILD, LossyNetwork
from support.ports import free_port
from support.peers import Peer, find_peer

HERE = pathlib.Path(__file__).resolve().parent
WORKER = BUILD / "tests" / "soak_worker"
PORT = 29555  # in namespaces of their own
CONTAINER = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
SILENCE = 3  # seconds: silence_timeout
SLACK = 2  # seconds by which a loaded machine may be late
LATE = 5.5  # seconds after the others; a node that waits says so after 5

OF_WORKERS = ["worker fails", "worker killed", "worker stopped", "worker hangs"]
OF_AGENTS = ["agent killed", "agent terminated", "agent interrupted", "agent stopped", "node stopped", "guardian killed",
             "guardian stopped", "node done", "node joins"]  # fmt: skip
OF_NETWORKS = ["cut", "cut one way", "loss", "delay", "reset", "cut of the host"]
OF_STORES = ["record deleted", "key deleted"]
OF_DISKS = ["disk full", "disk hangs"]
OF_PLACES = ["console blocked", "paths purged"]
OF_STANDBY = ["parent killed", "parent stopped", "spare killed", "spare stopped"]
OF_CONTAINERS = ["stranger adopted", "stranger adopted"]
KINDS = {
    # kind: (how often, its faults)
    "loopback": (6, [*OF_WORKERS, *OF_AGENTS, *OF_STORES, *OF_DISKS, *OF_PLACES]),
    "network": (8, [*OF_WORKERS, *OF_AGENTS, *OF_NETWORKS, *OF_NETWORKS, *OF_STORES]),
    "file": (2, [*OF_WORKERS, *OF_AGENTS]),
    "register": (4, [*OF_WORKERS, *OF_AGENTS, *OF_PLACES]),
    # each agent is the first process of a container that has the machine's name and network
    "register in containers": (3, [*OF_WORKERS, *OF_AGENTS, *OF_PLACES, *OF_CONTAINERS]),
    "containers": (2, [*OF_WORKERS, *OF_AGENTS, *OF_PLACES, *OF_CONTAINERS]),
    "register and network": (4, [*OF_WORKERS, *OF_AGENTS, *OF_NETWORKS, *OF_NETWORKS]),
    "static": (3, [*OF_WORKERS, *OF_AGENTS[:-1], *OF_DISKS]),
    "alone": (2, [*OF_WORKERS, *OF_AGENTS[:-1], *OF_DISKS, *OF_PLACES]),
    # workers are Python, and others wait to take their places; not while their hook is tidied away within the milliseconds
    # in which an interpreter looks for it
    "standby": (4, [*OF_WORKERS, *OF_WORKERS, *OF_AGENTS, *OF_STANDBY, "console blocked"]),
    "torchrun": (1, [*OF_WORKERS, "agent killed", "agent stopped", "node joins"]),
    # one job as long as all the others together, whose agents must not grow
    "marathon": (0, ["worker fails", "worker killed", "worker stopped", "node stopped", "key deleted"]),
}


Fault = collections.namedtuple("Fault", "at kind seconds strength")


class Plan:
    """What a seed says."""

    def __init__(self, seed, kinds=None, obstacles=(), is_marathon=False, seconds=None):
        dice = self.dice = random.Random(seed)
        names = [kind for kind in kinds or KINDS if kind not in obstacles]
        self.seed, self.kind = seed, dice.choices(names, [KINDS[kind][0] for kind in names])[0]
        if is_marathon:
            self.kind = "marathon"
        self.nodes = 1 if self.kind == "alone" else dice.randint(2, 4) if self.kind == "torchrun" else dice.randint(2, 8)
        self.fewest = self.nodes if self.kind == "static" or dice.random() < 0.2 else dice.randint(1, self.nodes)
        self.workers = [dice.choice([1, 1, 2, 3]) for _ in range(self.nodes + 8)]
        self.shutdown_timeout = dice.choice([0.5, 1, 3])
        self.restarts = dice.choice([0, 2, 100, 100, 100])
        self.seconds = seconds or dice.uniform(6, 20)
        if is_marathon:
            self.nodes, self.fewest, self.restarts = 3, 3, 10**6
        self.has_disk = self.kind in ("loopback", "static", "alone") and dice.random() < 0.3
        self.talks = dice.random() < 0.3
        self.options = [
            "--max-restarts", self.restarts, "--shutdown-timeout", self.shutdown_timeout,
            "--exit-code", dice.choice(["torchrun", "worker"]), "--evidence", dice.choice(["off", "basic", "full"]),
        ]  # fmt: skip
        if self.kind != "alone":
            self.options += ["--exit-barrier-timeout", 20]
        if self.kind not in ("static", "alone"):
            self.options += ["--on-node-loss", dice.choice(["restart", "restart", "wait", "torchrun"])]
            self.options += ["--scale-up", dice.choice(["immediate", "immediate", "never", 2])]
            self.options += ["--settling-time", dice.choice([0, 1])]
        self.conf = {"join_timeout": dice.choice([15, 25]), "last_call_timeout": dice.choice([1, 2]),
                     "keep_alive_interval": 1, "keep_alive_max_attempt": 3}  # fmt: skip
        count = int(self.seconds / 4) if is_marathon else dice.randint(1, 12)
        self.faults = sorted(self.make_fault() for _ in range(count))
        self.combine(random.Random(f"{seed}, what else the job has"))

    def combine(self, dice):
        """What may be had beside everything else. A node that comes late finds others that have waited for a while."""
        has_others = self.kind not in ("alone", "torchrun")
        self.late = dice.randint(1, self.nodes - 2) if has_others and self.nodes > 2 and dice.random() < 0.2 else 0
        self.variables = {"MUSTER_JOB_TOKEN": "the token of a storm"} if has_others and dice.random() < 0.3 else {}
        if self.kind not in ("alone", "static", "file", "torchrun") and dice.random() < 0.6:
            self.conf["delegation"] = dice.choice(["true", "false"])
        for options in (["--scratch", "1M"], ["--event-log-handler", "console"], ["--standby", "on"], ["--role", "trainer"]):
            self.options += options if dice.random() < 0.2 else []
        if self.kind == "standby":
            self.options += ["--standby", "on", "--standby-after", 0.3, "--standby-parent", dice.choice(["on", "on", "off"])]

    def make_fault(self):
        kind = self.dice.choice(KINDS[self.kind][1])
        at, strength = self.dice.uniform(0.3, self.seconds), self.dice.random()
        return Fault(at, kind, self.dice.choice([0.1, 0.5, 1, 2, 4, 8, 15]), strength)

    def __str__(self):
        return f"seed {self.seed}: {self.kind}, {self.fewest}:{self.nodes} nodes, {len(self.faults)} faults, {self.seconds:.0f} s"


class Agent:
    """`readers` take what it writes, and can be stopped: as a console whose user has pressed Ctrl-S."""

    def __init__(self, name, kind, process, error_path, readers):
        self.name, self.kind, self.process, self.error_path, self.readers = name, kind, process, error_path, readers
        self.allowed, self.samples, self.host, self.is_in_container = {0, 1}, [], None, False

    @property
    def pid(self):
        """In a container the process that was started waits for the agent."""
        if self.is_in_container:
            with contextlib.suppress(OSError, IndexError):
                children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
                return int(children.split()[0])
        return self.process.pid

    def is_running(self):
        return self.process.poll() is None

    def sample(self):
        with contextlib.suppress(OSError, StopIteration):
            here = pathlib.Path("/proc", str(self.pid))
            lines = (here / "status").read_text().splitlines()
            kib = int(next(line for line in lines if line.startswith("VmRSS")).split()[1])
            self.samples.append((kib, len(os.listdir(here / "fd"))))


def comm_of(pid):
    try:
        return pathlib.Path("/proc", str(pid), "comm").read_text().strip()
    except OSError:
        return ""


def namespace_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def environment_of(pid):
    try:
        return pathlib.Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
    except OSError:
        return []


class Storm:
    """`run` plays the plan in the scratch directory and returns what was seen."""

    def __init__(self, plan, binary, scratch):
        self.plan, self.binary, self.scratch = plan, binary, scratch
        self.notes, self.temporary, self.logs = scratch / "notes", scratch / "tmp", scratch / "logs"
        self.agents, self.undoing, self.network, self.disk = [], [], None, None
        self.hanging, self.strangers = set(), []
        self.counts, self.dice, self.joined, self.began = collections.Counter(), random.Random(plan.seed + 1), 0, None
        self.diary = open(scratch / "diary", "w", encoding="utf-8", buffering=1)

    # ---- the job

    def run(self):
        for folder in (self.notes, self.temporary, self.logs):
            folder.mkdir()
        self.say(str(self.plan))
        try:
            self.set_up()
            self.play()
            violations = self.judge()
        finally:
            self.end()
        notes = read_notes(self.notes)
        longest = longest_overlap(notes) if self.plan.kind != "torchrun" else None
        return {
            "seed": self.plan.seed, "kind": self.plan.kind, "agents": len(self.agents), "workers": len(notes),
            "worlds": len(worlds_of(notes)), "faults": dict(self.counts), "violations": violations,
            "overlap": longest[0] if longest else 0,
        }  # fmt: skip

    def set_up(self):
        if self.plan.kind.startswith("register"):
            (self.scratch / "register").mkdir(mode=0o700)
        if self.plan.kind.endswith("network"):
            self.network = LossyNetwork(self.scratch, min(self.plan.nodes + 4, 12), self.plan.seed)
        if self.plan.has_disk:
            self.disk = Disk(self.scratch)
            if self.disk.mount():
                self.disk = None
        self.port = PORT if self.network else free_port()
        for _ in range(self.plan.nodes - self.plan.late):
            self.start_agent()

    def start_agent(self):
        number = len(self.agents) + 1
        if self.network and number > len(self.network.hosts):
            return False
        name, plan, host = f"node{number}", self.plan, self.network.hosts[number - 1] if self.network else None
        is_torchrun = plan.kind == "torchrun" and number % 2 == 0
        conf = ",".join(f"{key}={value}" for key, value in plan.conf.items())
        words = {
            "alone": ["--standalone"],
            "static": ["--nnodes", plan.nodes, "--node-rank", number - 1, "--master-addr", "127.0.0.1",
                       "--master-port", self.port, "--rdzv-conf", "timeout=20"],
            "file": ["--rdzv-endpoint", self.scratch / "record", "--rdzv-conf", f"store_type=file,{conf}"],
            "register": ["--rdzv-endpoint", self.scratch / "register", "--rdzv-conf", conf],
        }.get(plan.kind.partition(" ")[0], ["--rdzv-endpoint", f"{'node1' if host else '127.0.0.1'}:{self.port}", "--rdzv-conf", conf])  # fmt: skip
        if plan.kind not in ("alone", "static"):
            backend = "dir" if plan.kind.startswith("register") else "c10d"
            words += ["--nnodes", f"{plan.fewest}:{plan.nodes}", "--rdzv-backend", backend, "--rdzv-id", "storm"]
            words += [] if host or plan.kind.endswith("containers") else ["--local-addr", f"127.0.0.{number}"]
        words += ["--nproc-per-node", plan.workers[number - 1], *(self.own_options(number) if not is_torchrun else [])]
        program = [find_peer().torchrun] if is_torchrun else [self.binary, "run"]
        is_python = plan.kind == "standby"
        command = [*program, *words, *([HERE / "soak_program.py"] if is_python else ["--no-python"]), WORKER]
        environment = clean_environment(
            NODE=name, NOTES=self.notes, TMPDIR=self.temporary, SCRATCH_OF_TEST=self.scratch, LOGLEVEL="DEBUG",
            **({"TALKS": "1"} if plan.talks else {}), **({"PYTHON_EXEC": sys.executable} if is_python else {}), **plan.variables,
        )  # fmt: skip
        error_path = self.scratch / f"{name}.err"
        is_in_container = plan.kind.endswith("containers")
        command = [*CONTAINER, *command] if is_in_container else host.command(command) if host else command
        process, readers = self.start_process([str(word) for word in command], environment, error_path)
        self.agents.append(Agent(name, "torchrun" if is_torchrun else "muster", process, error_path, readers))
        self.agents[-1].host, self.agents[-1].is_in_container = host, is_in_container
        if "worker" in plan.options:
            self.agents[-1].allowed |= {7, 128 + signal.SIGKILL, 128 + signal.SIGTERM}
        return True

    def start_process(self, command, environment, error_path):
        """Its console is two pipes, each with a program that reads it into a file. (The process, the readers)"""
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, cwd=self.scratch)  # fmt: skip
        readers = []
        for pipe, path in ((process.stdout, error_path.with_suffix(".out")), (process.stderr, error_path)):
            with open(path, "wb") as file, pipe:
                readers.append(subprocess.Popen(["cat"], stdin=pipe, stdout=file))
        return process, readers

    def own_options(self, number):
        logs = self.disk.path if self.disk and number == 1 else self.logs
        return [*self.plan.options, "--log-dir", logs, *(["-t", "3"] if number % 2 else ["-r", "3"])]

    # ---- what happens to it

    def play(self):
        self.began = time.monotonic()
        for _ in range(self.plan.late):
            self.later(LATE, self.start_agent)
        pending, sampled = list(self.plan.faults), 0
        while time.monotonic() - self.began < self.plan.seconds:
            now = time.monotonic() - self.began
            while pending and pending[0].at <= now:
                self.strike(pending.pop(0))
            self.undo(now)
            if now - sampled > 1:
                sampled = now
                self.sample()
            if not any(agent.is_running() for agent in self.agents):
                break
            time.sleep(0.02)
        self.undo(None)

    def sample(self):
        for agent in self.agents:
            if agent.is_running() and agent.kind == "muster":
                agent.sample()

    def strike(self, fault):
        done = getattr(self, "do_" + fault.kind.replace(" ", "_"))(fault)
        if done:
            self.counts[fault.kind] += 1
        self.say(f"{fault.kind} ({fault.seconds} s): {done or 'nobody is there'}")

    def say(self, words):
        since = time.monotonic() - self.began if self.began else 0
        self.diary.write(f"{since:7.3f} {words}\n")

    def later(self, seconds, action):
        self.undoing.append((time.monotonic() - self.began + seconds, action))

    def undo(self, now):
        """Ends the faults that have lasted long enough; with None all."""
        due = [entry for entry in self.undoing if now is None or entry[0] <= now]
        for entry in due:
            self.undoing.remove(entry)
            entry[1]()

    def pick_agent(self, spared=0.5):
        """One that runs; the first, which many jobs cannot do without, more seldom."""
        running = [agent for agent in self.agents if agent.is_running()]
        if len(running) > 1 and running[0] is self.agents[0] and self.dice.random() < spared:
            running = running[1:]
        return self.dice.choice(running) if running else None

    def processes(self, node=None):
        """Those of this storm, and of this node where one is named; agents that the storm started come first."""
        found = []
        for pid in processes_with(self.scratch):
            words = environment_of(pid)
            if node is None or f"NODE={node}".encode() in words:
                found.append(pid)
        return found

    def signal(self, pids, number):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return pids

    def stop(self, pids, seconds):
        self.later(seconds, lambda: self.signal([pid for pid in pids if pid in processes_with(self.scratch)], signal.SIGCONT))
        return self.signal(pids, signal.SIGSTOP)

    def pick_worker(self):
        workers = [pid for pid in processes_with(self.scratch) if comm_of(pid) == "soak_worker"]
        return [self.dice.choice(workers)] if workers else []

    def do_worker_fails(self, fault):
        return self.signal(self.pick_worker(), signal.SIGUSR1)

    def do_worker_killed(self, fault):
        return self.signal(self.pick_worker(), signal.SIGKILL)

    def do_worker_hangs(self, fault):
        pids = self.signal(self.pick_worker(), signal.SIGUSR2)
        self.hanging |= set(pids)
        return pids

    def do_worker_stopped(self, fault):
        return self.stop(self.pick_worker(), fault.seconds)

    def pick_standby(self, *names):
        """A parent of standby workers, or what imports, waits, or has not become a worker's program yet."""
        there = [pid for pid in processes_with(self.scratch) if comm_of(pid).startswith(names)]
        return [self.dice.choice(there)] if there else []

    def do_parent_killed(self, fault):
        return self.signal(self.pick_standby("muster-parent"), signal.SIGKILL)

    def do_parent_stopped(self, fault):
        return self.stop(self.pick_standby("muster-parent"), fault.seconds)

    def do_spare_killed(self, fault):
        return self.signal(self.pick_standby("python"), signal.SIGKILL)

    def do_spare_stopped(self, fault):
        return self.stop(self.pick_standby("python"), fault.seconds)

    def signal_agent(self, number, agent=None):
        agent = agent or self.pick_agent()
        if agent is None:
            return None
        agent.allowed |= {-number} if number == signal.SIGKILL else {128 + number}
        self.signal([agent.pid], number)
        return agent.name

    def do_agent_killed(self, fault):
        """Not one that stands still since before its guardian was killed: it could not start another, and nobody is
        left who could end what has left the sessions of its workers (docs/reliability.md)."""
        agent = self.pick_agent()
        if agent is None or (agent.kind == "muster" and not self.guardians_of(agent)):
            return None
        return self.signal_agent(signal.SIGKILL, agent)

    def do_agent_terminated(self, fault):
        return self.signal_agent(signal.SIGTERM)

    def do_agent_interrupted(self, fault):
        return self.signal_agent(signal.SIGINT)

    def do_agent_stopped(self, fault):
        agent = self.pick_agent()
        return agent and self.stop([agent.pid], fault.seconds) and agent.name

    def do_node_stopped(self, fault):
        """As when a virtual machine is paused."""
        agent = self.pick_agent()
        return agent and self.stop(self.processes(agent.name), fault.seconds) and agent.name

    def pick_guardian(self):
        agent = self.pick_agent(spared=0)
        return self.guardians_of(agent) if agent else []

    def guardians_of(self, agent):
        return [pid for pid in self.processes(agent.name) if comm_of(pid) == "muster-guardian"]

    def do_guardian_killed(self, fault):
        return self.signal(self.pick_guardian(), signal.SIGKILL)

    def do_guardian_stopped(self, fault):
        return self.stop(self.pick_guardian(), fault.seconds)

    def do_node_done(self, fault):
        """Before the others are, which may lose it, and each other, while it waits for them."""
        agent = self.pick_agent(spared=0)
        if agent is None:
            return None
        workers = [pid for pid in self.processes(agent.name) if comm_of(pid) == "soak_worker"]
        return self.signal(workers, signal.SIGWINCH)

    def do_node_joins(self, fault):
        if self.joined >= 8 or not self.start_agent():
            return None
        self.joined += 1
        return self.agents[-1].name

    def pick_hosts(self):
        ends = self.dice.sample(range(1, len(self.agents) + 1), 2)
        return ends if self.dice.random() < 0.5 else [ends[0], "*"]

    def change_network(self, fault, verb, *value, ends=None):
        one, other = ends or self.pick_hosts()
        for source, target in ((one, other),) if fault.kind == "cut one way" else ((one, other), (other, one)):
            self.network.change(verb, source, target, *value)
            self.later(fault.seconds, lambda source=source, target=target: self.network.mend(source, target))
        return f"{verb} {value} {one} {other}"

    def do_cut(self, fault):
        return self.change_network(fault, "cut")

    do_cut_one_way = do_cut

    def do_cut_of_the_host(self, fault):
        return self.change_network(fault, "cut", ends=[1, "*"])

    def do_loss(self, fault):
        return self.change_network(fault, "loss", round(fault.strength / 2, 3), ends=["*", "*"])

    def do_delay(self, fault):
        return self.change_network(fault, "delay", round(fault.strength * 300))

    def do_reset(self, fault):
        return self.change_network(fault, "reset")

    def store(self, *words):
        """An operation on the job's store, from the machine that hosts it."""
        host = self.agents[0].host
        where = ["--host", host.address if host else "127.0.0.1", "--port", self.port, "--timeout", 2]
        command = [self.binary, "store", *words, *where]
        command = [str(word) for word in (host.command(command) if host else command)]
        environment = clean_environment(TMPDIR=self.temporary, SCRATCH_OF_TEST=self.scratch, **self.plan.variables)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=5).stdout
        return ""

    def do_record_deleted(self, fault):
        return self.store("delete", "/torch.rendezvous.storm") is not None and "the record"

    def do_key_deleted(self, fault):
        keys = [line.split()[0] for line in self.store("keys").splitlines() if line.strip()]
        return keys and self.store("delete", key := self.dice.choice(keys)) is not None and key

    def do_disk_full(self, fault):
        if self.disk is None or self.disk.is_frozen:
            return None
        filler = self.disk.path / "filler"
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(65536))
        self.later(fault.seconds, lambda: self.disk.is_frozen or filler.unlink(missing_ok=True))
        return "full"

    def do_disk_hangs(self, fault):
        if self.disk is None or self.disk.is_frozen:
            return None
        self.disk.freeze()
        self.later(fault.seconds, self.disk.thaw)
        return "hangs"

    def do_console_blocked(self, fault):
        """Nobody reads what the agent writes."""
        agent = self.pick_agent(spared=0)
        if agent is None:
            return None
        pids = [reader.pid for reader in agent.readers if reader.poll() is None]
        self.signal(pids, signal.SIGSTOP)
        self.later(fault.seconds, lambda: self.signal(pids, signal.SIGCONT))
        return agent.name

    def do_paths_purged(self, fault):
        """As a cluster does that tidies up /tmp, or a user with the logs."""
        for path in list((self.logs if fault.strength < 0.5 else self.temporary).iterdir()):
            shutil.rmtree(path, ignore_errors=True)
        return "the logs" if fault.strength < 0.5 else "temporary files"

    def do_stranger_adopted(self, fault):
        """Somebody enters the container and leaves a process there, which becomes a child of the agent."""
        agent = self.pick_agent(spared=0)
        if agent is None:
            return None
        leave = "setsid sleep 1000 </dev/null >/dev/null 2>&1 & exec readlink /proc/self/ns/pid"
        enter = ["nsenter", "--target", str(agent.pid), "--pid", "--mount", "sh", "-c", leave]
        entered = subprocess.run(enter, env=clean_environment(), capture_output=True, text=True)
        before = {stranger for _, stranger in self.strangers}
        for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
            if pid not in before and comm_of(pid) == "sleep" and namespace_of(pid) == entered.stdout.strip():
                self.strangers.append((agent, pid))
        return agent.name

    def check_strangers(self):
        """They are nobody's worker, so no restart ends them."""
        found = []
        for agent, pid in self.strangers:
            if agent.is_running() and comm_of(pid) != "sleep":
                time.sleep(0.5)  # the agent may be ending, and its container with it
                if agent.is_running():
                    found.append(f"{agent.name} has ended a process that is none of its workers': {pid}")
        return found

    # ---- the end

    def judge(self):
        """Waits for the agents, whom nothing keeps any more from ending well, and looks at what is left."""
        self.signal(self.hanging.intersection(self.processes()), signal.SIGKILL)
        violations = self.check_strangers()
        (self.notes / "go").touch()
        mine = [agent for agent in self.agents if agent.kind == "muster"]
        self.wait_for(mine)
        theirs = [agent for agent in self.agents if agent.kind == "torchrun" and agent.is_running()]
        if theirs and any(agent.is_running() for agent in mine):
            # In its exit barrier a node of torchrun's waits 300 s for one that was killed. No option shortens that, and
            # the other nodes of the round wait with it.
            self.say(f"torchrun's nodes are killed, which others wait for: {[agent.name for agent in theirs]}")
            self.signal([agent.process.pid for agent in theirs], signal.SIGKILL)
            self.wait_for(mine)
        self.say(f"the ends: {[(agent.name, agent.process.poll()) for agent in self.agents]}")
        self.wait_for_readers()
        notes, found = read_notes(self.notes), violations
        started = {note.node for note in notes}
        for agent in mine:
            if agent.name not in started:  # it may have ended before it heard signals
                agent.allowed |= {128 - status for status in agent.allowed if status > 128}
            said = agent.error_path.read_text(encoding="utf-8", errors="replace")
            found += check_end(agent.name, agent.process.poll(), agent.allowed, said)
            for kib, descriptors in agent.samples:
                found += check_size(agent.name, kib, descriptors)
            found += check_flatness(agent.name, agent.samples)
        if self.plan.kind != "torchrun" and not any(agent.is_running() for agent in self.agents):
            found += self.find_orphans()
        if self.plan.kind != "torchrun":  # whose nodes restart by themselves, and keep their store
            found += check_ranks(notes) + check_worlds(notes, self.bound())
        return found

    def wait_for(self, agents):
        deadline = time.monotonic() + self.plan.conf["join_timeout"] + 40 + 2 * self.plan.shutdown_timeout
        while any(agent.is_running() for agent in agents) and time.monotonic() < deadline:
            time.sleep(0.05)

    def wait_for_readers(self):
        for agent in self.agents:
            for reader in agent.readers if not agent.is_running() else ():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    reader.wait(5)

    def bound(self):
        """For how long two worlds may overlap: until a node knows that it is alone, and its workers have ended."""
        heartbeats = self.plan.conf["keep_alive_interval"] * (self.plan.conf["keep_alive_max_attempt"] + 1)
        return (heartbeats if self.plan.kind == "file" else SILENCE) + self.plan.shutdown_timeout + SLACK

    def find_orphans(self):
        deadline = time.monotonic() + 5
        while True:
            left = {pid: comm_of(pid) for pid in self.processes()}
            if not left or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        found = [f"left behind: process {pid} ({name})" for pid, name in left.items()]
        found += [f"left behind: {path}" for path in sorted(self.temporary.rglob("*"))]
        numbers = {str(agent.process.pid) for agent in self.agents if not agent.is_in_container}
        found += [f"left behind: /dev/shm/{name}" for name in os.listdir("/dev/shm") if any(n in name for n in numbers)]
        return found

    def end(self):
        for action in (lambda: self.undo(None), self.kill_all, lambda: self.disk and self.disk.end(),
                       lambda: self.network and self.network.end()):  # fmt: skip
            with contextlib.suppress(Exception):
                action()
        self.diary.close()

    def kill_all(self):
        for agent in self.agents:
            if agent.is_running():
                agent.process.kill()
            agent.process.wait()
            for reader in agent.readers:
                reader.kill()
                reader.wait()
        self.signal(self.processes(), signal.SIGKILL)


def is_peer_here():
    return isinstance(find_peer(), Peer)

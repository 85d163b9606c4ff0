# SPDX-License-Identifier: BSD-3-Clause
"""Several nodes: the time until the new world runs after a failure, a joining or a loss; the cost of waiting."""

import contextlib
import pathlib
import random
import sys
import time

import measure
from job import DIRECTORY, ESTABLISHED, Job, sockets
from launch import scratch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))

from support.network import Network, find_obstacle  # noqa: E402

BOUND = 30  # seconds until the result counts as "never"
MANY_BOUND = 120  # the same, when many programs have to start
FOUR = ("node0", "node1", "node2", "node3")
MILLISECOND = 10**6
TORCHRUN_MEMORY = 200  # MiB of an agent; it is about 160


def elapsed(since, until):
    """Milliseconds between two instants; None when there is no second instant."""
    return None if until is None else (until - since) / MILLISECOND


def settle():
    """Waits until the work of starting a world is over; the time is random, so no timer is in step with it."""
    time.sleep(random.uniform(0.15, 0.25))


class Bench:
    def __init__(self, launchers, build, quick):
        self.launchers, self.build, self.quick = launchers, build, quick

    def repetitions(self, launcher, muster, torchrun):
        full = muster if launcher.name == "muster" else torchrun
        return min(full, 2) if self.quick else full

    def job(self, launcher, directory, nodes, **settings):
        return Job(launcher, self.build, directory, nodes, **settings)

    def sides(self, figures_of):
        """The result of figures_of for each launcher, each in its own directory."""
        found = {}
        for launcher in self.launchers:
            with scratch() as directory:
                found[launcher.name] = figures_of(launcher, directory)
        return found

    def worker_failure(self):
        name = "4 agents, one worker fails: all new workers running"
        yield measure.row(name, "ms", "less", "at most 20 ms", self.sides(self.failures))

    def failures(self, launcher, directory):
        found = []
        with self.job(launcher, directory, 4) as job:
            for node in FOUR:
                job.start(node)
            job.await_world(FOUR)
            for number in range(self.repetitions(launcher, 40, 12)):
                settle()
                failed = job.fail_worker(FOUR[number % 4])
                found.append(elapsed(failed, job.await_world(FOUR, failed)))
        return found

    def joining(self):
        """A second agent joins. Of torchrun's it is told apart how long its program takes until it has reached
        the store; looking for that would delay Muster's, which takes less than a look."""
        own_starts = []

        def once(launcher, directory):
            # Without TORCH_DISABLE_SHARE_RDZV_TCP_STORE torchrun cannot do this at all: the new world hangs.
            shared = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
            with self.job(launcher, directory, "1:2", conf="last_call_timeout=2", **shared) as job:
                job.start_host("node0")
                job.await_world(["node0"])
                settle()
                before = sockets(job.port, ESTABLISHED, 2)
                joined = job.start("node1").started
                if launcher.name == "torchrun":
                    new = lambda: sockets(job.port, ESTABLISHED, 2) - before  # noqa: E731
                    job.wait_until(new, BOUND, "node1 to reach the store")
                    own_starts.append(elapsed(joined, time.monotonic_ns()))
                return elapsed(joined, job.await_world(["node0", "node1"], joined))

        def figures(launcher, directory):
            return [once(launcher, directory) for _ in range(self.repetitions(launcher, 10, 4))]

        name = "a node joins a running 1:2 job: new world running"
        note = "torchrun with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, without which the new world hangs and fails"
        yield measure.row(name, "ms", "less", "at most 60 ms", self.sides(figures), note)
        name = "of that, torchrun's own start until it has reached the store"
        yield measure.row(name, "ms", "less", "", {"torchrun": own_starts} if own_starts else {})

    def killed_agent(self):
        def once(launcher, directory):
            with self.job(launcher, directory, "2:4") as job:
                job.start_host(FOUR[0])
                for node in FOUR[1:]:
                    job.start(node)
                job.await_world(FOUR)
                settle()
                killed = job.agents[FOUR[3]].kill()
                return elapsed(killed, job.await_world_within(FOUR[:3], killed, BOUND))

        def figures(launcher, directory):
            return [once(launcher, directory) for _ in range(self.repetitions(launcher, 20, 1))]

        name = "4 agents, one killed with SIGKILL: survivors' new workers running"
        yield measure.row(name, "ms", "less", "at most 200 ms", self.sides(figures), bound=BOUND * 1000)

    def killed_host(self):
        """The first agent is killed, which hosts the store. torchrun has no other place for it."""
        name = "4 agents, the first killed, which hosts the store: survivors' new workers running"
        note = "Muster with `--rdzv-backend dir`; torchrun's job ends"
        sides = self.sides(self.kills_of_hosts)
        yield measure.row(name, "ms", "less", "at most 200 ms", sides, note, bound=BOUND * 1000)

    def kills_of_hosts(self, launcher, directory):
        register = DIRECTORY if launcher.name == "muster" else None
        repetitions = self.repetitions(launcher, 20, 1)
        return [self.kill_host(launcher, directory, len(FOUR), register) for _ in range(repetitions)]

    def kill_host(self, launcher, directory, count, register):
        with self.hosted_job(launcher, directory, count, register) as job:
            killed = job.agents[FOUR[0]].kill()
            return elapsed(killed, job.await_world_within(list(job.agents)[1:], killed, BOUND))

    @contextlib.contextmanager
    def hosted_job(self, launcher, directory, count, register, hosts=None):
        """A job of that many agents whose world runs, and of which the first hosts the store."""
        names = [host.name for host in hosts] if hosts else [f"node{number}" for number in range(count)]
        with self.job(launcher, directory, f"2:{count}", register=register) as job:
            for number, name in enumerate(names):
                start = job.start if number else job.start_host
                start(name, on=hosts[number] if hosts else None)
            job.await_world(names)
            settle()
            yield job

    def cut_link(self):
        obstacle = find_obstacle()
        if obstacle is not None:
            print(f"  not measured: a link cut silently: {obstacle}", flush=True)
            return

        def figures(launcher, directory):
            found = []
            for _ in range(self.repetitions(launcher, 5, 1)):
                network = Network(directory, 3)
                try:
                    found.append(self.cut_once(launcher, directory, network.hosts))
                finally:
                    network.end()
            return found

        name = "3 agents, one's link cut silently: survivors' new workers running"
        yield measure.row(name, "ms", "less", "at most 4 s", self.sides(figures), bound=BOUND * 1000)

    def cut_once(self, launcher, directory, hosts):
        with self.job(launcher, directory, "2:3", address=hosts[0].name) as job:
            for host in hosts:
                job.start(host.name, on=host)
            job.await_world([host.name for host in hosts])
            time.sleep(random.uniform(1, 2))
            cut = time.monotonic_ns()
            hosts[2].unplug()
            return elapsed(cut, job.await_world_within([host.name for host in hosts[:2]], cut, BOUND))

    def start_of_many(self):
        for count, wanted in ((16, ""), (64, "at most 1 s")):
            note = ""
            if measure.available_memory() < count * TORCHRUN_MEMORY:
                note = f"torchrun needs {count * TORCHRUN_MEMORY} MiB of memory for this"

            def figures(launcher, directory, count=count, fits=not note):
                if launcher.name == "torchrun" and not fits:
                    return []
                repetitions = self.repetitions(launcher, 5, 1)
                return [self.start_once(launcher, directory, count) for _ in range(repetitions)]

            name = f"{count} agents started at once: world running"
            yield measure.row(name, "ms", "less", wanted, self.sides(figures), note, bound=MANY_BOUND * 1000)

    def start_once(self, launcher, directory, count):
        nodes = [f"node{number}" for number in range(count)]
        with self.job(launcher, directory, count) as job:
            agents = [job.start(node) for node in nodes]
            first = agents[0].started
            return elapsed(first, job.await_world_within(nodes, first, MANY_BOUND))

    def idle(self):
        """The launchers' jobs idle at the same time, because processor time is counted for each process."""
        seconds = 5 if self.quick else 60
        with contextlib.ExitStack() as stack:
            directory = stack.enter_context(scratch())
            jobs = [stack.enter_context(self.job(launcher, directory, 4)) for launcher in self.launchers]
            for job in jobs:
                for node in FOUR:
                    job.start(node)
                job.await_world(FOUR)
            time.sleep(2)  # until the work of starting is over
            before = [[job.agents[node].processor_time() for node in FOUR] for job in jobs]
            time.sleep(seconds)
            after = [[job.agents[node].processor_time() for node in FOUR] for job in jobs]
        sides = {
            job.launcher.name: [elapsed(*agent) for agent in zip(*figures)]
            for job, *figures in zip(jobs, before, after)
        }
        name = f"idle job of 4 agents: processor time of an agent in {seconds} s"
        yield measure.row(name, "ms", "less", "at least 20 times less", sides)

    PARTS = (worker_failure, joining, killed_agent, killed_host, cut_link, start_of_many, idle)


def measure_all(launchers, build, quick):
    bench = Bench(launchers, pathlib.Path(build), quick)
    for part in Bench.PARTS:
        yield from part(bench)

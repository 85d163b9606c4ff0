# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that outlive their host: what a register costs while nothing happens to the host, and how long the others
take to go on when it is killed, told to end, or gone without a word. torchrun's jobs end then, so it has no side."""

import contextlib
import re
import shutil
import sys
import time
import urllib.request

import nodes
from job import DIRECTORY
from launch import scratch
from measure import row
from nodes import BOUND, FOUR, elapsed, settle

from support.etcd import Etcd  # noqa: E402  (nodes has made the tests' modules known)
from support.network import Network, find_obstacle  # noqa: E402

MANY = 32
MEMBERS = 3
REQUESTS = re.compile(r'^grpc_server_started_total\{.*grpc_service="etcdserverpb\.(?:KV|Lease|Watch|Auth)".*\} (\S+)$', re.MULTILINE)


class Bench(nodes.Bench):
    """Every measurement goes through the registers in turns, so that what else the machine does befalls all."""

    def __init__(self, launchers, build, quick, directory, etcd):
        super().__init__(launchers, build, quick)
        self.muster = launchers[0]
        self.directory, self.etcd = directory, etcd
        self.registers = {"muster, dir": DIRECTORY}
        if etcd is not None:
            self.registers["muster, etcd"] = etcd.endpoints

    def in_turns(self, repetitions, figure_of):
        """The figures for each register."""
        sides = {side: [] for side in self.registers}
        for _ in range(self.repetitions(self.muster, repetitions, 0)):
            for side, register in self.registers.items():
                sides[side].append(figure_of(register))
        return sides

    def row(self, name, wanted, sides, note=""):
        return row(name, "ms", "less", wanted, sides, note, bound=BOUND * 1000)

    def worker_failure(self):
        """What it costs that each round is an entry of the register before its workers start."""
        sides = {"muster, c10d": None, **self.registers}
        figures = {side: [] for side in sides}
        with contextlib.ExitStack() as stack:
            jobs = {}
            for side, register in sides.items():
                jobs[side] = stack.enter_context(self.job(self.muster, self.directory, 4, register=register))
                for node in FOUR:
                    jobs[side].start(node)
                jobs[side].await_world(FOUR)
            for number in range(self.repetitions(self.muster, 40, 0)):
                for side, job in jobs.items():
                    settle()
                    failed = job.fail_worker(FOUR[number % 4])
                    figures[side].append(elapsed(failed, job.await_world(FOUR, failed)))
        name = "4 agents, one worker fails, without and with a register: all new workers running"
        yield row(name, "ms", "less", "dir 1 ms more than c10d, etcd 5 ms more", figures)

    def killed_host(self):
        for count, repetitions in ((len(FOUR), 20), (MANY, 5)):
            sides = self.in_turns(
                repetitions, lambda register, count=count: self.kill_host(self.muster, self.directory, count, register)
            )
            name = f"{count} agents, the host's killed with SIGKILL: survivors' new workers running"
            yield self.row(name, "at most 200 ms", sides)

    def host_told_to_end(self):
        def once(register):
            with self.hosted_job(self.muster, self.directory, len(FOUR), register) as job:
                told = job.agents[FOUR[0]].end()
                return elapsed(told, job.await_world_within(FOUR[1:], told, BOUND))

        name = "4 agents, the host's told to end (SIGTERM): the others' new workers running"
        yield self.row(name, "at most 100 ms", self.in_turns(20, once))

    def host_and_leader(self):
        if self.etcd is None:
            return
        repetitions = self.repetitions(self.muster, 5, 0)
        sides = {"muster, etcd": [self.kill_host_and_leader() for _ in range(repetitions)]}
        name = "4 agents, the host's and etcd's leader killed together: survivors' new workers running"
        yield self.row(name, "at most 2.5 s", sides)

    def kill_host_and_leader(self):
        leader = self.etcd.leader()
        with self.hosted_job(self.muster, self.directory, len(FOUR), self.etcd.endpoints) as job:
            killed = time.monotonic_ns()
            self.etcd.processes[leader].kill()
            job.agents[FOUR[0]].kill()
            figure = elapsed(killed, job.await_world_within(FOUR[1:], killed, BOUND))
        self.etcd.kill(leader)  # waits for its end
        self.etcd.start(leader)
        self.etcd.await_member(leader)
        return figure

    def vanished_host(self):
        """Nothing comes from the host's machine any more, and nothing runs there: not even what would tell the
        others, or would go on renewing the term."""
        obstacle = find_obstacle()
        if obstacle is not None:
            print(f"  not measured: a machine that is gone without a word: {obstacle}", flush=True)
            return
        repetitions = self.repetitions(self.muster, 5, 0)
        sides = {"muster, dir": [self.cut_host() for _ in range(repetitions)]}
        name = "3 agents, the host's machine gone without a word: survivors' new workers running"
        yield self.row(name, "at most 4 s", sides)

    def cut_host(self):
        network = Network(self.directory, 3)
        try:
            hosts = network.hosts
            with self.hosted_job(self.muster, self.directory, 3, DIRECTORY, hosts) as job:
                gone = time.monotonic_ns()
                hosts[0].unplug()
                job.agents[hosts[0].name].kill()
                return elapsed(gone, job.await_world_within([host.name for host in hosts[1:]], gone, BOUND))
        finally:
            network.end()

    def idle(self):
        """Whether what etcd is asked grows with the nodes."""
        if self.etcd is None:
            return
        seconds = 3 if self.quick else 15
        for count in (len(FOUR), MANY):
            with self.hosted_job(self.muster, self.directory, count, self.etcd.endpoints):
                time.sleep(2)  # until the work of starting is over
                before = self.requests()
                time.sleep(seconds)
                figure = (self.requests() - before) / seconds
            name = f"idle job of {count} agents: requests to etcd in a second"
            yield row(name, "", "less", "at most 1", {"muster, etcd": [figure]})

    def requests(self):
        """How many requests of clients etcd's members have got."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        pages = [direct.open(f"{url}/metrics", timeout=10).read().decode() for url in self.etcd.urls]
        return sum(float(count) for page in pages for count in REQUESTS.findall(page))

    PARTS = (worker_failure, killed_host, host_told_to_end, vanished_host, host_and_leader, idle)


def measure_all(launchers, build, quick):
    with scratch() as directory, contextlib.ExitStack() as stack:
        etcd = None
        if shutil.which("etcd") and shutil.which("curl"):
            etcd = Etcd(directory, MEMBERS)
            stack.callback(etcd.end)
        else:
            print("  not measured: jobs with etcd: etcd or curl not found (make peers)", flush=True)
        bench = Bench(launchers, build, quick, directory, etcd)
        for part in Bench.PARTS:
            yield from part(bench)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a job costs as its nodes become many: real agents of one worker each, all started at once.

    bench/scale.py --build DIRECTORY [--json FILE] [--nodes 64,256] [--seconds S] [--quick]

It runs itself in a network namespace of its own, so that whatever the loopback device counts there is
of the job that is measured. Meanwhile the kernel may have more packets waiting, because all nodes of the job send theirs
to two processors here. *Alone* is the floor: as many agents that know nothing of each other
(`--standalone`). What that takes is the cost of so many processes, and not of their rendezvous.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import measure
from job import Job, free_port, last_start
from launch import scratch
from measure import row

NODES = (64, 256, 512, 1000)
SECONDS = 540  # until what is not measured yet is left out
SHARE = 12  # seconds for the repetitions of one side at one size; it is always measured once
ROUNDS = 5  # at most
BOUND = 120  # seconds until a result counts as "never"
CHECK = 0.02  # seconds between two looks at the notes; the times come from the notes themselves
TORCHRUN_NODES = 64
TORCHRUN_MEMORY = 200  # MiB of an agent
NAMESPACE = "MUSTER_BENCH_NAMESPACE"  # set where the network is the bench's own

ALONE, DELEGATED, COMPARED, TORCHRUN = "alone", "delegation=true", "delegation=false", "torchrun"

Quantity = collections.namedtuple("Quantity", "key name unit wanted")
QUANTITIES = (
    Quantity("start", "started at once: last start to world running", "ms", "at most 1 s"),
    Quantity("start_bytes", "started at once: bytes per agent until the world runs", "bytes", "at most 4 KB, the same for all N"),
    Quantity("failure", "a worker fails: all new workers running", "ms", "at most 1.2 s"),
    Quantity("failure_bytes", "a worker fails: bytes per agent", "bytes", ""),
    Quantity("stop", "SIGTERM to all agents: the last has ended", "ms", "at most 1.5 s"),
    Quantity("done", "the last worker is done: the last agent has ended", "ms", "at most 1.5 s"),
)  # fmt: skip
WANTED_AT = 1000  # agents

BARE = (1000, 4000)
BARE_PROCESSES = 4
BARE_ROUNDS = 3
RESTING = 10000  # members at rest, each with one connection
REST = 60  # seconds
BACKLOG_FILE = pathlib.Path("/proc/sys/net/core/netdev_max_backlog")
BACKLOG = 100000  # packets that a processor may have waiting; what comes when it has more is lost
SIMULATED = (100, 1000, 4000, 10000)
TRAFFIC = {
    "start": "all start",
    "rest": "10 s of rest",
    "loss": "1 in 100 is killed",
    "return": "as many come",
    "end": "all are done",
}


class Unreached(Exception):
    """What is measured did not happen within its time."""


def loopback_bytes():
    """Bytes that this network's loopback device has carried; None where the network is not the bench's own."""
    if NAMESPACE not in os.environ:
        return None
    for line in pathlib.Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == "lo":
            return int(counters.split()[0])
    return None


class Side:
    """One way to run so many agents."""

    def __init__(self, name, launcher, conf=""):
        self.name, self.launcher, self.conf = name, launcher, conf

    def job(self, build, directory, count):
        return Job(self.launcher, build, directory, count, conf=self.conf)

    def failing(self, nodes, number):
        """The nodes whose workers fail, so that all workers are started again."""
        return [nodes[number % len(nodes)]]

    def is_whole(self, job, nodes, since):
        return job.world(nodes, since) is not None


class LonelyJob(Job):
    def place(self, address):
        return ["--standalone"]


class LonelySide(Side):
    """As many jobs of one node each."""

    def job(self, build, directory, count):
        return LonelyJob(self.launcher, build, directory, 1)

    def failing(self, nodes, number):
        return nodes

    def is_whole(self, job, nodes, since):
        return {note.node for note in job.noted if note.what == "start" and note.time > since} == set(nodes)


class Run:
    """One job of one side: its start, a failure, and its end; each figure goes to its quantity's list."""

    def __init__(self, side, job, nodes, figures, ends_at):
        self.side, self.job, self.nodes, self.figures = side, job, nodes, figures
        self.ends_at = ends_at

    def deadline(self):
        return min(time.monotonic() + BOUND, self.ends_at)

    def await_starts(self, since, seen):
        """The instant of the last start after `seen` notes. Only when there are enough are they looked at."""
        deadline = self.deadline()
        while True:
            starts = [note for note in self.job.notes()[seen:] if note.what == "start"]
            if len(starts) >= len(self.nodes) and self.side.is_whole(self.job, self.nodes, since):
                return last_start(starts)
            if time.monotonic() > deadline:
                raise Unreached
            time.sleep(CHECK)

    def measured(self, key, since, until, counted_before):
        """Notes the time; and the bytes, where something follows that more bytes belong to."""
        self.figures[key].append((until - since) / 10**6)
        counted = loopback_bytes()
        if counted is not None and counted_before is not None:
            self.figures[f"{key}_bytes"].append((counted - counted_before) / len(self.nodes))

    def start(self):
        before = loopback_bytes()
        started = [self.job.start(node).started for node in self.nodes]
        with self.telling("start"):
            self.measured("start", started[-1], self.await_starts(started[0], 0), before)

    def signal_workers(self, nodes, number):
        workers = {note.node: note.pid for note in self.job.notes() if note.what == "start"}
        for node in nodes:
            os.kill(workers[node], number)

    def fail(self, number):
        before, seen = loopback_bytes(), len(self.job.notes())
        failing = self.side.failing(self.nodes, number)
        asked = time.monotonic_ns()
        self.signal_workers(failing, signal.SIGUSR1)
        with self.telling("failure"):
            until = self.await_starts(asked, seen)
            failed = min(note.time for note in self.job.notes()[seen:] if note.what == "end")
            self.measured("failure", failed, until, before)

    def await_ends(self):
        """Waits for all agents; a wait with a timeout would poll."""
        is_late = threading.Event()

        def give_up():
            is_late.set()
            for agent in self.job.agents.values():
                agent.process.kill()

        patience = threading.Timer(max(self.deadline() - time.monotonic(), 0), give_up)
        patience.start()
        for agent in self.job.agents.values():
            agent.process.wait()
        ended = time.monotonic_ns()
        patience.cancel()
        if is_late.is_set():
            raise Unreached
        return ended

    def stop(self):
        asked = time.monotonic_ns()
        for agent in self.job.agents.values():
            agent.process.terminate()
        with self.telling("stop"):
            self.measured("stop", asked, self.await_ends(), None)

    def finish(self):
        seen = len(self.job.notes())
        self.signal_workers(self.nodes, signal.SIGUSR2)
        with self.telling("done"):
            ended = self.await_ends()
            self.measured("done", last_start(self.job.notes()[seen:]), ended, None)

    def telling(self, key):
        return Telling(self, key)


class Telling:
    """Notes that a figure was not reached; the run is over then."""

    def __init__(self, run, key):
        self.run, self.key = run, key

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is Unreached:
            self.run.figures[self.key].append(None)
        return False


def settle(count):
    """Waits until the work of starting a world is over."""
    time.sleep(0.3 + count / 1000)


class Bench:
    def __init__(self, build, sizes, seconds, quick):
        self.build, self.sizes, self.quick = build, sizes, quick
        self.ends_at = time.monotonic() + seconds
        launchers = {launcher.name: launcher for launcher in measure.launchers(build)}
        muster = launchers["muster"]
        self.sides = [LonelySide(ALONE, muster)]
        if self.knows_delegation(muster):
            self.sides.append(Side(DELEGATED, muster, "delegation=true"))
            self.sides.append(Side(COMPARED, muster, "delegation=false"))
        else:
            self.sides.append(Side(COMPARED, muster))
        self.torchrun = Side(TORCHRUN, launchers[TORCHRUN]) if TORCHRUN in launchers else None
        self.found = collections.defaultdict(lambda: collections.defaultdict(list))  # (side, agents) -> key -> figures

    @staticmethod
    def knows_delegation(muster):
        """Whether this program has the setting: a program that has not says so, and goes on."""
        words = [*muster.words, "--nnodes", "1", "--rdzv-id", "bench", "--rdzv-conf", "delegation=true"]
        words += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}", "--no-python", "true"]
        probe = subprocess.run(words, capture_output=True, text=True, errors="replace")
        return probe.returncode == 0 and "no setting delegation" not in probe.stderr

    def is_late(self):
        return time.monotonic() > self.ends_at

    def once(self, side, count, number):
        """One job; its end is by signals in turn with done workers."""
        figures = self.found[side.name, count]
        nodes = [f"node{index}" for index in range(count)]
        with scratch() as directory, side.job(self.build, directory, count) as job:
            run = Run(side, job, nodes, figures, self.ends_at + BOUND if side is self.torchrun else self.ends_at)
            try:
                run.start()
                settle(count)
                run.fail(number)
                settle(count)
                run.finish() if number % 2 else run.stop()
            except Unreached:
                pass

    def measure_side(self, side, count):
        began = time.monotonic()
        rounds = 2 if self.quick else 2 * ROUNDS
        for number in range(rounds):
            if self.is_late() or (number >= 2 and time.monotonic() - began > SHARE):
                break
            self.once(side, count, number)
        self.show(side, count)

    def show(self, side, count):
        told = []
        for quantity in QUANTITIES:
            figures = self.found[side.name, count][quantity.key]
            if figures:
                middle = measure.median(figures)
                told.append(f"{quantity.key} {middle:.4g} {quantity.unit} ({len(figures)})")
        print(f"  {count} agents, {side.name}: {', '.join(told) or 'no time was left'}", flush=True)

    def measure_all(self):
        """What costs least comes first, so that a slow machine leaves out what is slow."""
        for side in self.sides[:-1]:
            for count in self.sizes:
                self.measure_side(side, count)
        further = self.bare() + self.simulate()
        least, *larger = self.sizes
        self.measure_side(self.sides[-1], least)
        self.measure_torchrun(least)
        for count in larger:
            self.measure_side(self.sides[-1], count)
        return self.rows() + further

    def measure_torchrun(self, count):
        lacks_memory = measure.available_memory() < count * TORCHRUN_MEMORY
        if self.torchrun is None or self.quick or count > TORCHRUN_NODES or lacks_memory or self.is_late():
            return
        self.once(self.torchrun, count, 0)
        self.show(self.torchrun, count)

    def simulate(self):
        """What each of so many simulated nodes sends and receives: no clock is measured, so once is enough."""
        program = self.build / "tests" / "node_traffic"
        if not program.exists():
            print("  not measured: simulated nodes: the tests are not built", flush=True)
            return []
        rows = []
        for count in SIMULATED[:1] if self.quick else SIMULATED:
            patience = max(min(BOUND, self.ends_at - time.monotonic()), 1)
            try:
                words = [program, self.sides[1].name, str(count)]
                end = subprocess.run(words, capture_output=True, text=True, timeout=patience)
            except subprocess.TimeoutExpired:
                print(f"  {count} simulated nodes: not within {patience:.0f} s", flush=True)
                break
            if end.returncode != 0:
                print(f"  {count} simulated nodes: {end.stderr.strip() or end.returncode}", flush=True)
                break
            rows += self.rows_of_traffic(count, json.loads(end.stdout))
            print(f"  {end.stdout.strip()}", flush=True)
        return rows

    def rows_of_traffic(self, count, traffic):
        for part, told in TRAFFIC.items():
            for unit, figure in traffic[part].items():
                name = f"{count:,} simulated nodes, {told}: {unit} of each"
                yield {**row(name, unit, "less", "", {self.sides[1].name: [figure]}), "simulated": count, "part": part}

    def bare(self):
        """Members without agents and workers, of which this machine plays more."""
        side = self.sides[1].name
        program = self.build / "bench" / "bare_members"
        rows = []
        for count in BARE[:1] if self.quick or side != DELEGATED else BARE:
            joins, regroups = [], []
            for _ in range(1 if self.quick else BARE_ROUNDS):
                words = [program, free_port(), count, BARE_PROCESSES, side.split("=")[1]]
                end = subprocess.run([str(word) for word in words], capture_output=True, text=True)
                if end.returncode != 0 or self.is_late():
                    print(f"  {count} bare members: {end.stderr.strip()[-500:] or 'no time was left'}", flush=True)
                    break
                found = json.loads(end.stdout)
                joins.append(found["join_milliseconds"])
                regroups += found["regroup_milliseconds"]
            for told, wanted, figures in (("all join at once", "at most 1 s", joins), ("the next world", "at most 0.5 s", regroups)):
                if figures:
                    name = f"{count:,} bare members, {told}"
                    found = row(name, "ms", "less", wanted if count == BARE[-1] else "", {side: figures}, bound=BOUND * 1000)
                    rows.append({**found, "bare": count})
                    print(f"  {name}: {measure.median(figures):.4g} ms ({len(figures)})", flush=True)
        return rows + list(self.rest_of_bare(program, side, 1000 if self.quick else RESTING))

    def rest_of_bare(self, program, side, count):
        """What the host's process takes while nothing happens."""
        if side != DELEGATED or self.is_late():
            return
        words = [program, free_port(), count, BARE_PROCESSES, side.split("=")[1], REST]
        end = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if end.returncode != 0:
            print(f"  {count} bare members at rest: {end.stderr.strip()[-500:]}", flush=True)
            return
        found = json.loads(end.stdout)
        figures = (
            (f"processor time of the host in {REST} s of rest", "ms", found["host_milliseconds"], "at most 100 ms"),
            ("memory of the host", "MiB", found["host_mebibytes"], "at most 64 MB"),
        )
        for told, unit, figure, wanted in figures:
            name = f"{count:,} bare members, {told}"
            yield {**row(name, unit, "less", wanted if count == RESTING else "", {side: [figure]}), "bare": count}
            print(f"  {name}: {figure:.4g} {unit}", flush=True)

    def rows(self):
        rows = []
        for count in self.sizes:
            for quantity in QUANTITIES:
                measured = {}
                for side in (TORCHRUN, COMPARED, DELEGATED, ALONE):
                    figures = self.found[side, count][quantity.key] if (side, count) in self.found else []
                    if figures:
                        measured[side] = figures
                wanted = quantity.wanted if count == WANTED_AT else ""
                name = f"{count:,} agents, {quantity.name}"
                found = row(name, quantity.unit, "less", wanted, measured, bound=BOUND * 1000)
                rows.append({**found, "agents": count, "quantity": quantity.key})
        return rows


@contextlib.contextmanager
def larger_backlog():
    """The kernel's limit of packets that wait is one for all networks. Only root may raise it."""
    before = BACKLOG_FILE.read_text(encoding="ascii")
    try:
        BACKLOG_FILE.write_text(str(max(BACKLOG, int(before))), encoding="ascii")
    except OSError:
        print(f"  {BACKLOG_FILE} cannot be raised: packets may be lost", flush=True)
        yield
        return
    try:
        yield
    finally:
        BACKLOG_FILE.write_text(before, encoding="ascii")


def enter_namespace():
    """Runs this program again in a network of its own, unless it is there or there can be none."""
    if NAMESPACE in os.environ:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    words = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--user", "--map-root-user"]
    can = shutil.which("ip") and shutil.which("unshare") and subprocess.run([*words, "true"], stderr=subprocess.DEVNULL)
    if can and can.returncode == 0:
        os.environ[NAMESPACE] = "1"
        with larger_backlog():
            status = subprocess.run([*words, sys.executable, *sys.argv]).returncode
        sys.exit(status)
    print("  no network namespace can be made here: bytes are not counted", flush=True)


def measure_apart(build, quick, sizes):
    """The rows, measured by this program in a process of its own."""
    with tempfile.NamedTemporaryFile(suffix=".json") as answer:
        words = [sys.executable, __file__, "--build", str(build), "--json", answer.name]
        words += ["--nodes", sizes] if sizes else []
        words += ["--quick"] if quick else []
        subprocess.run(words, check=True)
        return json.load(open(answer.name, encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "build-release")
    parser.add_argument("--json", type=pathlib.Path, help="write the raw figures here")
    parser.add_argument("--nodes", default=",".join(map(str, NODES)), help="how many agents, separated by commas")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="what is not measured by then is left out")
    parser.add_argument("--quick", action="store_true", help="few repetitions, to try the bench itself")
    arguments = parser.parse_args()
    enter_namespace()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sizes = sorted(int(count) for count in arguments.nodes.split(","))
    rows = Bench(arguments.build.resolve(), sizes, arguments.seconds, arguments.quick).measure_all()
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

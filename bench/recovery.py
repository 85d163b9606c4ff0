# SPDX-License-Identifier: BSD-3-Clause
"""From the death of a worker of real training to the next training step, and what standby workers cost."""

import contextlib
import os
import time

import measure
from launch import scratch
from training import BOUND, PAUSE, WARMING_BOUND, Training

STANDBY = "muster --standby on"
READY = "4 DDP workers: from the first step until their standby workers are ready"
READY_AGAIN = "4 DDP workers: from the first step after a kill until the next standby workers are ready"
BUSY_READY = "4 DDP workers that never pause: from the first step until their standby workers are ready"
FOUR_WORKERS = "4 DDP workers, one killed: first step of the last new worker"
AGAIN = "4 DDP workers, one killed again 1 s after the first step of the last: until its next first step"
TWO_NODES = "2 nodes with 2 DDP workers each, one killed: first step of the last new worker"
JOINING = "a node with 2 DDP workers joins 2 others: last step of the old world to first step of the new"
PHASES = {
    "seen": "from the kill until the agent says so",
    "gone": "from there until all old workers are gone",
    "script": "from there to the first line of the last new worker",
    "group": "from there until the last has its process group",
    "first": "from there to the first step of the last",
}
UNSHARED = "torchrun with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, without which its next attempt hangs or fails"
SETTLED_PAGES = 5  # seconds after which the pages that a new world needed have been copied
UNDISTURBED = 15  # seconds of training before the first spare and after the last one, with which that between is compared


class Bench:
    def __init__(self, launchers, quick):
        self.quick = quick
        self.muster = next(launcher for launcher in launchers if launcher.name == "muster")
        self.standby = self.muster_with("on")
        self.launchers = [launcher for launcher in launchers if launcher is not self.muster]
        self.launchers += [self.muster, self.standby]

    def muster_with(self, standby, *options):
        words = [*self.muster.words, "--standby", standby, *options]
        return measure.Launcher(f"muster --standby {standby}", words)

    def repetitions(self, count):
        return min(count, 2) if self.quick else count

    @contextlib.contextmanager
    def job(self, launcher, nodes, workers, started=1, **settings):
        """A job of which so many nodes have been started."""
        with scratch() as directory, Training(launcher, directory, nodes, workers, **settings) as job:
            job.start_host("node0")
            for number in range(1, started):
                job.start(f"node{number}")
            yield job

    def recoveries(self, launcher, nodes, workers, count, **settings):
        """The Recovery after each of so many kills; a job that does not recover is followed by a new one."""
        found = []
        while len(found) < count:
            with self.job(launcher, nodes, workers, started=nodes, **settings) as job:
                while len(found) < count and None not in found[-1:]:
                    world = job.await_settled(nodes * workers, job.killed)
                    if launcher is self.standby:
                        job.seconds_until_ready()
                    found.append(job.kill_one(world))
        return found

    def kills(self, name, wanted, nodes, workers, counts, **settings):
        """A row for the whole recovery, and one for each phase of it."""
        found = {
            launcher.name: self.recoveries(launcher, nodes, workers, self.repetitions(count), **settings)
            for launcher, count in zip(self.launchers, counts[-len(self.launchers) :])
        }
        reached = {side: [one for one in recoveries if one] for side, recoveries in found.items()}
        whole = {side: [one and one.whole() for one in recoveries] for side, recoveries in found.items()}
        warm = [one.warm for one in reached[STANDBY]]
        size = nodes * workers
        note = f"with standby workers, all {size} were ready in {warm.count(size)} of {len(warm)} kills; {UNSHARED}"
        yield measure.row(name, "ms", "less", wanted, whole, note, bound=1000 * BOUND)
        for phase, told in PHASES.items():
            sides = {side: [getattr(one, phase) for one in recoveries] for side, recoveries in reached.items()}
            yield measure.row(f"{name.split(',')[0]}: {told}", "ms", "less", "", sides)

    def four_workers(self):
        yield from self.kills(FOUR_WORKERS, "median at most 110 ms", 1, 4, (5, 5, 10))

    def ready(self):
        """With the defaults: the parent rests while workers want the processors. Two of three runs say how the median
        stands to what is wanted, if both stand to it alike; what takes twice as long is not waited for."""

        def once(pause, bound, kills):
            with self.job(self.standby, 1, 4, pause=pause) as job:
                world = job.await_training(4) or job.fail("no first step")
                found = [job.seconds_until_ready(bound)]
                for _ in range(kills if found[0] else 0):
                    job.kill_one(world)
                    found.append(job.seconds_until_ready(bound))
                    world = job.newest("first", 4, job.killed)
                return found

        def runs(pause, wanted, kills=0):
            found = [once(pause, 2 * wanted, kills) for _ in range(self.repetitions(2))]
            if len({bool(first and first <= wanted) for first, *_ in found}) > 1:
                found.append(once(pause, 2 * wanted, kills))
            return found

        pausing = runs(PAUSE, 40, kills=1)
        firsts, others = [run[0] for run in pausing], [figure for run in pausing for figure in run[1:]]
        yield measure.row(READY, "s", "less", "at most 40 s", {STANDBY: firsts}, bound=80)
        if others:
            yield measure.row(READY_AGAIN, "s", "less", "", {STANDBY: others}, bound=80)
        busy = [run[0] for run in runs(0, 75)]
        yield measure.row(BUSY_READY, "s", "less", "at most 75 s", {STANDBY: busy}, bound=150)

    def ten_kills(self):
        """Nobody waits for spares but before the first kill, which is not counted."""

        def kills(launcher, count):
            with self.job(launcher, 1, 4) as job:
                world = job.await_settled(4)
                if launcher is self.standby:
                    job.seconds_until_ready()
                found = [job.kill_one(world)]
                while len(found) <= count and found[-1]:
                    time.sleep(1)
                    found.append(job.kill_one(job.newest("first", 4, job.killed)))
                return [one and one.whole() for one in found[1:]]

        sides = {each.name: kills(each, self.repetitions(10)) for each in (self.muster, self.standby)}
        yield measure.row(AGAIN, "ms", "less", "at most 150 ms each", sides, bound=1000 * BOUND)

    def two_nodes(self):
        yield from self.kills(TWO_NODES, "at most 200 ms", 2, 2, (3, 3, 5))

    def joining(self):
        def once(launcher):
            with self.job(launcher, "1:2", 2, conf="last_call_timeout=1") as job:
                job.await_settled(2)
                if launcher is self.standby:
                    job.await_spares()
                joined = job.start("node1").started
                firsts = job.await_training(4, joined)
                return firsts and job.interruption(firsts)

        sides = {launcher.name: [once(launcher) for _ in range(self.repetitions(2))] for launcher in self.launchers}
        yield measure.row(JOINING, "ms", "less", "at most 300 ms", sides, UNSHARED, bound=1000 * BOUND)

    def speed(self):
        """Workers that pause and workers that never do: these keep all cores busy, so that the parent can only warm at
        their cost. The speed of a machine that is shared drifts, so that it is compared with that before and after."""
        launcher = self.muster_with("on", "--standby-after", str(UNDISTURBED))

        def once(workers, pause):
            with self.job(launcher, 1, workers, pause=pause) as job:
                job.await_settled(workers)
                time.sleep(1)
                before = measure.Span()
                job.wait_until(lambda: job.spares(job.agents["node0"]), WARMING_BOUND, "a spare", 0.1)
                before.end()
                warming = measure.Span()
                job.await_spares()
                warming.end()
                after = measure.Span()
                time.sleep(UNDISTURBED)
                after.end()
                before, warming, after = (len(job.steps(span.begun, span.ended)) / span.seconds for span in (before, warming, after))
                return 100 * warming / ((before + after) / 2)

        name = "training speed while spares warm, of that before and after, "
        for told, workers, pause in (("2 DDP workers on all cores", 2, 0), ("4 DDP workers", 4, PAUSE), ("4 DDP workers that never pause", 4, 0)):
            sides = {STANDBY: [once(workers, pause) for _ in range(self.repetitions(4))]}
            yield measure.row(name + told, "%", "more", "at least 95 %", sides)

    def attempt0(self):
        """What a job pays before anything has failed: the choices take turns. So few workers that --standby auto makes
        standby workers."""
        choices = [self.muster_with("off"), self.muster_with("auto"), self.standby]
        sides = {launcher.name: [] for launcher in choices}
        workers = min(2, max(1, len(os.sched_getaffinity(0)) // 2))
        for _ in range(self.repetitions(24)):
            for launcher in choices:
                with self.job(launcher, 1, workers) as job:
                    firsts = job.await_training(workers) or job.fail("no first step")
                    last = max(note.time for note in firsts.values())
                    sides[launcher.name].append((last - job.agents["node0"].started) / 10**6)
        name = f"{workers} DDP worker(s): start of the launcher to the first step of attempt 0"
        yield measure.row(name, "ms", "less", "within 2 % of each other", sides)

    def memory(self):
        """All that the parent and the standby workers take, before any of them was a worker, and once those that wait have
        made pages their own that workers had to copy."""
        first, later = {}, {}
        for workers in (4, 8):
            with self.job(self.standby, 1, workers) as job:
                world = job.await_settled(workers)
                job.await_spares()
                first[workers] = sum(job.memory_of_spares())
                job.kill_one(world)
                job.await_spares()
                time.sleep(SETTLED_PAGES)
                later[workers] = sum(job.memory_of_spares())
        for workers in (4, 8):
            name = f"memory of {workers} spares and their parent (PSS), DDP workers"
            wanted = "at most 300 MiB" if workers == 4 else ""
            yield measure.row(name, "MiB", "less", wanted, {STANDBY: [first[workers]]})
            yield measure.row(name + ", after a kill", "MiB", "less", "", {STANDBY: [later[workers]]})

    PARTS = (four_workers, ready, ten_kills, two_nodes, joining, speed, attempt0, memory)


def measure_all(launchers, quick, kind=Bench, only=None):
    """`only`: names of the parts that are played, with commas between them; all."""
    if measure.peer_program("python3") is None:
        print("  not measured: the recovery of real training needs PyTorch (make peers)")
        return
    bench, parts = kind(launchers, quick), {part.__name__: part for part in kind.PARTS}
    wanted = only.split(",") if only else list(parts)
    if not parts.keys() >= set(wanted):
        raise SystemExit(f"--rows {only}: give some of {','.join(parts)}")
    for name in wanted:
        yield from parts[name](bench)

# SPDX-License-Identifier: BSD-3-Clause
"""A job of real training (training_worker.py): its worlds, its spares, and how long it takes to train again."""

import collections
import contextlib
import itertools
import os
import pathlib
import random
import re
import select
import signal
import time

import measure
from job import Job, processes_below

LOOK = 0.02  # seconds between two looks at the notes; the times come from the notes themselves
BOUND = 90  # seconds until "the job trains again" counts as "never"
WARMING_BOUND = 300  # the same, for all its spares to be ready, which may rest meanwhile
SETTLED = 15  # steps of rank 0 after which a world is taken to train
PAUSE = 0.02  # seconds that each worker sleeps between two steps
SEEN = r"^\w\d{{4}} \d\d:(\d\d):(\d\d\.\d+) .* failed \(exitcode: -9\) .*\(pid: {pid}\)"
NONE_ANY_MORE = b"there are no standby workers in this job from now on"
ALL_READY = re.compile(rb"standby workers ready: (\d+) of \1\b")


class Recovery(collections.namedtuple("Recovery", "seen gone script group first warm")):
    """What happened after a kill, in milliseconds from one to the next; `warm` counts new workers that were spares."""

    def whole(self):
        return sum(self[:-1])


def is_spare(pid):
    """Whether a process was started as a standby worker, even if it is a worker by now."""
    with contextlib.suppress(OSError):
        return b"role=spare" in pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    return False


def proportional_memory(pid):
    """PSS of a process in MiB."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)[1]) / 1024


def wait_for_ends(pids, kill):
    """Kills one of the processes and waits until all have ended; returns the instants of the kill and of the last end."""
    poll, open_fds = select.poll(), {}
    for pid in pids:
        open_fds[os.pidfd_open(pid)] = pid
    for fd in open_fds:
        poll.register(fd, select.POLLIN)
    killed = last = time.monotonic_ns()
    os.kill(kill, signal.SIGKILL)
    while open_fds and (ended := poll.poll(1000 * BOUND)):
        last = time.monotonic_ns()
        for fd, _ in ended:
            poll.unregister(fd)
            os.close(fd)
            del open_fds[fd]
    for fd in open_fds:
        os.close(fd)
    return killed, last


class Training(Job):
    """Nodes with some workers each, all of which train together."""

    def __init__(self, launcher, directory, nodes, workers, pause=PAUSE, conf="", device="cpu", backend="gloo"):
        self.workers, self.ready_from, self.killed = workers, {}, 0
        settings = {"PAUSE": str(pause), "DEVICE": device, "BACKEND": backend}
        settings["LOGLEVEL"] = "INFO"  # so that the agent says when all spares are ready
        if launcher.name == "torchrun":
            # Without it the attempts after a failure hang or fail while their process group is made.
            settings["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
        else:
            settings["PYTHON_EXEC"] = str(measure.peer_program("python3"))
        super().__init__(launcher, None, directory, nodes, conf=conf, **settings)

    def program(self, build):
        return pathlib.Path(__file__).with_name("training_worker.py")

    def command(self, worker):
        return [worker]

    def newest(self, what, size, since=0):
        """Each rank's newest note of this kind, once a world of that size has them all; else None."""
        found = {note.rank: note for note in self.notes() if note.what == what and note.time > since and note.world == size}
        return found if len(found) == size else None

    def await_training(self, size, since=0):
        """Waits for the first steps of a world; returns their notes by rank, None when that does not happen."""
        deadline = time.monotonic() + BOUND
        while not (firsts := self.newest("first", size, since)):
            if time.monotonic() > deadline:
                return None
            time.sleep(LOOK)
        return firsts

    def await_settled(self, size, since=0):
        """The same, and waits until that world has trained for a while; ends the bench when it does not."""
        firsts = self.await_training(size, since)
        if not firsts:
            self.fail(f"no world of {size} trains within {BOUND} s")
        done = max(note.time for note in firsts.values())
        self.wait_until(lambda: len(self.steps(done)) >= SETTLED, BOUND, "its steps", LOOK)
        time.sleep(random.uniform(0.1, 0.3))  # in step with no timer
        return firsts

    def steps(self, since, until=None):
        """The instants of rank 0's steps between two instants."""
        found = []
        for note in reversed(self.notes()):
            if note.time <= since:
                break
            if note.what == "step" and (until is None or note.time <= until):
                found.append(note.time)
        return found

    def seconds_until_ready(self, bound=WARMING_BOUND):
        """Waits until every agent says that all its standby workers are ready, again after each kill. From now on; None
        where that takes too long, or there will be none."""
        begun = time.monotonic()
        for agent in self.agents.values():
            while not ALL_READY.search(agent.output.read_bytes()[self.ready_from.get(agent, 0) :]):
                text = agent.output.read_bytes()
                if time.monotonic() > begun + bound or NONE_ANY_MORE in text:
                    return None
                time.sleep(0.1)
        return time.monotonic() - begun

    def await_spares(self):
        """Ends the bench when they are not ready in time."""
        if self.seconds_until_ready() is None:
            self.fail(f"waited {WARMING_BOUND} s for the standby workers")

    def spares(self, agent):
        """Pids of the standby workers of an agent that are still ones."""
        workers = {note.pid for note in self.notes()}
        return [pid for pid in processes_below(agent.process.pid) if is_spare(pid) and pid not in workers]

    def memory_of_spares(self):
        return [proportional_memory(pid) for agent in self.agents.values() for pid in self.spares(agent)]

    def interruption(self, firsts):
        """Milliseconds between the last step of any other world and the first steps of this one."""
        new = {note.pid for note in firsts.values()}
        last = max(note.time for note in self.notes() if note.what == "step" and note.pid not in new)
        return (max(note.time for note in firsts.values()) - last) / 10**6

    def kill_one(self, world):
        """Kills a random worker of a world, given by notes; returns the Recovery, None when there is none."""
        self.ready_from = {agent: agent.output.stat().st_size for agent in self.agents.values()}
        victim = random.choice(list(world.values()))
        clocks = time.time_ns() - time.monotonic_ns()
        self.killed, gone = wait_for_ends([note.pid for note in world.values()], victim.pid)
        firsts = self.await_training(len(world), self.killed)
        if not firsts:
            return None
        seen = self.seen(victim, clocks)
        pids = {note.pid for note in firsts.values()}
        last = {what: max(note.time for note in self.newest(what, len(world), self.killed).values())
                for what in ("script", "group", "first")}
        instants = [self.killed, seen, gone, last["script"], last["group"], last["first"]]
        instants = list(itertools.accumulate(instants, max))
        phases = [(after - before) / 10**6 for before, after in itertools.pairwise(instants)]
        return Recovery(*phases, sum(map(is_spare, pids)))

    def seen(self, victim, clocks):
        """The instant at which the victim's agent wrote that it has failed; its log gives minutes and seconds."""
        text = self.agents[victim.node].output.read_text(errors="replace")
        minutes, seconds = re.search(SEEN.format(pid=victim.pid), text, re.MULTILINE).groups()
        hour = 3600 * 10**9
        after = (int(minutes) * 60 * 10**9 + int(float(seconds) * 10**9) - self.killed - clocks) % hour
        return self.killed + (after if after < hour // 2 else 0)

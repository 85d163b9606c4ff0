# SPDX-License-Identifier: BSD-3-Clause
"""Countdown timers: the delay of the signal, the rate of requests, the cost of a timer and of waiting.

Deadlines and rest are those of Muster's agent; requests and memory those of a server alone, `muster timer
serve`. Of PyTorch the server alone is measured, since its agent ends with the first timer that expires; at
rest it is the agent, too.
"""

import contextlib
import math
import os
import pathlib
import shutil
import subprocess
import time

import measure
from job import processes_below, processor_time
from launch import locally, scratch

HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = ("torch_timer_server.py", "torch_timer_clients.py")
CLIENTS = 8
VICTIMS, OTHERS = 100, 900
APART = 37  # ms from one deadline to the next; not a multiple of any interval
FAR_APART = 337  # one by one: timers that expire within 250 ms are ended together
SERVED = {"TORCHELASTIC_ENABLE_FILE_TIMER": "1"}
MILLISECOND = 10**6
SETTLING = 8  # seconds; PyTorch's server never rests while it holds many timers


def resident(pid):
    for line in pathlib.Path("/proc", str(pid), "status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return 1024 * int(line.split()[1])
    raise SystemExit("bench: the timer server is gone")


class Server:
    """A server that runs in `directory`, by itself."""

    def __init__(self, launcher, directory):
        self.path = directory / "timers"
        self.is_ours = launcher.name == "muster"
        words = [launcher.words[0], "timer", "serve", "--file"]
        if not self.is_ours:
            words = [measure.peer_program("python3"), directory / SCRIPTS[0]]
        self.process = subprocess.Popen([*words, self.path], cwd=directory, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if not self.process.stdout.readline():
            raise SystemExit(f"bench: the timer server of {launcher.name} does not start")
        self.pid = processes_below(self.process.pid)[-1]  # PyTorch's has a wrapper
        self.keep_open = str(int(self.is_ours))  # PyTorch's server serves no other client meanwhile

    def settle(self):
        """Waits until the server has handled everything that was written."""
        before, end = -1, time.monotonic() + SETTLING
        while (now := processor_time(self.pid)) > before + 50 * MILLISECOND and time.monotonic() < end:
            before = now
            time.sleep(1)

    def stop(self):
        self.process.stdin.close()
        if self.is_ours:
            self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, 9)
            self.process.wait()


class Bench:
    def __init__(self, launchers, build, quick):
        self.launchers, self.build, self.quick = launchers, build, quick

    @contextlib.contextmanager
    def directory(self):
        """A directory that the load and PyTorch's scripts both see, also from within a chroot."""
        with scratch() as directory:
            for path in (self.build / "bench/timer_load", *(HERE / name for name in SCRIPTS)):
                shutil.copy(path, directory)
            yield directory

    @contextlib.contextmanager
    def server(self, launcher):
        with self.directory() as directory:
            server = Server(launcher, directory)
            try:
                yield server
            finally:
                server.stop()

    def load(self, *words):
        return [str(word) for word in (self.build / "bench/timer_load", *words)]

    def answer(self, words):
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout

    def sides(self, figures_of):
        return {launcher.name: figures_of(launcher) for launcher in self.launchers}

    def of_agent(self, launcher, evidence, apart):
        """Measures the agent's timers; the victims are children of its worker."""
        with self.directory() as directory:
            load = f"exec ./timer_load deadlines - {VICTIMS} {OTHERS} {apart} >delays"
            launcher.run([*locally(1, "--evidence", evidence), "sh", "-c", load], directory, **SERVED)
            return (directory / "delays").read_text()

    def of_server(self, launcher):
        with self.server(launcher) as server:
            return self.answer(self.load("deadlines", server.path, VICTIMS, OTHERS, APART))

    def delays(self, launcher, measured, rounds):
        """For each round, the sorted delays of all signals."""
        found = [sorted(map(float, measured().split())) for _ in range(1 if self.quick else rounds)]
        if any(len(delays) != VICTIMS for delays in found):
            raise SystemExit(f"bench: {launcher.name} sent {[len(delays) for delays in found]} of {VICTIMS} signals")
        return found

    def rows_of_delays(self, name, wanted, found):
        flat = {side: sum(rounds, []) for side, rounds in found.items()}
        last = {side: [delays[math.ceil(0.99 * VICTIMS) - 1] for delays in rounds] for side, rounds in found.items()}
        yield measure.row(name, "ms", "less", "", flat)
        yield measure.row(f"{name}: p99", "ms", "less", wanted, last)

    def deadlines(self):
        def figures(launcher):
            ours = launcher.name == "muster"
            measured = (lambda: self.of_agent(launcher, "off", APART)) if ours else (lambda: self.of_server(launcher))
            return self.delays(launcher, measured, 10)

        name = f"from a timer's deadline to the signal, {VICTIMS + OTHERS} live timers"
        yield from self.rows_of_delays(name, "at most 2 ms", self.sides(figures))
        ours = self.launchers[0]
        looked_at = self.delays(ours, lambda: self.of_agent(ours, "basic", FAR_APART), 3)
        yield from self.rows_of_delays(
            f"{name}, the process looked at before", "the look begins within 2 ms", {ours.name: looked_at})

    def requests(self):
        seconds = 2 if self.quick else 10
        rounds = 1 if self.quick else 5
        python = measure.peer_program("python3")

        def of_our_clients(server):
            return self.load("requests", server.path, server.keep_open, CLIENTS, seconds)

        def of_torchs_clients(server):
            return [python, server.path.parent / SCRIPTS[1], server.path, str(CLIENTS), str(seconds)]

        def figures(words_of):
            def rate(launcher):
                with self.server(launcher) as server:
                    return int(self.answer(words_of(server))) / seconds

            return lambda launcher: [rate(launcher) for _ in range(rounds)]

        yield measure.row(f"timer requests, {CLIENTS} C clients", "/s", "more", "at least 500,000 /s",
                          self.sides(figures(of_our_clients)))
        if python is not None:
            yield measure.row(f"timer requests, {CLIENTS} of PyTorch's clients", "/s", "more", "",
                              self.sides(figures(of_torchs_clients)))

    def memory(self):
        def figures(launcher):
            # PyTorch's server takes longer for each further timer
            count = 10**6 if launcher.name == "muster" and not self.quick else 10**5
            with self.server(launcher) as server:
                before = resident(server.pid)
                holder = subprocess.Popen(self.load("hold", server.path, server.keep_open, count),
                                          stdout=subprocess.PIPE)
                try:
                    holder.stdout.readline()
                    server.settle()
                    return [(resident(server.pid) - before) / count]
                finally:
                    holder.kill()
                    holder.wait()

        note = "Muster's of 1,000,000, PyTorch's of 100,000 timers"
        yield measure.row("memory of a live timer", "bytes", "less", "at most 200 bytes", self.sides(figures), note)

    @contextlib.contextmanager
    def agent_at_rest(self, launcher):
        """Starts an agent whose worker holds timers. Gives a counter of all other processor time."""
        with self.directory() as directory:
            command = [*locally(1), "sh", "-c", f"exec ./timer_load hold - 0 {VICTIMS + OTHERS} >held"]
            agent = launcher.start(command, directory, **SERVED)
            end = time.monotonic() + measure.PATIENCE
            while not (directory / "held").exists() or "HELD" not in (held := (directory / "held").read_text()):
                if time.monotonic() > end or agent.poll() is not None:
                    raise SystemExit(f"bench: {launcher.name} does not take the timers")
                time.sleep(0.1)
            worker = int(held.split()[1])
            try:
                yield lambda: sum(processor_time(pid) for pid in processes_below(agent.pid) if pid != worker)
            finally:
                agent.terminate()
                agent.wait()

    def rest(self):
        """Measures both launchers at the same time, because processor time is counted for each process."""
        seconds = 5 if self.quick else 60
        with contextlib.ExitStack() as stack:
            times = [stack.enter_context(self.agent_at_rest(launcher)) for launcher in self.launchers]
            time.sleep(2)  # until the work of starting is over
            before = [of_agent() for of_agent in times]
            time.sleep(seconds)
            after = [of_agent() for of_agent in times]
        sides = {launcher.name: [(late - early) / MILLISECOND]
                 for launcher, early, late in zip(self.launchers, before, after)}
        name = f"{VICTIMS + OTHERS} timers at rest: processor time of the agent in {seconds} s"
        yield measure.row(name, "ms", "less", "none measurable", sides)

    PARTS = (deadlines, requests, memory, rest)


def measure_all(launchers, build, quick):
    bench = Bench(launchers, pathlib.Path(build), quick)
    for part in Bench.PARTS:
        yield from part(bench)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Countdown timers: Muster's server beside PyTorch's, with the same C clients.

    bench/timers.py [--build DIRECTORY] [--quick]

Prints deadline to signal with 1,000 live timers, requests per second of 8 clients, memory per live timer,
and the CPU time of a server whose 1,000 timers rest.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import measure  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
CLIENTS = 8


class Server:
    """A server that runs; `keep_open` says whether its clients may keep the FIFO open."""

    def __init__(self, name, command, keep_open):
        self.name, self.keep_open = name, str(int(keep_open))
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="muster-bench-", dir="/tmp"))
        self.path = self.directory / "timers"
        script = self.directory / "torch_timer_server.py"
        shutil.copy(HERE / "torch_timer_server.py", script)
        words = [{"SCRIPT": script, "FILE": self.path}.get(word, word) for word in command]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process.stdout.readline()

    def pid(self):
        """Of the process that serves: a wrapper's child is the one with the memory."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else self.process.pid

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.pid()}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self):
        for line in pathlib.Path(f"/proc/{self.pid()}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return 1024 * int(line.split()[1])
        raise RuntimeError("no VmRSS")

    def settle(self):
        """Waits until what was written has been worked off, for a while: PyTorch's server never rests while
        it holds many timers."""
        before, end = -1.0, time.monotonic() + 8
        while (now := self.cpu_seconds()) > before + 0.05 and time.monotonic() < end:
            before = now
            time.sleep(1)

    def stop(self):
        self.process.stdin.close()
        if self.name == "muster":
            self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


@contextlib.contextmanager
def running(name, command, keep_open):
    server = Server(name, command, keep_open)
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def holding(load, server, count):
    holder = subprocess.Popen([load, "hold", server.path, server.keep_open, str(count)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if holder.stdout.readline() != b"HELD\n":
        raise RuntimeError(f"{server.name} did not take {count} timers")
    server.settle()
    try:
        yield
    finally:
        holder.stdin.close()
        holder.wait()


def percentile(figures, part):
    return sorted(figures)[max(0, math.ceil(part * len(figures)) - 1)]


def delays(load, server):
    end = subprocess.run([load, "deadlines", server.path, "100", "900"], capture_output=True, text=True, check=True)
    figures = [float(line) for line in end.stdout.split()]
    return {"deadline to signal, p50, ms": percentile(figures, 0.5),
            "deadline to signal, p99, ms": percentile(figures, 0.99), "signals": len(figures)}


def throughput(load, server, seconds):
    before = time.monotonic()
    end = subprocess.run([load, "requests", server.path, server.keep_open, str(CLIENTS), str(seconds)],
                         capture_output=True, text=True, check=True)
    server.settle()
    return {f"requests per second, {CLIENTS} clients": int(end.stdout) / seconds,
            "seconds until all were served": time.monotonic() - before}


def memory(load, server, count):
    before = server.memory()
    with holding(load, server, count):
        return {f"bytes per live timer, {count} timers": (server.memory() - before) / count}


def idle(load, server, seconds):
    with holding(load, server, 1000):
        time.sleep(1)
        before = server.cpu_seconds()
        time.sleep(seconds)
        return {f"CPU seconds in {seconds} s, 1000 timers at rest": server.cpu_seconds() - before}


def measure_server(load, name, command, keep_open, quick):
    timers = 1000000 if name == "muster" and not quick else 100000
    parts = [
        lambda server: delays(load, server),
        lambda server: throughput(load, server, 2 if quick else 5),
        lambda server: memory(load, server, timers),
        lambda server: idle(load, server, 10 if quick else 60),
    ]
    figures = {}
    for part in parts:
        with running(name, command, keep_open) as server:
            figures |= part(server)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--quick", action="store_true", help="shorter and less of each")
    arguments = parser.parse_args()
    load = arguments.build / "bench/timer_load"
    sides = {"muster": ([arguments.build / "src/main/muster", "timer", "serve", "--file", "FILE"], True)}
    python = measure.peer_program("python3")
    if python is not None:
        sides["torch"] = ([python, "SCRIPT", "FILE"], False)
    for name, (command, keep_open) in sides.items():
        print(json.dumps({name: measure_server(load, name, command, keep_open, arguments.quick)}, indent=2), flush=True)


if __name__ == "__main__":
    main()

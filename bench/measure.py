# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the benches: rows of raw figures, the description of the machine, a launcher to start."""

import math
import os
import pathlib
import platform
import statistics
import subprocess
import threading
import time

PEER_ROOT = pathlib.Path(os.environ.get("PEER_ROOT", "/opt/peer/forky"))
PATIENCE = 300  # seconds until the bench gives up a run
PEER_PROGRAMS = PEER_ROOT.parent / "bin"


def peer_program(name):
    """Path of the peer's program, or None when `make peers` was not run."""
    path = PEER_PROGRAMS / name
    return path if path.exists() else None


class Span:
    """From now until `end`. What a hypervisor has taken of this machine's processors meanwhile (steal) is known, too."""

    def __init__(self):
        self.begun, self.stolen_before = time.monotonic_ns(), stolen_seconds()
        self.ended, self.stolen = None, None

    def end(self):
        self.ended, self.stolen = time.monotonic_ns(), stolen_seconds() - self.stolen_before
        return self

    @property
    def seconds(self):
        """Of a machine from which nothing was taken."""
        return (self.ended - self.begun) / 10**9 - self.stolen / os.cpu_count()


def stolen_seconds():
    """Of all processors, since the machine was started."""
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def row(name, unit, better, wanted, sides, note="", bound=None):
    """One measured quantity: `sides` maps who was measured to the raw figures, in `unit`. Where there is a
    bound, None among the figures says: not within the bound."""
    measured = {"name": name, "unit": unit, "better": better, "wanted": wanted, "sides": sides, "note": note}
    return measured if bound is None else {**measured, "bound": bound}


def median(figures):
    """None without figures; infinite when the middle figure was not within its row's bound."""
    return statistics.median(math.inf if figure is None else figure for figure in figures) if figures else None


def ninth_tenth(measured, side):
    """The figure that nine of ten runs of this side reached or surpassed; None without figures."""
    figures = [math.inf if figure is None else figure for figure in measured["sides"].get(side) or []]
    figures.sort(reverse=measured["better"] == "more")
    return figures[math.ceil(0.9 * len(figures)) - 1] if figures else None


def ratio(measured, against="torchrun", side="muster"):
    """How many times better `side` is than `against`, at least, where that did not reach the row's bound;
    None when one of them was not measured."""
    ours, theirs = median(measured["sides"].get(side)), median(measured["sides"].get(against))
    if not ours or not theirs or math.isinf(ours):
        return None
    if math.isinf(theirs):
        theirs = measured["bound"]
    return theirs / ours if measured["better"] == "less" else ours / theirs


def describe_gpu():
    """Name and driver of the first of NVIDIA's; None where there is none."""
    if not pathlib.Path("/dev/nvidiactl").exists():
        return None
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    name, driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
    return f"{name} (driver {driver})"


def describe_machine():
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = int(pathlib.Path("/proc/meminfo").read_text().split()[1]) // 1024
    gpu = describe_gpu()
    compiler = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return {
        "processor": model,
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mib": memory,
        "kernel": platform.release(),
        "compiler": f"gcc {compiler}",
        **({"gpu": gpu} if gpu else {}),
        "load_before": os.getloadavg()[0],
    }


def available_memory():
    """MiB of memory that programs can still use."""
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) // 1024
    return 0


def peer_version():
    python = peer_program("python3")
    if python is None:
        return None
    probe = subprocess.run(
        [python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, cwd="/tmp"
    )
    return probe.stdout.strip() or None


class Launcher:
    """A program that starts workers: muster or torchrun, called the same way."""

    def __init__(self, name, words):
        self.name, self.words = name, [str(word) for word in words]

    def start(self, arguments, directory, **environment):
        variables = {**os.environ, "TMPDIR": str(directory), "OMP_NUM_THREADS": "1", **environment}
        return subprocess.Popen(
            [*self.words, *arguments], cwd=directory, env=variables,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )

    def run(self, arguments, directory, **environment):
        """Runs to the end and returns the seconds since the start; a failed job ends the bench."""
        started = time.perf_counter()
        process = self.start(arguments, directory, **environment)
        patience = threading.Timer(PATIENCE, process.kill)
        patience.start()
        status = process.wait()  # a timeout here would poll
        elapsed = time.perf_counter() - started
        patience.cancel()
        if status != 0:
            raise SystemExit(f"bench: {self.name} {' '.join(arguments)} ended with status {status}")
        return elapsed


def launchers(build):
    """Muster of the given build, and torchrun where it is installed."""
    found = [Launcher("muster", [pathlib.Path(build).resolve() / "src/main/muster", "run"])]
    torchrun = peer_program("torchrun")
    if torchrun:
        found.append(Launcher("torchrun", [torchrun]))
    return found

# SPDX-License-Identifier: BSD-3-Clause
"""The launcher's own costs: time of an empty job, memory of the agent, time to recover."""

import contextlib
import pathlib
import shutil
import tempfile
import time

from measure import row

RECOVERY_WORKERS = 4

# Notes its first instant; in every attempt but the last one worker ends itself and says when. bash,
# because it can read the clock without starting a program.
RECOVERING_WORKER = """#!/bin/bash
echo $EPOCHREALTIME >"$DIRECTORY/start.$TORCHELASTIC_RESTART_COUNT.$RANK"
[ $TORCHELASTIC_RESTART_COUNT = $TORCHELASTIC_MAX_RESTARTS ] && exit 0
[ $RANK = $((TORCHELASTIC_RESTART_COUNT % WORLD_SIZE)) ] || exec sleep 60
sleep 0.$((RANDOM % 10 + 15))
echo $EPOCHREALTIME >"$DIRECTORY/end.$TORCHELASTIC_RESTART_COUNT"
exit 1
"""

WAITING_WORKER = """#!/bin/sh
: >"$DIRECTORY/start.$RANK"
exec sleep 1
"""


@contextlib.contextmanager
def scratch():
    directory = pathlib.Path(tempfile.mkdtemp(prefix="muster-bench-", dir="/tmp"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def write_script(directory, text):
    script = directory / "worker"
    script.write_text(text)
    script.chmod(0o755)
    return str(script)


def locally(workers, *options):
    return ["--standalone", "--nproc-per-node", str(workers), *options, "--no-python"]


def measure_empty_job(launchers, repetitions):
    """Wall time of a job with two workers that do nothing. The two launchers take turns."""
    sides = {launcher.name: [] for launcher in launchers}
    with scratch() as directory:
        for launcher in launchers:
            launcher.run([*locally(2), "true"], directory)  # warms the page cache
        for _ in range(repetitions):
            for launcher in launchers:
                sides[launcher.name].append(1000 * launcher.run([*locally(2), "true"], directory))
    return row("no-op job, 2 workers, wall time", "ms", "less", "at least 200 times faster", sides)


def peak_memory_of(pid):
    """VmHWM in KiB, or 0 when the process is gone."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def peak_memory_of_run(launcher, workers):
    with scratch() as directory:
        script = write_script(directory, WAITING_WORKER)
        process = launcher.start([*locally(workers), script], directory, DIRECTORY=str(directory))
        peak = 0
        while process.poll() is None:
            peak = max(peak, peak_memory_of(process.pid))
            time.sleep(0.01)
        if process.returncode != 0 or len(list(directory.glob("start.*"))) != workers:
            raise SystemExit(f"bench: {launcher.name} did not run its {workers} workers")
    return peak / 1024


def measure_memory(launchers, repetitions):
    sides = {
        launcher.name: [peak_memory_of_run(launcher, 8) for _ in range(repetitions)]
        for launcher in launchers
    }
    return row("agent peak RSS, 8 workers, store included", "MiB", "less", "at most 4 MB", sides)


def recoveries_of_run(launcher, restarts):
    """Milliseconds from the end of a worker to the start of the next group's first and last worker."""
    with scratch() as directory:
        script = write_script(directory, RECOVERING_WORKER)
        arguments = [*locally(RECOVERY_WORKERS, "--max-restarts", str(restarts)), script]
        launcher.run(arguments, directory, DIRECTORY=str(directory))
        first, last = [], []
        for attempt in range(restarts):
            end = float((directory / f"end.{attempt}").read_text())
            starts = [
                float((directory / f"start.{attempt + 1}.{rank}").read_text())
                for rank in range(RECOVERY_WORKERS)
            ]
            first.append(1000 * (min(starts) - end))
            last.append(1000 * (max(starts) - end))
    return first, last


def measure_recovery(launchers, repetitions):
    firsts, lasts = {}, {}
    for launcher in launchers:
        firsts[launcher.name], lasts[launcher.name] = recoveries_of_run(launcher, repetitions)
    what = "worker exit to {} of the new group, 4 shell workers"
    return [
        row(what.format("first instruction"), "ms", "less", "median at most 5 ms", firsts),
        row(what.format("first instruction of the last worker"), "ms", "less", "", lasts),
    ]


def measure(launchers, quick):
    empty, memory, recovery = (3, 1, 4) if quick else (15, 3, 40)
    yield measure_empty_job(launchers, empty)
    yield measure_memory(launchers, memory)
    yield from measure_recovery(launchers, recovery)

# SPDX-License-Identifier: BSD-3-Clause
"""A thousand restarts in one run leave nothing behind."""

import os
import pathlib
import re
import time

import pytest

RESTARTS = 1000
EARLY = 20
CHRONICLE = 3072  # KiB: the host of a job's store keeps the last 4,096 entries, and each agent 1,024

# Fails at once in every attempt, but rests in two of them so that the agent can be looked at.
SCRIPT = f"""#!/bin/sh
case $RANK.$TORCHELASTIC_RESTART_COUNT in
0.{EARLY} | 0.{RESTARTS}) : >resting.$TORCHELASTIC_RESTART_COUNT
    while [ ! -e go.$TORCHELASTIC_RESTART_COUNT ]; do sleep 0.02; done ;;
*.{EARLY} | *.{RESTARTS}) : >other.$TORCHELASTIC_RESTART_COUNT; exec sleep 300 ;;
esac
exit 1
"""


def family_of(pid):
    """The agent and its descendants that are not workers' sessions: (pid, state) of each."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            except OSError:
                continue
            if int(parent) == pid or int(entry.name) == pid:
                found.append((int(entry.name), state))
    return found


def kind_of(descriptor):
    """What a descriptor leads to, without what differs from attempt to attempt."""
    return re.sub(r"\d+", "N", os.readlink(descriptor))


class Look:
    """What the agent holds at one moment."""

    def __init__(self, pid, scratch):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines())
        self.memory = int(fields["VmRSS"].split()[0])
        self.threads = int(fields["Threads"])
        self.descriptors = sorted(kind_of(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
        self.zombies = [pid for pid, state in family_of(pid) if state == "Z"]
        self.processes = len(family_of(pid))
        self.files = sorted(str(path) for path in scratch.rglob("*") if not path.name.startswith(("go.", "resting.", "other.")))


@pytest.mark.plain_build
@pytest.mark.parametrize("streams", ["0", "3"])
def test_a_thousand_restarts_leave_nothing_behind(muster, scratch, streams):
    log_directory = "/dev/null" if streams == "0" else scratch / "logs"
    worker = muster.script("worker", SCRIPT)
    running = muster.start(
        ["run", "--standalone", "--nproc-per-node", 2, "--max-restarts", RESTARTS, "--log-dir", log_directory,
         "-r", streams, "--no-python", worker]
    )
    looks = []
    for attempt in (EARLY, RESTARTS):
        for who in ("resting", "other"):
            running.wait_until((scratch / f"{who}.{attempt}").exists, f"attempt {attempt}", timeout=100)
        time.sleep(0.1)  # the agent lets go of a start's descriptors a moment after the worker runs
        looks.append(Look(running.pid, scratch))
        (scratch / f"go.{attempt}").touch()
    end = running.finish()
    assert end.status == 1
    early, late = looks
    assert late.descriptors == early.descriptors
    assert late.zombies == early.zombies == []
    assert (late.processes, late.threads) == (early.processes, early.threads)
    assert late.memory < early.memory * 1.25 + 256 + CHRONICLE, f"{early.memory} KiB, then {late.memory} KiB"
    if streams == "0":
        assert late.files == early.files

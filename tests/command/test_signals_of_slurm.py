# SPDX-License-Identifier: BSD-3-Clause
"""Signals where somebody may signal the workers, too: Slurm a step, systemd the cgroup of a unit. A test in their place."""

import os
import pathlib
import signal

import pytest

pytestmark = pytest.mark.threads

SLURM = {"SLURM_JOB_ID": "1", "LOGLEVEL": "INFO"}
# Notes the signals that it gets, and ends when it is told to. To workers that have just started signals are sent in any
# case, so it takes its time.
NOTING = """#!/bin/sh
trap 'echo USR1 >>signals' USR1
echo $$ >pid
sleep 2
: >ready
while [ ! -e done ]; do sleep 0.02; done
"""
SENT = "closing signal SIGUSR1"
NOT_SENT = "the workers have got SIGUSR1 beside this agent"


def start(muster, *options, env=None):
    script = muster.script("worker", NOTING)
    words = ["run", "--standalone", "--signals-to-handle", "SIGTERM,SIGUSR1", *options, "--no-python", script]
    running = muster.start(words, env={**SLURM, **(env or {})})
    running.wait_until(lambda: (muster.scratch / "ready").exists(), "the worker")
    return running


def comm_of(pid):
    """None where there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None


def witnesses_of(running):
    children = pathlib.Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text(encoding="ascii").split()
    return [int(pid) for pid in children if comm_of(pid) == "muster-witness"]


def wait_until_taken(running, pid):
    """Until the process has taken all signals that wait for it."""

    def is_taken():
        lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
        return all(int(line.split()[1], 16) == 0 for line in lines if line.startswith(("SigPnd", "ShdPnd")))

    running.wait_until(is_taken, "the witness to take its signal")


def signal_all(muster, running):
    """What Slurm does where it knows a step's processes by their parents."""
    (witness,) = witnesses_of(running)
    worker = int((muster.scratch / "pid").read_text(encoding="ascii"))
    os.kill(witness, signal.SIGUSR1)
    wait_until_taken(running, witness)
    os.kill(worker, signal.SIGUSR1)
    running.signal(signal.SIGUSR1)


def finish(muster, running, words):
    """Once the agent has decided what to do with the signal, and the worker has it."""
    running.wait_until(lambda: words in running.err(), words)
    running.wait_until(lambda: (muster.scratch / "signals").exists(), "the signal")
    (muster.scratch / "done").touch()
    end = running.finish()
    assert end.status == 1, end
    return (muster.scratch / "signals").read_text(encoding="ascii").split()


@pytest.mark.parametrize("env", [{}, {"SLURM_JOB_ID": None}], ids=["slurm", "systemd"])
def test_a_signal_to_all_processes_is_handled_once(muster, env):
    running = start(muster, env=env)
    signal_all(muster, running)
    assert finish(muster, running, NOT_SENT) == ["USR1"]


def test_a_signal_to_the_agent_alone_is_passed_on(muster):
    running = start(muster)
    running.signal(signal.SIGUSR1)
    assert finish(muster, running, SENT) == ["USR1"]


def test_a_witness_that_was_killed_is_done_without(muster):
    running = start(muster)
    os.kill(witnesses_of(running)[0], signal.SIGKILL)
    running.signal(signal.SIGUSR1)
    assert finish(muster, running, SENT) == ["USR1"]


def test_a_witness_is_no_process_that_a_worker_has_left_behind(muster):
    running = start(muster)
    assert len(witnesses_of(running)) == 1
    (muster.scratch / "done").touch()
    end = running.finish()
    assert end.status == 0 and "left behind" not in end.err, end


def test_a_witness_is_gone_with_its_agent(muster):
    running = start(muster)
    (witness,) = witnesses_of(running)
    running.signal(signal.SIGKILL)
    running.finish()
    running.wait_until(lambda: comm_of(witness) != "muster-witness", "its end")

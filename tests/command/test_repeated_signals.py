# SPDX-License-Identifier: BSD-3-Clause
"""A signal that comes more than once. Slurm ends a preempted job so: its daemon signals each process of the step, and srun,
which is told of the end, has them signalled again. One press of Ctrl-C comes twice where a wrapper passes it on. The
workers' time to end (--shutdown-timeout) begins with the first."""

import signal

import pytest

# Saves what it has when it is told to end, which takes a while, and how often it is told.
SAVING = """#!/bin/sh
trap 'echo told >>told; sleep 1; : >saved; exit 0' TERM HUP INT QUIT
: >ready
while :; do sleep 0.02; done
"""


@pytest.fixture
def running(muster):
    started = muster.start(["run", "--standalone", "--no-python", muster.script("worker", SAVING)], env={"LOGLEVEL": "INFO"})
    started.wait_until((muster.scratch / "ready").exists, "the worker")
    return started


@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_worker_that_saves_its_work_is_not_killed_by_a_signal_that_comes_again(muster, running, again):
    running.signal(signal.SIGTERM)
    running.wait_until((muster.scratch / "told").exists, "the first signal")
    running.signal(again)
    running.wait_until(lambda: f"Received {again.name} once more" in running.err(), "the second signal")
    end = running.finish()
    assert end.status == 1 and "stopped by SIGTERM" in end.err, end
    assert (muster.scratch / "saved").exists(), end
    assert (muster.scratch / "told").read_text() == "told\n", end


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT], ids=lambda number: number.name)
def test_one_press_that_a_wrapper_passes_on_is_one_signal(muster, running, number):
    for _ in range(3):
        running.signal(number)
    end = running.finish()
    assert end.status == 1 and f"stopped by {number.name}" in end.err, end
    assert f"Received {number.name}, killing workers" not in end.err, end
    assert (muster.scratch / "saved").exists(), end
    assert (muster.scratch / "told").read_text() == "told\n", end


def test_a_signal_from_a_keyboard_kills_even_so(muster, running):
    running.signal(signal.SIGTERM)
    running.wait_until((muster.scratch / "told").exists, "the first signal")
    running.signal(signal.SIGINT)
    end = running.finish()
    assert end.status == 1 and "Received SIGINT, killing workers" in end.err, end
    assert not (muster.scratch / "saved").exists(), end


def test_a_signal_that_comes_again_later_kills(muster):
    worker = muster.script("worker", SAVING.replace("sleep 1;", "sleep 100;"))
    running = muster.start(["run", "--standalone", "--no-python", worker])
    running.wait_until((muster.scratch / "ready").exists, "the worker")
    running.signal(signal.SIGTERM)

    def is_killing():
        running.signal(signal.SIGTERM)
        return "Received SIGTERM, killing workers" in running.err()

    running.wait_until(is_killing, "the workers to be killed")
    assert running.finish().status == 1

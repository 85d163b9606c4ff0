# SPDX-License-Identifier: BSD-3-Clause
"""Ends: by signal, by timeout, by the agent's own death. Nobody is ever left."""

import os
import signal
import time

import pytest

from support.leaks import processes_with, wait_until_gone

pytestmark = pytest.mark.threads

# Notes the signals it gets; leaves only when told to.
NOTING = """#!/bin/sh
for name in TERM INT HUP QUIT USR1; do
    trap "echo $name >>signals.$RANK" $name
done
: >ready.$RANK
while :; do sleep 0.02; done
"""
# Ends itself on SIGTERM, like a well-behaved worker.
OBEDIENT = """#!/bin/sh
trap 'echo TERM >>signals.$RANK; exit 0' TERM
: >ready.$RANK
while :; do sleep 0.02; done
"""


def locally(*options, workers=2):
    return ["run", "--standalone", "--nproc-per-node", workers, *options, "--no-python"]


def start(muster, scratch, script, *options, workers=2):
    path = muster.script("worker", script)
    running = muster.start([*locally(*options, workers=workers), path])
    running.wait_until(lambda: len(list(scratch.glob("ready.*"))) == workers, "the workers")
    return running


def signals_of(scratch, rank):
    path = scratch / f"signals.{rank}"
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT"])
def test_a_signal_is_passed_on_and_ends_the_job_with_1(muster, scratch, name):
    running = start(muster, scratch, NOTING, "--shutdown-timeout", "0.3")
    running.signal(getattr(signal, "SIG" + name))
    end = running.finish()
    assert end.status == 1, end
    assert [signals_of(scratch, rank)[0] for rank in range(2)] == [name, name]


def ignore(*numbers):
    """What nohup does, and a shell for "command &" in a script."""

    def prepare():
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    return prepare


def test_a_signal_that_whoever_started_the_agent_ignores_ends_nothing(muster, scratch):
    script = muster.script("worker", "#!/bin/sh\n: >ready.$RANK\nwhile [ ! -e done ]; do sleep 0.02; done\n")
    numbers = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT]
    running = muster.start([*locally(), script], preexec_fn=ignore(*numbers))
    running.wait_until(lambda: len(list(scratch.glob("ready.*"))) == 2, "the workers")
    for number in numbers:
        running.signal(number)
    (scratch / "done").touch()
    end = running.finish()
    assert end.status == 0 and "Received" not in end.err, end


def test_a_signal_that_was_ignored_is_handled_where_it_is_named(muster, scratch):
    path = muster.script("worker", NOTING.replace("$name >>signals.$RANK", "$name >>signals.$RANK; exit 0"))
    words = locally("--signals-to-handle", "SIGTERM,SIGHUP")
    running = muster.start([*words, path], preexec_fn=ignore(signal.SIGHUP))
    running.wait_until(lambda: len(list(scratch.glob("ready.*"))) == 2, "the workers")
    running.signal(signal.SIGHUP)
    end = running.finish(timeout=20)
    assert end.status == 1 and "stopped by SIGHUP" in end.err, end
    assert signals_of(scratch, 0) == signals_of(scratch, 1) == ["HUP"]


def test_other_signals_can_be_chosen(muster, scratch):
    running = start(muster, scratch, NOTING, "--signals-to-handle", "SIGUSR1", "--shutdown-timeout", "0.3")
    running.signal(signal.SIGUSR1)
    assert running.finish().status == 1
    assert signals_of(scratch, 0)[0] == "USR1"


def test_the_agent_waits_no_longer_than_its_workers_need(muster, scratch):
    running = start(muster, scratch, OBEDIENT, "--shutdown-timeout", "50")
    running.signal(signal.SIGTERM)
    assert running.finish(timeout=20).status == 1


def test_a_fraction_of_a_second_is_enough_for_the_stubborn(muster, scratch):
    running = start(muster, scratch, NOTING, "--shutdown-timeout", "0.2")
    running.signal(signal.SIGTERM)
    assert running.finish(timeout=20).status == 1


def test_a_second_interrupt_kills_at_once(muster, scratch):
    running = start(muster, scratch, NOTING, "--shutdown-timeout", "100")
    running.signal(signal.SIGINT)
    running.wait_until(lambda: signals_of(scratch, 0), "the first signal to arrive")

    def is_killing():  # one that comes within moments is the first one again
        running.signal(signal.SIGINT)
        return "Received SIGINT, killing workers" in running.err()

    running.wait_until(is_killing, "the workers to be killed")
    assert running.finish(timeout=20).status == 1


def test_grandchildren_go_too(muster, scratch):
    script = "#!/bin/sh\nsleep 300 & sleep 300 & : >ready.$RANK; wait\n"
    running = start(muster, scratch, script)
    running.signal(signal.SIGTERM)
    assert running.finish(timeout=20).status == 1
    assert processes_with(scratch) == []


def test_what_a_successful_worker_left_behind_is_ended(muster, scratch):
    script = muster.script("worker", "#!/bin/sh\nsleep 300 &\n")
    end = muster.run([*locally(), script], timeout=20)
    assert end.status == 0, end
    assert processes_with(scratch) == []


def test_a_signal_before_the_workers_are_up_leaves_nothing(muster, scratch):
    for delay in (step * 0.0003 for step in range(30)):
        running = muster.start([*locally("--shutdown-timeout", "0.2", workers=4), "sleep", "300"])
        time.sleep(delay)
        running.signal(signal.SIGTERM)
        assert running.finish(timeout=20).status in (1, -signal.SIGTERM)
        assert wait_until_gone(scratch) == []


@pytest.mark.parametrize("grandchildren", ["", "sleep 300 & sleep 300 &"])
def test_workers_and_their_children_do_not_outlive_a_killed_agent(muster, scratch, grandchildren):
    script = f"#!/bin/sh\ntrap '' TERM HUP INT\n{grandchildren}\n: >ready.$RANK\nwhile :; do sleep 0.02; done\n"
    running = start(muster, scratch, script, workers=4)
    assert len(processes_with(scratch)) > 4
    running.signal(signal.SIGKILL)
    running.finish()
    assert wait_until_gone(scratch, grace=1.0) == []


def test_a_stopped_agent_still_loses_its_workers_when_killed(muster, scratch):
    running = start(muster, scratch, NOTING)
    running.signal(signal.SIGSTOP)
    running.signal(signal.SIGKILL)
    running.finish()
    assert wait_until_gone(scratch, grace=1.0) == []


def test_a_stopped_worker_is_ended_as_well(muster, scratch):
    script = "#!/bin/sh\n: >ready.$RANK\nkill -STOP $$\n"
    running = start(muster, scratch, script, "--shutdown-timeout", "0.2")
    time.sleep(0.05)
    running.signal(signal.SIGTERM)
    assert running.finish(timeout=20).status == 1


def children_of(pid):
    return [int(text) for text in open(f"/proc/{pid}/task/{pid}/children").read().split()]


def test_a_killed_guardian_does_not_hurt_the_job(muster, scratch):
    running = start(muster, scratch, OBEDIENT)
    workers = {pid for pid in children_of(running.pid) if os.getsid(pid) == pid and b"worker" in read_command(pid)}
    for pid in set(children_of(running.pid)) - workers:
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.1)
    assert running.process.poll() is None
    running.signal(signal.SIGTERM)
    assert running.finish(timeout=20).status == 1


def read_command(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()

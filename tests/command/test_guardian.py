# SPDX-License-Identifier: BSD-3-Clause
"""The guardian: what an agent that was killed leaves behind, and what becomes of a guardian that was killed."""

import os
import pathlib
import signal

import pytest

from support.leaks import processes_with, wait_until_gone


# Its child is in its session, and is not killed by the kernel when the agent dies.
WORKER = "#!/bin/sh\nsleep 300 & : >ready.$RANK\nwait\n"


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
    except OSError:
        return "gone"


def guardians(scratch):
    return [pid for pid in processes_with(scratch) if name_of(pid) == "muster-guardian"]


def start(muster, scratch, *options, env=None, workers=2):
    path = muster.script("worker", WORKER)
    running = muster.start(["run", "--standalone", "--nproc-per-node", workers, *options, "--no-python", path], env=env)
    running.wait_until(lambda: len(list(scratch.glob("ready.*"))) == workers, "the workers")
    return running


def wait_for_another_guardian(running, scratch, old):
    running.wait_until(lambda: guardians(scratch) not in ([], [old]), "another guardian")
    (pid,) = guardians(scratch)
    return pid


def test_a_killed_guardian_is_replaced_by_one_that_knows_the_workers(muster, scratch):
    running = start(muster, scratch)
    (first,) = guardians(scratch)
    os.kill(first, signal.SIGKILL)
    second = wait_for_another_guardian(running, scratch, first)
    line = f"the guardian (process {first}) has ended; process {second} takes its place"
    running.wait_until(lambda: line in running.err(), "a line about it")
    running.signal(signal.SIGKILL)
    running.finish()
    assert wait_until_gone(scratch) == []


def test_guardians_may_be_killed_again_and_again(muster, scratch):
    running = start(muster, scratch)
    (pid,) = guardians(scratch)
    for _ in range(3):
        os.kill(pid, signal.SIGKILL)
        pid = wait_for_another_guardian(running, scratch, pid)
    running.signal(signal.SIGTERM)
    assert running.finish(timeout=20).status == 1
    assert wait_until_gone(scratch) == []


def temporary_files(scratch):
    ours = ("torchelastic_", "watchdog_timer_")
    return [path for path in scratch.iterdir() if path.name.startswith(ours)]


def test_a_killed_agent_leaves_no_temporary_files(muster, scratch):
    running = start(muster, scratch, env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1"})
    assert len(temporary_files(scratch)) == 3  # a directory without any file, a FIFO, a socket
    running.signal(signal.SIGKILL)
    running.finish()
    assert wait_until_gone(scratch) == []
    assert temporary_files(scratch) == []


def test_a_fifo_with_a_relative_path_goes_too(muster, scratch):
    env = {"TORCHELASTIC_ENABLE_FILE_TIMER": "1", "TORCHELASTIC_TIMER_FILE": "timers"}
    running = start(muster, scratch, env=env)
    assert (scratch / "timers").is_fifo()
    running.signal(signal.SIGKILL)
    running.finish()
    assert wait_until_gone(scratch) == []
    assert not (scratch / "timers").exists() and not (scratch / "timers.list").exists()


def test_logs_of_a_killed_agent_stay(muster, scratch):
    running = start(muster, scratch, "--redirects", "3")
    (directory,) = temporary_files(scratch)
    running.signal(signal.SIGKILL)
    running.finish()
    assert wait_until_gone(scratch) == []
    assert len(list(directory.rglob("stdout.log"))) == 2


def test_what_another_agent_uses_stays(muster, scratch):
    env = {"TORCHELASTIC_ENABLE_FILE_TIMER": "1", "TORCHELASTIC_TIMER_FILE": scratch / "timers"}
    first = start(muster, scratch, env=env)
    (scratch / "timers").unlink()  # somebody tidies up, and another agent takes the same path
    (scratch / "timers.list").unlink()
    second = muster.start(["run", "--no-python", "sleep", "300"], env=env)
    second.wait_until((scratch / "timers.list").exists, "the other agent")
    first.signal(signal.SIGKILL)
    first.finish()
    second.wait_until(lambda: len(guardians(scratch)) == 1, "the end of the first guardian")
    assert (scratch / "timers").is_fifo() and (scratch / "timers.list").is_socket()
    second.signal(signal.SIGTERM)
    assert second.finish(timeout=20).status == 1
    assert wait_until_gone(scratch) == []
    assert not (scratch / "timers").exists()


def test_what_has_left_its_session_is_found_without_a_log_directory_too(muster, scratch):
    """Nor is the name of the job one that this agent has alone."""
    path = muster.script("worker", WORKER.replace("sleep 300 &", "setsid sleep 300 & (setsid sleep 301 &);", 1))
    words = ["--nnodes", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "job7"]
    running = muster.start(["run", *words, "--nproc-per-node", 2, "--log-dir", "/dev/null", "--no-python", path])
    running.wait_until(lambda: len(list(scratch.glob("ready.*"))) == 2, "the workers")
    running.wait_until(lambda: len(processes_with(scratch)) >= 7, "what they have started")
    running.signal(signal.SIGKILL)
    running.finish()
    assert wait_until_gone(scratch) == []

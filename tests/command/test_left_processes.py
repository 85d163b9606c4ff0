# SPDX-License-Identifier: BSD-3-Clause
"""Processes that are no workers: what workers start and leave behind, and strangers that become children of the agent."""

import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from support.leaks import processes_with

pytestmark = pytest.mark.threads

# A helper in a session of its own, which writes what its worker tells it. It ends with its worker, or when it is told to.
WITH_HELPER = """#!/bin/sh
mkfifo pipe.$RANK
exec setsid sh -c 'trap "echo told >>helper.$RANK; exit 0" TERM USR1; : >helps.$RANK
while read -r word; do echo $word >>helper.$RANK; done <pipe.$RANK
while :; do sleep 0.02; done' >/dev/null 2>&1 &
exec 3>pipe.$RANK
await() { while ! eval "$1" 2>/dev/null; do sleep 0.02; done; }
say() { echo $1 >&3; await "grep -q $1 helper.$RANK"; }
trap 'sleep 0.2; say figures; exit 0' TERM USR1
await '[ -e helps.$RANK ]'
: >ready.$RANK
await '[ -e fail.$RANK ]'
say failing
exit 3
"""


def words_of(scratch, rank):
    path = scratch / f"helper.{rank}"
    return path.read_text(encoding="ascii").split() if path.exists() else []


def start(muster, script, *options, workers=2):
    path = muster.script("worker", script)
    words = ["run", "--standalone", "--nproc-per-node", workers, "--shutdown-timeout", "20", *options, "--no-python", path]
    running = muster.start(words)
    running.wait_until(lambda: len(list(muster.scratch.glob("ready.*"))) == workers, "the workers")
    return running


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def number_in(running, path):
    running.wait_until(lambda: path.exists() and path.read_text(encoding="ascii").strip(), path.name)
    return int(path.read_text(encoding="ascii"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1], ids=lambda number: number.name)
def test_a_helper_outlives_its_worker_and_is_told_then(muster, scratch, number):
    running = start(muster, WITH_HELPER, "--signals-to-handle", "SIGTERM,SIGUSR1")
    running.signal(number)
    assert running.finish().status == 1
    for rank in range(2):
        assert words_of(scratch, rank) == ["figures", "told"]
    assert processes_with(scratch) == []


def test_helpers_outlive_workers_that_are_stopped_for_another_ones_failure(muster, scratch):
    running = start(muster, WITH_HELPER)
    (scratch / "fail.0").touch()
    assert running.finish().status == 1
    assert words_of(scratch, 0) == ["failing", "told"] and words_of(scratch, 1) == ["figures", "told"]
    assert processes_with(scratch) == []


def test_a_helper_that_does_not_end_is_killed_at_the_deadline(muster, scratch):
    running = start(muster, WITH_HELPER.replace("exit 0\"", ":\""), "--shutdown-timeout", "0.5")
    running.signal(signal.SIGTERM)
    assert running.finish(timeout=20).status == 1
    assert processes_with(scratch) == []


def test_the_workers_of_a_launcher_below_are_told_once_and_by_it(muster, scratch):
    """Both launchers pass the signal on, each to its own workers."""
    inner = muster.script("inner", "#!/bin/sh\ntrap 'echo TERM >>inner.$RANK; exit 0' TERM\n: >ready.0\nwhile :; do sleep 0.02; done\n")
    launch = f"setsid {muster.binary} run --standalone --no-python {inner} & p=$!"
    outer = f"#!/bin/sh\n{launch}\ntrap 'kill -TERM $p; wait $p; wait $p; exit 0' TERM\nwait $p\n"
    running = start(muster, outer, workers=1)
    running.signal(signal.SIGTERM)
    assert running.finish().status == 1
    assert (scratch / "inner.0").read_text(encoding="ascii").split() == ["TERM"]
    assert processes_with(scratch) == []


def test_what_is_ended_after_a_success_is_named(muster, scratch):
    script = muster.script("worker", "#!/bin/sh\n[ $RANK = 0 ] || sleep 300 &\nsetsid sleep 301 >/dev/null 2>&1 &\nsleep 0.1\n")
    end = muster.run(["run", "--standalone", "--nproc-per-node", 2, "--no-python", script], timeout=20)
    assert end.status == 0, end
    lines = [line for line in end.err.splitlines() if "had left behind" in line]
    assert sorted(line.split("done: ")[1] for line in lines) == ["sleep 300", "sleep 301", "sleep 301"], end
    assert sum("local_rank 1 had left behind" in line for line in lines) == 2, end
    assert processes_with(scratch) == []


def test_what_ends_by_itself_or_with_a_failure_is_not_named(muster):
    """Python's own helpers ignore SIGTERM and end with their parents."""
    ending = muster.script("ending", "#!/bin/sh\n(trap '' TERM; : >deaf; sleep 0.2) &\nwhile [ ! -e deaf ]; do sleep 0.02; done\n")
    end = muster.run(["run", "--standalone", "--no-python", ending], timeout=20)
    assert end.status == 0 and "left behind" not in end.err, end
    failing = muster.script("failing", "#!/bin/sh\nsleep 300 &\nexit 3\n")
    end = muster.run(["run", "--standalone", "--no-python", failing], timeout=20)
    assert end.status == 1 and "left behind" not in end.err, end


# Fails once when it is told to. What a stranger's process and a worker's look like is the same but for their parents.
RESTARTING = """#!/bin/sh
echo $$ >>starts
[ $TORCHELASTIC_RESTART_COUNT = 1 ] && { while [ ! -e done ]; do sleep 0.02; done; exit 0; }
(env -i setsid sh -c 'echo $$ >daemon; exec sleep 302' >/dev/null 2>&1 &)
: >ready.0
while [ ! -e go ]; do sleep 0.02; done
exit 3
"""
DEAF = "#!/bin/sh\ntrap '' TERM HUP INT; echo $$ >stranger; while :; do sleep 0.1; [ -d . ] || exit; done\n"


def check_restart(muster, scratch, running, guest):
    daemon = number_in(running, scratch / "daemon")
    (scratch / "go").touch()
    running.wait_until(lambda: len((scratch / "starts").read_text(encoding="ascii").split()) == 2, "the restart", 15)
    try:
        assert is_alive(guest) and not is_alive(daemon)
        (scratch / "done").touch()
        end = running.finish(timeout=20)
        assert end.status == 0 and "left behind" not in end.err, end
    finally:
        if is_alive(guest):
            os.kill(guest, signal.SIGKILL)


def test_what_a_service_leaves_that_was_there_before_is_let_be(muster, scratch):
    worker = muster.script("worker", RESTARTING)
    deaf = muster.script("deaf", DEAF)
    service = f"(while [ ! -e ready.0 ]; do sleep 0.02; done; setsid {deaf} >/dev/null 2>&1 &)"
    options = "run --standalone --shutdown-timeout 60 --max-restarts 1 --no-python"
    running = muster.start(["-c", f"{service} & exec {muster.binary} {options} {worker}"], program="/bin/sh")
    guest = number_in(running, scratch / "stranger")
    check_restart(muster, scratch, running, guest)


def can_make_a_container():
    """Not where the root is no mount, as below chroot."""
    words = ["unshare", "--pid", "--fork", "--mount-proc", "true"]
    return os.geteuid() == 0 and shutil.which("nsenter") is not None and subprocess.run(words, capture_output=True).returncode == 0


@pytest.mark.skipif(not can_make_a_container(), reason="wants to make a container, and to enter it, as root does")
def test_what_somebody_leaves_in_a_container_is_let_be(muster, scratch):
    worker = muster.script("worker", RESTARTING)
    words = ["--pid", "--fork", "--mount-proc", "--kill-child", muster.binary, "run", "--standalone"]
    words += ["--shutdown-timeout", "60", "--max-restarts", "1", "--no-python", worker]
    running = muster.start(words, program=shutil.which("unshare"))
    running.wait_until((scratch / "ready.0").exists, "the worker")
    (first,) = pathlib.Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text(encoding="ascii").split()
    guests = f"setsid {muster.script('deaf', DEAF)} </dev/null >/dev/null 2>&1 & sleep 0.3"
    before = set(children_of(int(first)))
    subprocess.run(["nsenter", "-t", first, "-p", "sh", "-c", guests], cwd=scratch, check=True)
    (guest,) = set(children_of(int(first))) - before
    daemon = [pid for pid in before if b"302" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(daemon) == 1
    (scratch / "daemon").write_text(str(daemon[0]), encoding="ascii")
    check_restart(muster, scratch, running, guest)


def children_of(pid):
    lists = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in lists for child in path.read_text(encoding="ascii").split()]

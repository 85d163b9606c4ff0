# SPDX-License-Identifier: BSD-3-Clause
"""--scratch: a directory in memory that outlives the restarts of workers, and never the job."""

import errno
import fcntl
import os
import pathlib
import platform
import signal
import sys

import pytest

from support.leaks import processes_with, wait_until_gone
from support.ports import free_port

PLACE = pathlib.Path("/dev/shm")
DENY = pathlib.Path(__file__).resolve().parent.parent / "support" / "deny_system_call.py"
FLOCK = {"x86_64": 73, "aarch64": 32}

# Notes where the directory is, and what an earlier start has left there.
WORKER = r"""#!/bin/sh
echo "$MUSTER_SCRATCH" >path.$GROUP_RANK
echo "start $TORCHELASTIC_RESTART_COUNT finds $(cat "$MUSTER_SCRATCH/step.$LOCAL_RANK" 2>/dev/null)"
mkdir -p "$MUSTER_SCRATCH/a/b"
echo "$TORCHELASTIC_RESTART_COUNT" >"$MUSTER_SCRATCH/step.$LOCAL_RANK"
echo text >"$MUSTER_SCRATCH/a/b/file.$LOCAL_RANK"
: >ready.$GROUP_RANK.$LOCAL_RANK
"""

FAILING = WORKER + '[ "$TORCHELASTIC_RESTART_COUNT" = 2 ] || kill -KILL $$\n'
WAITING = WORKER + "exec sleep 300\n"


@pytest.fixture(autouse=True)
def begun():
    """A file that each test of these locks, beside the others."""
    with open(__file__, encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield file


@pytest.fixture
def begins_alone(begun):
    """A job that begins removes what killed jobs have left, those of other tests, too, which are played beside this one. So
    none of them begins a job while this test is played."""
    fcntl.flock(begun, fcntl.LOCK_EX)


def start_waiting(muster, scratch):
    (scratch / "ready.0.0").unlink(missing_ok=True)
    path = muster.script("worker", WAITING)
    running = muster.start(["run", "--standalone", "--scratch", "16M", "--no-python", path])
    running.wait_until((scratch / "ready.0.0").exists, "the worker")
    return running, pathlib.Path((scratch / "path.0").read_text().strip())


def test_it_survives_restarts_and_goes_with_the_job(muster, scratch):
    path = muster.script("worker", FAILING)
    end = muster.run(["run", "--scratch", "16M", "--max-restarts", 2, "--no-python", path])
    assert end.status == 0, end
    assert [line for line in end.out.splitlines() if line.startswith("start")] == [
        "start 0 finds ", "start 1 finds 0", "start 2 finds 1"], end  # fmt: skip
    directory = pathlib.Path((scratch / "path.0").read_text().strip())
    assert directory.parent == PLACE and directory.name.startswith("muster-scratch-")
    assert not directory.exists()


def test_where_it_is_removed_it_is_made_anew(muster, scratch):
    body = WORKER + 'stat -c %a "$MUSTER_SCRATCH"\nif [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then rm -rf "$MUSTER_SCRATCH"; exit 3; fi\n'
    end = muster.run(["run", "--scratch", "16M", "--max-restarts", 1, "--no-python", muster.script("worker", body)])
    assert end.status == 0 and "start 1 finds \n700\n" in end.out, end
    assert "was removed while the job ran, with what it held" in end.err, end
    assert not os.path.exists((scratch / "path.0").read_text().strip())


def test_it_goes_with_a_job_that_fails(muster, scratch):
    path = muster.script("worker", WORKER + "exit 3\n")
    end = muster.run(["run", "--scratch", "16M", "--max-restarts", 1, "--no-python", path])
    assert end.status == 1 and "start 1 finds 0" in end.out, end
    assert not os.path.exists((scratch / "path.0").read_text().strip())


def test_it_is_private_and_its_size_is_told(muster):
    body = '#!/bin/sh\nstat -c "%a %U" "$MUSTER_SCRATCH"; id -un; echo "$MUSTER_SCRATCH_BYTES"\n'
    end = muster.run(["run", "--no-python", muster.script("worker", body)], env={"PET_SCRATCH": "3m"})
    lines = end.out.splitlines()
    assert lines == [f"700 {lines[1]}", lines[1], str(3 << 20)], end


def test_without_the_option_workers_have_none(muster):
    body = '#!/bin/sh\necho "[$MUSTER_SCRATCH][$MUSTER_SCRATCH_BYTES]"\n'
    for options in ([], ["--scratch", "0"]):
        end = muster.run(["run", *options, "--no-python", muster.script("worker", body)])
        assert end.out.strip() == "[][]", end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_goes_when_a_signal_ends_the_agent(muster, scratch, number):
    running, directory = start_waiting(muster, scratch)
    assert (directory / "a/b/file.0").exists()
    running.signal(number)
    assert running.finish().status == 1
    assert not directory.exists()


def test_it_goes_when_the_agent_is_killed(muster, scratch):
    running, directory = start_waiting(muster, scratch)
    running.signal(signal.SIGKILL)
    running.finish()
    assert wait_until_gone(scratch) == []  # the guardian is among them
    assert not directory.exists()


def test_a_later_guardian_knows_it_too(muster, scratch):
    running, directory = start_waiting(muster, scratch)
    (first,) = guardians(scratch)
    os.kill(first, signal.SIGKILL)
    running.wait_until(lambda: guardians(scratch) not in ([], [first]), "another guardian")
    running.signal(signal.SIGKILL)
    running.finish()
    assert wait_until_gone(scratch) == []
    assert not directory.exists()


def guardians(scratch):
    found = []
    for pid in processes_with(scratch):
        try:
            name = pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
        except OSError:
            continue
        found += [pid] * (name == "muster-guardian")
    return found


def test_the_next_job_removes_what_nobody_could(muster, scratch, begins_alone):
    running, directory = start_waiting(muster, scratch)
    (guardian,) = guardians(scratch)
    other, living = start_waiting(muster, scratch)
    os.kill(running.pid, signal.SIGSTOP)  # it starts no other guardian
    os.kill(guardian, signal.SIGKILL)
    running.signal(signal.SIGKILL)
    running.finish()
    assert directory.exists()
    end = muster.run(["run", "--scratch", "1M", "--no-python", "true"])
    assert f"removed {directory}, which a killed job had left behind" in end.err, end
    assert not directory.exists() and (living / "a/b/file.0").exists()
    other.signal(signal.SIGTERM)
    other.finish()


def test_more_than_there_is_is_refused_in_words(muster):
    end = muster.run(["run", "--scratch", "1000T", "--no-python", "true"])
    assert end.status == 1 and "--scratch: 1048576000.0 MiB are more than the" in end.err, end
    assert "of memory that this machine" in end.err, end


@pytest.mark.parametrize("given", ["2", "-1M", "1.5G", "10%", "much", "2GB"])
def test_sizes_that_cannot_be_are_mistakes(muster, given):
    end = muster.run(["run", f"--scratch={given}", "true"])
    assert end.status == 2 and repr(given) in end.err and "at least 1M" in end.err, end


def test_more_than_was_promised_is_said(muster):
    body = '#!/bin/sh\nhead -c 3000000 /dev/zero >"$MUSTER_SCRATCH/file"\n'
    end = muster.run(["run", "--scratch", "1M", "--no-python", muster.script("worker", body)])
    assert end.status == 0 and "the workers had 2.9 MiB in their directory in memory, but 1.0 MiB" in end.err, end


def test_a_new_round_finds_it_and_a_new_node_has_its_own(muster, scratch):
    port = free_port()
    body = WORKER + '[ "$WORLD_SIZE" = 2 ] || exec sleep 300\n'
    path = muster.script("worker", body)
    command = ["run", "--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{port}",
        "--rdzv-conf", "last_call_timeout=1", "--scratch", "1M", "--no-python", path]  # fmt: skip
    first = muster.start(command)
    first.wait_until((scratch / "ready.0.0").exists, "the first round")
    second = muster.start(command)
    ends = [second.finish(), first.finish()]
    assert [end.status for end in ends] == [0, 0], ends
    assert ends[1].out.splitlines() == ["start 0 finds ", "start 0 finds 0"], ends
    assert ends[0].out.splitlines() == ["start 0 finds "], ends


def is_nobodys(directory):
    try:
        fd = os.open(directory, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


@pytest.mark.skipif(platform.machine() not in FLOCK, reason="the number of flock is known for two architectures only")
@pytest.mark.parametrize("error", [errno.EAGAIN, errno.ENOLCK])
def test_a_directory_that_cannot_be_locked_does_not_stay(muster, error):
    before = set(PLACE.glob("muster-scratch-*"))
    command = [DENY, FLOCK[platform.machine()], error, muster.binary, "run", "--scratch", "1M", "--no-python", "true"]
    end = muster.start(command, program=sys.executable).finish()
    assert end.status == 1 and f"takes no directory: {os.strerror(error)}" in end.err, end
    assert "or leave --scratch out" in end.err, end
    assert [path for path in set(PLACE.glob("muster-scratch-*")) - before if is_nobodys(path)] == []

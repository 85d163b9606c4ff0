# SPDX-License-Identifier: BSD-3-Clause
"""Defects of torchrun that belong to one node, each shown not to be here. docs/compatibility.md lists
them with the names of these tests (test_compatibility_page_names_every_defect_test)."""

import pathlib
import re
import signal
import sys
import time

import pytest

from support import timers
from support.binary import ROOT
from support.leaks import processes_with, wait_until_gone

STUBBORN = "trap '' TERM; while :; do sleep 0.02; done"


def locally(*options, workers=2):
    return ["run", "--standalone", "--nproc-per-node", workers, *options, "--no-python"]


def test_an_expired_timer_kills_only_its_worker(muster, scratch):
    """torchrun's file watchdog ends its own agent with SIGKILL when a timer expires, and the other
    workers live on as orphans."""
    script = """
if ATTEMPT == 1:
    sys.exit()
if RANK == 1:
    acquire("step", 0.1)
else:
    signal.signal(signal.SIGTERM, lambda *_: (note("asked"), sys.exit()))
time.sleep(60)
"""
    end = timers.start(muster, script, "--max-restarts", 1).finish()
    assert end.status == 0, end
    assert (scratch / "asked.0.0").exists()
    assert not (scratch / "timers").exists()
    assert processes_with(scratch) == []


def test_one_bad_timer_line_loses_nothing_else(muster, scratch):
    """torchrun loses every request it has read together with a bad line."""
    script = """
held = request("held", 0.4)
write(request("released", 0.1) + "no request\\n\\n{}\\n" + request("released", None, 0) + "[1]\\n" + held)
time.sleep(60)
"""
    end = timers.start(muster, script, workers=1).finish()
    assert end.status == 1
    assert "killed by the watchdog: timer 'held' expired" in end.err, end
    assert "a line is no timer request" in end.err


def test_bytes_that_are_no_text_cost_no_timer(muster, scratch):
    """torchrun drops all it has read at once when a byte of it is no UTF-8."""
    script = """
fd = os.open(os.environ["TORCHELASTIC_TIMER_FILE"], os.O_WRONLY)
os.write(fd, b"\\xff\\xfe\\0\\n" + request("mine", 0.1).encode() + b"\\xff\\n")
time.sleep(60)
"""
    end = timers.start(muster, script, workers=1).finish()
    assert "killed by the watchdog: timer 'mine' expired" in end.err, end


@pytest.mark.parametrize("left_behind", ["", '{\\"version\\": 1, \\"pid\\": 1'])
def test_a_stopped_client_stalls_no_timer(muster, scratch, left_behind):
    """A client that keeps the FIFO open, or stops within a line, keeps torchrun from ending anybody."""
    script = f"""
if RANK == 0:
    fd = os.open(os.environ["TORCHELASTIC_TIMER_FILE"], os.O_WRONLY)
    os.write(fd, request("whole", 60).encode() + b"{left_behind}")
    note("stopped")
    os.kill(os.getpid(), signal.SIGSTOP)
while not os.path.exists("stopped.0.0"):
    time.sleep(0.005)
acquire("mine", 0.1)
time.sleep(60)
"""
    end = timers.start(muster, script, "--shutdown-timeout", 0.2).finish()
    assert end.status == 1
    assert "killed by the watchdog: timer 'mine' expired" in end.err, end


@pytest.mark.parametrize("pid", ["os.getppid()", "1", "-1", "0"])
def test_a_timer_for_a_strangers_process_is_refused(muster, scratch, pid):
    """torchrun kills whatever process, group or everybody a request names."""
    script = f"""
acquire("theirs", -1, pid={pid})
acquire("mine", 0.3)
time.sleep(60)
"""
    end = timers.start(muster, script, workers=1).finish()
    assert end.status == 1
    assert "killed by the watchdog: timer 'mine' expired" in end.err, end
    assert "belongs to no worker of this job" in end.err or "no positive integer" in end.err


# A child that cannot finish its vfork keeps its parent in an uninterruptible wait (state D).
UNINTERRUPTIBLE = """
import os, time
RANK = os.environ["RANK"]
open(f"ready.{RANK}.{os.environ['TORCHELASTIC_RESTART_COUNT']}", "w").close()
if RANK == "1":
    os.mkfifo("never-opened")
    os.posix_spawn("/bin/true", ["true"], {},
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, "never-opened", os.O_RDONLY, 0)])
time.sleep(60)
"""


@pytest.mark.parametrize("exit_code", ["torchrun", "worker"])
def test_a_worker_stuck_in_the_kernel_fails_the_job(muster, scratch, exit_code):
    """torchrun exits 0 when it ends a job because of workers in uninterruptible sleep."""
    (scratch / "stuck.py").write_text(UNINTERRUPTIBLE)
    end = muster.run(
        ["run", "--standalone", "--nproc-per-node", 2, "--shutdown-timeout", "0.2", "--max-restarts", 3,
         "--exit-code", exit_code, "stuck.py"],
        env={"PYTHON_EXEC": sys.executable, "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT": "0.5"},
    )
    assert end.status == 1, end
    root = end.err.split("Root Cause")[1].split("Failures:")[0]
    assert "rank      : 1 (local_rank: 1)" in root
    assert re.search(r"PID \d+ hung in the kernel for 0\.\d s", root)
    assert not list(scratch.glob("ready.*.1")), "no restart"
    assert processes_with(scratch) == []


def test_a_worker_may_sleep_in_the_kernel_for_a_while(muster, scratch):
    (scratch / "slow.py").write_text("""
import os, time
os.mkfifo("opened-late")
if os.fork() == 0:
    time.sleep(0.4)
    open("opened-late", "w").close()
    os._exit(0)
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "opened-late", os.O_RDONLY, 0)])
""")
    end = muster.run(
        ["run", "--standalone", "slow.py"],
        env={"PYTHON_EXEC": sys.executable, "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT": "20"},
    )
    assert end.status == 0, end
    assert "is in uninterruptible sleep" in end.err


@pytest.mark.parametrize("text", ["", "{", "[]", '{"message": 1.5}', '{"message": {}}'])
def test_a_malformed_error_file_costs_no_restart(muster, scratch, text):
    """torchrun's agent dies of one, whatever --max-restarts says."""
    (scratch / "bad.json").write_text(text)
    script = '[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; cp bad.json "$TORCHELASTIC_ERROR_FILE"; exit 1'
    end = muster.run([*locally("--max-restarts", 1), "sh", "-c", script])
    assert end.status == 0, end


def test_no_worker_is_orphaned_by_a_killed_agent(muster, scratch):
    """torchrun's workers go on without it."""
    running = muster.start([*locally(), "sh", "-c", f": >ready.$RANK; {STUBBORN}"])
    running.wait_until(lambda: len(list(scratch.glob("ready.*"))) == 2, "the workers")
    running.signal(signal.SIGKILL)
    running.finish()
    assert wait_until_gone(scratch, grace=1.0) == []


def test_no_worker_is_orphaned_by_an_agent_killed_while_it_stops_them(muster, scratch):
    running = muster.start([*locally("--shutdown-timeout", 100), "sh", "-c", f": >ready.$RANK; {STUBBORN}"])
    running.wait_until(lambda: len(list(scratch.glob("ready.*"))) == 2, "the workers")
    running.signal(signal.SIGTERM)
    running.signal(signal.SIGKILL)
    running.finish()
    assert wait_until_gone(scratch, grace=1.0) == []


def test_no_worker_is_orphaned_by_a_third_signal(muster, scratch):
    """torchrun gives up its clean-up at the third signal."""
    running = muster.start([*locally("--shutdown-timeout", 100), "sh", "-c", f": >ready.$RANK; {STUBBORN}"])
    running.wait_until(lambda: len(list(scratch.glob("ready.*"))) == 2, "the workers")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGINT):
        running.signal(number)
        time.sleep(0.1)  # signals that come together are one
    running.finish(timeout=20)
    assert processes_with(scratch) == []


def test_no_worker_is_orphaned_by_a_start_that_fails_half_way(muster, scratch):
    """torchrun forgets the workers it had started when a later one cannot be."""
    # worker 1 removes the program before worker 7 can be started from it
    script = muster.script("worker", f'#!/bin/sh\nrm -f "$0"\n{STUBBORN}\n')
    end = muster.run([*locally("--shutdown-timeout", 0.2, workers=64), script], timeout=30)
    assert end.status == 1, end
    assert processes_with(scratch) == []


def test_grandchildren_of_dead_workers_are_ended(muster, scratch):
    """torchrun signals only groups whose leader still lives."""
    script = "[ $RANK = 0 ] || exec sleep 300; sh -c \"trap '' TERM; sleep 300\" & sleep 0.1; exit 1"
    end = muster.run([*locally("--shutdown-timeout", 0.2), "sh", "-c", script], timeout=20)
    assert end.status == 1
    assert processes_with(scratch) == []


def test_the_shutdown_timeout_holds_after_a_failure(muster):
    """torchrun waits 30 s there, whatever was asked for."""
    script = f"[ $RANK = 0 ] && sleep 0.1 && exit 1; {STUBBORN}"
    end = muster.run([*locally("--shutdown-timeout", 0.3), "sh", "-c", script], timeout=20)
    assert end.status == 1


def test_the_shutdown_timeout_holds_before_a_restart(muster):
    script = f"[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; [ $RANK = 0 ] && sleep 0.1 && exit 1; {STUBBORN}"
    end = muster.run([*locally("--shutdown-timeout", 0.3, "--max-restarts", 1), "sh", "-c", script], timeout=20)
    assert end.status == 0


def test_a_line_in_pieces_is_not_split_by_prefixes(muster):
    """torchrun prints `[default0]:abc[default0]:def`."""
    end = muster.run([*locally("--tee", 1, workers=1), "sh", "-c", "printf abc; sleep 0.3; echo def"])
    assert end.out == "[default0]:abcdef\n"


def test_local_ranks_above_nine_can_be_named(muster, scratch):
    """torchrun's pattern for -r and -t knows one digit."""
    end = muster.run(
        [*locally("-r", "10:1", "-t", "11:1", "--log-dir", scratch / "logs", workers=12), "sh", "-c", "echo $RANK"]
    )
    assert end.status == 0, end
    files = {log.parent.name for log in (scratch / "logs").glob("*/attempt_0/*/stdout.log")}
    assert files == {"10", "11"}
    assert "[default11]:11" in end.out.splitlines()
    assert "10" not in end.out.splitlines()


def test_logs_of_an_earlier_attempt_are_never_deleted(muster, scratch):
    """torchrun deletes attempt_N when it starts workers again under the same number."""
    script = "echo attempt $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 1 ]"
    for _ in range(2):
        muster.run(
            ["run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "same", "--max-restarts", 1,
             "-r", 1, "--log-dir", scratch / "logs", "--no-python", "sh", "-c", script]
        )
    logs = sorted(log.read_text() for log in (scratch / "logs").rglob("stdout.log"))
    assert logs == ["attempt 0\n", "attempt 0\n", "attempt 1\n", "attempt 1\n"]


def test_what_one_failure_was_does_not_colour_the_next(muster):
    """torchrun keeps the traits of a failure without error file in a shared object."""
    script = "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && kill -9 $$$$; exit 3"
    end = muster.run([*locally("--max-restarts", 1, workers=1), "sh", "-c", script])
    assert "Signal 9 (SIGKILL) received by PID" in end.err, end
    assert "To enable traceback" not in end.err


def test_the_workers_exit_code_can_be_the_jobs(muster):
    """torchrun exits 1 whatever the worker exited with."""
    end = muster.run([*locally("--exit-code", "worker"), "sh", "-c", "exit 77"])
    assert end.status == 77


@pytest.mark.parametrize("address", ["::1", "[::1]"])
def test_an_ipv6_master_is_read_and_reached(muster, scratch, address):
    """torchrun reads `::1` as host `:` and port 1."""
    if not pathlib.Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    script = f'echo $MASTER_ADDR; "{muster.binary}" store set k v'
    end = muster.run(["run", "--master-addr", address, "--master-port", 0, "--no-python", "sh", "-c", script])
    assert end.out.splitlines()[:1] == ["::1"], end
    assert end.status == 0, end


def test_every_attempt_finds_a_fresh_store(muster):
    """torchrun's store outlives a restart, with the addresses of dead workers in it."""
    script = (
        f'keys=$("{muster.binary}" store keys); echo "keys: $keys"; '
        f'"{muster.binary}" store set left-behind x; [ $TORCHELASTIC_RESTART_COUNT = 1 ]'
    )
    end = muster.run([*locally("--max-restarts", 1, workers=1), "sh", "-c", script])
    assert end.status == 0, end
    assert end.out.count("keys: \n") + end.out.count("keys:\n") == 2, end


@pytest.mark.parametrize("setting", ["keep_alive_interval", "keep_alive_max_attempt"])
@pytest.mark.parametrize("value", [0, -1])
def test_keep_alives_below_one_are_refused(muster, setting, value):
    """torchrun accepts them, takes itself for dead and joins anew without pause until the join timeout."""
    end = muster.run(
        ["run", "--rdzv-backend", "c10d", "--nnodes", 2, "--rdzv-conf", f"{setting}={value}", "--no-python", "true"]
    )
    assert end.status == 2, end
    assert f"'{value}': the setting {setting} takes a whole number" in end.err


def test_compatibility_page_names_every_defect_test():
    page = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
    own = pathlib.Path(__file__).read_text(encoding="utf-8")
    names = re.findall(r"^def (test_\w+)", own, re.MULTILINE)
    assert len(names) > 15
    assert [name for name in names if name not in page and "compatibility_page" not in name] == []

# SPDX-License-Identifier: BSD-3-Clause
"""What Muster keeps of a worker it kills: hang_evidence.txt, the console, the failure report."""

import pathlib
import re
import time

import pytest

from support import timers

STUBBORN = "trap '' TERM; echo about to hang; : >ready.$RANK; "


def reports(scratch):
    return {int(path.parent.name): path.read_text() for path in scratch.glob("logs/*/attempt_0/*/hang_evidence.txt")}


def stubborn(muster, hang, *options, workers=1):
    return muster.run(
        ["run", "--standalone", "--nproc-per-node", workers, "--log-dir", "logs", "-r", "3", "--shutdown-timeout", 0.3,
         *options, "--no-python", "sh", "-c", f"if [ $RANK = 0 ]; then sleep 0.3; exit 3; fi; {STUBBORN} {hang}"],
        timeout=30,
    )


@pytest.mark.parametrize(
    ("hang", "words"),
    [
        ("mkfifo fifo; exec 3<>fifo; read line <&3", r"sleeping in read"),
        ("kill -STOP $$$$", r": stopped"),
        ("while :; do :; done", r": running"),
    ],
    ids=["pipe", "stopped", "busy"],
)
def test_a_worker_that_does_not_end_is_looked_at(muster, scratch, hang, words):
    end = stubborn(muster, hang, workers=2)
    assert end.status == 1, end
    assert list(reports(scratch)) == [1]
    report = reports(scratch)[1]
    assert "it did not end in time when asked to" in report
    assert re.search(words, report), report
    assert "about to hang\n" in report
    assert re.search(r"evidence: process \d+ \(local_rank 1\) is .*; see .*/1/hang_evidence.txt", end.err), end
    assert "before that it was" in end.err


def test_what_a_worker_left_behind_is_looked_at_before_it_is_killed(muster, scratch):
    worker = muster.script("worker", """#!/bin/sh
(trap '' TERM; : >ready.1; while :; do sleep 0.05; done) &
setsid sh -c "trap '' TERM; : >ready.2; while :; do sleep 0.05; done" &
until [ -e ready.1 ] && [ -e ready.2 ]; do sleep 0.01; done
""")
    end = muster.run(
        ["run", "--standalone", "--log-dir", "logs", "--shutdown-timeout", 0.3, "--no-python", worker])
    assert end.status == 0, end
    assert "it did not end in time when asked to" in reports(scratch)[0]
    assert len(re.findall(r"evidence: process \d+ \(local_rank 0\) is .*/0/hang_evidence.txt", end.err)) == 1, end
    assert len(re.findall(r"evidence: process \d+ \(a worker's, left behind\) is ", end.err)) == 1, end


def test_a_worker_with_an_expired_timer_is_looked_at(muster, scratch):
    script = """
import socket, threading
for _ in range(9):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
print("port", listener.getsockname()[1], flush=True)
acquire("step", 0.2)
client.recv(1)
"""
    end = timers.start(muster, script, "--log-dir", "logs", "--tee", "3", workers=1).finish()
    port = re.search(r"port (\d+)", end.out).group(1)
    report = reports(scratch)[0]
    assert "its timers expired: 'step'" in report
    assert report.count("  thread ") == 10
    assert "sleeping in futex" in report
    assert f"-> 127.0.0.1:{port} ESTABLISHED" in report
    assert f"127.0.0.1:{port} LISTEN" in report
    assert f"\nport {port}\n" in report
    assert "killed by the watchdog: timer 'step' expired; before that it was sleeping in recvfrom" in end.err


def start_hanging(muster, workers, *options, **environment):
    """A job of workers that note their pids and hang, and these pids by rank."""
    worker = muster.script("worker", "#!/bin/sh\necho $$ >new.$RANK; mv new.$RANK pid.$RANK; exec sleep 1000\n")
    running = muster.start(
        ["run", "--standalone", "--nproc-per-node", workers, "--log-dir", "logs", *options, "--no-python", worker],
        env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1", "TORCHELASTIC_TIMER_FILE": "timers", **environment})
    paths = [muster.scratch / f"pid.{rank}" for rank in range(workers)]
    running.wait_until(lambda: all(path.exists() for path in paths), "all workers")
    pids = [int(path.read_text()) for path in paths]
    running.wait_until(lambda: all(command_of(pid) == "sleep" for pid in pids), "all to hang")
    return running, pids


def command_of(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()


@pytest.mark.threads
def test_all_workers_that_hang_together_are_looked_at_before_one_is_killed(muster, scratch):
    """More than there are threads that look."""
    running, pids = start_hanging(muster, 72)
    timers.expire_together(scratch / "timers", pids)
    end = running.finish()
    assert end.status == 1, end
    assert sorted(reports(scratch)) == list(range(72))
    for rank, pid in enumerate(pids):
        report = reports(scratch)[rank]
        assert f"=== process {pid} before it is ended" in report
        assert "thread " in report and "sleep 1000" in report and "open files" in report, report
        assert f"evidence: process {pid} (local_rank {rank}) is " in end.err
    assert end.err.rindex("evidence: process") < end.err.index("watchdog: ending process"), end
    assert end.err.count("watchdog: ending process") == 72, end


def test_an_agent_that_is_to_end_with_them_is_told_once(muster, scratch):
    running, pids = start_hanging(muster, 5, "--on-timer-expiry", "exit-agent", "--max-restarts", 3)
    timers.expire_together(scratch / "timers", pids)
    end = running.finish()
    assert end.status == 1, end
    assert end.err.count("--on-timer-expiry exit-agent: shutting down workers") == 1
    assert end.err.count("watchdog: ending process") == 5
    assert sorted(reports(scratch)) == list(range(5))


def test_another_workers_end_does_not_cut_a_look_short(muster, scratch):
    """The look lasts until the agent has seen that a worker failed, which is when it stops the others."""
    muster.script("gdb", "#!/bin/sh\n: >looking\nuntil grep -q 'exitcode: 3' run*.err; do sleep 0.01; done\n"
                  "sleep 0.2\necho the debugger has looked\n")
    script = """
if RANK == 1:
    while not os.path.exists("looking"):
        time.sleep(0.01)
    sys.exit(3)
acquire("step", 0.1)
time.sleep(60)
"""
    end = timers.start(
        muster, script, "--log-dir", "logs", "--evidence", "full", "--evidence-timeout", 30, "--max-restarts", 0,
        PATH=f"{scratch}:/usr/bin:/bin",
    ).finish()
    assert end.status == 1, end
    assert "\nthe debugger has looked\n" in reports(scratch)[0]
    assert end.err.index("exitcode: 3") < end.err.index("evidence: process") < end.err.index("closing signal"), end


def test_a_user_who_signals_twice_does_not_wait_for_a_look(muster, scratch):
    muster.script("gdb", "#!/bin/sh\n: >looking\nexec sleep 1000\n")
    running, pids = start_hanging(
        muster, 2, "--evidence", "full", "--evidence-timeout", 1000, PATH=f"{scratch}:/usr/bin:/bin")
    timers.expire_together(scratch / "timers", pids[:1])
    running.wait_until(lambda: (scratch / "looking").exists(), "the look")
    running.signal(15)
    running.wait_until(lambda: "Received SIGTERM" in running.err(), "the first signal")
    running.signal(2)
    assert running.finish().status == 1


def test_evidence_that_finds_no_place_says_why(muster, scratch):
    """Somebody has removed the log directory while the worker ran."""
    end = stubborn(muster, "rm -rf logs; while :; do sleep 0.05; done", workers=2)
    assert re.search(r"/1/hang_evidence.txt is not whole: No such file or directory", end.err), end


def test_without_evidence_there_is_none(muster, scratch):
    script = "acquire('step', 0.1)\ntime.sleep(60)"
    end = timers.start(muster, script, "--log-dir", "logs", "--evidence", "off", workers=1).finish()
    assert "killed by the watchdog: timer 'step' expired" in end.err, end
    assert "evidence" not in end.err
    assert reports(scratch) == {}


def test_without_logs_the_console_tells(muster, scratch):
    script = "acquire('step', 0.1)\ntime.sleep(60)"
    end = timers.start(muster, script, "--log-dir", "/dev/null", workers=1).finish()
    assert re.search(r"evidence: process \d+ \(local_rank 0\) is sleeping in clock_nanosleep", end.err), end
    assert "; see" not in end.err


def test_a_debugger_that_hangs_delays_a_kill_for_a_bounded_time(muster, scratch):
    muster.script("gdb", "#!/bin/sh\necho $$ >debugger\nexec sleep 1000\n")
    started = time.monotonic()
    end = timers.start(
        muster, "acquire('step', 0.1)\ntime.sleep(60)", "--log-dir", "logs", "--evidence", "full",
        "--evidence-timeout", 1, workers=1, PATH=f"{scratch}:/usr/bin:/bin",
    ).finish()
    assert "killed by the watchdog: timer 'step' expired" in end.err, end
    assert "is sleeping in clock_nanosleep" in end.err
    assert "; not everything was looked at within 1.0 s" in end.err
    assert "gdb of process" in reports(scratch)[0]
    assert time.monotonic() - started < 30, "it hung as long as the debugger would"
    assert (scratch / "debugger").exists()


def test_the_first_signal_of_a_user_waits_and_the_second_does_not(muster, scratch):
    script = muster.script("worker", "#!/bin/sh\ntrap '' TERM; : >ready.$RANK; while :; do sleep 0.02; done\n")
    running = muster.start(
        ["run", "--standalone", "--log-dir", "logs", "--shutdown-timeout", 100, "--no-python", script])
    running.wait_until(lambda: (scratch / "ready.0").exists(), "the worker")
    running.signal(15)
    running.wait_until(lambda: "closing signal SIGTERM" in running.err(), "the first signal's effect")
    running.signal(2)
    assert running.finish().status == 1
    assert reports(scratch) == {}

# SPDX-License-Identifier: BSD-3-Clause
"""Countdown timers of workers, through the real binary and a real FIFO. What torchrun gets wrong is in
test_defects_of_torchrun.py."""

import os
import re
import stat

import pytest

from support import timers


def fifos(scratch):
    return [path.name for path in scratch.iterdir() if stat.S_ISFIFO(path.lstat().st_mode)]


def test_the_report_says_which_timer_expired(muster, scratch):
    end = timers.start(muster, "acquire('my step', 0.1) if RANK == 1 else None\ntime.sleep(60)").finish()
    assert end.status == 1, end
    root = end.err.split("Root Cause")[1].split("Failures:")[0]
    assert "rank      : 1 (local_rank: 1)" in root
    assert "(SIGKILL)" in root
    assert "killed by the watchdog: timer 'my step' expired" in root


def test_the_signal_is_the_clients_choice(muster, scratch):
    script = "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5))\nacquire('s', 0.1, signal.SIGUSR1)\ntime.sleep(60)"
    end = timers.start(muster, script, workers=1).finish()
    assert "exitcode  : 5" in end.err, end
    assert "had been signalled by the watchdog: timer 's' expired" in end.err


def test_timers_released_in_time_or_for_nobody_to_kill_do_nothing(muster, scratch):
    script = """
acquire("released", 0.6)
release("released")
release("never held")
acquire("postponed", 0.6)
acquire("postponed", 60)
acquire("without a signal", 0.1, 0)
time.sleep(1)
"""
    end = timers.start(muster, script).finish()
    assert end.status == 0, end
    assert "'without a signal'" in end.err


def test_a_worker_that_ends_takes_its_timers_along(muster, scratch):
    script = """
acquire("mine", 60 if RANK == 1 else 1)
if RANK == 1:
    time.sleep(1.5)
    release("mine")
"""
    end = timers.start(muster, script).finish()
    assert end.status == 0, end


def test_a_fresh_path_is_made_and_removed(muster, scratch):
    script = """
acquire("s", 60)
os.write(1, (os.environ["TORCHELASTIC_TIMER_FILE"] + "\\n").encode())
release("s")
"""
    end = timers.start(muster, script, timer_file=None).finish()
    assert end.status == 0, end
    paths = set(end.out.split())
    assert len(paths) == 1, end
    assert re.fullmatch(rf"{scratch}/watchdog_timer_[0-9a-f-]{{36}}", paths.pop())
    assert fifos(scratch) == []


PURGES_TIMERS = """
import shutil
if ATTEMPT == 0:
    where = os.path.dirname(os.environ["TORCHELASTIC_TIMER_FILE"])
    shutil.rmtree(where)
    {spoil}
    os._exit(3)
"""


def test_timers_whose_fifo_is_removed_are_served_at_a_new_one(muster, scratch):
    """With the directory that it was in, and the list of timers beside it."""
    (scratch / "place").mkdir()
    script = PURGES_TIMERS.format(spoil="pass") + """
assert os.path.exists(os.environ["TORCHELASTIC_TIMER_FILE"] + ".list")
acquire("of the second attempt", 0.1)
time.sleep(60)
"""
    end = timers.start(muster, script, "--max-restarts", 1, workers=1, timer_file=scratch / "place" / "timers").finish()
    assert "place/timers was removed while the job ran; it is made anew" in end.err, end
    assert "timer 'of the second attempt' expired" in end.err, end
    assert not list((scratch / "place").iterdir())


def test_where_no_fifo_can_be_made_anew_workers_are_told_of_none(muster, scratch):
    (scratch / "place").mkdir()
    script = PURGES_TIMERS.format(spoil="open(where, 'w').close()") + """
assert os.environ["TORCHELASTIC_TIMER_FILE"] == ""
"""
    end = timers.start(muster, script, "--max-restarts", 1, workers=1, timer_file=scratch / "place" / "timers").finish()
    assert end.status == 0, end
    assert "these workers have no timers" in end.err and "is not a directory" in end.err, end


def test_an_old_fifo_is_replaced(muster, scratch):
    os.mkfifo(scratch / "timers")
    end = timers.start(muster, "acquire('s', 0.1)\ntime.sleep(60)").finish()
    assert "timer 's' expired" in end.err, end
    assert fifos(scratch) == []


def test_a_file_in_the_place_of_the_fifo_is_left_alone(muster, scratch):
    (scratch / "timers").write_text("precious")
    end = timers.start(muster, "note('started')").finish()
    assert end.status == 1
    assert "is there already and is no FIFO" in end.err
    assert (scratch / "timers").read_text() == "precious"
    assert not list(scratch.glob("started.*"))


def test_a_launcher_within_a_worker_leaves_the_outer_timers_alone(muster, scratch):
    (scratch / "inner.py").write_text(timers.PREAMBLE + "acquire('inner', 60)\nrelease('inner')")
    script = f"""
import subprocess
assert subprocess.run([{str(muster.binary)!r}, "run", "--standalone", "inner.py"]).returncode == 0
acquire("outer", 0.1)
time.sleep(60)
"""
    end = timers.start(muster, script, workers=1).finish()
    assert "timer 'outer' expired" in end.err, end
    assert fifos(scratch) == []


@pytest.mark.parametrize("value", ["0", "true", ""])
def test_timers_are_served_only_when_asked_for(muster, scratch, value):
    end = timers.start(
        muster, "assert not os.path.exists('timers')", TORCHELASTIC_ENABLE_FILE_TIMER=value
    ).finish()
    assert end.status == 0, end


def test_the_timers_of_an_attempt_end_with_it(muster, scratch):
    script = """
if ATTEMPT == 0:
    acquire("mine", 0.1 if RANK == 1 else 0.5)
    time.sleep(60)
time.sleep(0.8)
"""
    end = timers.start(muster, script, "--max-restarts", 1).finish()
    assert end.status == 0, end


def test_thousands_of_requests_are_taken(muster, scratch):
    script = """
def patiently(ask, *arguments):
    while True:
        try:
            return ask(*arguments)
        except BlockingIOError:
            time.sleep(0.001)

for i in range(5000):
    patiently(acquire, f"scope {i % 7}", 60)
    patiently(release, f"scope {i % 7}")
patiently(acquire, "last", 0.05)
time.sleep(60)
"""
    end = timers.start(muster, script, workers=1).finish()
    assert "timer 'last' expired" in end.err, end

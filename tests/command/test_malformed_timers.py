# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's file timer server makes of malformed input, row by row, and what ours does instead. In
each job the worker holds a timer, does its mischief, and is ended by that timer all the same."""

import pytest

from support import timers


def expect_the_deadline(muster, mischief, workers=1):
    script = f"""
PATH = os.environ["TORCHELASTIC_TIMER_FILE"]

def raw(data):
    fd = os.open(PATH, os.O_WRONLY)
    os.write(fd, data)
    return fd

{mischief}
time.sleep(60)
"""
    end = timers.start(muster, script, "--shutdown-timeout", 0.2, workers=workers).finish()
    assert end.status == 1, end
    assert "timer 'due' expired" in end.err, end
    return end


@pytest.mark.parametrize("bad", [b"{nonsense\n", b'{"version": 1, "pid": 1}\n', b"\n"])
def test_a_bad_line_in_a_burst_costs_no_other_request(muster, bad):
    mischief = f"""
raw(request("early", 0.05).encode() + request("due", 0.3).encode() + {bad!r}
    + request("early", None, 0).encode())
"""
    end = expect_the_deadline(muster, mischief)
    assert "early" not in end.err


def test_invalid_text_costs_no_request_before_or_after_it(muster):
    mischief = """
raw(request("early", 0.05).encode() + b"\\xff\\xc3\\n" + request("early", None, 0).encode()
    + request("due", 0.3).encode())
"""
    end = expect_the_deadline(muster, mischief)
    assert "early" not in end.err


def test_a_last_line_without_a_newline_is_taken(muster):
    expect_the_deadline(muster, "os.close(raw(request('due', 0.2).encode()[:-1]))")


def test_a_line_split_over_two_opens_is_joined(muster):
    mischief = """
line = request("due", 0.4).encode()
os.close(raw(line[:25]))
time.sleep(0.2)
os.close(raw(line[25:]))
"""
    expect_the_deadline(muster, mischief)


@pytest.mark.parametrize("start", [b"", b'{"version": 1, "pid": 1', b'{"version": 1}\n'])
def test_a_writer_that_keeps_the_fifo_open_delays_nobody(muster, start):
    expect_the_deadline(muster, f"kept = raw({start!r})\nacquire('due', 0.2)")


def test_a_time_that_is_no_number_is_no_timer(muster):
    mischief = """
raw(b'{"version": 1, "pid": %d, "scope_id": "odd", "expiration_time": NaN, "signal": 9}\\n' % os.getpid())
acquire("due", 0.2)
"""
    end = expect_the_deadline(muster, mischief)
    assert "expiration_time is missing or no number" in end.err


@pytest.mark.parametrize("word", ["Infinity", "-Infinity"])
def test_a_time_that_never_comes_releases(muster, word):
    mischief = f"""
acquire("early", 0.2)
raw(b'{{"version": 1, "pid": %d, "scope_id": "early", "expiration_time": {word}, "signal": 9}}\\n' % os.getpid())
acquire("due", 0.5)
"""
    end = expect_the_deadline(muster, mischief)
    assert "early" not in end.err


def test_a_time_that_is_text_costs_no_other_request(muster):
    mischief = """
raw(request("early", 0.05).encode()
    + b'{"version": 1, "pid": %d, "scope_id": "odd", "expiration_time": "1", "signal": 9}\\n' % os.getpid()
    + request("early", None, 0).encode() + request("due", 0.3).encode())
"""
    end = expect_the_deadline(muster, mischief)
    assert "early" not in end.err


def test_a_process_that_is_not_there_gets_no_timer(muster):
    mischief = """
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
acquire("gone", 0.05, pid=child)
acquire("due", 0.3)
"""
    end = expect_the_deadline(muster, mischief)
    assert "gone" not in end.err


@pytest.mark.parametrize("pid", ["0", "-1", "-os.getpgrp()", "1", "os.getppid()", "10**12"])
def test_nobody_can_have_another_process_ended(muster, pid):
    end = expect_the_deadline(muster, f"acquire('theirs', -1, pid={pid})\nacquire('due', 0.3)")
    if pid != "10**12":
        assert "belongs to no worker of this job" in end.err or "no positive integer" in end.err


@pytest.mark.parametrize("pid", ['"7"', "7.5", "null", "[]"])
def test_a_pid_that_is_no_integer_costs_nothing_else(muster, pid):
    mischief = f"""
raw(b'{{"version": 1, "pid": {pid}, "scope_id": "odd", "expiration_time": 1, "signal": 9}}\\n')
acquire("due", 0.2)
"""
    assert "its pid is missing or no positive integer" in expect_the_deadline(muster, mischief).err


def test_the_first_expired_timer_with_a_signal_decides(muster):
    mischief = """
signal.signal(signal.SIGUSR1, lambda *_: os._exit(5))
now = time.time()
raw(request("later", 0.3, signal.SIGKILL).encode() + request("silent", 0.1, 0).encode()
    + request("due", 0.2, signal.SIGUSR1).encode())
"""
    end = expect_the_deadline(muster, mischief)
    assert "exitcode  : 5" in end.err
    assert "later" not in end.err


def test_what_is_released_in_the_same_burst_never_expires(muster):
    mischief = """
raw(request("past", -5).encode() + request("past", None, 0).encode() + request("due", 0.3).encode())
"""
    end = expect_the_deadline(muster, mischief)
    assert "past" not in end.err


def test_a_line_longer_than_a_pipes_atomic_write_is_taken(muster):
    expect_the_deadline(muster, "os.write(os.open(PATH, os.O_WRONLY), request('due', 0.2).encode()"
                                ".replace(b'{', b'{\"pad\": \"' + b'x' * 9000 + b'\", ', 1))")


def test_lines_glued_together_are_all_taken(muster):
    mischief = """
raw(request("early", 0.05).strip().encode() + request("early", None, 0).strip().encode()
    + request("due", 0.3).encode())
"""
    end = expect_the_deadline(muster, mischief)
    assert "early" not in end.err


def test_a_descendant_with_a_session_of_its_own_may_hold_a_timer(muster):
    mischief = """
child = os.fork()
if child == 0:
    os.setsid()
    acquire("due", 0.2)
    time.sleep(60)
sys.exit(7 if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9 else 1)
"""
    script_end = timers.start(muster, mischief, workers=1).finish()
    assert "its timers expired: 'due'" in script_end.err, script_end
    assert "exitcode  : 7" in script_end.err


def test_the_agent_ends_with_its_worker_when_asked_to(muster, scratch):
    script = """
if RANK == 1:
    acquire("due", 0.1)
else:
    signal.signal(signal.SIGTERM, lambda *_: (note("asked"), sys.exit()))
time.sleep(60)
"""
    end = timers.start(muster, script, "--max-restarts", 3, "--on-timer-expiry", "exit-agent").finish()
    assert end.status == 1, end
    assert "--on-timer-expiry exit-agent: shutting down workers" in end.err
    assert list(scratch.glob("asked.*")) == [scratch / "asked.0.0"]

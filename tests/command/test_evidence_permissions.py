# SPDX-License-Identifier: BSD-3-Clause
"""What evidence says where the kernel keeps things to itself: of an agent that is not root, and of a worker that
may not be looked into, as under kernel.yama.ptrace_scope 2 or 3."""

import os
import re

import pytest

from support import timers

NOBODY = 65534
HANG = "acquire('step', 0.3)\ntime.sleep(1000)\n"
# The files of such a process in /proc are root's.
NOT_DUMPABLE = "import ctypes\nctypes.CDLL(None).prctl(4, 0)\n" + HANG


@pytest.fixture
def unprivileged(muster):
    """Who runs muster is not root: another user, if the tests are run by root."""
    if os.geteuid() != 0:
        return {}
    muster.share()
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def look(muster, script, *options, **popen):
    end = timers.start(
        muster, script, "--log-dir", "logs", "--evidence-timeout", 60, *options, workers=1, popen=popen
    ).finish()
    assert "killed by the watchdog: timer 'step' expired" in end.err, end
    return next(muster.scratch.glob("logs/*/attempt_0/0/hang_evidence.txt")).read_text(encoding="utf-8"), end.err


def test_an_agent_that_is_not_root_lacks_the_kernels_stacks_and_says_so(muster, unprivileged):
    report, console = look(muster, HANG, **unprivileged)
    assert re.search(r"thread \d+ \(.*\): sleeping in clock_nanosleep.* \[\d+ ", report), report
    assert "kernel stacks, which are root's, cannot be read: " in report
    assert "[<0>]" not in report
    assert report.count("cannot be read: Permission denied") + report.count("Operation not permitted") == 1, report
    assert "-> /dev/null" in report
    assert "is sleeping in clock_nanosleep" in console


def test_a_worker_that_may_not_be_looked_into_leaves_no_empty_report(muster, unprivileged):
    report, console = look(muster, NOT_DUMPABLE, **unprivileged)
    assert "State:\tS (sleeping)" in report
    assert "command of process " in report
    for what in ("system calls", "kernel stacks, which are root's,", "memory, with Python's stacks,", "they"):
        assert re.search(rf"^  {what} cannot be read: (Permission denied|Operation not permitted) \(the agent may not "
                         r"look into this process: .*kernel.yama.ptrace_scope forbids it\)$", report, re.MULTILINE), report
    assert re.search(r"evidence: process \d+ \(local_rank 0\) is sleeping; see ", console) or \
        re.search(r"evidence: process \d+ \(local_rank 0\) is sleeping \(\w+\); see ", console), console

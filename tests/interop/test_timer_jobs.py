# SPDX-License-Identifier: BSD-3-Clause
"""Jobs whose workers hold scopes of PyTorch's own timer client, watched through `muster timer list`."""

import collections
import json
import re
import shutil
import signal
import time

import pytest

from support.binary import ROOT


class TimedJob:
    def __init__(self, muster, peer, story, *options, workers=1):
        self.muster, self.scratch = muster, muster.scratch
        shutil.copy(ROOT / "tests/interop/scripts/held_timers.py", self.scratch)
        self.agent = muster.start(
            ["run", "--standalone", "--nproc-per-node", workers, *options, self.scratch / "held_timers.py", story],
            env={"PYTHON_EXEC": peer.python, "OMP_NUM_THREADS": 1, "TORCHELASTIC_ENABLE_FILE_TIMER": "1",
                 "TORCHELASTIC_TIMER_FILE": self.scratch / "timers"},
        )

    def held(self):
        """The timers the agent holds now; none before it serves any."""
        end = self.muster.run(["timer", "list", "--json", "--file", self.scratch / "timers"])
        return [json.loads(line) for line in end.out.splitlines()] if end.status == 0 else None

    def wait_for_notes(self, pattern, count=1):
        """Until so many workers have noted it."""
        self.agent.wait_until(lambda: len(list(self.scratch.glob(pattern))) == count, pattern, timeout=60)

    def wait_until_held(self, count):
        self.agent.wait_until(lambda: len(self.held() or []) == count, f"{count} timers", timeout=60)
        return self.held()

    def wait_until_none_is_held(self):
        self.agent.wait_until(lambda: self.held() == [], "no timer", timeout=60)

    def say(self, name):
        (self.scratch / name).touch()

    def finish(self):
        """Its end, after which nothing of the timers is left."""
        end = self.agent.finish()
        assert list(self.scratch.glob("timers*")) == []
        return end


@pytest.mark.timeout(120)
def test_nested_scopes_expire_each_for_itself(muster, peer):
    job = TimedJob(muster, peer, "nested", "--max-restarts", 2)
    job.wait_for_notes("left_inner.0.2")
    job.agent.wait_until(lambda: len(job.held()) == 1, "the outer timer alone")
    # Those of the processes that were killed have gone with them.
    assert [held["scope_id"] for held in job.held()] == ["outer"]
    job.say("leave")
    end = job.finish()
    assert end.status == 0, end
    assert re.findall(r"its timers expired: (.*)", end.err) == ["'inner'", "'outer'"], end
    assert not (job.scratch / "left_inner.0.0").exists()
    assert (job.scratch / "left_inner.0.1").exists()
    assert "rank 0 done in attempt 2" in end.out


@pytest.mark.timeout(120)
def test_a_release_that_waits_while_its_deadline_passes_is_in_time(muster, peer):
    """The agent sleeps through both: it learns of the release only when the deadline has passed."""
    job = TimedJob(muster, peer, "just_in_time")
    (held,) = job.wait_until_held(1)
    job.agent.signal(signal.SIGSTOP)
    job.say("leave")
    job.wait_for_notes("left.0.0")
    assert time.time() < held["expiration_time"], "this machine was too slow for the test"
    job.agent.wait_until(lambda: time.time() > held["expiration_time"] + 0.1, "the deadline")
    job.agent.signal(signal.SIGCONT)
    job.wait_until_none_is_held()
    job.say("end")
    end = job.finish()
    assert end.status == 0, end
    assert "expired" not in end.err
    assert "rank 0 done in attempt 0" in end.out


@pytest.mark.timeout(120)
def test_eight_workers_hold_a_hundred_scopes_each(muster, peer):
    job = TimedJob(muster, peer, "many", workers=8)
    job.wait_for_notes("holds.*", 8)
    held = job.wait_until_held(800)
    scopes = collections.defaultdict(set)
    for one in held:
        scopes[one["pid"]].add(one["scope_id"])
    assert len(scopes) == 8
    assert all(names == {f"scope {number}" for number in range(100)} for names in scopes.values())
    job.say("leave")
    job.wait_for_notes("left.*", 8)
    job.wait_until_none_is_held()
    job.say("end")
    end = job.finish()
    assert end.status == 0, end
    assert "expired" not in end.err
    assert end.out.count("done in attempt 0") == 8

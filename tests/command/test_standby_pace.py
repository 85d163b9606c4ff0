# SPDX-License-Identifier: BSD-3-Clause
"""How a standby worker makes way for the workers beside which it imports."""

import contextlib
import importlib
import os
import subprocess
import sys
import time

import pytest

from support.gatekeeper import HOOK
from support.standby_jobs import Job
from support.standby_programs import keeper, library, write  # noqa: F401 (fixtures)

MILLISECOND = 10**6


@pytest.fixture
def pace_module(monkeypatch):
    monkeypatch.syspath_prepend(str(HOOK))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield importlib.import_module("muster_standby.pace")
    for name in [name for name in sys.modules if name.partition(".")[0] == "muster_standby"]:
        del sys.modules[name]


@pytest.fixture
def paced(pace_module):
    """Makes a Pace and a function that lets it work and wait for some milliseconds, and returns for how long it rests."""

    def make(rest):
        clock, naps = [0, 0], []

        class Pace(pace_module.Pace):
            def look(self):
                return list(clock)

        pace = Pace(rest)
        pace.sleep = naps.append

        def work(worked, waited):
            clock[0] += worked * MILLISECOND
            clock[1] += waited * MILLISECOND
            naps.clear()
            pace.step()
            return sum(naps)

        return pace, work

    return make


def test_who_has_to_wait_for_a_cpu_rests_in_proportion_to_its_work(paced):
    _, work = paced(24)
    assert work(20, 3) == pytest.approx(24 * 0.02)
    assert work(500, 100) == pytest.approx(24 * 0.5), "what cannot be split is paid for at its end"


def test_who_finds_a_free_cpu_does_not_rest(paced):
    _, work = paced(24)
    assert [work(20, 0), work(20, 2), work(1000, 90)] == [0, 0, 0]


def test_short_pieces_of_work_are_one_burst(paced):
    _, work = paced(24)
    assert [work(5, 3) for _ in range(3)] == [0, 0, 0]
    assert work(5, 0) == pytest.approx(24 * 0.02)
    assert work(20, 0) == 0, "what was waited before the rest is forgotten"


def test_without_a_factor_nobody_rests(paced):
    _, work = paced(0)
    assert work(500, 500) == 0


def test_where_the_kernel_does_not_tell_nobody_rests(pace_module, monkeypatch):
    def refuse(*_):
        raise OSError

    monkeypatch.setattr(os, "open", refuse)
    pace = pace_module.Pace(24)
    pace.sleep = pytest.fail
    pace.step()


def test_a_pace_closes_its_file(pace_module):
    before = os.listdir("/proc/self/fd")
    pace = pace_module.Pace(24)
    pace.step()
    assert os.listdir("/proc/self/fd") == before


SPIN = """
    import time
    end = time.process_time() + 0.03
    while time.process_time() < end:
        pass
"""


@contextlib.contextmanager
def busy_cpu():
    """A CPU that another process wants without a pause, and that this process and its new children share with it."""
    usual = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(usual)})
    spinner = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"], start_new_session=True)
    try:
        yield
    finally:
        os.sched_setaffinity(0, usual)
        spinner.kill()
        spinner.wait()


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="this kernel does not tell who waits for a CPU")
def test_a_standby_worker_beside_a_process_that_wants_its_cpu_rests(keeper, scratch, library):
    names = [f"spinning_{number}" for number in range(5)]
    write(library, {f"{name}.py": SPIN for name in names})
    write(scratch, {"script.py": "print('ran')\n"})
    learned = {name: str(library / f"{name}.py") for name in names}
    with busy_cpu():
        spare = keeper.spare(["script.py"], rest=20, PYTHONPATH=library)
        started = time.monotonic()
        assert spare.warm(learned)[:2] == (5, 0)
        # The last of them has no import after it. Nobody sleeps for less than he has asked for.
        assert time.monotonic() - started > 4 * 20 * 0.03
    spare.open_gate(keeper.streams())
    outcome = spare.finish()
    assert (outcome.status, outcome.out) == (0, b"ran\n"), outcome.err


@pytest.mark.parametrize("options, rest", [((), b"rest=10"), (("--standby-rest", "0.5"), b"rest=0.5")], ids=["usual", "given"])
def test_a_standby_worker_knows_for_how_long_to_rest(muster, scratch, options, rest):
    job = Job(muster, scratch, *options, workers=1)
    job.attempt(0)
    job.wait_until_ready()
    with open(f"/proc/{job.spares()[0]}/environ", "rb") as file:
        told = dict(entry.partition(b"=")[::2] for entry in file.read().split(b"\0"))
    assert rest in told[b"MUSTER_STANDBY"].split(b";")
    assert job.end(0).status == 0

# SPDX-License-Identifier: BSD-3-Clause
"""What every engine of a register has to do with a server: the conformance suite (tests/conformance), and the cases in which the
server is away, stands still, forgets, refuses or is full. Each engine's file of tests has a class of these cases."""

import os
import pathlib
import re
import subprocess
import threading

import pytest

from support.binary import ROOT

CONFORMANCE = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build")) / "tests/register_conformance"
RACE = "each_number_has_one_winner_though_replies_are_lost"
READ = "reader_sees_a_chain_that_only_grows"
WATCH = "a_watch_tells_of_the_entry_after_the_one_known"
FIRST_READ = "first_read_says_why_it_fails"
FIRST_APPEND = "first_append_says_why_it_fails"


class Suite:
    """The conformance suite at one place of an engine; `conf` are settings of --rdzv-conf."""

    def __init__(self, engine, place, conf=()):
        if not CONFORMANCE.exists():
            obstacle = f"{CONFORMANCE} was not built (Debian: apt install libcmocka-dev)"
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(obstacle)
        self.engine, self.place, self.conf = engine, place, conf

    def begin(self, pattern="*", conf=None):
        command = [CONFORMANCE, self.engine, self.place, pattern, *(self.conf if conf is None else conf)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self, running):
        output, _ = running.communicate(timeout=800)
        assert running.returncode == 0, output
        return output

    def conform(self, pattern="*", conf=None):
        return self.finish(self.begin(pattern, conf))

    def refusal(self, conf=None, pattern=FIRST_READ):
        """What the first request is answered with; it stays so."""
        output = self.conform(pattern, conf)
        assert re.search("^final: ", output, re.M), output
        return output


class RegisterCases:
    """`served`, a fixture of the class below, has a `suite`, and what befalls its server: stop and start, stand_still and go_on,
    forget (what it keeps of changes), forbid_writes and fill, which return what is to be said then."""

    def test_it_keeps_a_register(self, served):
        served.suite.conform()

    def test_it_may_be_away_during_a_race(self, served):
        """One race has begun before, another begins meanwhile."""
        races = [served.suite.begin(RACE)]
        served.stop()
        races.append(served.suite.begin(RACE))
        served.start()
        for race in races:
            served.suite.finish(race)

    def test_it_is_asked_again_when_it_stands_still(self, served):
        served.stand_still()
        reading = served.suite.begin(READ)
        waker = threading.Timer(2, served.go_on)
        waker.start()
        served.suite.finish(reading)
        waker.join()

    def test_a_watch_outlives_what_it_keeps_of_changes(self, served):
        watch = served.suite.begin(WATCH)
        has_forgotten = False
        while watch.poll() is None:
            has_forgotten = served.forget() or has_forgotten
        served.suite.finish(watch)
        assert has_forgotten

    @pytest.mark.parametrize("mishap", ["forbid_writes", "fill"])
    def test_a_write_that_it_refuses_is_told(self, served, mishap):
        words = getattr(served, mishap)()
        told = served.suite.refusal(pattern=FIRST_APPEND)
        assert all(word in told for word in words), told

    def test_where_nobody_is_the_place_is_named(self, served):
        served.stop()
        told = served.suite.conform(FIRST_READ)
        assert served.name in told and "final" not in told, told
        served.start()

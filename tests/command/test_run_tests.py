# SPDX-License-Identifier: BSD-3-Clause
"""How `tools/run_tests.py` counts, and what it says of tests that were skipped."""

import xml.etree.ElementTree

import pytest

from support.binary import load_tool


@pytest.fixture(scope="module")
def run_tests():
    return load_tool("run_tests")


REPORT = """
<testsuite tests="9" failures="1" errors="1" skipped="5">
  <testcase name="a"><skipped message="no peer here">/x/peers.py:39: no peer here</skipped></testcase>
  <testcase name="b"><skipped message="no peer here">/x/peers.py:39: no peer here</skipped></testcase>
  <testcase name="c"><skipped message="no disk"/></testcase>
  <testcase name="d"><skipped message="no peer here"/></testcase>
  <testcase name="e"><skipped/></testcase>
</testsuite>
"""
CMOCKA = """
[ RUN      ] one
skipped: no pidfds
[  SKIPPED ] one
[  PASSED  ] 3 test(s).
[  SKIPPED ] 2 test(s), listed below:
"""


def test_skipped_tests_are_one_line_for_each_reason(run_tests):
    counts = run_tests.counts_of_suite(xml.etree.ElementTree.fromstring(REPORT))
    assert str(counts) == "2 passed, 2 failed, 5 skipped"
    counts += run_tests.count_of_program({"stdout": CMOCKA, "result": "OK"})
    counts += run_tests.count_of_program({"result": "SKIP"})
    assert str(counts) == "5 passed, 2 failed, 8 skipped"
    assert counts.skips() == [
        "skipped:   3: no peer here",
        "skipped:   3: no reason given",
        "skipped:   1: no disk",
        "skipped:   1: no pidfds",
    ]


def test_where_nothing_is_skipped_nothing_is_said_of_it(run_tests):
    counts = run_tests.count_of_program({"stdout": "[  PASSED  ] 7 test(s).", "result": "OK"})
    assert (str(counts), counts.skips()) == ("7 passed, 0 failed, 0 skipped", [])


@pytest.mark.parametrize("stage", ["interop", "interop:core"])
def test_skipped_interop_tests_fail_where_the_peers_must_be(run_tests, monkeypatch, stage):
    made = lambda *_, **__: run_tests.Counts(3, 1, 2, ["no peer", "no peer"])  # noqa: E731
    monkeypatch.setattr(run_tests, "run_pytest", made)
    monkeypatch.setattr(run_tests, "run_core", made)
    for is_ci, expected in (("true", "3 passed, 3 failed, 0 skipped"), ("false", "3 passed, 1 failed, 2 skipped")):
        monkeypatch.setenv("CI", is_ci)
        counts = run_tests.run_stage(stage, None)
        assert str(counts) == expected and counts.skips() == ["skipped:   2: no peer"]
    monkeypatch.setenv("CI", "true")
    assert run_tests.run_stage("command", None).skipped == 2


FAILURES = """
<testsuite tests="4" failures="3" errors="1" skipped="0">
  <testcase classname="tests.command.test_a" name="test_good"/>
  <testcase classname="tests.command.test_a" name="test_race[x::y]"><failure>assert 1 == 2</failure><error>left</error></testcase>
  <testcase classname="tests.command.test_a" name="test_broken"><failure>assert False</failure></testcase>
  <testcase classname="tests.command.test_b" name="test_tool"><failure>ERROR: AddressSanitizer: bad</failure></testcase>
</testsuite>
"""


def test_a_failure_that_does_not_repeat_alone_is_named_and_no_other_is_forgiven(run_tests):
    suite = xml.etree.ElementTree.fromstring(FAILURES)
    counts, failures = run_tests.counts_of_suite(suite), run_tests.failures_of_suite(suite)
    assert str(counts) == "0 passed, 4 failed, 0 skipped"
    played = []
    counts.play_again(failures, lambda test: played.append(test) or "broken" not in test)
    assert played == ["tests/command/test_a.py::test_race[x::y]", "tests/command/test_a.py::test_broken"]
    assert str(counts) == "2 passed, 2 failed, 0 skipped"
    assert counts.failed_once() == [
        "unsteady:  tests/command/test_a.py::test_race[x::y]: failed beside others, passed alone"
    ]


def test_failures_are_named_but_for_the_last_of_many(run_tests):
    suite = xml.etree.ElementTree.fromstring(FAILURES)
    counts = run_tests.counts_of_suite(suite)
    counts.play_again(run_tests.failures_of_suite(suite), lambda test: "race" in test)
    assert counts.failed_for_good() == [
        "failed:    tests/command/test_a.py::test_broken", "failed:    tests/command/test_b.py::test_tool"
    ]
    many = run_tests.Counts()
    many.play_again({str(number): (1, "") for number in range(run_tests.NAMED_MAXIMUM + 2)}, lambda test: True)
    assert len(many.failed_for_good()) == run_tests.NAMED_MAXIMUM + 1
    assert many.failed_for_good()[-1] == "failed:    and 2 more"


INNER = """
<testsuite tests="1" failures="0" errors="0" skipped="0">
  <testcase classname="tests.packaging.test_a" name="test_good">
    <properties><property name="unsteady" value="tests/command/test_b.py::test_race (elsewhere)"/></properties>
  </testcase>
</testsuite>
"""


def test_what_was_unsteady_among_tests_that_a_test_has_played_is_named(run_tests):
    found = run_tests.unsteady_of_suite(xml.etree.ElementTree.fromstring(INNER))
    assert found == ["tests/command/test_b.py::test_race (elsewhere)"]


def test_many_failures_are_not_played_again(run_tests):
    counts = run_tests.Counts(failed=run_tests.PLAYED_AGAIN_MAXIMUM + 1)
    counts.play_again({str(number): (1, "") for number in range(counts.failed)}, lambda test: True)
    assert (counts.failed, counts.failed_once()) == (run_tests.PLAYED_AGAIN_MAXIMUM + 1, [])

# SPDX-License-Identifier: BSD-3-Clause
"""How `tools/run_tests.py` counts, and what it says of tests that were skipped."""

import importlib.util
import xml.etree.ElementTree

import pytest

from support.binary import ROOT


@pytest.fixture(scope="module")
def run_tests():
    spec = importlib.util.spec_from_file_location("run_tests", ROOT / "tools/run_tests.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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

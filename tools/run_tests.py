#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the test stages, prints what each counted and why tests were skipped, one line for each reason, and
ends with `N passed, N failed, N skipped`.

    tools/run_tests.py [--build DIRECTORY] [--only STAGE,STAGE] [--wrapper COMMAND] [--marks EXPRESSION] [--part K/N]

A stage is a meson run (unit, simulation, fuzz corpora, source checks; `meson:SUITE+SUITE` runs only
those suites), the unit tests of whole floors (`floors:FLOOR+FLOOR`, each in one process), a pytest run (`interop:core` runs only
what tools/ci_parts.py names of it) or a check program. --wrapper is put before every meson test and every floor (valgrind), --marks chooses among the pytest tests,
and --part takes the K-th (from 0) of N parts of them, of about the same size.

Tests of real processes are played beside each other, on machines that may be slow. Where a few of a stage fail,
each is played once more, alone. One that passes then counts as passed, and is named as unsteady at the end, for
somebody to look into. What a sanitizer or valgrind has found is never played again. The tests that have failed are
named at the end, too.
"""

import argparse
import collections
import importlib.util
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
CMOCKA_COUNT = re.compile(r"^\[  (PASSED|FAILED|SKIPPED)\s*\] (\d+) test\(s\)", re.MULTILINE)
CMOCKA_REASON = re.compile(r"^skipped: (.+)$", re.MULTILINE)  # as tests/unit.h says it
MESON_PASSED = {"OK", "EXPECTEDFAIL"}
NO_REASON = "no reason given"
PLAYED_AGAIN_MAXIMUM = 5  # more failures than these have a cause in common
NAMED_MAXIMUM = 20
FOUND_BY_A_TOOL = re.compile(r"Sanitizer|runtime error: |^==\d+==", re.MULTILINE)


class Counts:
    def __init__(self, passed=0, failed=0, skipped=0, reasons=()):
        """`reasons` holds one reason for each skipped test."""
        self.passed, self.failed, self.skipped = passed, failed, skipped
        self.reasons = collections.Counter(reasons)
        self.reasons[NO_REASON] += max(skipped - self.reasons.total(), 0)
        self.reasons = +self.reasons  # drop reasons with a count of 0
        self.unsteady = []
        self.broken = []  # names

    def __iadd__(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.reasons += other.reasons
        self.unsteady += other.unsteady
        self.broken += other.broken
        return self

    def play_again(self, failures, passes_alone=None):
        """Plays the failed tests alone, if they may be. `failures` maps the name of each to (how many failures it
        counted, what it printed)."""
        for name, (failed, output) in failures.items():
            is_common = len(failures) > PLAYED_AGAIN_MAXIMUM or FOUND_BY_A_TOOL.search(output)
            if passes_alone is not None and not is_common and passes_alone(name):
                self.failed -= failed
                self.passed += failed
                self.unsteady.append(name)
            else:
                self.broken.append(name)

    def refuse_skips(self):
        """What was skipped has failed. The reasons stay."""
        self.failed, self.skipped = self.failed + self.skipped, 0

    def skips(self):
        """A line for each reason, the most frequent first."""
        return [f"{'skipped:':10} {count}: {reason}" for reason, count in self.reasons.most_common()]

    def failed_once(self):
        """A line for each test that failed beside others and passed alone."""
        return [f"{'unsteady:':10} {name}: failed beside others, passed alone" for name in self.unsteady]

    def failed_for_good(self):
        """A line for each test that has failed and has a name, but for the last of many."""
        more = len(self.broken) - NAMED_MAXIMUM
        named = self.broken[:NAMED_MAXIMUM] + ([f"and {more} more"] if more > 0 else [])
        return [f"{'failed:':10} {name}" for name in named]

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def output_of_program(entry):
    return (entry.get("stdout") or "") + (entry.get("stderr") or "")


def count_of_program(entry):
    """One meson test: cmocka programs say how many tests they hold, others count as one."""
    output = output_of_program(entry)
    said = collections.Counter()
    for word, number in CMOCKA_COUNT.findall(output):  # once for each file
        said[word] += int(number)
    result = entry["result"]
    reasons = CMOCKA_REASON.findall(output)
    if result == "SKIP":
        return Counts(skipped=1)
    skipped = said.get("SKIPPED", 0)
    if result in MESON_PASSED:
        return Counts(max(said.get("PASSED", 1), 1), 0, skipped, reasons)
    return Counts(said.get("PASSED", 0), max(said.get("FAILED", 1), 1), skipped, reasons)


def run_meson(options, suites=()):
    """Runs meson's tests of the given suites (all when empty)."""
    build = options.build
    logs = pathlib.Path(build) / "meson-logs"  # the log's name depends on the wrapper
    for old in logs.glob("testlog*.json"):
        old.unlink()
    command = ["meson", "test", "-C", str(build), "--print-errorlogs", "--quiet"]
    for suite in suites:
        command += ["--suite", suite]
    if options.wrapper:
        command += ["--wrapper", options.wrapper, "--timeout-multiplier", "10"]
    status = subprocess.run(command, cwd=ROOT).returncode
    counts, failures = Counts(), {}
    for log in logs.glob("testlog*.json"):
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            entry = json.loads(line)
            count = count_of_program(entry)
            counts += count
            if count.failed:
                failures[entry["name"].split(" / ")[-1]] = (count.failed, output_of_program(entry))
    if status != 0 and counts.failed == 0:
        counts += Counts(failed=1)
    else:
        alone = ["meson", "test", "-C", str(build), "--quiet"]
        counts.play_again(failures, None if options.wrapper else lambda name: passes([*alone, name]))
    return counts


def run_floors(options, floors):
    """Plays all unit tests of a floor in one process: for floors whose tests leave nothing behind, and what takes
    long to begin (valgrind)."""
    counts = Counts()
    for floor in floors:
        command = [*shlex.split(options.wrapper or ""), f"{options.build}/tests/{floor}_tests"]
        played = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        result = "OK" if played.returncode == 0 else "FAIL"
        counts += count_of_program({"stdout": played.stdout, "stderr": played.stderr, "result": result})
        if played.returncode != 0:
            print(played.stdout[-20000:] + played.stderr, flush=True)
            counts.broken.append(f"{floor}_tests")
    return counts


def passes(command, environment=None):
    print(f"== again, alone: {command[-1]}", flush=True)
    return subprocess.run(command, cwd=ROOT, env=environment).returncode == 0


def beside_each_other(more):
    """pytest's options to run several tests at once, because most tests mainly wait. `more`: so many beside those, while
    the machine has room (tests/support/room.py)."""
    if importlib.util.find_spec("xdist") is None:
        return []
    return ["-n", str(os.cpu_count() + 1 + more)]


def counts_of_suite(suite):
    """The counts of one <testsuite> in pytest's report."""
    total, skipped = int(suite.get("tests")), int(suite.get("skipped"))
    failed = int(suite.get("failures")) + int(suite.get("errors"))
    reasons = [skip.get("message") or NO_REASON for skip in suite.iter("skipped")]
    return Counts(max(total - failed - skipped, 0), failed, skipped, reasons)


def unsteady_of_suite(suite):
    """What tests that play tests have recorded of those: which failed beside others and passed alone."""
    return [found.get("value") for found in suite.iter("property") if found.get("name") == "unsteady"]


def failures_of_suite(suite):
    """The tests of one <testsuite> that failed, as Counts.play_again takes them."""
    failures = {}
    for case in suite.iter("testcase"):
        said = [*case.iter("failure"), *case.iter("error")]
        if said and case.get("classname"):
            name = case.get("classname").replace(".", "/") + ".py::" + case.get("name")
            failures[name] = (len(said), "\n".join(text.text or "" for text in said))
    return failures


def run_pytest(options, folder, tests=()):
    """Runs one folder of pytest tests, or those of its tests that are named, against the binary of the given build."""
    more = PYTEST[folder].get("more", 0)
    environment = dict(os.environ, MUSTER_BUILD=str(pathlib.Path(options.build).resolve()), MORE_TESTS=str(more))
    if options.part:
        environment["PART_OF_TESTS"] = options.part
    pytest = [sys.executable, "-m", "pytest", "-q", "-rfE", "--durations=12", "--durations-min=20"]
    with tempfile.TemporaryDirectory(prefix="muster-tests-") as scratch:
        report = pathlib.Path(scratch) / "report.xml"
        command = [*pytest, f"--junitxml={report}", *(tests or [f"tests/{folder}"])]
        command += beside_each_other(more) if PYTEST[folder].get("is_parallel", True) else []
        if options.marks:
            command += ["-m", options.marks]
        status = subprocess.run(command, cwd=ROOT, env=environment).returncode
        counts, failures = Counts(), {}
        if report.exists():
            for suite in xml.etree.ElementTree.parse(report).iter("testsuite"):
                counts += counts_of_suite(suite)
                counts.unsteady += unsteady_of_suite(suite)
                failures |= failures_of_suite(suite)
    if status not in (0, 5) and counts.failed == 0:
        counts += Counts(failed=1)
    else:
        counts.play_again(failures, lambda test: passes([*pytest, test], environment))
    return counts


def run_sizes(options):
    """With the numbers of the house, its arrows and its circles."""
    counts = Counts()
    for program in ("check_sizes.py", "check_budget.py", "check_floors.py"):
        counts += run_check(sys.executable, f"tools/{program}")
    return counts


def run_check(*command):
    passed = subprocess.run(command, cwd=ROOT).returncode == 0
    return Counts(int(passed), int(not passed))


def run_core(options, folder):
    """Of a folder of pytest tests what is always played."""
    from ci_parts import tests_in

    tests = tests_in(folder)
    print("\n".join(tests), flush=True)
    return run_pytest(options, folder, tests=tests) if tests else Counts()


# How the folders of pytest tests are played.
PYTEST = {
    "command": {"more": 5},
    "interop": {"more": 4},
    "gpu": {"is_parallel": False},  # there is one, and some fill its memory
    "packaging": {"is_parallel": False},
}
STAGES = {
    "meson": run_meson,
    "checks": lambda options: run_meson(options, ["checks"]),
    "format": lambda options: run_check("tools/check_format"),
    "sizes": run_sizes,
}


def run_stage(stage, options):
    if stage.startswith("meson:"):
        return run_meson(options, stage.removeprefix("meson:").split("+"))
    if stage.startswith("floors:"):
        return run_floors(options, stage.removeprefix("floors:").split("+"))
    folder = stage.removesuffix(":core")
    if folder not in PYTEST:
        return STAGES[stage](options)
    counts = run_core(options, folder) if folder != stage else run_pytest(options, folder)
    # continuous integration has installed the peers
    if folder == "interop" and os.environ.get("CI") == "true":
        counts.refuse_skips()
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", default="meson,command,interop", metavar="STAGE,STAGE")
    parser.add_argument("--wrapper", metavar="COMMAND")
    parser.add_argument("--marks", metavar="EXPRESSION")
    parser.add_argument("--part", metavar="K/N")
    options = parser.parse_args()
    total, lines = Counts(), []
    for stage in options.only.split(","):
        print(f"== {stage} ({options.build})", flush=True)
        counts = run_stage(stage, options)
        lines.append(f"{stage + ':':10} {counts}")
        total += counts
    print("\n" + "\n".join(lines + total.skips() + total.failed_once() + total.failed_for_good()))
    print(total, flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""The storms of `make soak`: a short one, and that what must hold is really asked (tests/soak)."""

import json
import subprocess
import sys

import pytest

from support.binary import ROOT

sys.path.append(str(ROOT / "tests" / "soak"))

from invariants import SECOND, Note, check_end, check_flatness, check_ranks, check_worlds, read_notes  # noqa: E402


def note(node, rank, start, end, store="a:1", restart=0, size=2):
    return Note(node, 100 + rank, rank, size, restart, store, int(start * SECOND), int(end * SECOND))


FIRST = [note("one", 0, 1, 5), note("two", 1, 1, 5)]


def test_a_sound_job_violates_nothing():
    again = [note("one", 0, 5.1, 9, "a:2"), note("two", 1, 5.1, 9, "a:2")]
    assert check_ranks(FIRST + again) == []
    assert check_worlds(FIRST + again, 0) == []


@pytest.mark.parametrize(
    "worker, words",
    [
        (note("three", 1, 4, 6), "two workers with rank 1 at once"),
        (note("three", 2, 4, 6), "rank 2 in a world of 2"),
    ],
)
def test_a_wrong_rank_is_found(worker, words):
    (found,) = check_ranks([*FIRST, worker])
    assert words in found


@pytest.mark.parametrize("store, restart, size", [("a:2", 0, 2), ("a:1", 1, 2), ("a:1", 0, 1)])
def test_two_worlds_at_once_are_found(store, restart, size):
    both = [*FIRST, note("three", 0, 2, 6, store, restart, size)]
    assert check_worlds(both, 3.5) == []
    (found,) = check_worlds(both, 2.5)
    assert "two worlds at once for 3.00 s" in found


def test_two_worlds_on_one_node_are_found_at_once():
    (found,) = check_worlds([*FIRST, note("one", 0, 4.9, 6, "a:2")], 3)
    assert "one ran workers of two worlds at once for 0.10 s" in found


@pytest.mark.parametrize(
    "status, said, words",
    [
        (None, "", "did not end in time"),
        (-6, "x", "ended with -6"),
        (1, " ", "without a word"),
        (1, "Assertion `x' failed", "said"),
    ],
)
def test_a_wrong_end_is_found(status, said, words):
    assert words in check_end("one", status, {0, 1}, said)[0]
    assert check_end("one", 1, {0, 1}, "the reason") == []


def test_growth_is_found():
    samples = [(1000, 20)] * 200
    assert check_flatness("one", samples) == []
    assert "from 1000 to 3000 KiB" in check_flatness("one", samples[:150] + [(3000, 20)] * 50)[0]
    assert "from 20 to 30 descriptors" in check_flatness("one", samples[:150] + [(1000, 30)] * 50)[0]


@pytest.mark.plain_build  # an agent's memory has a limit there
def test_a_storm_plays_and_sees_what_its_workers_did(binary, scratch):
    words = [sys.executable, ROOT / "tests/soak/run", "--one", "817", "--kinds", "loopback", "--scratch", scratch]
    storm = subprocess.run([*words, "--seconds", "3"], capture_output=True, text=True, timeout=100)
    result = json.loads(storm.stdout.splitlines()[-1])
    assert (storm.returncode, result["violations"]) == (0, []), storm.stdout
    notes = read_notes(scratch / "notes")
    assert len(notes) == result["workers"] >= result["worlds"] > 0
    assert sum(result["faults"].values()) > 0
    assert any(note.end - note.start > SECOND for note in notes)

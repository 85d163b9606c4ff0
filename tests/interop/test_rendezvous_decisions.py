# SPDX-License-Identifier: BSD-3-Clause
"""Muster's decisions in a rendezvous next to those of PyTorch's own code, turn by turn."""

import collections
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from support.binary import ROOT

HISTORIES = 600
CONTEXT = 12  # lines of a history shown before the turn on which both differ
ACTIONS = {
    "KEEP_ALIVE", "ADD_TO_PARTICIPANTS", "ADD_TO_WAIT_LIST", "ADD_TO_REDUNDANCY_LIST", "REMOVE_FROM_PARTICIPANTS",
    "REMOVE_FROM_WAIT_LIST", "REMOVE_FROM_REDUNDANCY_LIST", "MARK_RENDEZVOUS_COMPLETE", "MARK_RENDEZVOUS_CLOSED",
    "SYNC", "ERROR_CLOSED", "ERROR_TIMEOUT", "FINISH", "GRACEFUL_EXIT",
}


def play_with_pytorch(peer, scratch, seed, kind):
    """Lines of histories; a turn ends in " => " and what PyTorch's node did."""
    script = shutil.copy(ROOT / "tests/interop/scripts/play_rendezvous.py", scratch)
    end = subprocess.run(
        [peer.python, script, str(seed), str(HISTORIES), kind], cwd=scratch, capture_output=True, text=True, timeout=100
    )
    assert end.returncode == 0, end.stderr
    return end.stdout.splitlines()


def play_with_muster(lines):
    """What Muster's node does in each turn of the same histories."""
    build = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
    history = "".join(line.split(" => ")[0] + "\n" for line in lines)
    end = subprocess.run(
        [build.resolve() / "tests/probes/rendezvous_probe"], input=history, capture_output=True, text=True, timeout=100
    )
    assert end.returncode == 0, end.stderr
    return end.stdout.splitlines()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed, kind", [(1, "torchrun"), (2, "muster")])
def test_every_turn_of_every_history_goes_as_in_pytorch(peer, scratch, seed, kind):
    lines = play_with_pytorch(peer, scratch, seed, kind)
    answers = iter(play_with_muster(lines))
    seen = collections.Counter()
    for number, line in enumerate(lines):
        if line.startswith("turn "):
            expected = line.split(" => ")[1]
            before = "\n".join(lines[max(0, number - CONTEXT) : number + 1])
            assert next(answers) == expected, f"in line {number + 1}:\n{before}"
            seen.update(re.match(r"(\w+) (expelled)=[0-9]* (\w+)", expected).groups())
            seen["expulsion"] += "expelled=0" not in expected
    assert next(answers, None) is None
    # histories in which nothing happens compare nothing
    assert seen["expelled"] > 10000, "turns"
    for what in ACTIONS | {"read", "cached", "won", "lost", "expulsion"}:
        assert seen[what] >= 20, f"{what} was seen {seen[what]} times"

# SPDX-License-Identifier: BSD-3-Clause
"""The examples that docs/library.md names for each class of TorchElastic: those in Python are run here, and those in C are built with
the tests, which run them (test_library.py, tests/interop/test_timer_client.py)."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from support.binary import ROOT
from support.own_library import BUILD, LIBRARY, environment

pytestmark = pytest.mark.plain_build

EXAMPLES = ROOT / "examples/python"


def rows():
    """(class, Python, examples) of each row of the table."""
    text = (ROOT / "docs/library.md").read_text(encoding="utf-8")
    table = re.search(r"^\| class of TorchElastic .*\n\|[-| ]+\n((?:\|.*\n)+)", text, re.MULTILINE)[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_each_class_has_an_example_that_is_built_or_run():
    used = set()
    for row in rows():
        assert len(row) == 5 and re.findall(r"`examples/[\w/]+\.(?:c|py)`", row[4]), row
        used |= set(re.findall(r"`(examples/[\w/]+\.(?:c|py))`", row[4]))
    for example in used:
        assert (ROOT / example).exists(), example
        assert example.endswith(".py") or (BUILD / "examples" / pathlib.Path(example).stem).exists() or "directory_backend" in example
    assert {pathlib.Path(example).name for example in used if example.endswith(".py")} == set(SAID) == {
        path.name for path in EXAMPLES.glob("*.py")}


def run(name, *words, program=(sys.executable,)):
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built (-Dlibrary=false)")
    return subprocess.Popen([*program, EXAMPLES / name, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **environment(), "PYTHON_EXEC": sys.executable, "PYTHONDONTWRITEBYTECODE": "1"})


def said(process):
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


SAID = {
    "launch_function.py": "started\nstarted\n{0: 0, 1: 21}\nstarted\nstarted\nValueError: there are no lines\n",
    "careful_agent.py": "starting ranks [0, 1] of node 0\nchecking the GPUs before restart 1\nstarting ranks [0, 1] of node 0\n"
                        "SUCCEEDED after 1 restart\n",
    "two_processes.py": "2 processes\n{0: 'hello, Ada', 1: 'hi, Alan'}\n",
    "own_timers.py": "told\n",
    "rendezvous_events.py": "RUNNING The node 'HOST_PID_",
    "own_handler.py": ["SUCCEEDED rank 0 of 2\n", "SUCCEEDED rank 1 of 2\n"],
    "exchange.py": "0: 6 and 14\n1: 6 and 14\n2: 6 and 14\n",
}  # fmt: skip


@pytest.mark.parametrize("name", ["launch_function.py", "careful_agent.py", "two_processes.py", "own_timers.py"])
def test_a_program_says_what_it_is_to_say(scratch, name):
    assert said(run(name, scratch)) == SAID[name]
    if name == "launch_function.py":
        assert (scratch / "rank1.txt").read_text().splitlines()[0] == "I got -1 lines"


def test_a_node_tells_its_steps(scratch):
    out = said(run("rendezvous_events.py", scratch / "store"))
    assert out.startswith(SAID["rendezvous_events.py"]) and "has joined round 0" in out and out.endswith("rank 0 of 1\n"), out


def test_nodes_meet_by_a_handler_of_their_own(scratch):
    nodes = [run("own_handler.py", scratch, node, 2) for node in range(2)]
    assert [said(node) for node in nodes] == SAID["own_handler.py"]


def test_workers_exchange_values(binary, scratch):
    job = run("exchange.py", program=(binary, "run", "--standalone", "--nproc-per-node", "3"))
    assert "".join(sorted(said(job).splitlines(keepends=True))) == SAID["exchange.py"]

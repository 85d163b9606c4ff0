# SPDX-License-Identifier: BSD-3-Clause
"""Every form a command line can take: torchrun's own parser says what it makes of each, and muster runs it.

Mistakes in a value, which torchrun reports as a traceback with exit status 1, end here with usage and
exit status 2; so what is compared is accepted against refused, and the command a worker is given."""

import json
import subprocess

import pytest

import chosen_differences
from support.binary import ROOT

SCRIPT = "script.py"  # exists in the scratch directory, where everything runs
CASES = [
    # spellings
    (["--nproc-per-node", "2", SCRIPT], {}),
    (["--nproc_per_node", "2", SCRIPT], {}),
    (["--nproc-per-node=2", SCRIPT], {}),
    (["--nproc_per-node", "2", SCRIPT], {}),
    (["--nproc-per", "2", SCRIPT], {}),
    (["--nproc", "2", SCRIPT], {}),
    (["--stand", SCRIPT], {}),
    (["--standalone=1", SCRIPT], {}),
    (["--nn", "1", SCRIPT], {}),
    (["--max-r", "1", SCRIPT], {}),
    (["--m", "1", SCRIPT], {}),
    (["--unknown", SCRIPT], {}),
    (["-x", SCRIPT], {}),
    # short options
    (["-r3", SCRIPT], {}),
    (["-r", "3", SCRIPT], {}),
    (["-r=3", SCRIPT], {}),
    (["-t", "0:1,1:2", SCRIPT], {}),
    (["-t", "10:1", SCRIPT], {}),
    (["-t", "4", SCRIPT], {}),
    (["-mt3", "module"], {}),
    (["-m", "module", "-m"], {}),
    (["-r"], {}),
    # the script and what follows it
    ([], {}),
    ([SCRIPT], {}),
    ([SCRIPT, "--nproc-per-node", "2", "-x", "a b", ""], {}),
    ([SCRIPT, "--", "a"], {}),
    ([SCRIPT, "a", "--", "b", "--", "c"], {}),
    (["--", SCRIPT, "a"], {}),
    (["--", SCRIPT, "--", "a"], {}),
    (["--nproc-per-node", "1", "--", SCRIPT, "--", "a", "--"], {}),
    ([SCRIPT, "${local_rank}", "$local_rank", "$$", "${rank}", "$", "${local_rank", "x${local_rank}y"], {}),
    ([SCRIPT, "--lr=-1", "-1", "-0.5"], {}),
    # numbers
    (["--nproc-per-node", "0", SCRIPT], {}),
    (["--nproc-per-node", "-1", SCRIPT], {}),
    (["--nproc-per-node=-1", SCRIPT], {}),
    (["--nproc-per-node", " 2 ", SCRIPT], {}),
    (["--nproc-per-node", "+2", SCRIPT], {}),
    (["--nproc-per-node", "0_2", SCRIPT], {}),
    (["--nproc-per-node", "two", SCRIPT], {}),
    (["--nproc-per-node", "2.0", SCRIPT], {}),
    (["--nproc-per-node", "", SCRIPT], {}),
    (["--nproc-per-node", "cpu", SCRIPT], {}),
    (["--nproc-per-node", "auto", SCRIPT], {}),
    (["--nproc-per-node", "CPU", SCRIPT], {}),
    (["--max-restarts", "3", SCRIPT], {}),
    (["--max-restarts", "-1", SCRIPT], {}),
    (["--max-restarts=-1", SCRIPT], {}),
    (["--max-restarts", "1e3", SCRIPT], {}),
    (["--max-restarts", "x", SCRIPT], {}),
    (["--monitor-interval", "5", SCRIPT], {}),
    (["--monitor-interval", "0.01", SCRIPT], {}),
    (["--monitor-interval", "0", SCRIPT], {}),
    (["--monitor-interval", "x", SCRIPT], {}),
    (["--shutdown-timeout", "3", SCRIPT], {}),
    (["--shutdown-timeout", "-3", SCRIPT], {}),
    (["--shutdown-timeout=-3", SCRIPT], {}),
    # nodes
    (["--nnodes", "1", SCRIPT], {}),
    (["--nnodes", "1:1", SCRIPT], {}),
    (["--nnodes", " 1 : 1 ", SCRIPT], {}),
    (["--nnodes", "0", SCRIPT], {}),
    (["--nnodes", "2:1", SCRIPT], {}),
    (["--nnodes", "1:1:1", SCRIPT], {}),
    (["--nnodes", "one", SCRIPT], {}),
    (["--node-rank", "0", SCRIPT], {}),
    (["--node-rank", "x", SCRIPT], {}),
    # choices
    (["--start-method", "fork", SCRIPT], {}),
    (["--start-method", "thread", SCRIPT], {}),
    (["--numa-binding", "cores", SCRIPT], {}),
    (["--print-completion", "fish", SCRIPT], {}),
    # rendezvous configuration
    (["--rdzv-conf", "timeout=30", SCRIPT], {}),
    (["--rdzv-conf", " timeout = 30 , x = y=z ", SCRIPT], {}),
    (["--rdzv-conf", "timeout", SCRIPT], {}),
    (["--rdzv-conf", "timeout=", SCRIPT], {}),
    (["--rdzv-conf", "=30", SCRIPT], {}),
    (["--rdzv-conf", "timeout=30,", SCRIPT], {}),
    (["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:29421", "--rdzv-id", "a/b c", SCRIPT], {}),
    (["--rdzv-backend", "c10d", "--rdzv-conf", "join_timeout=60,is_host=true,read_timeout=5", SCRIPT],
     {"PET_RDZV_ENDPOINT": "localhost:29422"}),
    (["--rdzv-conf", "store_type=file", "--rdzv-endpoint", "file", SCRIPT], {"PET_RDZV_BACKEND": "c10d"}),
    # lists
    (["--local-ranks-filter", "0, 1", SCRIPT], {}),
    (["--local-ranks-filter", "0,,1", SCRIPT], {}),
    (["--local-ranks-filter", "zero", SCRIPT], {}),
    (["--duplicate-stdout-filters", "a,,b,c", SCRIPT], {}),
    # kinds of entry
    (["-m", "module", "a"], {}),
    (["--module", "module", "a"], {}),
    (["--no-python", "./show", "a", "${local_rank}"], {}),
    (["--no_python", "./show"], {}),
    (["--no-python", "-m", "./show"], {}),
    (["--run-path", "--no-python", "-m", SCRIPT], {}),
    # defaults from the environment
    ([SCRIPT], {"PET_NPROC_PER_NODE": "2"}),
    (["--nproc-per-node", "1", SCRIPT], {"PET_NPROC_PER_NODE": "2"}),
    ([SCRIPT], {"PET_MAX_RESTARTS": "x"}),
    ([SCRIPT], {"PET_MAX_RESTARTS": ""}),
    ([SCRIPT], {"PET_STANDALONE": "1"}),
    ([SCRIPT], {"PET_STANDALONE": "0"}),
    ([SCRIPT], {"PET_STANDALONE": "yes"}),
    (["./show"], {"PET_NO_PYTHON": "1"}),
    (["module"], {"PET_MODULE": "1"}),
    ([SCRIPT], {"PET_START_METHOD": "zz"}),
    ([SCRIPT], {"PET_RDZV_CONF": "x"}),
    ([SCRIPT], {"PET_NNODES": "0"}),
]

# Stands in for the interpreter (and for a program): keeps the words it was called with. It is asked for devices, too, and knows none.
SHOW = """#!/bin/sh
[ -n "$RANK" ] || { echo "muster-devices $([ "$3" = auto ] && echo 0 || echo '!it knows no device')"; exit; }
for word in "$@"; do printf '%s\\n' "$word"; done >"words.$RANK"
"""


def label(case):
    arguments, variables = case
    return " ".join([*(f"{name}={value}" for name, value in variables.items()), *arguments]) or "nothing"


@pytest.fixture(scope="module")
def torchruns_answers(peer):
    """What torchrun makes of every case, asked of one process."""
    parser = ROOT / "tests/interop/scripts/parse_with_torchrun.py"
    end = subprocess.run(
        [peer.python, "-c", parser.read_text()], input=json.dumps(CASES), capture_output=True, text=True, cwd="/tmp"
    )
    answers = [json.loads(line) for line in end.stdout.splitlines()]
    assert len(answers) == len(CASES), end.stderr
    return {label(case): answer for case, answer in zip(CASES, answers)}


def muster_answer(muster, scratch, case):
    arguments, variables = case
    show = muster.script("show", SHOW)
    (scratch / SCRIPT).touch()
    end = muster.run(["run", *arguments], env={**variables, "PYTHON_EXEC": show})
    workers = sorted(scratch.glob("words.*"))
    if end.status != 0:
        assert not workers, "a refused command line started workers"
        return {"outcome": {2: "usage"}.get(end.status, "error")}, end
    words = (scratch / "words.0").read_text().splitlines() if workers else []
    return {"outcome": "accepted", "words": words, "workers": len(workers)}, end


@pytest.mark.parametrize("case", CASES, ids=label)
def test_a_command_line_means_what_it_means_to_torchrun(muster, scratch, torchruns_answers, case):
    theirs = torchruns_answers[label(case)]
    ours, end = muster_answer(muster, scratch, case)
    if label(case) in chosen_differences.ARGUMENTS:
        _, their_outcome, our_outcome = chosen_differences.ARGUMENTS[label(case)]
        assert (theirs["outcome"], ours["outcome"]) == (their_outcome, our_outcome), end
        return
    if theirs["outcome"] != "accepted":
        assert ours["outcome"] == "usage", f"torchrun: {theirs['outcome']}\n{end}"
        assert "error:" in end.err
        return
    assert ours["outcome"] == "accepted", end
    if "command" in theirs and "--run-path" not in case[0]:
        assert ours["words"] == theirs["command"][1:], end
        assert ours["workers"] == theirs["workers"], end

# SPDX-License-Identifier: BSD-3-Clause
"""Muster's option parser next to Python's argparse, and its completion script in a real shell."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import option_oracle, option_vectors
from support.answering import Answering, start_probe
from support.binary import ROOT
from support.peers import require_peer

STORED = ROOT / "tests/command/data/option_vectors.json"
NOT_VALUES = {"help", "version", "print_completion"}


@pytest.fixture(scope="module")
def parser():
    """Muster's parser."""
    probe = start_probe("option_probe")
    yield probe
    probe.end()


@pytest.fixture(scope="module")
def oracle():
    """argparse as of Python 3.14: this interpreter's own, else that of the installed PyTorch."""
    python = sys.executable if option_oracle.MATCHES_MUSTER else require_peer().python
    process = Answering([python, "-c", (ROOT / "tests/support/option_oracle.py").read_text()])
    yield process
    process.end()


def comparable(answer):
    """What both sides can agree on: every value, the whole text of a mistake, that something is printed."""
    if answer["outcome"] == "values":
        return {name: value for name, value in answer["values"].items() if name not in NOT_VALUES}
    return answer["text"] if answer["outcome"] == "mistake" else "printed"


def test_stored_command_lines_mean_what_argparse_said(parser):
    vectors = list(option_vectors.read_vectors(STORED))
    assert len(vectors) > 700
    for request, answer in vectors:
        assert comparable(parser.ask(request)) == comparable(answer), request


def test_stored_command_lines_are_those_the_generator_draws():
    assert [request for request, _ in option_vectors.read_vectors(STORED)] == list(option_vectors.requests())


WORDS = st.one_of(
    st.sampled_from(option_vectors.NAMES),
    st.sampled_from(option_vectors.VALUES),
    st.sampled_from(option_vectors.OTHERS),
    st.builds(lambda name, length: name[:length], st.sampled_from(option_vectors.NAMES), st.integers(1, 12)),
    st.builds("{}={}".format, st.sampled_from(option_vectors.NAMES), st.sampled_from(option_vectors.VALUES)),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=6).map("-{}".format),
    st.text(st.sampled_from("mrthx3=-"), max_size=5).map("-{}".format),
)


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(arguments=st.lists(WORDS, max_size=8))
def test_any_command_line_means_what_argparse_says(parser, oracle, arguments):
    request = {"arguments": arguments}
    assert comparable(parser.ask(request)) == comparable(oracle.ask(request))


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    arities=st.lists(st.sampled_from(["one", "optional", "any", "some", "remainder"]), max_size=4),
    arguments=st.lists(st.sampled_from(["a", "b", "--", "-v", "--size", "-s1", "-1", "--nope"]), max_size=7),
)
def test_any_positionals_take_what_argparse_gives_them(parser, oracle, arities, arguments):
    request = {"arities": arities, "arguments": arguments}
    assert comparable(parser.ask(request)) == comparable(oracle.ask(request))


@pytest.mark.parametrize("columns", ["10", "30", "50", "80", "120", "300"])
def test_the_help_page_is_laid_out_as_argparse_would(parser, oracle, columns):
    table = parser.ask({"ask": "describe"})
    shown = parser.ask({"arguments": ["--help"], "environment": {"COLUMNS": columns}})
    assert shown["text"] == oracle.ask({"table": table, "columns": columns})["text"]


def completions(parser, words):
    """What bash offers when the last of these words is being typed."""
    script = parser.ask({"arguments": ["--print-completion", "bash"]})["text"]
    typed = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _torchrun_completion; printf "%s\\n" "${COMPREPLY[@]}"'
    command = ["bash", "-c", f"{script}\n{typed}", "bash", "torchrun", *words]
    end = subprocess.run(command, capture_output=True, text=True, check=True)
    assert end.stderr == ""
    return end.stdout.split()


@pytest.mark.parametrize(
    "words, offered",
    [
        (["--start"], ["--start-method", "--start_method"]),
        (["--start-method", ""], ["spawn", "fork", "forkserver"]),
        (["--start-method", "fork"], ["fork", "forkserver"]),
        (["--start-method", "=", "sp"], ["spawn"]),
        (["--start-method", "="], ["spawn", "fork", "forkserver"]),
        (["--nnodes", "=", "1", "--standa"], ["--standalone"]),
        (["-r", "3", "-m", "--no-py"], ["--no-python"]),
        (["--nnodes", "--stand"], []),  # the value of --nnodes
        (["train.py", "--stand"], []),  # the script's own options
        (["--standalone", ""], []),  # bash falls back on files
    ],
)
def test_bash_completes_names_and_choices(parser, words, offered):
    assert completions(parser, words) == offered

# SPDX-License-Identifier: BSD-3-Clause
"""The completion script for bash, asked as a shell asks it."""

import shutil

import pytest

from support.binary import ROOT

ASK = """\
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_muster
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(muster, binary):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is missing")

    def ask(*words):
        result = muster.run(["-c", ASK, "bash", ROOT / "completions/muster.bash", binary, *words], program=bash)
        assert result.status == 0 and result.err == "", result
        return result.out.split()

    return ask


@pytest.mark.parametrize("words, expected", [
    (["ru"], ["run"]),
    (["run", "--max-re"], ["--max-restarts"]),
    (["run", "--standby", "o"], ["off", "on"]),
    (["store", "comp"], ["compare-set"]),
    (["store", "ser"], ["serve"]),
    (["store", "watch", "--ch"], ["--changes"]),
    (["timer", ""], ["serve", "run", "list"]),
    (["timer", "run", "--sc"], ["--scope"]),
    (["nonsense", ""], []),
])
def test_words_that_may_follow(complete, words, expected):
    assert complete(*words) == expected

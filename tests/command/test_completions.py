# SPDX-License-Identifier: BSD-3-Clause
"""The completion script for bash, asked as a shell asks it."""

import re
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


def options_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z](?![\w-])", text))


def commands_of(muster, *family):
    """The commands that a usage text names, each at the beginning of a line."""
    usage = muster.run([*family, "--help"]).out
    return set(re.findall(rf"^(?:usage:)? *{' '.join(['muster', *family])} ([a-z-]+)", usage, re.MULTILINE))


def test_every_command_is_completed(complete, muster):
    commands = commands_of(muster)
    assert commands > {"run", "store", "rendezvous", "timer"}
    assert commands - set(complete("")) == set()


def test_every_option_of_a_run_is_completed(complete, muster):
    shown = options_in(muster.run(["run", "--help"]).out)
    assert len(shown) > 40
    assert set(complete("run", "--")) >= shown


@pytest.mark.parametrize("family, least", [("store", 3), ("timer", 3), ("rendezvous", 1)])
def test_every_command_and_option_of_a_family_is_completed(complete, muster, family, least):
    commands = commands_of(muster, family)
    assert len(commands) >= least
    assert set(complete(family, "")) == commands
    for command in commands:
        assert set(complete(family, command, "--")) == options_in(muster.run([family, command, "--help"]).out), command


def test_the_link_torchrun_is_completed_by_what_it_prints(muster, binary, scratch):
    (scratch / "torchrun").symlink_to(binary)
    ask = ASK.replace("_muster", "_torchrun; echo $?; _torchrun_completion")
    words = [ROOT / "completions/torchrun.bash", scratch / "torchrun", "--max-re"]
    result = muster.run(["-c", ask, "bash", *words], program=shutil.which("bash"))
    assert (result.out.split(), result.err) == (["124", "--max-restarts"], ""), result  # 124: ask again


@pytest.mark.parametrize("name, words, expected", [
    ("muster", "muster ru", ["run"]),
    ("muster", "muster run --max-re", ["--max-restarts"]),
    ("muster", "muster store watch --ch", ["--changes"]),
    ("torchrun", "torchrun --max-re", ["--max-restarts"]),
])
def test_words_that_may_follow_in_fish(muster, binary, scratch, name, words, expected):
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("fish is missing")
    for link in ("muster", "torchrun"):
        (scratch / link).symlink_to(binary)
    result = muster.run(["-c", f"source {ROOT}/completions/{name}.fish; complete -C '{words}'"], program=fish,
                        env={"PATH": f"{scratch}:/usr/bin:/bin", "HOME": str(scratch)})
    assert result.out.split() == expected, result


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_what_is_printed_for_a_shell_has_every_option_of_a_run(muster, shell):
    printed = muster.run(["run", "--print-completion", shell]).out
    words = set(re.findall(r"[a-z][a-z-]*[a-z]", printed))  # tcsh has them without their dashes
    assert {option.lstrip("-") for option in options_in(muster.run(["run", "--help"]).out)} - words == set()

# SPDX-License-Identifier: BSD-3-Clause
"""What `.ci/run` plays of which commit, and what it says at its end (tools/ci_parts.py, tests/core_of_parts)."""

import re
import shutil
import subprocess

import pytest

from support.binary import ROOT, load_tool


@pytest.fixture(scope="module")
def parts():
    return load_tool("ci_parts")


LIST = """
# a note
[core]
tests/command/test_first.py
tests/command/test_second.py::test_alone
tests/interop/test_other.py   # why
[rooms]
store: store token
"""
THERE = [f"tests/command/test_{name}.py" for name in ("first", "second", "store_serve", "job_token", "round", "logs")]


def test_each_part_has_its_turn_by_the_hash(parts):
    assert [parts.part_of(commit) for commit in ("0000000", "0000001", "0000002ff", "0000003", "0000004")] == list("abcda")
    assert parts.part_of("") == "a"  # sources without git


def test_the_core_is_the_list_and_what_the_changed_rooms_name(parts):
    core = lambda *names: parts.core_tests("command", names, LIST, THERE)  # noqa: E731
    listed = ["tests/command/test_first.py", "tests/command/test_second.py::test_alone"]
    assert core() == core("docs/standby.md") == listed
    assert core("src/core/store/store_table.c") == sorted([*listed, "tests/command/test_store_serve.py", "tests/command/test_job_token.py"])
    assert core("src/wire/round/round_key.h") == sorted([*listed, "tests/command/test_round.py"])  # by its own name
    assert core("tests/command/test_logs.py") == sorted([*listed, "tests/command/test_logs.py"])
    assert core("tests/command/test_second.py") == ["tests/command/test_first.py", "tests/command/test_second.py"]


def test_where_much_changes_each_commit_plays_others(parts):
    there = [f"tests/command/test_store_{number}.py" for number in range(100)]
    chosen = [parts.core_tests("command", ["src/host/store/store_server.c"], LIST, there, commit) for commit in ("a", "b")]
    assert [len(tests) for tests in chosen] == [parts.FILES_OF_ROOMS["command"]] * 2 and chosen[0] != chosen[1]
    # but a file of tests that changed, and is played nowhere else, is played
    names = [f"tests/interop/test_{number}.py" for number in range(100)]
    assert parts.core_tests("interop", names, LIST, names, "a") == sorted(names)


def test_floors_are_those_with_changed_sources_or_unit_tests(parts):
    assert parts.floors_of(["src/core/node/x.c", "tests/host/log/y_test.c", "docs/x.md", "src/wire/meson.build"]) == {"core", "host"}


def test_the_list_names_what_there_is(parts):
    core, words = parts.read_list(parts.LIST.read_text(encoding="utf-8"))
    assert core and [name for name in core if not (ROOT / name.partition("::")[0]).is_file()] == []
    files = [path.stem for folder in ("command", "interop") for path in (ROOT / "tests" / folder).glob("test_*.py")]
    rooms = {path.name for path in (ROOT / "src").glob("*/*") if path.is_dir()} | {path.name for path in (ROOT / "src").iterdir()}
    assert [room for room in words if room not in rooms] == []
    assert [word for room in words for word in words[room] if not any(word in file for file in files)] == []


def test_a_clone_without_history_plays_the_list(parts, scratch, monkeypatch):
    run = lambda *words: subprocess.run(["git", *words], cwd=scratch, check=True, capture_output=True)  # noqa: E731
    monkeypatch.setattr(parts, "ROOT", scratch)
    monkeypatch.delenv("CI_BASE", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(scratch.parent))
    assert parts.changed_files() == []  # no git at all
    run("init", "-q")
    commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"]
    (scratch / "one").write_text("")
    run("add", "one")
    run(*commit)
    assert parts.changed_files() == []
    (scratch / "two").write_text("")
    run("add", "two")
    run(*commit)
    assert parts.changed_files() == ["two"]
    monkeypatch.setenv("CI_BASE", "no such commit")
    assert parts.changed_files() == ["two"]
    monkeypatch.setenv("CI_BASE", "HEAD~1")
    assert parts.changed_files() == ["two"]


def test_what_was_played_is_said_with_the_turns_before(parts):
    said = parts.what_was_played("b", [("1234567", "a"), ("89abcde", "d")])
    assert said.startswith("part played whole: b (sanitizer of threads, valgrind); of a, c, d the core. ")
    assert "Turns of the commits before: 1234567 a, 89abcde d; not among them: c" in said
    assert parts.what_was_played("abcd", []).endswith("Turns of the commits before: unknown here")


# In the place of all that takes long.
STUB = '#!/bin/sh\necho "$(basename "$0") $*" >>said\ncase "$*" in *FAILS*) exit 1 ;; esac\necho "2 passed, 0 failed, 1 skipped"\n'


@pytest.fixture
def ci(scratch):
    """A directory with .ci/run in which each step is over at once: ci("--part", "b") gives its end and what was called."""
    for name in (".ci/run", "tools/ci_parts.py", "tests/core_of_parts"):
        (scratch / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, scratch / name)
    for name in ("build", "check_install", "install-dependencies", "fault_sweep", "fuzz"):
        (scratch / "tools" / name).write_text(STUB)
        (scratch / "tools" / name).chmod(0o755)
    (scratch / "tools/run_tests.py").write_text(
        'import sys\nopen("said", "a").write("run_tests.py " + " ".join(sys.argv[1:]) + "\\n")\nprint("2 passed, 0 failed, 1 skipped")\n'
    )
    (scratch / "Makefile").write_text('peers:\n\t@true\ntest:\n\t@echo make test $(STAGES) >>said\n\t@$(RESULT)\n')

    def run(*words, result="true"):
        (scratch / "said").write_text("")
        end = subprocess.run([scratch / ".ci/run", *words], capture_output=True, text=True, cwd="/", env={
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "GIT_CEILING_DIRECTORIES": str(scratch.parent), "RESULT": result})  # fmt: skip
        return end, (scratch / "said").read_text()

    return run


@pytest.mark.parametrize("letter, whole", [("a", "build-asan --only meson,command --marks"), ("b", "meson:host+agent+threads,command"),
                                           ("c", "fuzz build-fuzz"), ("d", "make test meson,command,interop\n")])
def test_a_part_is_played_whole_when_it_is_its_turn_and_the_core_of_the_others(ci, letter, whole):
    end, said = ci("--part", letter)
    assert end.returncode == 0, end.stderr
    assert whole in said
    for other, core in {"a": "build-asan --marks not plain_build --only command:core", "b": "build-tsan --marks threads and not plain_build --only command:core",
                        "c": "--only packaging:core",
                        "d": "make test meson,command,interop:core\n"}.items():  # fmt: skip
        assert (core in said) == (other != letter), said
    everything, said_of_all = ci("--all")
    assert everything.returncode == 0 and whole in said_of_all and ":core" not in said_of_all


def test_it_ends_with_the_minutes_of_each_step_the_part_and_the_counts(ci):
    end, _ = ci("--part", "c")
    lines = end.stdout.splitlines()
    table = lines[lines.index("==== minutes of each step") + 1 : -2]
    assert len(table) > 8 and all(re.fullmatch(r" +\d+\.\d  \S.*", line) for line in table) and table[-1].endswith("in all")
    assert lines[-2].startswith("part played whole: c (what is given to users, fuzzers); of a, b, d the core.")
    assert re.fullmatch(r"\d+ passed, 0 failed, \d+ skipped", lines[-1])


def test_a_step_that_fails_is_named_and_the_others_are_played(ci):
    end, said = ci("--part", "a", result="false")
    assert end.returncode == 1 and re.fullmatch(r"\d+ passed, 1 failed, \d+ skipped", end.stdout.splitlines()[-1])
    assert re.search(r"^ +\d+\.\d  test \(FAILED\)$", end.stdout, re.MULTILINE) and "build-tsan" in said


def test_a_part_that_there_is_not_is_refused(ci):
    for words in (["--part", "x"], ["--part", ""], ["all"]):
        end, said = ci(*words)
        assert (end.returncode, said) != (0, "") and end.returncode != 0 and said == "" and end.stderr

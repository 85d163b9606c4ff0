#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which of the heavy parts of continuous integration (.ci/run) is a commit's, and what is played of the others.

    tools/ci_parts.py part                  the letter of HEAD's part
    tools/ci_parts.py said PLAYED           what a person is told of it: PLAYED is the letters of the parts that were played whole
    tools/ci_parts.py rooms                 the rooms of src that changed, one a line
    tools/ci_parts.py floors FLOOR...       those of the floors named in which something changed, joined by "+"
    tools/ci_parts.py tests FOLDER          the core of tests/FOLDER, and the tests of what changed, one a line

A commit's hash says which part is its turn, so that each is played sooner or later. The core is always played: the list in
tests/core_of_parts, and the tests that the changed rooms name. What changed is the difference to CI_BASE where the environment names
such a commit, or to origin's main branch, or to the last commit that is a day older than HEAD. A clone without history changes nothing.
"""

import collections
import fnmatch
import os
import pathlib
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "tests/core_of_parts"
PARTS = {
    "a": "sanitizers of addresses and undefined behaviour",
    "b": "sanitizer of threads, valgrind",
    "c": "what is given to users, fuzzers",
    "d": "PyTorch, faults",
}
DAY = 24 * 60 * 60  # seconds
COMMITS_SAID = 8
# At most so many files beside the list's; other commits play others. All of tests/command is played without sanitizers anyway. A file
# of another folder that changed itself is always played.
FILES_OF_ROOMS = {"command": 10, "interop": 4, "packaging": 2}


def git(*words):
    """What git says, or nothing where it says nothing."""
    try:
        said = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""


def part_of(commit):
    """The letter of a commit's part. Where there is no commit it is the first."""
    return list(PARTS)[int(commit[:7] or "0", 16) % len(PARTS)]


def base():
    """The commit before what is tested, or nothing."""
    head = git("rev-parse", "HEAD")
    named = os.environ.get("CI_BASE")
    candidates = [git("rev-parse", "--verify", "--quiet", named + "^{commit}")] if named else []
    candidates += [git("merge-base", "HEAD", name) for name in ("origin/HEAD", "origin/main")]
    if time := git("log", "-1", "--format=%ct"):
        candidates.append(git("log", "-1", "--first-parent", f"--before={int(time) - DAY}", "--format=%H"))
        candidates.append(git("rev-list", "--first-parent", "HEAD").split()[-1])
    return next((commit for commit in candidates if commit and commit != head), "")


def changed_files():
    """Names of the files that differ from the base."""
    before = base()
    return git("diff", "--name-only", before, "HEAD").splitlines() if before else []


def rooms_of(names):
    """The rooms of src ("core/store", "base") that changed, sorted."""
    found = {name.removeprefix("src/").rpartition("/")[0] for name in names if name.startswith("src/")}
    return sorted(found - {""})


def floors_of(names):
    """The floors of src whose sources or unit tests changed."""
    return {name.split("/")[1] for name in names if name.startswith(("src/", "tests/")) and name.endswith((".c", ".h"))}


def read_list(text):
    """(files always played, {room's name: words})"""
    core, words, section = [], {}, None
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("["):
            section = line
        elif line and section == "[core]":
            core.append(line)
        elif line:
            room, _, rest = line.partition(":")
            words[room.strip()] = rest.split()
    return core, words


def words_of(names, words):
    """The words of the tests that belong to what changed."""
    last = {room.rpartition("/")[2] for room in rooms_of(names)}
    for place in ("standby", "timer"):
        if any(name.startswith((f"client/{place}", f"include/muster/{place}")) for name in names):
            last.add(place)
    if any(name.startswith(("python/", "include/muster/")) for name in names):
        last.add("library")
    return {word for room in last for word in words.get(room, [room])}


def core_tests(folder, names, text, there, commit=""):
    """The tests of tests/FOLDER to play, sorted: files, and single tests of the list ("file::test"). `there` are the files that
    exist."""
    core, words = read_list(text)
    always = {name for name in core if name.partition("::")[0] in there}
    if folder != "command":
        always |= {name for name in names if name in there}
    patterns = [f"*{word}*" for word in words_of(names, words)]
    belong = {name for name in there if any(fnmatch.fnmatch(pathlib.Path(name).stem, pattern) for pattern in patterns)}
    belong |= {name for name in names if name in there}
    # where more belong than there is time for, another commit plays others
    belong = sorted(belong - always, key=lambda name: zlib.crc32((commit + name).encode()))
    always |= set(belong[: FILES_OF_ROOMS.get(folder, 0)])
    return sorted(name for name in always if "::" not in name or name.partition("::")[0] not in always)


def tests_in(folder):
    there = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / folder).glob("test_*.py")]
    return core_tests(folder, changed_files(), LIST.read_text(encoding="utf-8"), there, git("rev-parse", "HEAD"))


def what_was_played(played, commits):
    """One line. `commits` are (hash, letter) of the commits before, the latest first."""
    whole = " and ".join(f"{letter} ({PARTS[letter]})" for letter in played) or "none"
    others = [letter for letter in PARTS if letter not in played]
    core = f"; of {', '.join(others)} the core" if others else ""
    turns = collections.Counter(letter for _, letter in commits)
    before = ", ".join(f"{commit} {letter}" for commit, letter in commits) or "unknown here"
    missing = [letter for letter in PARTS if commits and letter not in turns and letter not in played]
    never = f"; not among them: {', '.join(missing)} (.ci/run --all plays all)" if missing else ""
    return f"part played whole: {whole}{core}. Turns of the commits before: {before}{never}"


def main():
    words = sys.argv[1:]
    match words:
        case ["part"]:
            print(part_of(git("rev-parse", "HEAD")))
        case ["said", played]:
            log = git("log", "--first-parent", f"-{COMMITS_SAID}", "--skip=1", "--format=%h").split()
            print(what_was_played(played, [(commit, part_of(commit)) for commit in log]))
        case ["rooms"]:
            print("\n".join(rooms_of(changed_files())))
        case ["floors", *floors]:
            changed = floors_of(changed_files())
            print("+".join(floor for floor in floors if floor in changed))
        case ["tests", folder]:
            print("\n".join(tests_in(folder)))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()

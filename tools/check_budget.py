#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How large the house is, and may be: fails where a number is above its budget (tools/budget), where a budget was raised without a
reason, where a header has one user and is no wall (tools/walls), and where a room has no tests or a test is in no list.

    tools/check_budget.py [SOURCE_ROOT]
    tools/check_budget.py --renew ['REASON']     writes the present numbers and walls; whatever rises needs the reason
    tools/check_budget.py --for-tests            names the functions that are external for tests alone

A commit may lower a budget. One that raises it adds a line `raised NAME from OLD to NEW: reason` to the same file. What is raised is
found by git. Where there is no history, only the numbers are compared.
"""

import collections
import math
import os
import pathlib
import re
import subprocess
import sys

from check_floors import arrows_of, circles_in, graph_of
from check_sizes import functions_of

BUDGET, WALLS = "tools/budget", "tools/walls"
MEANINGS = {
    "src_lines": "lines of the sources and headers in src",
    "src_files": "sources and headers in src",
    "external": "functions of src that are not static",
    "external_for_tests": "those that no other source calls, only tests (and fuzzers, bench, examples)",
    "walls": "headers of src with fewer than two users besides their own source (tools/walls)",
    "circles": "circles of files that include each other (tools/check_floors.py names them)",
    "test_lines": "lines of C and Python in tests",
}
ROUNDED = {"src_lines": 100, "test_lines": 500}  # so that a mend of some lines raises nothing
TESTED_FLOORS = ("base", "core", "wire", "options", "host", "agent")
COMMITS = 20  # so far back a raised budget is looked for
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w*")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
NUMBER = re.compile(r"^(\w+) (\d+)$", re.MULTILINE)
RAISED = re.compile(r"^raised (\w+) from \d+ to \d+: \S.*$", re.MULTILINE)


def read_all(root, folders, ends):
    """{path: text}, by paths below the root."""
    found = {}
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in ends and path.is_file():
                found[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
    return found


def external_functions(texts):
    """{name: the source that defines it}"""
    found = {}
    for path, text in texts.items():
        if path.endswith(".c"):
            lines = text.splitlines()
            for name, start, _ in functions_of(lines):
                if not re.match(r"(static|inline)\b", lines[start - 1]):
                    found[name] = path
    return found


def only_for_tests(texts, functions, offered):
    """Names of external functions that no other source of src uses. `offered` are names that programs link to."""
    users = collections.defaultdict(set)
    in_headers = collections.Counter()
    for path, text in texts.items():
        words = WORD.findall(NO_CODE.sub(" ", text))
        if path.endswith(".c"):
            for word in set(words) & functions.keys():
                users[word].add(path)
        else:
            in_headers.update(word for word in words if word in functions)
    # a header that names it once declares it; a macro or an inline function of a header names it once more
    return sorted(
        name
        for name, source in functions.items()
        if not users[name] - {source} and in_headers[name] < 2 and name not in offered and name != "main"
    )


def users_of_headers(texts):
    """{header: the files of src that include it, its own source excepted}"""
    users = {path: set() for path in texts if path.endswith(".h")}
    for path, text in texts.items():
        for included in INCLUDE.findall(text):
            header = "src/" + included
            if header in users and path != header[:-1] + "c":
                users[header].add(path)
    return users


def measure(root):
    """(numbers, headers that are walls, functions that are external for tests)"""
    src = read_all(root, ["src"], {".c", ".h"})
    tests = read_all(root, ["tests"], {".c", ".h", ".py"})
    public = read_all(root, ["include", "client"], {".c", ".h", ".map"})
    functions = external_functions(src)
    for_tests = only_for_tests(src, functions, {word for text in public.values() for word in WORD.findall(text)})
    walls = sorted(header for header, users in users_of_headers(src).items() if len(users) < 2)
    numbers = {
        "src_lines": sum(text.count("\n") for text in src.values()),
        "src_files": len(src),
        "external": len(functions),
        "external_for_tests": len(for_tests),
        "walls": len(walls),
        "circles": len(circles_in(arrows_of(graph_of(root / "src")))),
        "test_lines": sum(text.count("\n") for text in tests.values()),
    }
    return numbers, walls, for_tests


def read_numbers(text):
    return {name: int(number) for name, number in NUMBER.findall(text)}


def read_walls(text):
    """{header: reason}"""
    lines = (line.partition(": ") for line in text.splitlines() if line and not line.startswith("#"))
    return {header: reason.strip() for header, _, reason in lines}


def git(root, *words):
    try:
        said = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    except OSError:
        return ""
    return said.stdout if said.returncode == 0 else ""


def versions(root, now):
    """(what was before, what came after) of the budget's text, the latest first."""
    prefix = git(root, "rev-parse", "--show-prefix").strip()
    show = lambda commit: git(root, "show", f"{commit}:{prefix}{BUDGET}")  # noqa: E731
    yield show("HEAD"), now
    for commit in git(root, "log", "--first-parent", f"-{COMMITS}", "--format=%H", "--", BUDGET).split():
        yield show(commit + "^"), show(commit)


def raised_without_reason(root, now):
    """A reason is a line that was not there before. It may have come later, too."""
    for before, after in versions(root, now):
        old, new = read_numbers(before), read_numbers(after)
        reasons = set(line.group() for line in RAISED.finditer(now)) - set(before.splitlines())
        explained = {RAISED.match(line)[1] for line in reasons}
        for name in old.keys() & new.keys():
            if new[name] > old[name] and name not in explained:
                yield f"{BUDGET}: {name} was raised from {old[name]} to {new[name]}; add `raised {name} from {old[name]} to {new[name]}: reason`"


def complaints_about_walls(found, walls):
    for header in found:
        if not walls.get(header):
            yield f"{header}: fewer than two users besides its own source: join it with its user, or give the reason in {WALLS}"
    for header in sorted(walls.keys() - set(found)):
        yield f"{WALLS}: {header} is no wall any more; remove the line"


def complaints_about_tests(root):
    """A room has tests, and each file of them is in a list from which they are built."""
    for floor in TESTED_FLOORS:
        lists = "".join((root / path).read_text(encoding="utf-8") for path in ("tests/meson.build", f"src/{floor}/meson.build"))
        for test in sorted((root / "tests" / floor).rglob("*_test.c")):
            name = test.relative_to(root / "tests" / floor).as_posix().removesuffix("_test.c")
            if f"'{name}'" not in lists:
                yield f"tests/{floor}/{name}_test.c is built by nobody; list it in tests/meson.build"
        for room in sorted(path for path in (root / "src" / floor).iterdir() if path.is_dir()):
            if not any((root / "tests" / floor / room.name).glob("*_test.c")):
                yield f"src/{floor}/{room.name}: the room has no tests (tests/{floor}/{room.name}/*_test.c)"


def budget_of(name, number):
    step = ROUNDED.get(name, 1)
    return math.ceil(number / step) * step


def renew(root, reason):
    """Writes the present numbers and walls. Returns what it cannot."""
    numbers, found, _ = measure(root)
    text = (root / BUDGET).read_text(encoding="utf-8")
    old, walls = read_numbers(text), read_walls((root / WALLS).read_text(encoding="utf-8"))
    added = []
    for name, number in numbers.items():
        new = budget_of(name, number)
        if name in old and new > old[name]:
            added.append(f"raised {name} from {old[name]} to {new}: {reason}")
        if name in old:
            text = re.sub(rf"^{name} \d+$", f"{name} {new}", text, flags=re.MULTILINE)
        else:
            text = f"{text}{name} {new}\n"
    nameless = [header for header in found if not walls.get(header)]
    if (added or nameless) and not reason:
        return [line.removesuffix(": ") for line in added] + [f"{header} is a new wall" for header in nameless] + ["--renew 'REASON' is needed"]
    (root / BUDGET).write_text(text.rstrip("\n") + "\n" + "".join(line + "\n" for line in added), encoding="utf-8")
    heading = "".join(line for line in (root / WALLS).read_text(encoding="utf-8").splitlines(True) if line.startswith("#"))
    lines = "".join(f"{header}: {walls.get(header) or reason}\n" for header in found)
    (root / WALLS).write_text(heading + lines, encoding="utf-8")
    return []


def check(root):
    now = (root / BUDGET).read_text(encoding="utf-8")
    budgets = read_numbers(now)
    numbers, found, _ = measure(root)
    complaints = []
    for name, number in numbers.items():
        print(f"{number:8} {name:20} (at most {budgets.get(name, 'unknown')}): {MEANINGS[name]}")
        if name not in budgets:
            complaints.append(f"{BUDGET} has no line `{name} NUMBER`")
        elif number > budgets[name]:
            complaints.append(f"{BUDGET}: {number} {name} where {budgets[name]} are allowed: {MEANINGS[name]}")
    complaints += raised_without_reason(root, now)
    complaints += complaints_about_walls(found, read_walls((root / WALLS).read_text(encoding="utf-8")))
    return complaints + list(complaints_about_tests(root))


def main():
    words = sys.argv[1:]
    root = pathlib.Path(os.path.dirname(os.path.abspath(__file__))).parent
    if words[:1] == ["--renew"]:
        complaints = renew(root, " ".join(words[1:]))
    elif words[:1] == ["--for-tests"]:
        print("\n".join(measure(root)[2]))
        return 0
    else:
        complaints = check(pathlib.Path(words[0]) if words else root)
    for complaint in complaints:
        print(complaint)
    print(f"budget: {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

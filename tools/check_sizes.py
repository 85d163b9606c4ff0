#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails on a file longer than 1,500 lines or a function longer than 100. And when what every worker runs of
the hook of standby workers has more than 250 lines of code.

    tools/check_sizes.py [SOURCE_ROOT]

Relies on clang-format's layout: a function opens on an unindented line that ends in `{` and closes
with `}` in the first column. Tables (`= {`) are data and may be long.
"""

import ast
import io
import pathlib
import re
import sys
import tokenize

FILE_LIMIT = 1500
FUNCTION_LIMIT = 100
OPENING = re.compile(r"^[A-Za-z_].*\) \{$")
CONTINUED = re.compile(r"^\s+.*\) \{$")
NAME = re.compile(r"(\w+)\(")

HOOK = pathlib.Path("client/standby")
HOOK_BEGINS = ("sitecustomize.py", "muster_standby/__init__.py", "muster_standby/record.py")
HOOK_IMPORTS = re.compile(r"^ *from muster_standby\.(\w+) import", re.MULTILINE)
HOOK_LIMIT = 250
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def functions_of(lines):
    """(name, first line, line count) of every function, counted from its signature to its brace."""
    start, name = None, None
    head = None
    for number, line in enumerate(lines, 1):
        if start is None:
            if re.match(r"^[A-Za-z_]", line) and "(" in line and not line.startswith("#"):
                head = number
                found = NAME.search(line)
                name = found.group(1) if found else "?"
            if head and (OPENING.match(line) or (number > head and CONTINUED.match(line))):
                start = head
            elif line.endswith(";") or not line.strip():
                head = None
        elif line == "}":
            yield name, start, number - start + 1
            start, head = None, None


def code_lines(text):
    """The lines of a Python file without empty ones, comments, and strings that only describe."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {line for each in tokens if each.type not in NO_CODE for line in range(each.start[0], each.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines -= set(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def lines_of_cold_hook(root):
    """What a worker that is started cold runs of the hook: what its parts import, too."""
    waiting, found = [root / HOOK / name for name in HOOK_BEGINS], {}
    while waiting:
        path = waiting.pop()
        if path not in found:
            text = path.read_text(encoding="utf-8")
            found[path] = code_lines(text)
            waiting += [root / HOOK / f"muster_standby/{name}.py" for name in HOOK_IMPORTS.findall(text)]
    return sum(found.values())


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    complaints, files, functions = [], 0, 0
    for folder in ("src", "include", "examples", "bench", "tests", "fuzz"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            lines = path.read_text(encoding="utf-8").splitlines()
            files += 1
            # tests are lists of short cases; only their functions are measured
            if folder != "tests" and len(lines) > FILE_LIMIT:
                complaints.append(f"{path}: {len(lines)} lines (limit {FILE_LIMIT})")
            for name, start, length in functions_of(lines):
                functions += 1
                if length > FUNCTION_LIMIT:
                    complaints.append(f"{path}:{start}: {name} has {length} lines (limit {FUNCTION_LIMIT})")
    if files == 0:
        complaints.append(f"no sources under {root}")
    hook = lines_of_cold_hook(root)
    if hook > HOOK_LIMIT:
        complaints.append(f"{root / HOOK}: a worker runs {hook} lines of the hook (limit {HOOK_LIMIT})")
    for complaint in complaints:
        print(complaint)
    print(f"sizes: {files} files, {functions} functions, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails on a file longer than 500 lines or a function longer than 60: then split it.

    tools/check_sizes.py [SOURCE_ROOT]

Relies on clang-format's layout: a function opens on an unindented line that ends in `{` and closes
with `}` in the first column. Tables (`= {`) are data and may be long.
"""

import pathlib
import re
import sys

FILE_LIMIT = 500
FUNCTION_LIMIT = 60
OPENING = re.compile(r"^[A-Za-z_].*\) \{$")
CONTINUED = re.compile(r"^\s+.*\) \{$")
NAME = re.compile(r"(\w+)\(")


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
    for complaint in complaints:
        print(complaint)
    print(f"sizes: {files} files, {functions} functions, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

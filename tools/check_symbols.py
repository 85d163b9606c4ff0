#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails when a pure floor's library needs a symbol that is not on the allow-list.

    tools/check_symbols.py ALLOW_LIST ARCHIVE...

So a call of getenv, time or write on floors 1-3 is found even when a header or a macro contains it.
Symbols that another of the given archives defines are the project's own and need no permission.
"""

import fnmatch
import pathlib
import re
import subprocess
import sys


def read_allow_list(path):
    """[(archive pattern, symbol pattern)]; a line is `[floor:] pattern...`, `#` starts a comment."""
    allowed = []
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        floor, _, patterns = line.rpartition(":")
        allowed += [(floor.strip() or "*", pattern) for pattern in patterns.split()]
    return allowed


def symbols_of(archive, *options):
    output = subprocess.run(
        ["nm", "--format=posix", *options, archive], check=True, capture_output=True, text=True
    ).stdout
    for line in output.splitlines():
        words = line.split()
        if len(words) >= 2 and not line.endswith(":"):
            yield words[0]


def floor_of(archive):
    return re.sub(r"^libmuster_|\.a$", "", pathlib.Path(archive).name)


def main():
    if len(sys.argv) < 3:
        print(__doc__)
        return 2
    allowed, archives = read_allow_list(sys.argv[1]), sys.argv[2:]
    own = {name for archive in archives for name in symbols_of(archive, "--defined-only")}
    complaints = 0
    for archive in archives:
        floor = floor_of(archive)
        for name in sorted(set(symbols_of(archive, "--undefined-only")) - own):
            if not any(
                fnmatch.fnmatchcase(floor, where) and fnmatch.fnmatchcase(name, pattern)
                for where, pattern in allowed
            ):
                complaints += 1
                print(f"{floor}: {name} is not allowed on a pure floor")
    print(f"symbols: {len(archives)} libraries, {complaints} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

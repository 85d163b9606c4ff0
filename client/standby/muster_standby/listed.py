# SPDX-License-Identifier: BSD-3-Clause
"""The list of what is to be imported, as the agent gives it (core/standby/standby_preparation): a line for each module. What
another node has told and no worker of this one has done yet is held to be less true."""
import os
import sys

LEARNED, LEFT_OUT, TOLD = "\t", "#", "!"
LINE = "__line__."  # What the name of a program's line begins with (line.py). It is none of a module.
LINES_MAXIMUM, CHANGES_MAXIMUM = 20000, 256  # of variables
LIBRARIES = [os.path.dirname(os.__file__)]
LIBRARIES += [path.rstrip("/") for path in sys.path if os.path.basename(path.rstrip("/")) in ("site-packages", "dist-packages")]


class Told(str):
    """An origin that another node has told."""


def read_lines(text):
    """[(name, origin)]. The origin of a module that waits for the program is None. The value of a variable is not
    known where another node has told it: it may not decide what is in the environment here."""
    lines, changes = [], 0
    for line in text.split("\n", LINES_MAXIMUM)[:-1]:
        changes += line.startswith("=")
        if changes > CHANGES_MAXIMUM:
            break  # What comes now may depend on that.
        lines.append(read_line(line))
    return lines


def read_line(line):
    at = min(line.find(mark) % (len(line) + 1) for mark in (LEARNED, LEFT_OUT, TOLD))
    name, mark, origin = line[:at], line[at : at + 1], line[at + 1 :]
    if mark == TOLD:
        return name, "?" if name.startswith("=") else Told(origin)
    return name, origin if mark == LEARNED else None


def may_be_imported(origin, listed):
    """Whether a module that was found here may be imported because of this line. On another node's word that is only what
    lies in this interpreter's own libraries, as they were when it began."""
    is_own = origin in ("", "built-in", "frozen") or any(origin.startswith(path + "/") for path in LIBRARIES)
    return is_own or not isinstance(listed, Told)

# SPDX-License-Identifier: BSD-3-Clause
"""Pseudo-terminals, for programs whose console is one."""

import os

import pytest


def open_terminal():
    """(our end, the program's end); a skip that says why where there is none to be had, as in a bare container."""
    try:
        return os.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal can be made here ({error.strerror}: mount devpts at /dev/pts)")

# SPDX-License-Identifier: BSD-3-Clause
"""The classes of the Python package in the tests' own process, on the libmuster that was built."""

import importlib
import os
import pathlib
import sys

import pytest

from support.binary import ROOT

BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build")).resolve()
LIBRARY = BUILD / "src/library/libmuster.so.0"


def import_module(name):
    """A module of the package. No code of a sanitizer is in this interpreter: such tests are for plain builds."""
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built (-Dlibrary=false)", allow_module_level=True)
    os.environ["MUSTER_LIBRARY"] = str(LIBRARY)
    sys.path.insert(0, str(ROOT / "python"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def environment():
    """For programs of other processes."""
    return {"PYTHONPATH": ROOT / "python", "MUSTER_LIBRARY": LIBRARY}

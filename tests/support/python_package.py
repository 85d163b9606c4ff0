# SPDX-License-Identifier: BSD-3-Clause
"""The Python package as a wheel would install it, around a binary of the test's choice."""

import shutil

from support.binary import ROOT


def install_package(directory, binary):
    """Returns what PYTHONPATH is to be, below a directory of the test's own."""
    package = directory / "site" / "muster"
    package.mkdir(parents=True)
    for module in (ROOT / "python/muster").glob("*.py"):
        shutil.copy(module, package)
    (package / "bin").mkdir()
    shutil.copy(binary, package / "bin/muster")
    return package.parent

# SPDX-License-Identifier: BSD-3-Clause
"""The Python package as its wheel would install it, where the peer's Python sees it."""

import pathlib
import re
import shutil
import subprocess

from support.binary import ROOT
from support.own_library import LIBRARY


def entry_points():
    """As the wheel has them."""
    found = re.search(r'ENTRY_POINTS = """\\\n(.*?)"""', (ROOT / "tools/make-wheel").read_text(), re.DOTALL)
    return found[1]


def install(directory):
    """The package with its library and what that needs, where the peer sees it. Returns the variables for its programs."""
    package, libraries = directory / "site/muster", directory / "site/libraries"
    information = directory / "site/muster_launch-0.dist-info"
    for made in (package, libraries, information):
        made.mkdir(parents=True)
    for module in (ROOT / "python/muster").glob("*.py"):
        shutil.copy(module, package)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: muster-launch\nVersion: 0\n")
    (information / "entry_points.txt").write_text(entry_points())
    needed = subprocess.run(["ldd", LIBRARY], check=True, capture_output=True, text=True).stdout
    for name, path in re.findall(r"(lib(?:uv|jansson|protobuf-c)\.so\.\d+) => (\S+)", needed):
        shutil.copy(pathlib.Path(path).resolve(), libraries / name)
    shutil.copy(pathlib.Path(LIBRARY).resolve(), libraries / "libmuster.so.0")
    return {"PYTHONPATH": directory / "site", "MUSTER_LIBRARY": libraries / "libmuster.so.0", "LD_LIBRARY_PATH": libraries}

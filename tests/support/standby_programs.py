# SPDX-License-Identifier: BSD-3-Clause
"""Programs and libraries with which the hook of standby workers is tried, and fixtures for them."""

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

from support.gatekeeper import Gatekeeper

# Runs once more each time the program does.
MARKED = "open('marks', 'a').write('x')\nimport os\nprint(os.environ.get('RANK'))\n"


@pytest.fixture
def keeper(scratch):
    keeper = Gatekeeper(sys.executable, scratch)
    with keeper.closing:
        yield keeper


def write(scratch, files):
    for name, text in files.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def marks(scratch):
    path = scratch / "marks"
    return len(path.read_text()) if path.exists() else 0


@pytest.fixture
def library(scratch):
    """A directory of modules that are not the program's own."""
    with_spaces = scratch / "a library/site-packages"
    with_spaces.mkdir(parents=True)
    return with_spaces


def learn(keeper, library, script="script.py"):
    """What a worker that ran the script recorded."""
    return keeper.recorded([script], PYTHONPATH=library).modules()


def relocate_python(prefix):
    """Makes an interpreter below another prefix, as conda's and uv's are; returns its path."""
    version = f"python3.{sys.version_info[1]}"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib" / version).mkdir(parents=True)
    shutil.copy(os.path.realpath(sys.executable), prefix / "bin/python3")
    for path in pathlib.Path(os.__file__).parent.iterdir():
        if path.name not in ("site-packages", "dist-packages", "sitecustomize.py"):
            (prefix / "lib" / version / path.name).symlink_to(path)
    return prefix / "bin/python3"


def make_venv(python, directory, *options):
    """Returns the path of its interpreter."""
    subprocess.run([python, "-m", "venv", "--without-pip", *options, directory], check=True)
    return directory / "bin/python3"

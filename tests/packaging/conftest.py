# SPDX-License-Identifier: BSD-3-Clause
"""What is built to be given to users: each kind is built once for a run of these tests."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CANNOT_BE_HAD = 3  # exit status of tools/debian-tree, and of what relies on it


def pytest_collection_modifyitems(items):
    """The first test that needs a build waits for it, on a busy machine for minutes."""
    for item in items:
        if pathlib.Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(1200))


def build(*command):
    """Runs a tool of this repository; a skip that says why where Debian's packages cannot be had."""
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode == CANNOT_BE_HAD:
        pytest.skip(result.stdout.strip().splitlines()[-1])
    assert result.returncode == 0, result.stdout[-4000:]
    return result.stdout.strip().splitlines()


@pytest.fixture(scope="session")
def portable():
    """portable("x86_64"): the path of that architecture's binary."""
    built = {}

    def get(architecture):
        if architecture not in built:
            build("tools/build-portable", architecture)
            built[architecture] = ROOT / "dist" / f"muster-{architecture}"
        return built[architecture]

    return get


@pytest.fixture(scope="session")
def wheel(portable):
    """The path of the wheel."""
    portable("x86_64")
    return ROOT / build("tools/make-wheel", "x86_64")[-1]


@pytest.fixture(scope="session")
def packages():
    """The paths of all packages."""
    return [ROOT / line for line in build("tools/make-packages") if line.startswith("dist/")]


@pytest.fixture(scope="session")
def bare_tree():
    """bare_tree("trixie", "amd64"): a directory with that suite's C library and shell, and nothing else."""

    def get(suite, architecture):
        tree = ROOT / "build-trees" / f"bare-{suite}-{architecture}"
        build("tools/debian-tree", suite, architecture, str(tree), "libc6", "dash")
        return tree

    return get

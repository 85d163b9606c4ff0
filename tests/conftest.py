# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the real binary share: where it is, how to run it, and what must not be left.

Every test that uses `muster` ends with a look at /proc: a process that still carries the test's
mark in its environment is a leak, and the test fails.
"""

import pytest

from support.binary import Muster, find_binary
from support.leaks import ScratchDirectory
from support.peers import require_peer


@pytest.fixture(scope="session")
def binary():
    """Path of the muster under test: MUSTER_BINARY, else the build directory's."""
    return find_binary()


@pytest.fixture
def scratch():
    """A short directory under /tmp (seen by the peers too), removed afterwards with all its processes."""
    directory = ScratchDirectory()
    yield directory.path
    leaked = directory.end()
    assert not leaked, "processes left behind: " + "; ".join(leaked)


@pytest.fixture
def muster(binary, scratch):
    """Runs the binary: `muster.run(["run", ...])` to its end, `muster.start([...])` to play with it."""
    runner = Muster(binary, scratch)
    yield runner
    runner.end()


@pytest.fixture(scope="session")
def peer():
    """The installed PyTorch, or a skip that says why (a failure where CI=true)."""
    return require_peer()

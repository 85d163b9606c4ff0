# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the real binary share: where it is, how to run it, and what must not be left.

Every test that uses `muster` ends with a look at /proc: a process that still carries the test's
mark in its environment is a leak, and the test fails.
"""

import functools
import os
import signal
import zlib

import pytest

from support.binary import Muster, find_binary
from support.leaks import ScratchDirectory
from support.lossy_network import LossyNetwork, require_lossy_network
from support.network import Network, require_network
from support.nodes import Job, job_in_a_file
from support.peers import require_peer
from support.room import is_one_more, wait_for_room
from support.slurm import Slurm, require_slurm


def pytest_configure():
    """A shell that is no terminal's starts what it puts into the background with SIGINT and SIGQUIT ignored, and nohup with SIGHUP.
    Every program under test would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def patience(item):
    """How many seconds a test may take."""
    marker = item.get_closest_marker("timeout")
    return marker.args[0] if marker and marker.args else 0


def pytest_collection_modifyitems(config, items):
    """Those that may take longest begin first, so that the others run beside them. With PART_OF_TESTS=K/N, plays the tests whose names
    fall into the K-th of N parts."""
    items.sort(key=patience, reverse=True)
    if "PART_OF_TESTS" not in os.environ:
        return
    part, parts = map(int, os.environ["PART_OF_TESTS"].split("/"))
    taken = [item for item in items if zlib.crc32(item.nodeid.encode()) % parts == part]
    config.hook.pytest_deselected(items=[item for item in items if item not in taken])
    items[:] = taken


@pytest.hookimpl(optionalhook=True)  # where there is xdist
def pytest_xdist_make_scheduler(config, log):
    """Gives each of xdist's workers one test more than it plays, and no large part of all: some take minutes, and
    nobody else would play those behind them."""
    from xdist.scheduler import LoadScheduling

    class OneAhead(LoadScheduling):
        def _send_tests(self, node, num):
            super()._send_tests(node, max(0, min(num, 2 - len(self.node2pending[node]))))

    return OneAhead(config, log)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)  # what it waits is not the test's time
def pytest_runtest_protocol():
    if is_one_more():
        wait_for_room()
    yield


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


@pytest.fixture
def make_job(muster):
    """make_job("1:3"): a job of several nodes (support.nodes), none of them started."""
    return functools.partial(Job, muster)


@pytest.fixture(params=[Job, job_in_a_file], ids=["tcp", "file"])
def make_job_anywhere(request, muster):
    """The same wherever the job's record is kept."""
    return functools.partial(request.param, muster)


def networks_of(kind, scratch):
    networks = []

    def make(*arguments):
        networks.append(kind(scratch, *arguments))
        return networks[-1]

    yield make
    for network in networks:
        network.end()


@pytest.fixture
def make_network(scratch):
    """make_network(3): three hosts of their own (support.network), or a skip that says why there are none."""
    require_network()
    yield from networks_of(Network, scratch)


@pytest.fixture
def make_slurm(scratch, request):
    """make_slurm(3): a Slurm of three nodes (support.slurm), or a skip that says why there is none."""
    require_slurm()
    make_network = request.getfixturevalue("make_network")
    clusters = []

    def make(nodes, **how):
        clusters.append(Slurm(scratch, make_network(nodes + 1), **how))
        return clusters[-1]

    yield make
    for cluster in clusters:
        cluster.end()


@pytest.fixture
def make_lossy_network(scratch):
    """make_lossy_network(3, seed): the same with cables that lose and delay (support.lossy_network)."""
    require_lossy_network()
    yield from networks_of(LossyNetwork, scratch)


@pytest.fixture(scope="session")
def peer():
    """The installed PyTorch, or a skip that says why (a failure where CI=true)."""
    peer = require_peer()
    yield peer
    peer.forks.end()

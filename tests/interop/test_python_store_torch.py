# SPDX-License-Identifier: BSD-3-Clause
"""The classes of muster.store beside PyTorch's: the same calls, on servers of both, give the same. And each kind of client
meets the other's server and file."""

import shutil
import subprocess
import sys

import pytest

from support.binary import ROOT
from support.own_library import environment, import_module

pytestmark = [pytest.mark.timeout(120), pytest.mark.plain_build]
import_module("muster.store")


@pytest.fixture
def start(muster, peer, scratch):
    script = shutil.copy(ROOT / "tests/interop/scripts/try_store_class.py", scratch)

    def start(kind, where, **popen):
        program, changes = (peer.python, {}) if kind == "torch" else (sys.executable, environment())
        return muster.start([script, kind, where], program=program, env=changes, **popen)

    return start


@pytest.fixture
def serve(start):
    def serve(kind):
        server = start(kind, "serve", stdin=subprocess.PIPE)
        server.wait_until(lambda: server.out().endswith("\n"), "the port", timeout=60)
        return server, server.out().split()[1]

    return serve


def lines_of(running):
    end = running.finish()
    assert end.status == 0, end
    return end.out.splitlines()


@pytest.mark.parametrize("server", ["torch", "muster"])
def test_classes_do_the_same_with_a_server(start, serve, server):
    found = {}
    for kind in ("torch", "muster"):
        running, port = serve(server)
        found[kind] = lines_of(start(kind, port))
        running.process.stdin.close()
        assert running.finish().status == 0
    assert len(found["torch"]) > 45
    assert found["muster"] == found["torch"]


def test_classes_do_the_same_with_a_file(start, scratch):
    found = [lines_of(start(kind, scratch / f"{kind}.file")) for kind in ("torch", "muster")]
    assert len(found[0]) > 30
    assert found[1] == found[0]

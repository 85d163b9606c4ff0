# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's TCPStore client through Muster's server, and Muster's client through PyTorch's server."""

import shutil
import subprocess

import pytest

from support.binary import ROOT
from support.store import Server

pytestmark = pytest.mark.timeout(120)

SCRIPTS = ROOT / "tests" / "interop" / "scripts"


@pytest.mark.parametrize("test", [
    "values", "counters", "compare_set", "several", "waiting", "listing", "barrier", "prefixes", "workers", "clones",
    "queues",
])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_pytorchs_client_finds_what_it_expects(muster, peer, scratch, test, host):
    server = Server(muster)
    script = shutil.copy(SCRIPTS / "use_tcpstore.py", scratch)
    client = muster.start([script, test, host, server.port], program=peer.python, spawn=peer.spawn)
    end = client.finish(100)
    assert end.status == 0 and end.out == "done\n", end.err
    assert server.running.err() == ""


@pytest.fixture
def pytorch_port(muster, peer, scratch):
    """PyTorch's own server, in a process of its own."""
    script = shutil.copy(ROOT / "bench" / "torch_store_server.py", scratch)
    server = muster.start([script], program=peer.python, stdin=subprocess.PIPE)
    server.wait_until(lambda: "\n" in server.out(), "PyTorch's port", timeout=60)
    yield int(server.out().split()[1])
    server.process.stdin.close()
    assert server.finish().status == 0


@pytest.fixture
def ask(muster, pytorch_port):
    environment = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": pytorch_port}
    return lambda *words: muster.run(["store", *words], env=environment)


def outcome(end):
    return end.status, end.out


def test_our_client_finds_what_it_expects(ask):
    assert outcome(ask("ping")) == (0, "")
    assert outcome(ask("set", "k", "v")) == (0, "")
    assert outcome(ask("get", "k")) == (0, "v")
    assert outcome(ask("get", "missing")) == (1, "")
    assert outcome(ask("set", "a", "1", "b", "2")) == (0, "")
    assert outcome(ask("get", "a", "b")) == (0, "1\n2\n")
    assert outcome(ask("append", "k", "w")) == (0, "")
    assert outcome(ask("get", "k")) == (0, "vw")
    assert outcome(ask("add", "n", "5")) == (0, "5\n")
    assert outcome(ask("add", "n", "-7")) == (0, "-2\n")
    assert outcome(ask("compare-set", "k", "vw", "x")) == (0, "x")
    assert outcome(ask("compare-set", "k", "vw", "y")) == (1, "x")
    assert outcome(ask("check", "k", "n")) == (0, "")
    assert outcome(ask("check", "k", "missing")) == (1, "")
    assert outcome(ask("delete", "k")) == (0, "")
    assert outcome(ask("delete", "k")) == (1, "")
    assert sorted(ask("keys").out.split()) == ["a", "b", "n"]
    assert outcome(ask("count")) == (0, "3\n")
    assert outcome(ask("barrier", "all", "1")) == (0, "")


def test_our_client_waits_and_gives_up(muster, ask, pytorch_port):
    end = ask("wait", "k", "--timeout", "0.3")
    assert end.status == 1 and "timed out" in end.err
    assert ask("barrier", "alone", "2", "--timeout", "0.3").status == 1
    waiting = muster.start(["store", "wait", "k", "--host", "localhost", "--port", pytorch_port, "--timeout", 30])
    watching = muster.start(
        ["store", "watch", "k", "--host", "localhost", "--port", pytorch_port, "--interval", 0.01, "--changes", 2]
    )
    assert ask("set", "k", "one").status == 0
    watching.wait_until(lambda: watching.out() == "one\n", "the first value")
    assert ask("set", "k", "two").status == 0
    assert waiting.finish().status == 0
    assert watching.finish().out == "one\ntwo\n"


def test_our_client_uses_queues_where_pytorch_has_them(ask):
    """PyTorch's server has queues only when built with libuv; without, it hangs up on the question."""
    if ask("push", "q", "first").status == 0:
        assert outcome(ask("len", "q")) == (0, "1\n")
        assert outcome(ask("pop", "q")) == (0, "first")
        assert outcome(ask("pop", "q")) == (1, "")
    else:
        end = ask("len", "q")
        assert end.status == 1 and "QUEUE_LEN" in end.err, end
    assert ask("ping").status == 0


@pytest.mark.parametrize("suite", ["store_conformance", "store_watch_conformance", "record_conformance"])
def test_pytorchs_server_does_what_a_rendezvous_relies_on(muster, binary, pytorch_port, suite):
    program = binary.parent.parent.parent / "tests" / suite
    end = muster.start(["tcp", "127.0.0.1", pytorch_port], program=program).finish()
    assert end.status == 0, end

# SPDX-License-Identifier: BSD-3-Clause
"""The memory of stores: what fits where they run, what is said when it is used up, what is given back."""

import pytest

from support.cgroups import cgroup
from support.ports import free_port
from support.store import DELETE, MULTI_SET, Server, request, wait_until

# Writes keys until the store refuses one. Then the first attempt fails.
LEAKING = """#!/usr/bin/env python3
import os, socket, struct, sys
if os.environ["RANK"] == "0" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    store.sendall(b"\\0" + struct.pack("<I", 0x3C85F7CE))
    try:
        for n in range(1_000_000):
            key = b"/leak/%d" % n
            store.sendall(b"\\1" + struct.pack("<Q", len(key)) + key + struct.pack("<Q", 3) + b"abc")
    except OSError:
        sys.exit(3)
"""


def fill(client, count, length=1000):
    """Sets that many keys."""
    for start in range(0, count, 1000):
        pairs = [part for n in range(start, start + 1000) for part in (b"/leak/%d" % n, b"x" * length)]
        client.send(request(MULTI_SET, len(pairs) // 2, *pairs))
    client.ping()


def fill_until_refused(client):
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        fill(client, 10_000_000)


def test_a_job_whose_worker_leaks_keys_ends_with_a_sentence(muster):
    end = muster.run(["run", "--store-memory", "4M", "--no-python", muster.script("worker", LEAKING)])
    assert end.status == 1, end
    said = next(line for line in end.err.splitlines() if "memory limit" in line)
    assert "keys take 3.7 MiB of the store's memory limit of 4.0 MiB" in said, said
    assert "those that begin with 'leak/'; --store-memory gives it more" in said, said


def test_agents_go_on_when_a_worker_has_filled_the_store_that_they_share(muster):
    script, port = muster.script("worker", LEAKING), free_port()
    nodes = [
        muster.start([
            "run", "--nnodes", 2, "--node-rank", rank, "--master-port", port, "--max-restarts", 1,
            "--store-memory", "4M", "--no-python", script,
        ])
        for rank in (0, 1)
    ]  # fmt: skip
    ends = [node.finish() for node in nodes]
    assert [end.status for end in ends] == [0, 0], ends
    assert "are kept for the agents" in ends[0].err, ends[0]


@pytest.mark.parametrize("given", ["0", "1023K", "101%", "lots", "-5M"])
def test_memory_that_cannot_be_is_a_mistake(muster, given):
    for command in (["run", f"--store-memory={given}", "true"], ["store", "serve", f"--store-memory={given}"]):
        end = muster.run(command)
        assert end.status == 2 and repr(given) in end.err and "at least 1M" in end.err, end


@pytest.mark.plain_build
def test_a_store_fits_into_its_cgroup(muster):
    limit = 64 << 20
    with cgroup("memory", limit) as own:
        server = Server(muster, preexec_fn=own.enter)
        with server.client() as leaking, server.client() as other:
            fill_until_refused(leaking)
            server.wait_for_log("memory limit of 16.0 MiB")
            other.ping()
            assert server.memory() < limit / 2
        assert server.stop(15) == 0


@pytest.mark.plain_build
def test_memory_is_given_back_after_deletion(muster):
    server = Server(muster)
    with server.client() as client:
        fill(client, 60_000)
        full = server.memory()
        assert full > 60_000_000
        for start in range(0, 60_000, 2000):
            gone = [n for n in range(start, start + 2000) if n % 20]  # what is left keeps every page's neighbour
            client.send(b"".join(request(DELETE, b"/leak/%d" % n) for n in gone))
            client.receive(8 * len(gone))
        wait_until(lambda: server.memory() < full / 2)
        assert client.get(b"/leak/20") == b"x" * 1000

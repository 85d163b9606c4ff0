# SPDX-License-Identifier: BSD-3-Clause
"""An agent that runs out of descriptors says so and ends; what it prints is what it meant to print."""

import contextlib
import os
import socket

import pytest

from support.nodes import wait_until
from support.ports import free_port

LIMITS = [4, 5, *range(11, 65)]


def start_with_limit(muster, limit):
    """A job of one node that others could join, under a limit of open files."""
    job = ["run", "--nnodes=1:2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-id=x"]
    settings = ["--rdzv-conf=join_timeout=8,last_call_timeout=1", "--no-python", "true"]
    return muster.start([f"--nofile={limit}:{limit}", muster.binary, *job, *settings], program="prlimit")


def test_an_agent_with_too_few_descriptors_says_so_and_ends(muster):
    runs = {limit: start_with_limit(muster, limit) for limit in LIMITS}
    results = {limit: run.finish() for limit, run in runs.items()}
    for limit, result in results.items():
        assert result.status in (0, 1), f"limit {limit}: {result}"
        assert all(line.isprintable() for line in result.err.splitlines()), f"limit {limit}: {result}"
        if result.status == 1:
            assert "oo many open files" in result.err or "descriptor" in result.err, f"limit {limit}: {result}"
    assert results[LIMITS[0]].status == 1, results[LIMITS[0]]
    assert results[LIMITS[-1]].status == 0, results[LIMITS[-1]]


def test_a_start_that_fails_for_lack_of_descriptors_names_the_limit(muster):
    for limit in (4, 6, 8, 10):
        end = start_with_limit(muster, limit).finish()
        assert end.status == 1 and "ulimit -n" in end.err, f"limit {limit}: {end}"


def start_for_many(muster, limits, nodes):
    """A job that so many nodes could join, under a soft and a hard limit; nobody else comes."""
    job = ["run", f"--nnodes=1:{nodes}", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-id=x"]
    settings = ["--rdzv-conf=last_call_timeout=1", "--no-python", "true"]
    return muster.start([f"--nofile={limits}", muster.binary, *job, *settings], program="prlimit")


def test_the_host_of_the_store_says_at_the_start_how_many_descriptors_so_many_nodes_take(muster):
    for nodes, needed in [(32, 192), (1000, 1096)]:  # of more than 32 each delegates, and has one connection
        end = start_for_many(muster, "150:150", nodes).finish()
        assert end.status == 0, end
        assert "may have 150 files open" in end.err and f"for {nodes} nodes it needs {needed}" in end.err, end


def test_a_soft_limit_that_is_too_low_is_raised_without_a_word(muster):
    end = start_for_many(muster, "200:4000", 1000).finish()
    assert end.status == 0 and "files open" not in end.err, end


# Strangers who only connect.

LIMIT = 256
# Fails once, as soon as `fail` is there; then ends when `end` is there.
WORKER = """#!/bin/sh
: >up.$GROUP_RANK.$TORCHELASTIC_RESTART_COUNT.$LOCAL_RANK
test $GROUP_WORLD_SIZE = 1 || : >together.$GROUP_RANK
until test -e end; do
    if test -e fail && test $TORCHELASTIC_RESTART_COUNT = 0; then exit 3; fi
    sleep 0.02
done
"""


def connect_idly(port, count, first=b""):
    """So many connections on which nothing is done, as many as there can be."""
    clients = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            client = socket.create_connection(("127.0.0.1", port), 5)
            clients.append(client)
            client.sendall(first)
    return clients


@pytest.mark.parametrize(
    "token, first",
    [({"MUSTER_JOB_TOKEN": "a secret of this job's nodes"}, b""), ({}, b""), ({}, b"\x00\xce\xf7\x85\x3c")],
    ids=["token", "open", "open, they greet"],
)
def test_however_many_connect_the_workers_start_again(muster, scratch, token, first):
    """With a token another node gets in, too."""
    port = free_port()
    words = ["run", "--nnodes=1:3", "--nproc-per-node=4", "--max-restarts=3", "--tee=3", "--rdzv-backend=c10d", "--rdzv-id=x"]
    words += [f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-conf=last_call_timeout=1", "--no-python", muster.script("worker", WORKER)]

    def start():
        return muster.start([f"--nofile={LIMIT}:{LIMIT}", muster.binary, *words], program="prlimit", env=token)

    host = start()
    wait_until(lambda: (scratch / "up.0.0.3").exists(), "the workers")
    clients = connect_idly(port, 400, first)
    try:
        assert len(os.listdir(f"/proc/{host.pid}/fd")) < LIMIT - 60
        (scratch / "fail").touch()
        wait_until(lambda: (scratch / "up.0.1.3").exists(), "the workers again")
        if token:
            node = start()
            wait_until(lambda: (scratch / "together.1").exists(), "two nodes")
        if not token:  # the host of an open store waits for whoever is there before it ends
            for client in clients:
                client.close()
        (scratch / "end").touch()
        ends = [host.finish(), *([node.finish()] if token else [])]
        assert [end.status for end in ends] == [0] * len(ends), ends
    finally:
        for client in clients:
            client.close()

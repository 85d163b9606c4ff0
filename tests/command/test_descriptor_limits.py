# SPDX-License-Identifier: BSD-3-Clause
"""An agent that runs out of descriptors says so and ends; what it prints is what it meant to print."""

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
    for nodes, needed in [(32, 160), (1000, 1064)]:  # of more than 32 each delegates, and has one connection
        end = start_for_many(muster, "150:150", nodes).finish()
        assert end.status == 0, end
        assert "may have 150 files open" in end.err and f"for {nodes} nodes it needs {needed}" in end.err, end


def test_a_soft_limit_that_is_too_low_is_raised_without_a_word(muster):
    end = start_for_many(muster, "200:4000", 1000).finish()
    assert end.status == 0 and "files open" not in end.err, end

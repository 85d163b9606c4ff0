# SPDX-License-Identifier: BSD-3-Clause
"""Sixty-four agents on one machine: they join, lose one, get it back, and finish."""

import os
import time

import pytest

AGENTS = 64


def descriptors(node):
    return len(os.listdir(f"/proc/{node.pid}/fd"))


def resident_kibibytes(node):
    with open(f"/proc/{node.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def descriptors_at_rest(node):
    """The host is asked over one connection of each node: a node that delegates waits for no keys."""
    before = 0
    while before != descriptors(node):
        before = descriptors(node)
        time.sleep(1.5)
    return before


@pytest.mark.plain_build
def test_many_agents_join_lose_one_get_it_back_and_finish(make_job):
    names = [f"node{number}" for number in range(AGENTS)]
    quiet = {"LOGLEVEL": None}
    job = make_job(f"{AGENTS - 1}:{AGENTS}", env=quiet)
    host = job.start_host(names[0], env={"LOGLEVEL": "INFO"})
    job.nodes(*names[1:])
    first = job.wait_for_world(*names, timeout=60)
    assert first.nodes == names
    descriptors_before, memory_before = descriptors_at_rest(host), resident_kibibytes(host)

    for number in (AGENTS // 2, AGENTS - 1):
        job.started[number].kill()
        survivors = [name for name in names if name != names[number]]
        assert job.wait_for_world(*survivors, timeout=60).nodes == survivors
        job.start(names[number])
        last = job.wait_for_world(*names, timeout=60)
        assert last.nodes == names

    assert last.restarts == {0}
    assert AGENTS < descriptors_before < 2 * AGENTS
    assert descriptors(host) <= descriptors_before + 2
    assert resident_kibibytes(host) < memory_before * 1.5 + 4096
    last.end()
    assert job.succeeds(timeout=60)

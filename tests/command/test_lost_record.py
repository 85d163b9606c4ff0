# SPDX-License-Identifier: BSD-3-Clause
"""The store forgets the job's record while the job runs: who holds it writes it again, and no count begins anew."""

import pytest

from support.nodes import Job
from support.store import Server

KEY = "torch.rendezvous.job"


def ask(job, *words):
    return job.muster.run(["store", *words, "--host", "127.0.0.1", "--port", job.port])


@pytest.mark.parametrize("loss", [["delete", KEY], ["set", KEY, ""], ["set", KEY, "Y2FuaW1hZGFt"]])
def test_a_record_that_somebody_takes_away_is_written_again(muster, loss):
    job = Job(muster, "2:3", conf=["keep_alive_interval=1"])
    job.start_host()
    job.nodes("node2")
    first = job.wait_for_world("node1", "node2")
    record = ask(job, "get", KEY).out
    assert ask(job, *loss).status == 0
    for worker in first.workers:
        assert worker.is_running()
    job.nodes("node3")
    second = job.wait_for_world("node1", "node2", "node3")
    assert second.restarts == {0}
    job.started[0].wait_for_log("001 of job 'job'")  # of a number from another thousand
    assert ask(job, "get", KEY).out != record
    second.end()
    assert job.succeeds()


def test_a_store_that_begins_anew_does_not_begin_the_job_anew(muster):
    server = Server(muster)
    job = Job(muster, 2, restarts=3, port=server.port, conf=["is_host=false"])
    nodes = job.nodes("node1", "node2")
    job.wait_for_world("node1", "node2").of("node1").end(1)
    job.wait_for_world("node1", "node2")
    server.running.kill()
    Server(muster, address=("--port", server.port))
    third = job.wait_for_world("node1", "node2")
    assert third.restarts == {1}
    for node in nodes:
        node.wait_for_log("002 of job 'job'")
    third.end()
    assert job.succeeds()

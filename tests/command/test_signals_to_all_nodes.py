# SPDX-License-Identifier: BSD-3-Clause
"""A signal to the whole job (scancel, preemption, kubectl delete job) does not reach all nodes at once. Every worker of
the running group gets it exactly once, and nothing new is started while it is under way."""

import signal
import time

import pytest

from support.nodes import wait_until
from support.ports import free_port

# Notes each signal, and lives on for a while so that a second one would be noted, too.
WORKER = """\
trap 'echo "$NODE $$ signalled" >>notes; is_told=1' TERM USR1
echo "$NODE $$ started" >>notes
until [ "$is_told" ]; do sleep 0.02 & wait $!; done
for _ in 1 2 3 4 5 6 7 8 9 10; do sleep 0.05 & wait $!; done
exit 0
"""
HANDLED = ["--signals-to-handle", "SIGTERM,SIGUSR1"]
NODES = ["node0", "node1", "node2"]


class Job:
    """Three agents with one worker each; node0 hosts the store."""

    def __init__(self, muster, kind, nnodes, *options):
        self.muster, self.kind, self.nnodes, self.options, self.port = muster, kind, nnodes, options, free_port()
        (muster.scratch / "worker.sh").write_text(WORKER, encoding="ascii")
        self.nodes = []

    def meeting(self, rank):
        if self.kind == "dir":
            return ["--rdzv-backend", "dir", "--rdzv-id", "job", "--rdzv-endpoint", self.muster.scratch, "--local-addr", "127.0.0.1"]
        if self.kind == "static":
            return ["--node-rank", rank, "--master-addr", "127.0.0.1", "--master-port", self.port]
        return [
            "--rdzv-backend", "c10d", "--rdzv-id", "job", "--rdzv-endpoint", f"127.0.0.1:{self.port}",
            "--rdzv-conf", f"is_host={'true' if rank == 0 else 'false'},last_call_timeout=1",
            "--local-addr", NODES[rank],
        ]  # fmt: skip

    def start(self):
        for rank, name in enumerate(NODES):
            words = ["run", "--nnodes", self.nnodes, *self.meeting(rank), *HANDLED, *self.options]
            self.nodes.append(self.muster.start([*words, "--no-python", "sh", "worker.sh"], env={"NODE": name}))
        wait_until(lambda: len(self.noted("started")) == 3, "all workers")

    def noted(self, what):
        path = self.muster.scratch / "notes"
        lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
        return [line.rsplit(" ", 1)[0] for line in lines if line.endswith(what)]

    def wait_for_world_without(self, leaver):
        """One worker of each other node runs that was not signalled. On a busy machine a round may have been given up
        before."""
        left = [name for rank, name in enumerate(NODES) if rank != leaver]

        def is_there():
            running = set(self.noted("started")) - set(self.noted("signalled"))
            return len(self.noted("started")) >= 5 and sorted(line.split()[0] for line in running) == left

        wait_until(is_there, "a world of two")

    def tell_all(self, number, first, skew):
        order = [first, *(rank for rank in range(3) if rank != first)]
        for position, rank in enumerate(order):
            if position == 1:
                time.sleep(skew)
            if self.nodes[rank].process.poll() is None:
                self.nodes[rank].signal(number)

    def finish(self):
        return [node.finish() for node in self.nodes]


def each_once(job):
    return sorted(job.noted("signalled")) == sorted(job.noted("started"))


def told(job):
    return "\n\n".join(f"{node.out()}{node.err()}" for node in job.nodes)


@pytest.mark.parametrize("skew", [0, 0.05, 1])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1], ids=["TERM", "USR1"])
@pytest.mark.parametrize("first", [0, 1], ids=["host_first", "another_first"])
@pytest.mark.parametrize("kind, nnodes", [("c10d", "2:3"), ("c10d", "3"), ("static", "3")])
def test_a_signal_to_all_nodes_reaches_each_worker_once_and_starts_none(muster, kind, nnodes, first, number, skew):
    job = Job(muster, kind, nnodes)
    job.start()
    job.tell_all(number, first, skew)
    ends = job.finish()
    assert each_once(job) and len(job.noted("started")) == 3, f"{job.noted('')}\n{told(job)}"
    assert [end.status for end in ends] == [1, 1, 1], told(job)


@pytest.mark.parametrize("policy", ["restart", "wait", "torchrun"])
@pytest.mark.parametrize("scale_up", ["immediate", "never"])
def test_a_signal_to_all_nodes_is_awaited_with_every_policy(muster, policy, scale_up):
    job = Job(muster, "c10d", "1:3", "--on-node-loss", policy, "--scale-up", scale_up, "--max-restarts", 3)
    job.start()
    job.tell_all(signal.SIGTERM, 1, 0.5)
    job.finish()
    assert each_once(job) and len(job.noted("started")) == 3, f"{job.noted('')}\n{told(job)}"


@pytest.mark.parametrize("kind, nnodes", [("c10d", "2:3"), ("c10d", "3"), ("static", "3")])
def test_a_signal_that_takes_longer_than_the_settling_reaches_each_worker_once(muster, kind, nnodes):
    """Workers that are started meanwhile get it, too."""
    job = Job(muster, kind, nnodes, "--settling-time", 0.2)
    job.start()
    job.tell_all(signal.SIGUSR1, 1, 2)
    job.finish()
    assert each_once(job), f"{job.noted('')}\n{told(job)}"


@pytest.mark.parametrize("skew", [0, 0.05, 1])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1], ids=["TERM", "USR1"])
def test_where_a_register_lets_the_others_go_on_at_once_each_worker_gets_the_signal_once(muster, number, skew):
    """Workers that are started meanwhile get it, too."""
    job = Job(muster, "dir", "2:3")
    job.start()
    job.tell_all(number, 0, skew)
    ends = job.finish()
    assert each_once(job), f"{job.noted('')}\n{told(job)}"
    assert [end.status for end in ends] == [1, 1, 1], told(job)
    assert not [end.err for end in ends if "failed" in end.err.lower()], told(job)


def test_where_too_few_would_be_left_the_others_settle_with_a_register_too(muster):
    job = Job(muster, "dir", "3")
    job.start()
    job.tell_all(signal.SIGTERM, 1, 0.5)
    assert [end.status for end in job.finish()] == [1, 1, 1], told(job)
    assert each_once(job) and len(job.noted("started")) == 3, f"{job.noted('')}\n{told(job)}"
    assert "may be on its way" in told(job)


@pytest.mark.parametrize("leaver", [0, 2])
def test_a_node_that_alone_is_told_to_end_is_done_without_at_once_where_a_register_is(muster, leaver):
    job = Job(muster, "dir", "2:3")
    job.start()
    job.nodes[leaver].signal(signal.SIGTERM)
    job.wait_for_world_without(leaver)
    assert "may be on its way" not in told(job)
    job.tell_all(signal.SIGTERM, 1, 0)
    job.finish()
    assert each_once(job), f"{job.noted('')}\n{told(job)}"


@pytest.mark.parametrize("rendezvous", ["c10d", "dir"])
def test_a_node_that_alone_is_told_to_end_is_done_without_after_the_settling_that_is_given(muster, rendezvous):
    job = Job(muster, rendezvous, "2:3", "--settling-time", 0.2)
    job.start()
    job.nodes[2].signal(signal.SIGTERM)
    job.wait_for_world_without(2)
    assert "may be on its way" in told(job)
    job.tell_all(signal.SIGTERM, 0, 0)
    job.finish()
    assert each_once(job), f"{job.noted('')}\n{told(job)}"


def test_settling_can_be_done_without(muster):
    job = Job(muster, "c10d", "2:3", "--settling-time", 0)
    job.start()
    job.nodes[2].signal(signal.SIGTERM)
    job.wait_for_world_without(2)
    assert "may be on its way" not in told(job)
    job.tell_all(signal.SIGTERM, 0, 0)
    job.finish()


def test_signals_that_do_not_stop_leave_the_exit_status_alone(muster):
    """Until the agent is gone: it does not end by a signal's default effect at last."""
    started = muster.scratch / "started"
    for _ in range(5):
        node = muster.start(["run", "--no-python", "sh", "-c", f"touch {started}; exec sleep 60"])
        wait_until(started.exists, "the worker")
        while node.process.poll() is None:
            node.signal(signal.SIGTERM)
        assert node.finish().status == 1
        started.unlink()

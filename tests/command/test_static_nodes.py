# SPDX-License-Identifier: BSD-3-Clause
"""Several nodes with fixed ranks: agents on loopback, one job."""

import signal

import pytest

from support.ports import free_port


class Job:
    """Two nodes of two workers each; worker ranks 0 and 1 are on node 0."""

    def __init__(self, muster, *options, nodes=2):
        self.muster, self.port, self.options, self.nodes = muster, free_port(), options, nodes

    def start(self, node, script, workers=2, **how):
        return self.muster.start(
            ["run", "--nnodes", self.nodes, "--node-rank", node, "--master-addr", "127.0.0.1",
             "--master-port", self.port, "--nproc-per-node", workers, *self.options,
             "--no-python", "sh", "-c", script],
            **how,
        )

    def run(self, script):
        """Both nodes to their ends."""
        nodes = [self.start(node, script) for node in (0, 1)]
        return [node.finish() for node in nodes]


def test_nodes_of_different_size_share_the_ranks(muster):
    job = Job(muster)
    script = "echo $RANK/$WORLD_SIZE $GROUP_RANK $LOCAL_RANK/$LOCAL_WORLD_SIZE $ROLE_RANK $MASTER_ADDR"
    nodes = [job.start(0, script, workers=1), job.start(1, script, workers=3)]
    first, second = [node.finish() for node in nodes]
    assert (first.status, second.status) == (0, 0), (first, second)
    assert first.out.split("\n")[:1] == ["0/4 0 0/1 0 127.0.0.1"]
    assert sorted(second.out.splitlines()) == [f"{rank}/4 1 {rank - 1}/3 {rank} 127.0.0.1" for rank in (1, 2, 3)]


@pytest.mark.parametrize("failing", [0, 3])
def test_a_failure_on_one_node_restarts_both_into_the_same_attempt(muster, scratch, failing):
    script = (
        ": >up.$RANK.$TORCHELASTIC_RESTART_COUNT; "
        "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && echo $RANK attempt $TORCHELASTIC_RESTART_COUNT && exit 0; "
        f"[ $RANK = {failing} ] || exec sleep 300; "
        "while [ $(ls up.*.0 | wc -l) -lt 4 ]; do sleep 0.01; done; exit 9"
    )
    ends = Job(muster, "--max-restarts", 1).run(script)
    assert [end.status for end in ends] == [0, 0], ends
    lines = sorted(line for end in ends for line in end.out.splitlines())
    assert lines == [f"{rank} attempt 1" for rank in range(4)]
    followed = ["another node restarts its workers" in end.err for end in ends]
    assert followed == [failing == 3, failing == 0], ends


def test_every_attempt_of_a_static_job_finds_a_fresh_store(muster, scratch):
    script = (
        f'"{muster.binary}" store get left-over --timeout 0 >found.$RANK.$TORCHELASTIC_RESTART_COUNT 2>/dev/null; '
        f'"{muster.binary}" store set left-over old; : >up.$RANK.$TORCHELASTIC_RESTART_COUNT; '
        "while [ $(ls up.*.$TORCHELASTIC_RESTART_COUNT | wc -l) -lt 4 ]; do sleep 0.01; done; "
        "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || [ $RANK != 3 ]"
    )
    ends = Job(muster, "--max-restarts", 1).run(script)
    assert [end.status for end in ends] == [0, 0], ends
    # whoever came first in an attempt found nothing
    for attempt in (0, 1):
        assert any(not (scratch / f"found.{rank}.{attempt}").read_text() for rank in range(4))


def test_a_final_failure_on_one_node_ends_the_other_at_once(muster):
    ends = Job(muster).run("[ $RANK = 2 ] && exit 9; exec sleep 300")
    assert [end.status for end in ends] == [1, 1]
    assert "another node failed" in ends[0].err and "node 1" in ends[0].err
    assert "exitcode  : 9" in ends[1].err


def test_of_nodes_that_fail_at_once_the_first_has_the_report(muster, scratch):
    """The host of the store ends last, so that all others can read whose failure was first."""
    script = (
        ": >up.$RANK; trap '' TERM; while [ $(ls up.* | wc -l) -lt 4 ]; do sleep 0.01; done; "
        "[ $RANK = 0 ] || exit 9; until [ -e over ]; do sleep 0.01; done"
    )
    job = Job(muster, nodes=4)
    nodes = [job.start(node, script, workers=1) for node in range(4)]
    ends = [node.finish() for node in nodes[1:]]
    (scratch / "over").touch()
    ends.append(nodes[0].finish())
    assert [end.status for end in ends] == [1, 1, 1, 1], ends
    assert sum("ChildFailedError" in end.err for end in ends) == 1, ends
    first = ["ChildFailedError" in end.err for end in ends].index(True) + 1
    assert sum(f"a node failed (node {first})" in end.err for end in ends) == 3, ends


@pytest.mark.parametrize("node", [0, 1])
def test_a_node_ended_by_a_signal_takes_the_other_with_it(muster, scratch, node):
    job = Job(muster)
    script = ": >up.$RANK; exec sleep 300"
    nodes = [job.start(0, script), job.start(1, script)]
    nodes[0].wait_until(lambda: len(list(scratch.glob("up.*"))) == 4, "all workers")
    nodes[node].signal(signal.SIGTERM)
    ends = [one.finish() for one in nodes]
    assert [end.status for end in ends] == [1, 1]


def test_a_node_told_to_end_while_others_are_awaited_tells_those_that_wait(muster):
    job = Job(muster, "--nnodes", 3)
    nodes = [job.start(rank, "true", env={"LOGLEVEL": "DEBUG"}) for rank in (0, 1)]
    for node in nodes:
        node.wait_until(lambda node=node: "set_role_info" in node.err(), "the meeting")
    nodes[1].signal(signal.SIGTERM)
    ends = [one.finish() for one in nodes]
    assert [end.status for end in ends] == [1, 1]
    assert "a node was told to end by SIGTERM (node 1)" in ends[0].err


def meeting(job, *ranks):
    """Nodes that wait for one more."""
    nodes = [job.start(rank, "exit 0", workers=1, env={"LOGLEVEL": "DEBUG"}) for rank in ranks]
    for node in nodes:
        node.wait_until(lambda node=node: "set_role_info" in node.err(), "the meeting", 60)
    return nodes


def warns(node, words):
    return any(words in line for line in node.err().splitlines(keepends=True) if line[0] == "W" and line[-1] == "\n")


@pytest.mark.parametrize("leaving", ["the one that came first", "the one that came last"])
def test_two_nodes_with_one_rank_are_told_and_one_of_them_takes_part(muster, leaving):
    job = Job(muster, "--nnodes", 3)
    zero, first = meeting(job, 0, 1)
    last = job.start(1, "exit 0", workers=1, env={"LOGLEVEL": "DEBUG"})
    last.wait_until(lambda: warns(last, "rank 1 (--node-rank) belongs to another node"), "the warning of the last", 60)
    first.wait_until(lambda: warns(first, "another node has come with rank 1 (--node-rank)"), "the warning of the first", 60)
    assert f"(pid {first.pid})" in last.err() and f"(pid {last.pid})" in first.err()
    assert "set_role_info" not in last.err()
    staying, gone = (last, first) if leaving.endswith("first") else (first, last)
    gone.process.kill()
    staying.wait_until(lambda: "set_role_info" in staying.err(), "its part in the meeting", 60)
    ends = [node.finish() for node in (job.start(2, "exit 0", workers=1), zero, staying)]
    assert [end.status for end in ends] == [0, 0, 0], ends


def test_a_node_that_waits_with_anothers_rank_ends_without_the_job(muster):
    job = Job(muster, "--nnodes", 3)
    nodes = meeting(job, 0, 1)
    second = job.start(1, "exit 0", workers=1)
    second.wait_until(lambda: warns(second, "rank 1 (--node-rank) belongs to another node"), "the warning", 60)
    second.signal(signal.SIGTERM)
    assert second.finish().status == 1
    ends = [node.finish() for node in (job.start(2, "exit 0", workers=1), *nodes)]
    assert [end.status for end in ends] == [0, 0, 0], ends


def test_a_node_that_is_started_again_during_the_meeting_takes_part(muster):
    job = Job(muster, "--nnodes", 3)
    zero, first = meeting(job, 0, 1)
    first.process.kill()
    first.process.wait()
    (again,) = meeting(job, 1)
    ends = [node.finish() for node in (job.start(2, "exit 0", workers=1), zero, again)]
    assert [end.status for end in ends] == [0, 0, 0], ends


def test_a_killed_master_node_ends_the_other_at_once(muster, scratch):
    job = Job(muster)
    script = ": >up.$RANK; exec sleep 300"
    nodes = [job.start(0, script), job.start(1, script)]
    nodes[0].wait_until(lambda: len(list(scratch.glob("up.*"))) == 4, "all workers")
    nodes[0].process.kill()
    end = nodes[1].finish()
    assert end.status == 1
    assert "store is gone" in end.err


def test_a_node_whose_workers_fail_when_the_master_node_is_gone_has_its_own_report(muster, scratch):
    """Nobody can know which node failed first, so each tells what it has seen."""
    job = Job(muster, nodes=3)
    script = (
        "trap '' TERM; : >up.$RANK; [ $GROUP_RANK = 1 ] || exec sleep 300; "
        "until [ -e gone ]; do sleep 0.01; done; exit 9"
    )
    nodes = [job.start(node, script, workers=1) for node in range(3)]
    nodes[0].wait_until(lambda: len(list(scratch.glob("up.*"))) == 3, "all workers")
    nodes[0].process.kill()
    nodes[1].wait_until(lambda: "closing signal" in nodes[1].err(), "the end of the job")
    (scratch / "gone").touch()
    end = nodes[1].finish()
    assert end.status == 1 and "store is gone (node 0)" in end.err, end
    assert "ChildFailedError" in end.err and "exitcode  : 9" in end.err, end
    nodes[2].process.kill()


def test_a_node_that_restarts_when_the_master_node_is_gone_has_its_report(muster, scratch):
    """It waits for the next attempt, which never comes; the attempt before is what there is to tell."""
    job = Job(muster, "--max-restarts", 1)
    script = "trap '' TERM; : >up.$RANK; [ $GROUP_RANK = 1 ] || exec sleep 300; until [ -e fail ]; do sleep 0.01; done; exit 9"
    nodes = [job.start(node, script, workers=1) for node in range(2)]
    nodes[0].wait_until(lambda: len(list(scratch.glob("up.*"))) == 2, "all workers")
    (scratch / "fail").touch()
    nodes[0].wait_until(lambda: "closing signal" in nodes[0].err(), "the restart")
    nodes[0].process.kill()
    end = nodes[1].finish()
    assert end.status == 1 and "store is gone (node 0)" in end.err, end
    assert "ChildFailedError" in end.err and "exitcode  : 9" in end.err, end


def test_a_finished_node_waits_for_the_other(muster, scratch):
    job = Job(muster)
    script = "[ $GROUP_RANK = 0 ] || while [ ! -e go ]; do sleep 0.01; done; : >done.$RANK"
    nodes = [job.start(0, script), job.start(1, script)]
    nodes[0].wait_until(lambda: len(list(scratch.glob("done.[01]"))) == 2, "the workers of node 0")
    assert nodes[0].process.poll() is None
    (scratch / "go").touch()
    assert [node.finish().status for node in nodes] == [0, 0]


def test_a_node_that_never_comes_is_reported_when_time_is_up(muster):
    job = Job(muster, "--rdzv-conf", "timeout=1")
    end = job.start(0, "exit 0").finish()
    assert end.status == 1
    assert "not all nodes joined in time: the job needs all of its 2 nodes (--nnodes)" in end.err
    assert "within 1 s (--rdzv-conf timeout)" in end.err


def test_an_unreachable_master_is_named(muster):
    job = Job(muster, "--rdzv-conf", "timeout=1")
    end = job.start(1, "exit 0").finish()
    assert end.status == 1
    assert f"127.0.0.1:{job.port}" in end.err


@pytest.mark.parametrize("said", ["option", "variable"])
def test_a_host_that_is_done_keeps_the_store_for_those_who_are_not(muster, said):
    """However long they work; what is over sooner is the waiting of a node that nobody needs."""
    job = Job(muster, *(["--exit-barrier-timeout", 0.2] if said == "option" else []))
    variable = {"TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT": "0.2"} if said == "variable" else {}
    host = job.start(0, "exit 0", env=variable)
    other = job.start(1, "until [ -e done ]; do sleep 0.05; done", env=variable)
    host.wait_until(lambda: "keeps it until they are done" in host.err(), "the end of its waiting")
    (muster.scratch / "done").touch()
    assert [host.finish().status, other.finish().status] == [0, 0], (host.err(), other.err())
    assert "keeps it" not in other.err()


def test_a_host_that_is_done_does_not_wait_for_the_dead(muster):
    job = Job(muster, "--exit-barrier-timeout", 0)
    host = job.start(0, "exit 0")
    other = job.start(1, ": >up; exec sleep 300")
    host.wait_until(lambda: "keeps it until they are done" in host.err(), "the end of its waiting")
    host.wait_until((muster.scratch / "up").exists, "the other's worker")
    other.signal(signal.SIGKILL)
    other.finish()
    assert host.finish().status == 0, host.err()


def test_a_node_that_nobody_needs_waits_only_so_long(muster):
    job = Job(muster, "--exit-barrier-timeout", 0)
    host = job.start(0, "until [ -e done ]; do sleep 0.05; done")
    other = job.start(1, "exit 0")
    assert other.finish().status == 0
    (muster.scratch / "done").touch()
    assert host.finish().status == 0

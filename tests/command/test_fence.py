# SPDX-License-Identifier: BSD-3-Clause
"""An agent that stands still: its guardian ends its workers before the others begin a world without it."""

import pathlib
import signal
import time

from support.nodes import WORKER

# A sign of life every second; two seconds after the last one, before the third is missed, the guardian acts.
CONF = ["keep_alive_interval=1", "keep_alive_max_attempt=3"]
SAID = "its guardian has ended its workers"

# A worker that is alone in its world says which workers of earlier worlds run beside it.
WATCHING = """\
[ "$WORLD_SIZE" = 1 ] && for line in $(sed -n 's/.* pid=//p' worlds 2>/dev/null); do
    state=$(sed 's/.*) //' /proc/$line/stat 2>/dev/null) || continue
    case $state in Z*|X*|'') ;; *) echo "$$ beside $line" >>beside ;; esac
done
""" + WORKER


def test_no_worker_of_a_stalled_agent_runs_beside_the_new_world(make_job_anywhere):
    job = make_job_anywhere("1:2", conf=CONF, restarts=0)
    script = job.muster.script("watching.sh", WATCHING)
    host = job.start_host(script=script)
    stalled = job.start("node2", script=script)
    first = job.wait_for_world("node1", "node2")
    stalled.signal(signal.SIGSTOP)
    second = job.wait_for_world("node1")
    assert not (job.scratch / "beside").exists(), (job.scratch / "beside").read_text()
    assert not first.of("node2").is_running()
    stalled.wait_for_log(SAID)
    stalled.signal(signal.SIGCONT)
    third = job.wait_for_world("node1", "node2")
    assert third.restarts == {0} and second.restarts == {0}, job.tell()
    stalled.wait_for_log("stood still for")
    assert SAID not in host.err()
    third.end()
    assert job.succeeds()


def test_the_guardian_tells_a_host_that_hears_rarely_of_each_node(make_job):
    """Of 1600 nodes the host hears of each every 50 s, and would miss one after 150 s."""
    job = make_job("1:1600", conf=CONF, restarts=0)
    host = job.start_host()
    stalled = job.start("node2")
    first = job.wait_for_world("node1", "node2")
    stalled.signal(signal.SIGSTOP)
    job.wait_for_world("node1")
    assert not first.of("node2").is_running()
    stalled.wait_for_log(SAID)
    stalled.signal(signal.SIGCONT)
    third = job.wait_for_world("node1", "node2")
    assert third.restarts == {0}, job.tell()
    assert "is taken to have stalled" not in host.err()
    third.end()
    assert job.succeeds()


def test_the_end_of_an_agent_whose_guardian_holds_its_connection_is_known_at_once(make_job):
    job = make_job("1:1600", restarts=0)
    host = job.start_host()
    killed = job.start("node2")
    job.wait_for_world("node1", "node2")
    killed.kill()
    second = job.wait_for_world("node1")
    leaver = job.start("node3")
    job.wait_for_world("node1", "node3")
    leaver.signal(signal.SIGTERM)
    third = job.wait_for_world("node1")
    assert second.restarts == third.restarts == {0}
    third.end()
    assert host.finish().status == 0


def test_a_host_that_stood_still_begins_a_new_round_for_nothing(make_job):
    job = make_job("1:2", conf=CONF, restarts=0)
    host = job.start_host()
    job.start("node2")
    first = job.wait_for_world("node1", "node2")
    host.signal(signal.SIGSTOP)
    first.of("node1").wait_until_gone()
    host.wait_for_log(SAID)
    host.signal(signal.SIGCONT)
    second = job.wait_for_world("node1", "node2")
    assert second.restarts == {0}, job.tell()
    second.end()
    assert job.succeeds()


def test_a_node_alone_may_stand_still(make_job):
    job = make_job("1:2", conf=["keep_alive_interval=1", "keep_alive_max_attempt=2"])
    host = job.start_host()
    world = job.wait_for_world("node1")
    host.signal(signal.SIGSTOP)
    time.sleep(2.5)  # a guardian that is wrong needs 1 s
    host.signal(signal.SIGCONT)
    assert world.of("node1").is_running()
    world.end()
    assert job.succeeds()
    assert SAID not in host.err()
    assert pathlib.Path(job.scratch / "worlds").read_text().count("\n") == 1

# SPDX-License-Identifier: BSD-3-Clause
"""/metrics of a running agent, read with Prometheus' own client library."""

import json
import sys

from prometheus_client import parser

from support import timers
from support.probes import SERVING, Probe
from support.store import RawClient

# Fails once; the second attempt uses the store, writes 1000 bytes and waits.
WORKER = """
import os, socket, sys, time
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    sys.exit(3)
sys.stdout.write("x" * 999 + "\\n")
sys.stdout.flush()
with socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))) as store:
    magic, ping = 0x3C85F7CE, b"\\x0d" + b"\\0" * 4
    store.sendall(b"\\x00" + magic.to_bytes(4, sys.byteorder) + ping)
    store.recv(4, socket.MSG_WAITALL)
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.02)
"""


def start(muster, *options):
    path = muster.scratch / "worker.py"
    path.write_text(WORKER)
    return muster.start(["run", "--nproc-per-node", 1, *options, path], env={**SERVING, "PYTHON_EXEC": sys.executable})


def test_a_restarted_job_is_told_in_numbers(muster, scratch):
    running = start(muster, "--max-restarts", 2, "--log-dir", scratch / "logs", "-r", 3)
    probe = Probe(running)
    running.wait_until((scratch / "ready").exists, "the second attempt")
    running.wait_until(lambda: probe.metrics()["muster_log_bytes_total"] == 1000, "the log bytes")
    samples = probe.metrics()
    assert samples["muster_phase{running}"] == 1
    assert samples["muster_phase{restarting}"] == 0
    assert samples["muster_workers"] == samples["muster_workers_running"] == 1
    assert samples["muster_restarts_total{worker_failure}"] == 1
    assert samples["muster_restarts_total{peer}"] == samples["muster_restarts_total{membership_change}"] == 0
    assert samples["muster_restarts_left"] == 1
    assert samples["muster_worker_exits_total{failed}"] == 1
    assert samples["muster_activity_seconds_count{rendezvous}"] == 2
    assert samples["muster_activity_seconds_count{start}"] == 2
    assert samples["muster_activity_seconds_count{monitor}"] == samples["muster_activity_seconds_count{stop}"] == 1
    assert samples["muster_activity_failures_total{monitor}"] == 1
    assert 0 < samples["muster_activity_seconds_sum{start}"] < 60
    assert samples["muster_store_operations_total{workers}"] >= 1
    assert samples["muster_store_operations_total{rendezvous}"] == 0
    assert "muster_timers_live" not in samples
    (scratch / "go").touch()
    assert running.finish().status == 0


def test_workers_that_are_stopped_for_anothers_failure_have_not_failed(muster, scratch):
    script = """
if ATTEMPT == 0 and RANK == 0:
    sys.exit(3)
note("ready")
while not os.path.exists("go"):
    time.sleep(0.02)
"""
    running = timers.start(muster, script, "--max-restarts", 1, workers=3, **SERVING)
    probe = Probe(running)
    running.wait_until(lambda: all((scratch / f"ready.{rank}.1").exists() for rank in range(3)), "the second attempt")
    samples = probe.metrics()
    assert samples["muster_worker_exits_total{failed}"] == 1
    assert samples["muster_worker_exits_total{stopped}"] == 2
    assert samples["muster_worker_exits_total{succeeded}"] == 0
    (scratch / "go").touch()
    assert running.finish().status == 0


def test_the_watchdogs_work_is_told_in_numbers(muster, scratch):
    script = """
acquire("held", 600)
acquire("hangs", 0.1) if ATTEMPT == 0 else note("ready")
while not os.path.exists("go"):
    time.sleep(0.02)
"""
    running = timers.start(muster, script, "--max-restarts", 1, workers=1, **SERVING)
    probe = Probe(running)
    running.wait_until((scratch / "ready.0.1").exists, "the second attempt")
    running.wait_until(lambda: probe.metrics()["muster_timers_live"] == 1, "the timer")
    samples = probe.metrics()
    assert samples["muster_timer_requests_total"] == 3
    assert samples["muster_timers_expired_total"] == 1
    assert samples["muster_timer_kill_latency_seconds_count"] == 1
    assert 0 < samples["muster_timer_kill_latency_seconds_sum"] < 10
    (scratch / "go").touch()
    assert running.finish().status == 0


def count_operations(probe):
    """Of the stores of the workers and of the rendezvous."""
    samples = probe.metrics()
    return [samples[f"muster_store_operations_total{{{store}}}"] for store in ("workers", "rendezvous")]


def restarts(probe):
    samples = probe.metrics()
    return {cause: samples[f"muster_restarts_total{{{cause}}}"] for cause in ("worker_failure", "peer", "membership_change")}


def test_a_node_that_goes_is_a_change_of_membership(make_job):
    job = make_job("1:2", env=SERVING)
    probe = Probe(job.start_host("node1").running)
    lost = job.start("node2")
    job.wait_for_world("node1", "node2")
    lost.kill()
    world = job.wait_for_world("node1")
    assert restarts(probe) == {"worker_failure": 0, "peer": 0, "membership_change": 1}
    probe.wait_for_phase("running")
    world.end()
    assert job.succeeds()


def test_the_stores_of_several_nodes_are_told_apart(make_job):
    """Who hosts the rendezvous counts there; who serves a round's workers counts them, round after round."""
    job = make_job(2, env=SERVING)
    probes = {"node1": Probe(job.start_host("node1").running), "node2": Probe(job.start("node2").running)}
    before = 0
    for failing in (True, False):
        world = job.wait_for_world("node1", "node2")
        with RawClient(int(world.store.split(":")[1])) as client:
            client.ping()
        workers, rendezvous = count_operations(probes["node1"])
        assert workers > before and rendezvous > 0
        assert count_operations(probes["node2"]) == [0, 0]
        before = workers
        if failing:
            world.of("node2").end(3)
    assert restarts(probes["node2"]) == {"worker_failure": 1, "peer": 0, "membership_change": 0}
    assert restarts(probes["node1"]) == {"worker_failure": 0, "peer": 1, "membership_change": 0}
    world.end()
    assert job.succeeds()


def test_a_rendezvous_in_a_file_is_served_by_nobody(make_job_anywhere):
    job = make_job_anywhere("1:2", env=SERVING)
    probe = Probe(job.start_host("node1").running)
    world = job.wait_for_world("node1")
    with RawClient(int(world.store.split(":")[1])) as client:
        client.ping()
    workers, rendezvous = count_operations(probe)
    assert workers >= 1 and (rendezvous > 0) == job.is_tcp
    world.end()
    assert job.succeeds()


def test_a_run_id_of_any_text_stays_readable(muster, scratch):
    run_id = 'a"b\\c\nd é'
    running = start(muster, "--max-restarts", 1, "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", run_id)
    probe = Probe(running)
    status, _, body = probe.get("/metrics")
    family = next(family for family in parser.text_string_to_metric_families(body) if family.name == "muster_info")
    assert family.samples[0].labels["run_id"] == run_id
    assert json.loads(probe.get("/health")[2])["run_id"] == run_id
    (scratch / "go").touch()
    assert running.finish().status == 0

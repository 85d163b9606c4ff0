# SPDX-License-Identifier: BSD-3-Clause
"""/metrics of a running agent, read with Prometheus' own client library."""

import json
import os
import pathlib
import re
import sys

import pytest
from prometheus_client import parser

from support import timers
from support.binary import ROOT
from support.nodes import wait_until
from support.probes import SERVING, Probe
from support.store import RawClient

BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))

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


def job_samples(probe):
    return {name: value for name, value in probe.metrics().items() if name.startswith("muster_job_")}


def test_the_host_alone_tells_of_the_whole_job(make_job):
    job = make_job("2:3", env=SERVING)
    host = Probe(job.start_host("node1").running)
    other = Probe(job.start("node2").running)
    world = job.wait_for_world("node1", "node2")
    world.of("node2").end(3)
    world = job.wait_for_world("node1", "node2")
    wait_until(lambda: job_samples(host).get("muster_job_recoveries_total{worker_failed}") == 1, "the recovery")
    samples = host.metrics()
    assert not job_samples(other)
    states = {name: value for name, value in samples.items() if name.startswith("muster_job_state")}
    assert sum(states.values()) == states["muster_job_state{running}"] == 1 and len(states) == 8
    nodes = {kind: samples[f"muster_job_nodes{{{kind}}}"] for kind in ("here", "min", "max", "lost", "spare")}
    assert nodes == {"here": 2, "min": 2, "max": 3, "lost": 0, "spare": 0}
    assert (samples["muster_job_workers"], samples["muster_job_round"]) == (2, 1)
    assert (samples["muster_job_restarts_used"], samples["muster_job_restarts_max"]) == (1, 3)
    assert samples["muster_job_recovery_seconds_count{whole}"] == samples["muster_job_recovery_seconds_bucket{whole}{+Inf}"] == 1
    phases = [samples[f"muster_job_recovery_seconds_sum{{{phase}}}"] for phase in ("noticed", "stopped", "agreed", "started")]
    assert sum(phases) == pytest.approx(samples["muster_job_recovery_seconds_sum{whole}"], abs=1e-5)
    recovering = samples["muster_job_seconds_total{recovering}"]
    assert recovering == pytest.approx(samples["muster_job_recovery_seconds_sum{whole}"], abs=1e-5)
    assert "muster_job_step" not in samples and "muster_job_seconds_total{training_kept}" not in samples
    assert [probe.metrics()["muster_node_failed_first_total"] for probe in (host, other)] == [0, 1]
    assert sorted(probe.metrics()["muster_node_rank"] for probe in (host, other)) == [0, 1]
    world.end()
    assert job.succeeds()


def test_the_next_host_tells_of_the_job(make_job, scratch):
    register = scratch / "register"
    register.mkdir(mode=0o700)
    job = make_job("1:2", "--rdzv-backend", "dir", path=register, env=SERVING)
    host = job.start("node1")
    host.wait_for_log("this node hosts the store")
    first, second = Probe(host.running), Probe(job.start("node2").running)
    job.wait_for_world("node1", "node2")
    wait_until(lambda: job_samples(first).get("muster_job_state{running}") == 1, "the host's word")
    assert not job_samples(second)
    host.kill()
    world = job.wait_for_world("node2")
    wait_until(lambda: job_samples(second).get("muster_job_state{running}") == 1, "the next host's word")
    assert second.metrics()["muster_job_workers"] == 1
    world.end()
    assert job.succeeds()


@pytest.mark.plain_build
def test_a_clock_that_is_ahead_is_told(make_job):
    shim = BUILD / "tests" / "libother_clock.so"
    assert shim.is_file(), f"{shim} is not built"
    job = make_job(2, env=SERVING)
    host = Probe(job.start_host("node1").running)
    other = Probe(job.start("node2", env={"LD_PRELOAD": shim, "CLOCK_AHEAD": "5"}).running)
    world = job.wait_for_world("node1", "node2")
    wait_until(lambda: "muster_node_clock_offset_seconds" in other.metrics(), "the host's clock")
    assert host.metrics()["muster_node_clock_offset_seconds"] == 0
    assert other.metrics()["muster_node_clock_offset_seconds"] == pytest.approx(5, abs=1.1)
    world.end()
    assert job.succeeds()


def test_the_page_of_metrics_has_every_family_and_no_other():
    told = set(re.findall(r'"(muster_[a-z_]+)"', (ROOT / "src/agent/telling/agent_metrics.c").read_text(encoding="utf-8")))
    named = re.findall(r"`(muster_[a-z_]+)", (ROOT / "docs/metrics.md").read_text(encoding="utf-8"))
    manual = (ROOT / "man/muster.1.scd").read_text(encoding="utf-8").replace("\\_", "_")
    assert len(told) > 30 and set(named) == told
    assert [name for name in sorted(told) if name not in manual and "standby" not in name] == []


# Metrics in a file.


def test_a_file_has_the_metrics_while_the_job_runs_and_after_its_end(muster, scratch):
    (scratch / "job.prom").touch()
    (scratch / "link.prom").symlink_to("job.prom")
    running = muster.start(["run", "--metrics-file", "link.prom", "--no-python", "sh", "-c", "read line || true"], stdin=-1)
    path = scratch / "job.prom"
    running.wait_until(lambda: "muster_phase" in path.read_text(), "the file")
    running.process.stdin.close()
    assert running.finish().status == 0
    families = {family.name: family for family in parser.text_string_to_metric_families(path.read_text())}
    ended = [sample.labels["state"] for sample in families["muster_job_state"].samples if sample.value == 1]
    assert ended == ["ended"]
    assert sorted(found.name for found in scratch.glob("*.prom*")) == ["job.prom", "link.prom"]
    assert (scratch / "link.prom").is_symlink() and path.stat().st_mode & 0o444 == 0o444


def test_a_file_that_cannot_be_written_is_said_once_and_costs_nothing(muster, scratch):
    (scratch / "directory.prom").mkdir()
    for path, why in (("missing/job.prom", "No such file or directory"), ("directory.prom", "it is no regular file")):
        end = muster.run(["run", "--metrics-file", path, "--no-python", "sh", "-c", "echo done"])
        assert end.status == 0 and end.out == "done\n", end
        assert end.err.count(f"metrics are lost, '{path}' does not take them: ") == 1 and why in end.err, end
        assert "were not written" not in end.err, end


def test_a_disk_without_room_keeps_what_it_has(muster, scratch):
    (scratch / "job.prom").write_text("before\n")
    job = f"{muster.binary} run --metrics-file job.prom --no-python true"
    end = muster.start(["-c", f"(ulimit -f 1; {job}) 2>&1 >/dev/null | cat"], program="bash").finish()
    assert "metrics are lost, 'job.prom' does not take them: write: File too large" in end.out, end
    assert (scratch / "job.prom").read_text() == "before\n"
    assert [path.name for path in scratch.glob("job.prom*")] == ["job.prom"]


@pytest.mark.plain_build
def test_a_disk_that_never_answers_holds_up_no_job(muster, scratch):
    shim = BUILD / "tests" / "libhung_disk.so"
    (scratch / "dead").touch()
    disk = {"LD_PRELOAD": shim, "HUNG_PATH": "job.prom", "HUNG_SINCE": scratch.resolve() / "dead"}
    end = muster.run(["run", "--max-restarts", 2, "--metrics-file", "job.prom", "--no-python", "sh", "-c",
                      "test $TORCHELASTIC_RESTART_COUNT = 2 && echo done"], env=disk)  # fmt: skip
    assert end.status == 0 and end.out == "done\n", end
    assert end.err.count("metrics are lost, 'job.prom' does not take them: it does not answer") == 1, end
    assert not (scratch / "job.prom").exists()

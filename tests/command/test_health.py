# SPDX-License-Identifier: BSD-3-Clause
"""Probes of a running agent: every phase of its life is told, and none of them is death."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from support import timers
from support.ports import free_port
from support.probes import SERVING, Probe

# Ends when `go` is there, however it is asked to. One that fails waits until the other can be asked.
STUBBORN = """#!/bin/sh
trap ': >asked.$RANK' TERM
: >ready.$RANK.$TORCHELASTIC_RESTART_COUNT
if test -e fail.$RANK.$TORCHELASTIC_RESTART_COUNT; then
    until test -e ready.0.$TORCHELASTIC_RESTART_COUNT; do sleep 0.02; done
    exit 1
fi
while ! test -e go; do sleep 0.02; done
"""


def start(muster, *options, workers=2, **environment):
    path = muster.script("worker", STUBBORN)
    command = ["run", "--nproc-per-node", workers, *options, "--no-python", path]
    return muster.start(command, env={**SERVING, **environment})


def test_a_running_job_is_alive(muster, scratch):
    running = start(muster, "--max-restarts", 4, "--rdzv-id", "job7", "--rdzv-endpoint", "localhost:0", "--rdzv-backend", "c10d")
    health = Probe(running).wait_for_phase("running")
    assert health["status"] == "alive"
    assert health["run_id"] == "job7"
    assert (health["workers"], health["running_workers"]) == (2, 2)
    assert (health["restarts"], health["max_restarts"]) == (0, 4)
    assert health["seconds_since_progress"] == 0
    (scratch / "go").touch()
    assert running.finish().status == 0


def test_a_node_that_waits_for_others_is_joining(muster, scratch):
    running = start(muster, "--nnodes", 2, "--node-rank", 0, "--master-port", free_port())
    probe = Probe(running)
    assert probe.wait_for_phase("joining")["running_workers"] == 0
    assert probe.phase_of_metrics() == "joining"
    running.signal(signal.SIGTERM)
    assert running.finish().status == 1


def test_workers_that_take_their_time_to_end_are_restarting_and_draining(muster, scratch):
    (scratch / "fail.1.0").touch()
    running = start(muster, "--max-restarts", 1)
    probe = Probe(running)
    health = probe.wait_for_phase("restarting")
    assert health["restarts"] == 1
    assert probe.phase_of_metrics() == "restarting"
    (scratch / "go").touch()
    running.wait_until((scratch / "asked.0").exists, "the first stop")
    (scratch / "fail.1.0").unlink()
    assert running.finish().status == 0

    for name in ("go", *(path.name for path in scratch.glob("ready.*"))):
        (scratch / name).unlink()
    running = start(muster)
    probe = Probe(running)
    probe.wait_for_phase("running")
    assert probe.phase_of_metrics() == "running"
    running.wait_until(lambda: len(list(scratch.glob("ready.*"))) == 2, "workers that can be asked to end")
    running.signal(signal.SIGTERM)
    assert probe.wait_for_phase("draining")["running_workers"] == 2
    assert probe.phase_of_metrics() == "draining"
    (scratch / "go").touch()
    assert running.finish().status == 1


def test_other_paths_and_methods_are_refused(muster, scratch):
    running = start(muster)
    probe = Probe(running)
    assert probe.get("/")[0] == 404
    assert probe.get("/health/../health")[0] == 404
    sent = subprocess.run(
        ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", "x", f"http://127.0.0.1:{probe.port}/health"],
        capture_output=True, text=True, timeout=20,
    )  # fmt: skip
    assert sent.stdout == "405"
    (scratch / "go").touch()
    assert running.finish().status == 0


def ask_as(probe, host, path="/health"):
    """The status that a request with this Host gets; None: it has none."""
    with socket.create_connection(("127.0.0.1", probe.port), 10) as asking:
        header = b"" if host is None else b"Host: " + host.encode() + b"\r\n"
        asking.sendall(b"GET " + path.encode() + b" HTTP/1.0\r\n" + header + b"\r\n")
        return int(asking.makefile("rb").readline().split()[1])


def test_a_page_of_another_domain_reads_nothing(muster, scratch):
    """A browser says in Host by which name it asks, and a name server may call this machine anything."""
    running = start(muster, MUSTER_HEALTH_CHECK_HOSTS="metrics.example *.monitoring.svc")
    probe = Probe(running)
    own = socket.gethostname()
    for path in ("/health", "/metrics"):
        others = ("evil.example", f"evil.example:{probe.port}", f"{own}.evil.example", "127.0.0.1.evil.example", "evil")
        assert [ask_as(probe, host, path) for host in others] == [421] * len(others)
        names = (None, "127.0.0.1", f"10.1.2.3:{probe.port}", f"[::1]:{probe.port}", "localhost:1", own, own.upper() + ":80")
        given = ("metrics.example", "train.monitoring.svc:8080")
        assert [ask_as(probe, host, path) for host in names + given] == [200] * len(names + given)
    (scratch / "go").touch()
    assert running.finish().status == 0


def test_prometheus_may_ask_by_the_machines_full_name(muster, scratch, make_network):
    """The one that the resolver has."""
    network = make_network(1)
    one = network.hosts[0]
    network.name_hosts(network.hosts, {one.name: f"{one.name}.cluster.example {one.name}"})
    path = muster.script("worker", STUBBORN)
    running = muster.start(["run", "--no-python", path], env=SERVING, on=one)
    probe = Probe(running)
    ask = "import http.client, sys; c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1])); "
    ask += "c.putrequest('GET', '/metrics', skip_host=True); c.putheader('Host', sys.argv[2]); c.endheaders(); "
    ask += "print(c.getresponse().status)"

    def status(host):
        return one.run("/usr/bin/python3", "-c", ask, probe.port, host).strip()

    running.wait_until(lambda: status(f"{one.name}.cluster.example:{probe.port}") == "200", "the full name")
    assert [status(one.name), status(f"{one.name}.evil.example")] == ["200", "421"]
    (scratch / "go").touch()
    assert running.finish().status == 0


def test_a_thousand_silent_clients_and_endless_requests_are_bounded(muster, scratch):
    running = start(muster)
    probe = Probe(running)
    probe.wait_for_phase("running")
    endless = b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 100_000
    before = len(os.listdir(f"/proc/{running.pid}/fd"))
    clients = []
    try:
        for _ in range(1000):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", probe.port))
            clients.append(client)
        for path in ("/health", "/metrics", "/" + 100_000 * "x"):
            asking = http.client.HTTPConnection("127.0.0.1", probe.port, 30)
            asking.request("GET", path)
            assert asking.getresponse().status == (414 if len(path) > 9 else 200)
            asking.close()
        with socket.create_connection(("127.0.0.1", probe.port), 30) as talking:
            with contextlib.suppress(ConnectionError):
                talking.sendall(endless)
                assert talking.recv(12) in (b"HTTP/1.1 431", b"HTTP/1.1 413", b"")
        assert len(os.listdir(f"/proc/{running.pid}/fd")) <= before + 50
    finally:
        for client in clients:
            client.close()
    assert probe.health()["phase"] == "running"
    (scratch / "go").touch()
    assert running.finish().status == 0


def test_a_port_that_is_taken_costs_the_probes_only(muster, scratch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        end = muster.run(
            ["run", "--no-python", "true"],
            env={"TORCHELASTIC_HEALTH_CHECK_PORT": port, "MUSTER_HEALTH_CHECK_ADDRESS": "127.0.0.1"},
        )
    assert end.status == 0, end
    assert f"no health is served: cannot listen on 127.0.0.1: port {port} is taken" in end.err, end


def test_curl_and_prometheus_can_read_it(muster, scratch):
    running = start(muster)
    port = Probe(running).port
    read = [
        subprocess.run(["curl", "-sS", "--fail", f"http://127.0.0.1:{port}/{path}"], capture_output=True, text=True, timeout=30)
        for path in ("health", "metrics")
    ]
    assert [curl.returncode for curl in read] == [0, 0], read
    assert json.loads(read[0].stdout)["status"] == "alive"
    assert re.search(r"^muster_workers\{[^\n]*\} 2$", read[1].stdout, re.MULTILINE), read[1].stdout
    (scratch / "go").touch()
    assert running.finish().status == 0


def test_the_address_can_be_chosen(muster, scratch):
    running = start(muster, MUSTER_HEALTH_CHECK_ADDRESS="127.0.0.1")
    probe = Probe(running)
    assert probe.health()
    listening = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
    assert f"0100007F:{probe.port:04X}" in [fields[1] for fields in listening if fields[3] == "0A"]
    (scratch / "go").touch()
    assert running.finish().status == 0


@pytest.mark.parametrize("port", ["http", "", "70000", "-1", "80.5"])
def test_a_port_that_is_none_is_warned_about(muster, scratch, port):
    end = muster.run(
        ["run", "--no-python", "true"], env={"TORCHELASTIC_HEALTH_CHECK_PORT": port, "LOGLEVEL": "WARNING"}
    )
    assert end.status == 0, end
    assert f"TORCHELASTIC_HEALTH_CHECK_PORT='{port}' has no effect: give a port from 0 to 65535" in end.err


def test_an_address_of_another_machine_costs_the_probes_only(muster, scratch):
    end = muster.run(
        ["run", "--no-python", "true"],
        env={"TORCHELASTIC_HEALTH_CHECK_PORT": "0", "MUSTER_HEALTH_CHECK_ADDRESS": "192.0.2.1"},
    )
    assert end.status == 0, end
    assert "no health is served" in end.err


def test_nothing_listens_and_nothing_is_loaded_unless_asked_for(muster, scratch):
    running = start(muster, TORCHELASTIC_HEALTH_CHECK_PORT=None)
    running.wait_until((scratch / "ready.0.0").exists, "the workers")
    assert "microhttpd" not in open(f"/proc/{running.pid}/maps").read()

    def threads():
        found = set()
        for task in pathlib.Path(f"/proc/{running.pid}/task").glob("*/comm"):
            with contextlib.suppress(OSError):  # it has just ended
                found.add(task.read_text().strip())
        return found

    # The thread that has made the log files lives a moment longer than that takes.
    lasting = {"muster", "muster-store", "muster-spawner"}
    running.wait_until(lambda: threads() <= lasting, f"no thread but {lasting}")
    (scratch / "go").touch()
    assert running.finish().status == 0


# Becomes another user's: an agent that is nobody special cannot end it.
ESCAPED = """
import time
acquire("step", 0.1)
if os.geteuid() == 0:
    os.setuid(0)
note("escaped")
time.sleep(60)
"""


def set_up_escape(muster, scratch):
    """An interpreter that is root whoever starts it, and a binary and a directory that anybody can use."""
    if os.getuid() != 0:
        pytest.skip("only root can make a worker that its agent cannot end")
    python = scratch / "python"
    shutil.copy(os.path.realpath(sys.executable), python)
    python.chmod(0o4755)
    muster.share()
    return python


@pytest.mark.parametrize("evidence", ["off", "basic"])
def test_a_worker_that_cannot_be_ended_is_503_until_it_is_gone(muster, scratch, evidence):
    python = set_up_escape(muster, scratch)
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    running = timers.start(
        muster, ESCAPED, "--evidence", evidence, workers=1, popen=nobody,
        PYTHON_EXEC=python, MUSTER_HEALTH_CHECK_TIMEOUT="0.5", **SERVING,
    )  # fmt: skip
    probe = Probe(running)
    running.wait_until(lambda: probe.get("/health")[0] == 503, "a health that is bad")
    health = json.loads(probe.get("/health")[2])
    assert (health["status"], health["phase"], health["timeout_seconds"]) == ("stalled", "running", 0.5)
    assert re.match(r"a timer is overdue: the watchdog has made no progress for \S+ s; 0.5 s are allowed", health["reason"])
    assert "cannot end process" in running.err()
    os.kill(int(re.search(r"cannot end process (\d+)", running.err()).group(1)), signal.SIGKILL)
    assert running.finish().status == 1


def test_an_agent_that_stands_still_does_not_answer(muster, scratch):
    running = start(muster)
    probe = Probe(running)
    probe.wait_for_phase("running")
    running.signal(signal.SIGSTOP)
    with pytest.raises(OSError):
        probe.get("/health", timeout=1)
    running.signal(signal.SIGCONT)
    assert probe.health()["phase"] == "running"
    (scratch / "go").touch()
    assert running.finish().status == 0


def test_a_node_that_waits_for_another_in_place_of_a_lost_one_is_restarting_and_well(make_job):
    job = make_job(2, env=SERVING)
    probe = Probe(job.start_host("node1").running)
    assert probe.health()["phase"] == "joining"
    lost = job.start("node2")
    job.wait_for_world("node1", "node2")
    probe.wait_for_phase("running")
    lost.kill()
    health = probe.wait_for_phase("restarting")
    assert (health["status"], health["workers"]) == ("alive", 1)
    probe.running.wait_until(lambda: probe.health()["running_workers"] == 0, "the end of the workers")
    assert probe.phase_of_metrics() == "restarting"
    job.start("node3")
    world = job.wait_for_world("node1", "node3")
    probe.wait_for_phase("running")
    world.of("node1").end()
    assert probe.wait_for_phase("draining")["running_workers"] == 0
    world.end()
    assert job.succeeds()

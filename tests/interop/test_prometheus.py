# SPDX-License-Identifier: BSD-3-Clause
"""A real Prometheus: it scrapes a job through failures, its rules fire and resolve, and the dashboard's questions have answers."""

import collections
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest
import yaml

from support.binary import ROOT
from support.nodes import wait_until
from support.peers import give_up
from support.ports import free_port
from support.probes import SERVING, Probe

EXAMPLES = ROOT / "examples/prometheus"
PATIENCE = 120

# As the shell worker of support.nodes, but that it takes steps, 50 a second by the clock, which it can always catch up with.
WORKER = f"""\
import os, sys, time
sys.path.insert(0, {str(ROOT / "python")!r})
import muster.progress
env = os.environ
os.mkfifo(f"order.{{os.getpid()}}")
line = "node={{NODE}} rank={{RANK}}/{{WORLD_SIZE}} local={{LOCAL_RANK}}/{{LOCAL_WORLD_SIZE}} group={{GROUP_RANK}}/{{GROUP_WORLD_SIZE}} " \\
    "role={{ROLE_NAME}}:{{ROLE_RANK}}/{{ROLE_WORLD_SIZE}} store={{MASTER_ADDR}}:{{MASTER_PORT}} " \\
    "restarts={{TORCHELASTIC_RESTART_COUNT}} pid={{pid}}\\n".format(pid=os.getpid(), **env)
worlds = os.open("worlds", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(worlds, line.encode())
order = os.open(f"order.{{os.getpid()}}", os.O_RDONLY | os.O_NONBLOCK)
began = time.time()
while not (status := os.read(order, 100)):
    if not os.path.exists("pause." + env["NODE"]):
        muster.progress.step(1 + int(50 * (time.time() - began)))
    time.sleep(0.02)
sys.exit(int(status))
"""


@pytest.fixture(scope="module")
def promtool():
    missing = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    if missing:
        give_up(f"{', '.join(missing)} not found (Debian: apt install prometheus)")

    def promtool(*words, status=0):
        ran = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, cwd=EXAMPLES, timeout=120)
        assert ran.returncode == status, ran
        return ran

    return promtool


def configuration(name):
    return yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))


def test_configurations_and_rules_are_well_and_do_what_their_tests_say(promtool, scratch):
    promtool("check", "config", "prometheus.yml")
    promtool("check", "rules", "muster.rules.yml")
    promtool("test", "rules", "muster.rules.test.yml")
    # Debian's Prometheus knows no Kubernetes. What it does with what it finds there is the same.
    pods = configuration("prometheus-kubernetes.yml")
    assert pods["scrape_configs"][0].pop("kubernetes_sd_configs") == [{"role": "pod"}]
    pods["rule_files"] = [str(EXAMPLES / name) for name in pods["rule_files"]]
    (scratch / "pods.yml").write_text(yaml.safe_dump(pods))
    promtool("check", "config", scratch / "pods.yml")


def test_pods_are_found_by_the_name_of_their_port():
    (found,) = configuration("prometheus-kubernetes.yml")["scrape_configs"]
    names = [rule["regex"] for rule in found["relabel_configs"] if rule["source_labels"] == ["__meta_kubernetes_pod_container_port_name"]]
    for manifest in (ROOT / "examples/kubernetes").glob("*job*.yaml"):
        ports = re.findall(r"- name: (\w+)\n\s+containerPort:", manifest.read_text(encoding="utf-8"))
        assert ports == names, manifest


def test_every_rule_has_a_test_in_which_it_fires_and_one_in_which_it_does_not():
    tests = configuration("muster.rules.test.yml")["tests"]
    fires = collections.defaultdict(set)
    for test in tests:
        for case in test["alert_rule_test"]:
            fires[case["alertname"]].add(bool(case["exp_alerts"]))
    (group,) = configuration("muster.rules.yml")["groups"]
    for rule in group["rules"]:
        assert True in fires[rule["alert"]], rule["alert"]
    quiet = [name for name, seen in fires.items() if False not in seen and name != "MusterWaitingForNodes"]
    assert not quiet


def test_slurm_tells_where_the_agents_are_until_the_job_is_over(scratch):
    (scratch / "bin").mkdir()
    scontrol = scratch / "bin/scontrol"
    scontrol.write_text('#!/bin/sh\ntest "$*" = "show hostnames n[1-2]" && printf "n1\\nn2\\n"\n')
    scontrol.chmod(0o755)
    environment = {**os.environ, "PATH": f"{scratch}/bin:{os.environ['PATH']}", "SLURM_JOB_ID": "41", "SLURM_JOB_NODELIST": "n[1-2]",
                   "TORCHELASTIC_HEALTH_CHECK_PORT": "8080"}  # fmt: skip
    for status in (0, 7):
        ran = subprocess.run(
            [EXAMPLES / "slurm-targets", scratch, "sh", "-c", f"cat {scratch}/muster-41.json; exit {status}"],
            env=environment, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert ran.returncode == status, ran
        assert json.loads(ran.stdout) == [{"targets": ["n1:8080", "n2:8080"], "labels": {"slurm_job": "41"}}]
        assert not list(scratch.glob("muster-*"))


def questions():
    """What the dashboard asks: (title, expression)."""
    dashboard = json.loads((EXAMPLES / "dashboard.json").read_text(encoding="utf-8"))
    asked = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel["targets"]]
    return asked + [(note["name"], note["expr"]) for note in dashboard["annotations"]["list"]]


def test_panels_of_the_dashboard_lie_side_by_side():
    panels = json.loads((EXAMPLES / "dashboard.json").read_text(encoding="utf-8"))["panels"]
    taken = [(panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
             for panel in panels for x in range(panel["gridPos"]["w"]) for y in range(panel["gridPos"]["h"])]  # fmt: skip
    assert len(taken) == len(set(taken)) and all(x < 24 for x, _ in taken)
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in panels)


class Prometheus:
    """Scrapes twice a second what `targets` names. Its rules are the examples', with short waits."""

    def __init__(self, scratch, name="prometheus"):
        self.place = scratch / name
        self.place.mkdir()
        self.url = f"http://127.0.0.1:{free_port()}"
        rules = (EXAMPLES / "muster.rules.yml").read_text(encoding="utf-8")
        rules = re.sub(r"\[\d+[mh]\]", "[10m]", re.sub(r"offset \d+[mh]", "offset 3s", re.sub(r"for: \d+m", "for: 0s", rules)))
        (self.place / "rules.yml").write_text(rules)
        self.scrape()
        (self.place / "prometheus.yml").write_text(
            yaml.safe_dump(
                {
                    "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
                    "rule_files": ["rules.yml"],
                    "scrape_configs": [
                        {"job_name": "muster", "file_sd_configs": [{"files": ["targets.json"], "refresh_interval": "1s"}]}
                    ],
                }
            )
        )
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={self.place}/prometheus.yml", f"--storage.tsdb.path={self.place}/data",
             f"--web.listen-address={self.url[7:]}", "--log.level=warn"],
            stdout=(self.place / "log").open("w"), stderr=subprocess.STDOUT,
        )  # fmt: skip
        wait_until(self.answers, "Prometheus", PATIENCE)

    def answers(self):
        assert self.process.poll() is None, (self.place / "log").read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=10) as answer:
                return answer.status == 200
        except OSError:
            return False

    def scrape(self, *probes):
        targets = [{"targets": [f"127.0.0.1:{probe.port}" for probe in probes]}]
        (self.place / "targets.new").write_text(json.dumps(targets))
        (self.place / "targets.new").rename(self.place / "targets.json")

    def ask(self, expression):
        """[({label: value}, number)]"""
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}", timeout=30) as answer:
            told = json.load(answer)
        result = told["data"]["result"]
        return [(sample["metric"], float(sample["value"][1])) for sample in result]

    def fires(self, alert):
        return self.ask(f'ALERTS{{alertname="{alert}", alertstate="firing"}}')

    def wait_until_fires(self, alert):
        return wait_until(lambda: self.fires(alert), f"{alert} to fire", PATIENCE)

    def wait_until_resolved(self, alert):
        wait_until(lambda: not self.fires(alert), f"{alert} to be resolved", PATIENCE)

    def end(self):
        self.process.terminate()
        self.process.wait(60)


@pytest.fixture
def prometheus(promtool, scratch):
    prometheus = Prometheus(scratch)
    yield prometheus
    prometheus.end()


def failures_by_node(path):
    """So many workers failed there, as the chronicle has it."""
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    return collections.Counter(entry["node"] for entry in entries if entry["kind"] == "worker_failed")


def as_counts(samples, label):
    return {labels[label]: value for labels, value in samples if value > 0}


def panels_without_an_answer(prometheus):
    def expression(text):
        return text.replace("$run_id", "job").replace("$__rate_interval", "10m")

    return [(title, text) for title, text in questions() if not prometheus.ask(expression(text))]


@pytest.mark.timeout(900)
def test_a_job_is_scraped_through_failures_and_rules_fire_and_resolve(make_job, prometheus, promtool, scratch):
    (scratch / "worker.py").write_text(WORKER)
    (scratch / "worker.steps.sh").write_text(f"exec {sys.executable} -u worker.py\n")
    events = scratch / "events.jsonl"
    job = make_job(3, "--chronicle", events, "--progress", "auto", env=SERVING)

    def start(name):
        return job.start(name, "--metrics-file", scratch / f"{name}.prom", script=scratch / "worker.steps.sh")

    host = Probe(start("node1").running)
    prometheus.scrape(host)
    (waiting,) = prometheus.wait_until_fires("MusterWaitingForNodes")
    assert waiting[0]["run_id"] == "job"
    prometheus.wait_until_fires("MusterNotTraining")
    others = [Probe(start(name).running) for name in ("node2", "node3")]
    world = job.wait_for_world("node1", "node2", "node3", timeout=PATIENCE)
    prometheus.wait_until_resolved("MusterWaitingForNodes")
    prometheus.wait_until_resolved("MusterNotTraining")

    prometheus.wait_until_fires("MusterAgentSilent")  # three nodes, of which one is asked
    prometheus.scrape(host, *others)
    prometheus.wait_until_resolved("MusterAgentSilent")

    def has_recovered(times):
        return sum(value for _, value in prometheus.ask("muster_job_recoveries_total")) == times

    for times, culprit in enumerate(("node2", "node2", "node3"), 1):
        world.of(culprit).end(3)
        world = job.wait_for_world("node1", "node2", "node3", timeout=PATIENCE)
        wait_until(lambda times=times: has_recovered(times), f"recovery {times}", PATIENCE)
        assert not (times == 2 and prometheus.fires("MusterCrashLoop"))
    prometheus.wait_until_fires("MusterCrashLoop")
    prometheus.wait_until_fires("MusterRestartsLow")
    (first,) = prometheus.wait_until_fires("MusterNodeFailsFirst")
    assert first[0]["node"] == "node2"

    counts = failures_by_node(events)
    assert counts == {"node2": 2, "node3": 1}
    assert as_counts(prometheus.ask("muster_job_recoveries_total"), "cause") == {"worker_failed": 3}
    assert as_counts(prometheus.ask("sum by (node) (muster_node_failed_first_total)"), "node") == counts
    assert as_counts(prometheus.ask('sum by (node) (muster_worker_exits_total{result="failed"})'), "node") == counts
    assert prometheus.ask("muster_job_restarts_used")[0][1] == 3
    wait_until(lambda: not panels_without_an_answer(prometheus), "an answer for each panel", PATIENCE)

    (scratch / "pause.node3").touch()
    (slow,) = prometheus.wait_until_fires("MusterSlowRank")
    assert slow[0]["node"] == "node3"
    (scratch / "pause.node3").unlink()
    prometheus.wait_until_resolved("MusterSlowRank")

    wait_until(lambda: len(prometheus.ask("muster_node_clock_offset_seconds")) == 3, "what the host's clock is", PATIENCE)
    assert all(abs(offset) < 2 for _, offset in prometheus.ask("muster_node_clock_offset_seconds"))
    world.end()
    assert job.succeeds()
    prometheus.wait_until_resolved("MusterRestartsLow")
    check_files(promtool, scratch)


def check_files(promtool, scratch):
    """What the metrics' files have after the end."""
    assert sorted(path.name for path in scratch.glob("*.prom*")) == ["node1.prom", "node2.prom", "node3.prom"]
    for name in ("node1", "node2", "node3"):
        text = (scratch / f"{name}.prom").read_text()
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
        assert (f'muster_job_state{{run_id="job",node="{name}",role="default",state="ended"}} 1' in text) == (name == "node1")
    host = (scratch / "node1.prom").read_text()
    assert 'muster_job_recoveries_total{run_id="job",node="node1",role="default",cause="worker_failed"} 3\n' in host
    assert 'muster_job_recovery_seconds_count{run_id="job",node="node1",role="default",phase="training"} 3\n' in host

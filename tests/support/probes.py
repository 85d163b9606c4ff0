# SPDX-License-Identifier: BSD-3-Clause
"""Asking a running agent over HTTP ($TORCHELASTIC_HEALTH_CHECK_PORT)."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request

from prometheus_client import parser

# Takes a free port, and says which.
SERVING = {"TORCHELASTIC_HEALTH_CHECK_PORT": "0", "LOGLEVEL": "INFO"}


class Probe:
    """Asks one agent that was started with SERVING."""

    def __init__(self, running):
        self.running = running
        running.wait_until(self.find_port, "an agent that answers")

    def find_port(self):
        found = re.search(r"health: serving \S+ (?:and \S+ )?on port (\d+)", self.running.err())
        self.port = found and int(found.group(1))
        return found

    def get(self, path, timeout=10):
        """(status, content type, body as text)"""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=timeout) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.headers["Content-Type"], answer.read().decode()

    def health(self):
        status, kind, body = self.get("/health")
        assert (status, kind) == (200, "application/json"), body
        return json.loads(body)

    def wait_for_phase(self, phase):
        self.running.wait_until(lambda: self.health()["phase"] == phase, f"phase {phase}")
        return self.health()

    def metrics(self):
        """{sample name, or name{label}: value}, without the labels that all samples have; every family is well-formed."""
        status, kind, body = self.get("/metrics")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        check_with_promtool(body)
        samples = {}
        for family in parser.text_string_to_metric_families(body):
            assert family.documentation, family.name
            assert family.type in ("counter", "gauge", "summary", "histogram"), family
            for sample in family.samples:
                assert set(COMMON) <= set(sample.labels), sample
                label = "".join(f"{{{value}}}" for name, value in sample.labels.items() if name not in COMMON)
                assert sample.name + label not in samples, "told twice"
                samples[sample.name + label] = sample.value
        return samples

    def phase_of_metrics(self):
        samples = self.metrics()
        phases = [phase for phase in PHASES if samples[f"muster_phase{{{phase}}}"] == 1]
        assert len(phases) == 1, samples
        return phases[0]


COMMON = ("run_id", "node", "role")
PHASES = ("joining", "running", "restarting", "draining")


def check_with_promtool(body):
    """Prometheus' own opinion, beside that of its client library, where it is installed."""
    promtool = shutil.which("promtool")
    if promtool:
        checked = subprocess.run([promtool, "check", "metrics"], input=body, capture_output=True, text=True, timeout=60)
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")

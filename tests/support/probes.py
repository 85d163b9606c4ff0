# SPDX-License-Identifier: BSD-3-Clause
"""Asking a running agent over HTTP ($TORCHELASTIC_HEALTH_CHECK_PORT)."""

import json
import re
import urllib.error
import urllib.request

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

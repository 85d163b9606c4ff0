# SPDX-License-Identifier: BSD-3-Clause
"""Programs that answer questions: JSON lines in, JSON lines out."""

import json
import os
import pathlib
import subprocess

from support.binary import ROOT


class Answering:
    """A process that answers JSON lines with JSON lines."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", cwd="/tmp"
        )

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"no answer to {request}"
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=20) == 0
        self.process.stdout.close()


def start_probe(name):
    """One of tests/probes, out of the build directory."""
    build = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
    return Answering([build.resolve() / "tests/probes" / name])

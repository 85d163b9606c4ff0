# SPDX-License-Identifier: BSD-3-Clause
"""The image of examples/container, built on a small Debian of this machine, without a registry or a daemon."""

import json
import os
import shutil
import subprocess
import tempfile

import pytest
from support.binary import ROOT
from support.ports import free_port
from support.small_debian import small_debian
from support.small_job import SMALL_JOB, check_small_job

BASE = "localhost/small-debian"
EVERYTHING_ALLOWED = {"default": [{"type": "insecureAcceptAnything"}]}  # the images are this test's own


class Builder:
    def __init__(self, place):
        self.place = place
        self.policy = f"{place}/policy.json"
        with open(self.policy, "w", encoding="utf-8") as file:
            json.dump(EVERYTHING_ALLOWED, file)

    def call(self, *command):
        """What it printed. Its store is one of its own."""
        store = ["--root", f"{self.place}/store", "--runroot", f"{self.place}/run"]
        result = subprocess.run(["buildah", *store, *command], cwd=ROOT, capture_output=True, text=True)
        assert result.returncode == 0, f"{command}: {result.stdout[-2000:]}{result.stderr[-2000:]}"
        return result

    def make_base(self, tree):
        container = self.call("from", "--signature-policy", self.policy, "scratch").stdout.strip()
        self.call("add", container, str(tree), "/")
        self.call("commit", "--signature-policy", self.policy, "--rm", container, BASE)

    def build(self, path):
        self.call("bud", "--signature-policy", self.policy, "--isolation", "chroot", "--pull-never",
                  "--build-arg", f"IMAGE={BASE}", "--file", path, "--tag", "training", ".")

    def run(self, *command):
        container = self.call("from", "--signature-policy", self.policy, "--pull-never", "localhost/training")
        return self.call("run", "--isolation", "chroot", container.stdout.strip(), "--", *command)

    def entry_point(self):
        said = self.call("inspect", "--type", "image", "localhost/training")
        return json.loads(said.stdout)["OCIv1"]["config"]["Entrypoint"]


@pytest.fixture(scope="module")
def image(portable):
    if os.geteuid() != 0:
        pytest.skip("an image is built by root here")
    for program in ("buildah", "debootstrap"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing (Debian: apt install {program})")
    portable("x86_64")
    with tempfile.TemporaryDirectory(prefix="muster-container-") as place:
        builder = Builder(place)
        builder.make_base(small_debian(place))
        builder.build("examples/container/Dockerfile")
        yield builder
        builder.call("rm", "--all")


def test_the_image_runs_a_job_through_a_failure(image):
    assert image.entry_point() == ["muster", "run"]
    check_small_job(image.run("muster", *SMALL_JOB))


def test_an_agent_in_the_image_answers_probes(image):
    """By libmicrohttpd, which the image has."""
    port = free_port()
    ask = f"exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /health HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
    said = image.run("env", f"TORCHELASTIC_HEALTH_CHECK_PORT={port}", "muster", "run", "--no-python", "/bin/bash", "-c", ask)
    assert "200 OK" in said.stdout

# SPDX-License-Identifier: BSD-3-Clause
"""The source archive: the same commit makes the same bytes, and it builds and passes unit tests without git."""

import json
import os
import shutil
import subprocess
import tarfile

import pytest

from support.binary import ROOT


def make_archive(**environment):
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone of the repository")
    made = subprocess.run(["tools/make-source"], cwd=ROOT, check=True, capture_output=True, text=True,
                          env={**os.environ, **environment})
    return ROOT / made.stdout.strip()


@pytest.fixture
def archive():
    return make_archive()


def test_the_same_commit_makes_the_same_bytes(archive):
    first = archive.read_bytes()
    archive.unlink()
    assert make_archive(TZ="Asia/Tokyo", LC_ALL="C", GZIP="-1").read_bytes() == first


def test_it_builds_and_passes_unit_tests(archive, tmp_path):
    if shutil.which("meson") is None:
        pytest.skip("meson is missing")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path)
    source, built = next(tmp_path.iterdir()), tmp_path / "build"
    run = lambda *command: subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: E731
    run("meson", "setup", str(built), str(source), "-Dbuildtype=plain")
    tests = [test for test in json.loads(run("meson", "introspect", "--tests", str(built))) if "muster:base" in test["suite"]]
    assert len(tests) >= 10
    targets = [os.path.relpath(test["cmd"][0], built) for test in tests]
    run("ninja", "-C", str(built), "src/main/muster", *targets)
    for test in tests:
        run(*test["cmd"])
    assert run(built / "src/main/muster", "--version").startswith("muster ")

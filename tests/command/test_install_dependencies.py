# SPDX-License-Identifier: BSD-3-Clause
"""What `tools/install-dependencies` does when another apt is at work, with an apt of the tests' own."""

import os
import subprocess

import pytest

from support.binary import ROOT

# Whoever is root, what is installed, and how long a sleep is, is not for these tests to depend on.
FAKES = {
    "id": "echo 0",
    "dpkg-query": "false",
    "sleep": "echo $1 >>sleeps",
    "apt-get": """\
echo "$1" >>calls
if [ "$(grep -c "$1" calls)" -le "$(cat "busy.$1" 2>/dev/null || echo 0)" ]; then
    echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 77 (apt-get)"
    exit 100
fi
if [ -e "broken.$1" ]; then echo "E: Unable to locate package uthash-dev"; exit 100; fi
""",
}


@pytest.fixture
def install(scratch):
    """install() runs the tool with a fake apt-get; `busy.update` and `busy.install` say how often it finds a lock taken."""
    (scratch / "bin").mkdir()
    for name, script in FAKES.items():
        (scratch / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (scratch / "bin" / name).chmod(0o755)

    def run():
        return subprocess.run(
            [ROOT / "tools/install-dependencies", "build"], cwd=scratch, capture_output=True, text=True, timeout=60,
            env={**os.environ, "PATH": f"{scratch}/bin:{os.environ['PATH']}"},
        )  # fmt: skip

    return run


def test_missing_packages_are_installed_without_many_words(install, scratch):
    end = install()
    assert (end.returncode, end.stderr) == (0, ""), end
    assert end.stdout.startswith("installing: gcc ") and end.stdout.count("\n") == 1
    assert (scratch / "calls").read_text().split() == ["update", "install"]


@pytest.mark.parametrize("step", ["update", "install"])
def test_a_busy_apt_is_waited_for(install, scratch, step):
    (scratch / f"busy.{step}").write_text("3")
    end = install()
    assert end.returncode == 0, end
    assert (scratch / "calls").read_text().split().count(step) == 4
    assert end.stderr.count("held by process 77 (apt-get)") == 1
    assert end.stderr.count("waiting") == 1


def test_an_apt_that_stays_busy_is_not_waited_for_without_end(install, scratch):
    (scratch / "busy.update").write_text("100000")
    end = install()
    assert end.returncode == 1
    assert "Could not get lock" in end.stderr
    assert sum(map(int, (scratch / "sleeps").read_text().split())) == 300


def test_any_other_failure_is_told_at_once(install, scratch):
    (scratch / "broken.install").touch()
    end = install()
    assert end.returncode == 1
    assert "Unable to locate package uthash-dev" in end.stderr
    assert "waiting" not in end.stderr
    assert not (scratch / "sleeps").exists()

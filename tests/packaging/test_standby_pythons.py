# SPDX-License-Identifier: BSD-3-Clause
"""Standby workers of the Pythons that other releases have: whatever tests/command/test_standby_hook.py finds of the
Python of this machine has to hold for them. Debian 12 has 3.11 and forky 3.14, with which the usual tests run."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TESTS = "tests/command/test_standby_hook.py"
COMMON = ["libc6", "libgcc-s1", "zlib1g", "libexpat1", "libbz2-1.0", "liblzma5", "libsqlite3-0", "libtinfo6", "libncursesw6",
          "libcrypt1", "libuuid1", "dash", "coreutils", "grep", "libselinux1", "libpcre2-8-0", "libacl1", "libattr1",
          "libgmp10"]
RELEASES = {
    "bullseye": ("3.9", ["libssl1.1", "libffi7", "libreadline8", "libpcre3"]),
    "trixie": ("3.13", ["libssl3t64", "libffi8", "libreadline8t64", "libzstd1"]),
}
# The tree is the root for Python alone, which sees the files of the tests and the processes of this machine.
START = """#!/bin/sh
exec unshare --mount --propagation private sh -ec '
    for name in tmp proc dev; do mount --rbind /$name "$0/$name"; done
    exec chroot "$0" /bin/sh -c '\\''cd "$0" && exec {python} "$@"'\\'' "$@"' '{tree}' "$PWD" "$@"
"""


@pytest.fixture(params=RELEASES)
def python(request, tmp_path):
    """The path of a program that runs the Python of that release."""
    if os.geteuid() != 0:
        pytest.skip("a Python of another release needs root, for mount and chroot")
    version, packages = RELEASES[request.param]
    tree = ROOT / "build-trees" / f"python-{request.param}-amd64"
    names = [f"python{version}-minimal", f"libpython{version}-minimal", f"libpython{version}-stdlib"]
    unpacked = subprocess.run(["tools/debian-tree", request.param, "amd64", tree, *names, *COMMON, *packages], cwd=ROOT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if unpacked.returncode == 3:
        pytest.skip(unpacked.stdout.strip().splitlines()[-1])
    assert unpacked.returncode == 0, unpacked.stdout
    for name in ("tmp", "proc", "dev"):
        (tree / name).mkdir(exist_ok=True)
    program = tmp_path / f"python-of-{request.param}"
    program.write_text(START.format(python=f"python{version}", tree=tree))
    program.chmod(0o755)
    told = subprocess.run([program, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], cwd=tmp_path, capture_output=True,
                          text=True)
    assert told.stdout == f"{version}\n", told.stderr
    return program


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the trees are of x86-64")
def test_programs_cannot_tell_how_they_were_started(python):
    assert shutil.which("unshare")
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", python.name, TESTS], cwd=ROOT,
        env={**os.environ, "STANDBY_PYTHONS": str(python)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    failed = ", ".join(re.findall(r"^FAILED \S+::(\S.*?)(?: - .*)?$", tests.stdout, re.MULTILINE))
    assert tests.returncode == 0, f"failed there: {failed}\n{tests.stdout[-6000:]}"
    said = tests.stdout.strip().splitlines()[-1]
    assert " passed" in said and "skipped" not in said, said

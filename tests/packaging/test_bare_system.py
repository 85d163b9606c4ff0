# SPDX-License-Identifier: BSD-3-Clause
"""`make test` as a newcomer sees it: in a Debian 12 that holds nothing, with /proc, /sys and /dev and nothing else."""

import os
import re
import shutil
import subprocess
import tempfile

import pytest

from support.binary import ROOT
from support.small_debian import small_debian

ENTER = """
mount -t proc proc "$1/proc"
mount -t sysfs sys "$1/sys"
mount --bind /dev "$1/dev" # without what is mounted below it: no terminals, no shared memory
cp /etc/resolv.conf "$1/etc/resolv.conf"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$1" /bin/sh -c "$2"
"""
PARTS = 4


def sources(into):
    """What a fresh clone would hold. (The tree has no git.)"""
    os.makedirs(into)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode != 0:
        pytest.skip("which files belong to the sources is known to git only")
    with subprocess.Popen(["tar", "-c", "--null", "-T", "-"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as pack:
        unpack = subprocess.Popen(["tar", "-x", "-C", into], stdin=pack.stdout)
        pack.stdin.write(listed.stdout)
        pack.stdin.close()
        assert unpack.wait() == 0


def part_of_the_commands_tests():
    """Another one with each commit: they take minutes."""
    commit = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    return f"{int(commit.strip() or '0', 16) // 16 % PARTS}/{PARTS}"  # the last digit says whose turn it is


def named(word, said):
    """What tools/run_tests.py names so at its end."""
    found = re.findall(rf"^{word}: +(.+)$", said.rpartition("\nmeson: ")[2], re.MULTILINE)
    return [name.partition(": failed beside others")[0] for name in found]


@pytest.mark.timeout(3600)  # on a busy machine
def test_the_tests_pass_on_a_bare_system(record_property):
    if os.getuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("a bare system is made by root, with debootstrap")
    with tempfile.TemporaryDirectory(prefix="muster-bare-", dir="/var/tmp") as place:
        tree = small_debian(place)
        sources(f"{tree}/root/muster")
        tests = f"python3 tools/run_tests.py --only meson,command --part {part_of_the_commands_tests()}"
        steps = ["cd /root/muster", "apt-get -qq update", "apt-get -qq install -y --no-install-recommends make >/dev/null 2>&1",
                 "tools/install-dependencies build tests", "make build", tests]
        inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", ENTER, "sh", tree, " && ".join(steps)]
        end = subprocess.run(inside, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for name in named("unsteady", end.stdout):
            record_property("unsteady", f"{name} (on a bare system)")
        failed = ", ".join(named("failed", end.stdout)) or "no test has"
        assert end.returncode == 0, f"failed there: {failed}\n{end.stdout[-20000:]}"
        passed, failed = map(int, re.findall(r"^(\d+) passed, (\d+) failed", end.stdout, re.MULTILINE)[-1])
        assert failed == 0 and passed > 3000, end.stdout[-4000:]

# SPDX-License-Identifier: BSD-3-Clause
"""The packages: lintian finds nothing, and each is installed into a bare system and runs a job there."""

import os
import shutil
import subprocess

import pytest

# The project has no mail address, without which lintian finds the maintainer's wrong.
TAGS_ASIDE = "bogus-mail-host,bogus-mail-host-in-debian-changelog"


def run(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.fixture
def tree(bare_tree, tmp_path):
    """A copy of a bare system, to install into."""
    if os.geteuid() != 0:
        pytest.skip("installing into a bare tree needs root, for chroot")
    shutil.copytree(bare_tree("bookworm", "amd64"), tmp_path / "tree", symlinks=True)
    return tmp_path / "tree"


def chosen(packages, suffix):
    found = [path for path in packages if path.suffix == suffix]
    assert found
    return found


def check_installed(tree):
    job = ["chroot", tree, "muster", "run", "--nproc-per-node", "2", "--no-python", "/bin/sh", "-c", "echo rank $RANK"]
    assert {"rank 0", "rank 1"} <= set(run(*job).splitlines())
    assert not (tree / "usr/bin/torchrun").exists()  # which is PyTorch's
    assert (tree / "usr/include/muster/timer.h").is_file()
    for library in ("libmuster-timer.so.0", "libmuster.so.0"):
        assert list(tree.glob(f"usr/lib*/**/{library}"))


def test_lintian_finds_nothing(packages):
    if shutil.which("lintian") is None:
        pytest.skip("lintian is missing (Debian: apt install lintian)")
    assert run("lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", TAGS_ASIDE,
               *chosen(packages, ".deb")) == ""


def test_debian_packages_install_and_run(packages, tree):
    (tree / "var/lib/dpkg/info").mkdir(parents=True, exist_ok=True)
    (tree / "var/lib/dpkg/updates").mkdir(exist_ok=True)
    (tree / "var/lib/dpkg/status").touch()
    # The C library was unpacked there without dpkg's knowing.
    run("dpkg", f"--root={tree}", "--force-depends", "--install", *chosen(packages, ".deb"))
    check_installed(tree)


def test_red_hat_packages_install_and_run(packages, tree):
    run("rpm", "--root", tree, "--nodeps", "--install", *chosen(packages, ".rpm"))
    check_installed(tree)


def test_red_hat_packages_ask_for_glibc_2_28_at_most(packages):
    for package in chosen(packages, ".rpm"):
        asked = run("rpm", "--query", "--package", "--requires", package)
        versions = {tuple(map(int, word.split("GLIBC_")[1].split(")")[0].split("."))) for word in asked.split() if "GLIBC_" in word}
        assert versions and max(versions) <= (2, 28)

# SPDX-License-Identifier: BSD-3-Clause
"""The binary that runs everywhere: what it asks of a system, and jobs on systems that have nothing else."""

import os
import re
import shutil
import subprocess

import pytest
from support.small_job import SMALL_JOB, check_small_job

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
SUITES = ["bullseye", "bookworm", "trixie", "forky"]
LIBRARIES_OF_GLIBC = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6",
                      "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def dynamic_section(binary):
    return subprocess.run(["readelf", "--dynamic", "--version-info", "--wide", binary], check=True,
                          capture_output=True, text=True).stdout


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_asks_for_nothing_newer_than_glibc_2_28(portable, architecture):
    section = dynamic_section(portable(architecture))
    versions = {tuple(map(int, number.split("."))) for number in re.findall(r"\bGLIBC_([0-9.]+)", section)}
    assert versions and max(versions) <= (2, 28)
    assert set(re.findall(r"\(NEEDED\).*\[(.+)\]", section)) <= LIBRARIES_OF_GLIBC
    assert not re.search(r"\((RPATH|RUNPATH|TEXTREL)\)", section)


@pytest.mark.parametrize("suite", SUITES)
def test_a_job_runs_where_there_is_only_the_c_library(portable, bare_tree, suite):
    if os.geteuid() != 0:
        pytest.skip("a job in a bare tree needs root, for chroot")
    tree = bare_tree(suite, "amd64")
    shutil.copy(portable("x86_64"), tree / "muster")
    check_small_job(subprocess.run(["chroot", tree, "/muster", *SMALL_JOB], capture_output=True, text=True, timeout=600))


def test_a_job_of_the_other_architecture_runs_under_an_emulator(portable, bare_tree):
    emulator = shutil.which("qemu-aarch64-static")
    if emulator is None:
        pytest.skip("qemu-aarch64-static is missing (Debian: apt install qemu-user-static)")
    # Its workers are of this machine's architecture.
    tree = bare_tree("bullseye", "arm64")
    check_small_job(subprocess.run([emulator, "-L", tree, portable("aarch64"), *SMALL_JOB], capture_output=True, text=True,
                                   timeout=600))

# SPDX-License-Identifier: BSD-3-Clause
"""A Debian 12 that holds what is essential, and nothing else."""

import subprocess

import pytest


def small_debian(place):
    """Makes it in place/tree, which it returns; a skip that says why where it cannot be had."""
    mirror = subprocess.run("apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security",
                            shell=True, capture_output=True, text=True).stdout.split("\n")[0]
    tree = f"{place}/tree"
    made = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", tree, mirror], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"a small Debian cannot be had from apt's mirror: {made.stdout.strip().splitlines()[-1]}")
    return tree

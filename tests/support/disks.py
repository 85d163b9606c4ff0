# SPDX-License-Identifier: BSD-3-Clause
"""A disk that can be made to hang: a file system in a file, frozen by the kernel. Whoever writes to it then
waits in uninterruptible sleep until it is thawed, whatever signals come."""

import contextlib
import os
import shutil
import subprocess

import pytest

PROGRAMS = ("mkfs.ext4", "mount", "umount", "fsfreeze")


def run(*words):
    end = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    return "" if end.returncode == 0 else end.stderr.strip() or f"{words[0]} failed"


class Disk:
    """Mounted at `path` until `end`."""

    def __init__(self, scratch):
        self.path, self.image, self.is_frozen = scratch / "disk", scratch / "disk.image", False
        self.path.mkdir()

    def mount(self):
        """The reason why it cannot be, or ""."""
        with open(self.image, "wb") as image:
            image.truncate(16 * 1024 * 1024)
        return run("mkfs.ext4", "-q", "-F", self.image) or run("mount", "-o", "loop", self.image, self.path)

    def freeze(self):
        obstacle = run("fsfreeze", "--freeze", self.path)
        assert obstacle == "", obstacle
        self.is_frozen = True

    def thaw(self):
        if self.is_frozen:
            self.is_frozen = False
            obstacle = run("fsfreeze", "--unfreeze", self.path)
            assert obstacle == "", obstacle

    def end(self):
        self.thaw()
        if os.path.ismount(self.path):
            run("umount", "--lazy", self.path)


def make_disk(scratch):
    """A mounted disk, or a skip that says why there is none."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not found (Debian: apt install e2fsprogs mount util-linux)")
    if os.geteuid() != 0:
        pytest.skip("mounting a disk needs root")
    disk = Disk(scratch)
    obstacle = disk.mount()
    if obstacle:
        pytest.skip(f"no disk can be mounted here: {obstacle}")
    return disk


@contextlib.contextmanager
def small_file_system(path, options):
    """A file system in memory with little room, mounted at a new directory; or a skip that says why there is none."""
    path.mkdir()
    obstacle = run("mount", "-t", "tmpfs", "-o", options, "none", path)
    if obstacle:
        pytest.skip(f"needs a small file system, and mounting one failed: {obstacle}")
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)

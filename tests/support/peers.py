# SPDX-License-Identifier: BSD-3-Clause
"""The real PyTorch that `make peers` installs."""

import os
import pathlib
import subprocess

import pytest

DEFAULT_ROOT = "/opt/peer/forky"


class Peer:
    """Programs of an installed peer: its python3 (with torch) and its torchrun."""

    def __init__(self, programs):
        self.python = programs / "python3"
        self.torchrun = programs / "torchrun"


def find_peer():
    """The peer, or the reason why there is none."""
    root = pathlib.Path(os.environ.get("PEER_ROOT", DEFAULT_ROOT))
    peer = Peer(root.parent / "bin")
    if not (peer.python.exists() and peer.torchrun.exists()):
        return f"PyTorch is not installed in {root}; run `make peers`"
    probe = subprocess.run([peer.python, "-c", ""], capture_output=True, text=True, cwd="/tmp")
    if probe.returncode != 0:
        return f"PyTorch in {root} does not run ({probe.stderr.strip()}); run `make peers` as root"
    return peer


def require_peer():
    found = find_peer()
    if isinstance(found, Peer):
        return found
    if os.environ.get("CI") == "true":
        pytest.fail(f"{found} (not skipped: CI=true)")
    pytest.skip(found)

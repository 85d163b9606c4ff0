# SPDX-License-Identifier: BSD-3-Clause
"""The real PyTorch that `make peers` installs."""

import os
import pathlib
import subprocess

import pytest

from support.forked_python import ForkServer, can_begin_imported

DEFAULT_ROOT = "/opt/peer/forky"


class Peer:
    """Programs of an installed peer: its python3 (with torch) and its torchrun."""

    def __init__(self, programs):
        self.python = programs / "python3"
        self.torchrun = programs / "torchrun"
        self.forks = ForkServer(self.python)

    def spawn(self, command, env, **popen):
        """subprocess.Popen for its torchrun, and for a script that its python3 runs. They begin with torch imported, where
        that makes no difference to them."""
        program, *words = command
        if not can_begin_imported(env):
            return subprocess.Popen(command, env=env, **popen)
        arguments = ["/usr/bin/torchrun", *words] if program == str(self.torchrun) else words
        return self.forks.spawn(arguments, {**env, "USE_LIBUV": "0"}, **popen)


def give_up(obstacle):
    """Skips the test, which cannot be played here. Where CI=true it fails: there nothing may be missing."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{obstacle} (not skipped: CI=true)")
    pytest.skip(obstacle)


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
    return found if isinstance(found, Peer) else give_up(found)

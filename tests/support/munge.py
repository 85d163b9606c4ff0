# SPDX-License-Identifier: BSD-3-Clause
"""munge daemons of a test's own, with a key, a socket and files in its scratch directory.

    munge = Munge(muster)                    # skips where munge is not installed
    other = Munge(muster, key="another")     # as on a machine with another munge.key
    muster.start([…], env=munge.env)
    munge.end()
"""

import ctypes.util
import itertools
import os
import shutil

import pytest

DAEMON = shutil.which("munged") or "/usr/sbin/munged"

numbers = itertools.count(1)


def require_munge():
    if not os.access(DAEMON, os.X_OK) or ctypes.util.find_library("munge") is None:
        pytest.skip("needs munge and its library (Debian: munge, libmunge2)")


class Munge:
    """One daemon; those with the same key believe each other, as those of two machines."""

    def __init__(self, muster, key="the key"):
        require_munge()
        self.muster = muster
        self.directory = muster.scratch / f"munge{next(numbers)}"
        self.directory.mkdir()
        self.directory.chmod(0o755)
        self.socket = self.directory / "socket"
        self.env = {"MUSTER_MUNGE_SOCKET": self.socket}
        path = self.directory / "key"
        path.write_bytes(key.encode().ljust(64, b"."))
        path.chmod(0o600)
        self.start()

    def start(self):
        places = {"socket": "socket", "key-file": "key", "pid-file": "pid", "seed-file": "seed"}
        words = ["--foreground", "--force", *(f"--{name}={self.directory / file}" for name, file in places.items())]
        self.running = self.muster.start(words, program=DAEMON)
        self.running.wait_until(lambda: "work threads" in self.running.err(), "munged to serve its socket")

    def end(self):
        """Nobody answers at the socket any more; start() begins anew. munged may overlook a signal that comes just before
        it waits for a client, so it is told until it has ended."""

        def has_ended():
            self.running.process.terminate()
            return self.running.process.poll() is not None

        self.running.wait_until(has_ended, "munged's end")
        self.running.finish()

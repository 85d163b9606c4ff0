# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the peer's Python that begin with torch imported (support.fork_server). What they say of themselves in /proc is that
server's: its command line and its environment. Workers that are started by ForkServer.worker_python() begin so, too."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from support.binary import ROOT, clean_environment

LOOK = 0.005  # seconds
# Variables that an interpreter or an import of torch heeds.
READ_AT_IMPORT = ("PYTHONPATH", "PYTHONHASHSEED", "PYTHONWARNINGS", "LD_", "TORCH_LOGS", "TORCH_SHOW", "TORCH_DEVICE")


class ForkedProcess:
    """What tests use of subprocess.Popen, for a child of the server."""

    def __init__(self, server, pid, arguments):
        self.server, self.pid, self.args, self.returncode = server, pid, arguments, None

    def poll(self):
        if self.returncode is None:
            self.returncode = self.server.ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout=None):
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(LOOK)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """Begins when it is asked first."""

    def __init__(self, python):
        self.python, self.process = python, None

    def begin(self):
        self.directory = tempfile.mkdtemp(prefix="muster-forks-", dir="/tmp")
        script = shutil.copy(ROOT / "tests/support/fork_server.py", self.directory)
        self.channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(f"{self.directory}/server")
        listener.listen(100)
        with other, listener:
            descriptors = [other.fileno(), listener.fileno()]
            self.process = subprocess.Popen(
                [self.python, script, *map(str, descriptors)], env=clean_environment(OMP_NUM_THREADS=1), cwd=self.directory,
                stdin=subprocess.DEVNULL, pass_fds=descriptors,
            )  # fmt: skip

    def end(self):
        if self.process:
            self.channel.close()
            self.process.wait()
            shutil.rmtree(self.directory)

    def worker_python(self):
        """What PYTHON_EXEC may name: workers that are started by it have torch, and each is a child of a process that stands for it."""
        if self.process is None:
            self.begin()
        path = pathlib.Path(self.directory) / "python3"
        if not path.exists():
            shutil.copy(ROOT / "tests/support/forked_worker", path)
            (path.parent / "alone").symlink_to(self.python)
        return path

    def ask(self, request, descriptors=()):
        if self.process is None:
            self.begin()
        socket.send_fds(self.channel, [json.dumps(request).encode()], descriptors)
        answer = self.channel.recv(1000)
        assert answer, "the server of forks has ended"
        return json.loads(answer)

    def spawn(self, arguments, env, cwd, stdin, stdout, stderr):
        """As subprocess.Popen; `arguments` begins with a Python file, and streams are files or DEVNULL."""
        with open(os.devnull, "r+b") as nothing:
            streams = [(nothing if stream is subprocess.DEVNULL else stream).fileno() for stream in (stdin, stdout, stderr)]
            request = {"arguments": arguments, "environment": env, "directory": str(cwd)}
            return ForkedProcess(self, self.ask(request, streams), arguments)


def can_begin_imported(env):
    return not any(name.startswith(READ_AT_IMPORT) for name in env)

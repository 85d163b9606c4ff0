# SPDX-License-Identifier: BSD-3-Clause
"""What a user sees on a terminal, which a log does not show."""

import errno
import os
import re
import signal
import struct
import subprocess
import termios
import time
from fcntl import ioctl

import pytest

from support.ports import free_port
from support.terminal import open_terminal
from support.transcripts import transcript

pytestmark = pytest.mark.threads

WIDTH = 60


class Terminal:
    """A program whose stderr is a terminal."""

    def __init__(self, muster, arguments, width=WIDTH):
        self.fd, side = open_terminal()
        ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        self.process = subprocess.Popen(
            [muster.binary, *map(str, arguments)], cwd=muster.scratch, env=muster.environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=side)
        os.close(side)
        self.written = ""

    def read(self):
        """False at the end: nobody has the terminal any more."""
        try:
            data = os.read(self.fd, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""
        self.written += data.decode(errors="replace")
        return bool(data)

    def read_until(self, condition):
        end = time.monotonic() + 100
        while not condition(self.written):
            assert time.monotonic() < end and self.read(), self.written

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.fd)


def screen(written):
    """The lines that one sees in the end."""
    lines = []
    for line in written.replace("\r\n", "\n").split("\n"):
        seen = []
        *renewed, last = line.split("\r")
        assert all(len(part) < WIDTH for part in renewed), line  # none of them wraps
        for part in (*renewed, last):
            seen[: len(part)] = part
        lines.append("".join(seen).rstrip())
    return [line for line in lines if line]


@pytest.mark.timeout(150)
def test_what_a_node_waits_for_is_one_line_that_renews_itself(muster):
    terminal = Terminal(muster, [
        "run", "--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}",
        "--local-addr", "node1", "--no-python", "true"])
    try:
        terminal.read_until(lambda written: len(set(re.findall(r"\rwaiting for other nodes for (\d+) s", written))) > 1)
        terminal.process.send_signal(signal.SIGTERM)
        while terminal.read():
            pass
        assert terminal.process.wait(60) == 1, terminal.written
    finally:
        terminal.close()
    lines = screen(terminal.written)
    assert all(re.match(r"[WE]\d{4} ", line) for line in lines), terminal.written
    assert any("Received SIGTERM" in line for line in lines), terminal.written
    assert not any("waiting for other nodes" in line for line in lines), terminal.written


@pytest.mark.timeout(150)
def test_the_line_is_the_one_that_the_page_shows(muster):
    command = "run --nnodes 2 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:29437 --local-addr node1 train.py"
    muster.script("train.py", "")
    terminal = Terminal(muster, command.replace("29437", str(free_port())).split(), width=120)
    stood = re.compile(r"\r(waiting for other nodes for \d+ s: 1 of [^\r]*)\r")
    try:
        terminal.read_until(lambda written: len(set(stood.findall(written))) > 1)
    finally:
        terminal.close()
    lines = {re.sub(r"for \d+ s: ", "for 12 s: ", line.rstrip()) for line in stood.findall(terminal.written)}
    assert list(lines) == transcript(command), terminal.written

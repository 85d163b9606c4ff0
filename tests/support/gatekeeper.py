# SPDX-License-Identifier: BSD-3-Clause
"""Plays the agent for the hook of standby workers: runs a program cold, cold with the hook, and through the gate.

The three ways to run a program must not be told apart by what it writes and how it ends.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess

from support.binary import ROOT

HOOK = ROOT / "client/standby"
EVIDENCE_SIGNAL = signal.SIGRTMIN + 7
# What a worker has and a standby worker has not, until the gate.
ROUND = {
    "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0",
    "ROLE_RANK": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none",
}
BODY_IN_FILE = 1
HEAD = 4096  # bytes in front of a record, which the worker may map


class Outcome:
    """How a worker ended, what it wrote, and what it recorded."""

    def __init__(self, status, out, err, record=""):
        self.status, self.out, self.err, self.record = status, out, err, record

    def visible(self):
        return self.status, self.out, self.err

    def modules(self):
        """{name: origin}, in the order of the record"""
        return dict(line.split("\t") for line in self.record.splitlines()[1:])


def memory_file(text=""):
    fd = os.memfd_create("muster-test")
    os.write(fd, text.encode("utf-8", "surrogateescape"))
    return fd


def read_file(fd):
    return os.pread(fd, os.fstat(fd).st_size, 0)


def u32(*numbers):
    return struct.pack(f"<{len(numbers)}I", *numbers)


class Gatekeeper:
    """Runs programs with one Python. `closing` closes every descriptor and ends every process at the end."""

    def __init__(self, python, scratch, seconds=60):
        self.python, self.scratch, self.seconds = str(python), pathlib.Path(scratch), seconds
        self.hook = self.scratch / "hook directory"
        shutil.copytree(HOOK, self.hook, ignore=shutil.ignore_patterns("__pycache__"))
        self.closing = contextlib.ExitStack()

    def keep(self, fd):
        self.closing.callback(os.close, fd)
        return fd

    def environment(self, role=None, names=ROUND, **changes):
        """A worker's environment; with a role, the one with which the agent starts it."""
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        environment.update(names, MUSTER_TEST_SCRATCH=str(self.scratch))
        environment.update({name: str(value) for name, value in changes.items()})
        if role:
            old = environment.get("PYTHONPATH")
            environment["PYTHONPATH"] = f"{self.hook}:{old}" if old else str(self.hook)
            told = f"fd=3;role={role};pythonpath={int(old is not None)};unknown=part"
            environment["MUSTER_STANDBY"] = f"{told};signal={int(EVIDENCE_SIGNAL)}"
        return environment

    def start(self, words, environment, passed, streams, cwd=None):
        """Starts a worker as the agent does: a session of its own, these descriptors from 3 on."""
        def arrange():
            high = [os.dup2(fd, 500 + at, inheritable=False) for at, fd in enumerate(passed)]
            for at, fd in enumerate(high):
                os.dup2(fd, 3 + at)

        process = subprocess.Popen(
            [self.python, "-u", *map(str, words)], env=environment, cwd=cwd or self.scratch, start_new_session=True,
            stdin=streams[0], stdout=streams[1], stderr=streams[2], pass_fds=range(3, 3 + len(passed)),
            preexec_fn=arrange,
        )
        self.closing.callback(self.end, process)
        return process

    @staticmethod
    def end(process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def streams(self, given=b""):
        """New files for a worker's three streams."""
        fds = [self.keep(os.memfd_create(name)) for name in ("stdin", "stdout", "stderr")]
        os.pwrite(fds[0], given, 0)
        return fds

    def cold(self, words, streams=None, cwd=None, names=ROUND, **changes):
        streams = streams or self.streams()
        process = self.start(words, self.environment(None, names, **changes), (), streams, cwd)
        return Outcome(process.wait(self.seconds), read_file(streams[1]), read_file(streams[2]))

    def record_file(self):
        fd = self.keep(os.memfd_create("muster-record"))
        os.ftruncate(fd, HEAD)
        return self.keep(os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_APPEND))

    @staticmethod
    def read_record(fd):
        return read_file(fd)[HEAD:].decode()

    def recorded(self, words, streams=None, cwd=None, names=ROUND, **changes):
        """The same with the hook, which writes the record."""
        streams = streams or self.streams()
        record = self.record_file()
        process = self.start(words, self.environment("record", names, **changes), (record,), streams, cwd)
        status = process.wait(self.seconds)
        return Outcome(status, read_file(streams[1]), read_file(streams[2]), self.read_record(record))

    def spare(self, words, cwd=None, rest=0, **changes):
        return Spare(self, words, cwd, rest, changes)

    def warm(self, words, learned, streams=None, cwd=None, names=ROUND, **changes):
        """The same through the gate, after importing what was learned."""
        spare = self.spare(words, cwd, **changes)
        spare.warm(learned)
        spare.open_gate(streams or self.streams(), names=names)
        return spare.finish()


class Spare:
    """One standby worker and our end of its gate."""

    def __init__(self, keeper, words, cwd, rest, changes):
        self.keeper, self.cwd, self.changes = keeper, str(cwd or keeper.scratch), changes
        self.gate, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.gate.settimeout(keeper.seconds)
        keeper.closing.callback(self.gate.close)
        self.captured = keeper.streams()
        environment = keeper.environment("spare", {}, **changes)
        environment["MUSTER_STANDBY"] += f";rest={rest}"
        self.process = keeper.start(words, environment, (other.fileno(),), self.captured, self.cwd)
        other.close()

    def hear(self):
        """(kind, body) of the next message; an empty kind at the end."""
        message = self.gate.recv(4096)
        return message[:1].decode(), message[1:]

    def tell(self, message, fds=()):
        socket.send_fds(self.gate, [message], fds)

    def give_list(self, learned):
        """Hears hello and gives the list: {name: origin}, or None for a module that is left out."""
        assert self.hear() == ("H", u32(1, self.process.pid))
        self.send_list(b"L", learned)

    def send_list(self, kind, learned):
        self.send_lines(kind, "".join(f"{name}#\n" if origin is None else f"{name}\t{origin}\n" for name, origin in learned.items()))

    def give_lines(self, lines):
        assert self.hear() == ("H", u32(1, self.process.pid))
        self.send_lines(b"L", lines)

    def send_lines(self, kind, lines):
        fd = memory_file(lines)
        self.tell(kind, [fd])
        os.close(fd)

    def teach(self, learned):
        """Sends one that is ready a further list, and waits until it is ready again."""
        self.send_list(b"T", learned)
        return self.await_ready()

    def warm(self, learned):
        """Up to the gate; returns (modules, skipped, cpu milliseconds, resident KiB)."""
        self.give_list(learned)
        return self.await_ready()

    def await_ready(self, kind="P"):
        said, body = self.hear()
        assert said == kind, (said, body)
        return struct.unpack("<4I", body)

    def come_to_line(self, learned):
        """Up to the call of muster.standby.wait() in its program."""
        self.give_list(learned)
        return self.await_ready("A")

    def dirty(self, learned):
        """Up to where it says why it cannot become a worker."""
        self.give_list(learned)
        return self.reason()

    def reason(self):
        kind, body = self.hear()
        assert kind == "D", (kind, body)
        assert self.process.wait(self.keeper.seconds) == 77
        return body.decode()

    def unsuited(self, learned):
        """Up to where it says what nobody may import early: (why, the names)."""
        self.give_list(learned)
        return self.left_out()

    def left_out(self, status=77):
        names = []
        while (message := self.hear())[0] == "X":
            names.append(message[1].decode())
        assert message[0] == "U", message
        assert status is None or self.process.wait(self.keeper.seconds) == status
        return message[1].decode(), names

    def body(self, names=ROUND, cwd=None):
        environment = self.keeper.environment("record", names, **self.changes)
        pairs = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
        directory = os.fsencode(str(cwd or self.cwd))
        return u32(len(directory)) + directory + pairs

    def open_gate(self, streams, names=ROUND, in_file=False):
        self.streams, self.record = streams, self.keeper.record_file()
        fds, body = [*streams, self.record], self.body(names)
        flags = 0
        if in_file:
            flags |= BODY_IN_FILE
            fds.insert(0, self.keeper.keep(os.memfd_create("body")))
            os.write(fds[0], body)
            body = b""
        self.tell(b"G" + u32(flags) + body, fds)
        assert self.hear() == ("R", b"")

    def finish(self):
        status = self.process.wait(self.keeper.seconds)
        assert self.hear() == ("", b""), "the gate is closed"
        out, err = (read_file(fd) for fd in self.streams[1:])
        return Outcome(status, out, err, self.keeper.read_record(self.record))

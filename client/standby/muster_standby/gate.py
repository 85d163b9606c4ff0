# SPDX-License-Identifier: BSD-3-Clause
"""The gate: the agent's socket, what comes through it, and the standard streams that change there."""
import os
import sys

from muster_standby import borrow, move_up
from muster_standby.listed import read_lines

BODY_MAXIMUM = 1 << 26
LIST_MAXIMUM = 1 << 20  # as core/standby/standby_preparation has it
CAPTURED_MAXIMUM = 64 * 1024


class Dirty(Exception):
    """Why this process would not become the worker that a cold start makes."""


class Unsuited(Exception):
    """Why this process would not, and the modules without which another one would: their names."""


class Gate:
    """One message is one byte for its kind, and a body."""

    def __init__(self, fd):
        self.kinds = borrow("_socket")
        self.socket = self.kinds.socket(fileno=move_up(fd))
        self.socket.setblocking(True)

    def say(self, kind, *numbers):
        self.socket.send(kind + b"".join(number.to_bytes(4, "little") for number in numbers))

    def say_ready(self, kind, modules, skipped=0, memory=None):
        if memory is None:
            with open("/proc/self/statm", "rb") as file:
                memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 10
        self.say(kind, modules, skipped, int(sum(os.times()[:2]) * 1000), memory)

    def refuse(self, reason, kind=b"D"):
        self.socket.send(kind + reason.encode("utf-8", "replace")[:1000])

    def leave_out(self, reason, *names):
        for name in names:
            self.refuse(name, b"X")
        self.refuse(reason or "", b"U")

    def hear(self):
        """(kind, body, descriptors) of the next message. The end of the agent is ours."""
        space, flags = self.kinds.CMSG_SPACE(8 * 4), self.kinds.MSG_CMSG_CLOEXEC
        message, passed, flags, _ = self.socket.recvmsg(1 << 18, space, flags)
        if not message:
            os._exit(0)
        if flags & (self.kinds.MSG_TRUNC | self.kinds.MSG_CTRUNC):
            raise Dirty("the agent's message is too long")
        data = b"".join(data for level, what, data in passed if what == self.kinds.SCM_RIGHTS)
        return message[:1], message[1:], [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), 4)]

    def hear_go(self, learn, make_own=lambda: None):
        """(directory, [(name, value)], descriptors): what the worker is to have. Calls learn([(name, origin)]) for each
        list that comes before. The origin of a module that is left out is None. Calls make_own() when there may be pages
        that the worker will need."""
        kind, message, fds = self.hear()
        while kind in (b"L", b"T", b"W"):
            if kind == b"W":
                make_own()
            else:
                learn(read_list(*fds))
            kind, message, fds = self.hear()
        if kind != b"G":
            raise Dirty("the agent says %r" % kind)
        body = message[4:]
        if int.from_bytes(message[:4], "little") & 1:
            body = read_whole(fds[0], BODY_MAXIMUM)
            os.close(fds.pop(0))
        length = int.from_bytes(body[:4], "little")
        directory, names = body[4 : 4 + length], body[4 + length :]
        if len(body) < 4 + length or not body.endswith(b"\0") or len(fds) != 4:
            raise Dirty("the agent's message is cut off")
        return directory, [pair.partition("=")[::2] for pair in os.fsdecode(names).split("\0")], fds


def read_whole(fd, maximum):
    """What a file in memory holds."""
    size = os.fstat(fd).st_size
    data = os.pread(fd, min(size, maximum), 0)
    if len(data) != size:
        raise Dirty("%d bytes where %d can be read" % (size, len(data)))
    return data


def read_list(fd):
    text = read_whole(fd, LIST_MAXIMUM).decode("utf-8", "surrogateescape")
    os.close(fd)
    return read_lines(text)


def change_streams(fds, own=(0, 1, 2)):
    """Puts the worker's standard streams in the place of ours, what was printed while warming first. Those that the
    program has already put something else in the place of stay."""
    streams = sys.__stdin__, sys.__stdout__, sys.__stderr__
    for stream in streams[1:]:
        stream.flush()
    printed = {fd: read_whole(fd, CAPTURED_MAXIMUM) if fd in own and fd > 0 else b"" for fd in range(3)}
    if os.path.sameopenfile(1, 2):
        printed[2] = b""
    for fd, stream in enumerate(streams):
        if fd in own:
            reopen(stream, fd, fds[fd], printed[fd])
        else:
            os.close(fds[fd])


def reopen(stream, fd, new, printed):
    """Puts another file under a standard stream, and first of all into it what was printed while warming. The stream
    remains the object that modules know, and learns of the new file what the interpreter would have learned."""
    os.dup2(new, fd)
    os.close(new)
    while printed:
        printed = printed[os.write(fd, printed) :]
    old, lines = getattr(stream.buffer, "raw", stream.buffer), stream.line_buffering
    buffer = raw = type(old)(fd, old.mode, closefd=False)
    raw.name = old.name
    if old is not stream.buffer:
        size = raw._blksize if sys.version_info < (3, 14) else max(min(raw._blksize, 1 << 23), 1 << 17)
        buffer = type(stream.buffer)(raw, size)
        lines = lines or (raw.isatty() and not stream.write_through)
    stream.__init__(buffer, stream.encoding, stream.errors, "\n", lines, stream.write_through)


def put_in_order(environment, names):
    """As they are in a worker that is started cold. What was added comes last."""
    first = {name: environment[name] for name in names if name in environment}
    first.update(environment)
    environment.clear()
    environment.update(first)

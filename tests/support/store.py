# SPDX-License-Identifier: BSD-3-Clause
"""Stores under test: a server started, and a client that speaks the protocol byte by byte."""

import socket
import struct
import time

VALIDATE = b"\x00" + struct.pack("<I", 0x3C85F7CE)
SET, COMPARE_SET, GET, ADD, CHECK, WAIT, COUNT, DELETE, APPEND = range(1, 10)
MULTI_GET, MULTI_SET, CANCEL_WAIT, PING, PUSH, POP, LENGTH, LIST, BARRIER = range(10, 19)


def blob(data):
    return struct.pack("<Q", len(data)) + data


def request(operation, *operands):
    """Bytes become blobs, whole numbers 64-bit integers."""
    parts = [blob(each) if isinstance(each, bytes) else struct.pack("<q", each) for each in operands]
    return bytes([operation]) + b"".join(parts)


class RawClient:
    """A socket to a store; a deadline on everything, so that a silent server fails the test."""

    def __init__(self, port, host="127.0.0.1", greets=True, timeout=10):
        self.socket = socket.create_connection((host, port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if greets:
            self.send(VALIDATE)
            self.ping()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def receive(self, length):
        data = b""
        while len(data) < length:
            more = self.socket.recv(length - len(data))
            if not more:
                raise ConnectionResetError(f"closed after {data!r}")
            data += more
        return data

    def receive_blob(self):
        return self.receive(struct.unpack("<Q", self.receive(8))[0])

    def receive_number(self):
        return struct.unpack("<q", self.receive(8))[0]

    def ping(self, nonce=b"abcd"):
        self.send(bytes([PING]) + nonce)
        assert self.receive(4) == nonce

    def set(self, key, value):
        self.send(request(SET, key, value))

    def get(self, key):
        self.send(request(GET, key))
        return self.receive_blob()

    def is_closed(self):
        """Whether the server closes this connection (an answer instead is a failure)."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


class Server:
    """`muster store serve` with a port of its own."""

    def __init__(self, muster, *options, address=("--port", 0), **popen):
        self.running = muster.start(["store", "serve", *address, *options], **popen)
        self.running.wait_until(lambda: "\n" in self.running.out(), "the port")
        self.port = int(self.running.out().removeprefix("PORT "))

    def client(self, **options):
        return RawClient(self.port, **options)

    def wait_for_log(self, words):
        self.running.wait_until(lambda: words in self.running.err(), f"{words!r} in the log")

    def memory(self):
        """Bytes resident."""
        with open(f"/proc/{self.running.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * 4096

    def processor_seconds(self):
        with open(f"/proc/{self.running.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def stop(self, number):
        self.running.signal(number)
        return self.running.finish().status


def wait_until(condition, timeout=20):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.005)

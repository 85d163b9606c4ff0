# SPDX-License-Identifier: BSD-3-Clause
"""A man in the middle of a store and its clients, who notes every request. PINGs, the signs of life, are only counted.

    proxy = StoreProxy(port_of_the_store)
    job.start("127.0.0.2", "--rdzv-endpoint", f"127.0.0.1:{proxy.port}")
    proxy.count(COMPARE_SET)
    proxy.end()
"""

import socket
import struct
import threading
import time

from support.store import (
    ADD, APPEND, BARRIER, CANCEL_WAIT, CHECK, COMPARE_SET, COUNT, DELETE, GET, LENGTH, LIST, MULTI_GET, MULTI_SET,
    PING, POP, PUSH, SET, WAIT,
)  # fmt: skip

VALIDATION = 0

# What follows each operation: b a blob, n a 64-bit number, w a 32-bit word, * as many blobs as a number says,
# + as many pairs of them.
OPERANDS = {
    VALIDATION: "w", SET: "bb", COMPARE_SET: "bbb", GET: "b", ADD: "bn", CHECK: "*", WAIT: "*", COUNT: "", DELETE: "b",
    APPEND: "bb", MULTI_GET: "*", MULTI_SET: "+", CANCEL_WAIT: "", PING: "w", PUSH: "bb", POP: "b", LENGTH: "b",
    LIST: "", BARRIER: "bn",
}  # fmt: skip


class Request:
    """One request: its operation, its blobs, its bytes, and which connection it came on."""

    def __init__(self, stream, connection):
        self.connection, self.raw, self.blobs = connection, b"", []
        self.operation = self.read(stream, 1)[0]
        for kind in OPERANDS[self.operation]:
            if kind in "bnw":
                self.read_operand(stream, kind)
            else:
                for _ in range(self.read_number(stream) * (2 if kind == "+" else 1)):
                    self.read_operand(stream, "b")

    def read(self, stream, length):
        data = stream.read(length)
        if len(data) < length:
            raise EOFError
        self.raw += data
        return data

    def read_number(self, stream):
        return struct.unpack("<q", self.read(stream, 8))[0]

    def read_operand(self, stream, kind):
        if kind == "b":
            self.blobs.append(self.read(stream, self.read_number(stream)))
        else:
            self.read(stream, 8 if kind == "n" else 4)


class StoreProxy:
    """Listens on a port of its own; every connection is passed on to the store's, each request after a delay."""

    def __init__(self, store_port, delay=0):
        self.store_port, self.delay = store_port, delay
        self.requests, self.pings, self.lock = [], 0, threading.Condition()
        self.held_operation, self.wanted_holders, self.holders = None, 0, 0
        self.sockets = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                store = socket.create_connection(("127.0.0.1", self.store_port))
            except OSError:
                return
            for side in (client, store):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets += [client, store]
            threading.Thread(target=self.pass_requests, args=(client, store), daemon=True).start()
            threading.Thread(target=self.pass_answers, args=(client, store), daemon=True).start()

    def pass_requests(self, client, store):
        try:
            with client.makefile("rb") as stream:
                while True:
                    request = Request(stream, client.getpeername()[1])
                    self.note(request)
                    time.sleep(self.delay)
                    store.sendall(request.raw)
        except (OSError, EOFError, ValueError):
            close(store)

    def pass_answers(self, client, store):
        try:
            while data := store.recv(65536):
                client.sendall(data)
        except OSError:
            pass
        close(client)

    def note(self, request):
        with self.lock:
            if request.operation == PING:
                self.pings += 1
                return
            self.requests.append(request)
            if request.operation != self.held_operation:
                return
            self.holders += 1
            self.lock.notify_all()
            self.lock.wait_for(lambda: self.holders >= self.wanted_holders, timeout=20)

    def hold(self, operation, clients):
        """Lets no such request pass until so many clients have sent one: then all of them at once."""
        self.held_operation, self.wanted_holders = operation, clients

    def count(self, operation=None):
        with self.lock:
            return sum(operation in (None, request.operation) for request in self.requests)

    def wait_for_silence(self, seconds):
        """Until nobody has asked anything for so long, at most 20 s."""
        with self.lock:
            for _ in range(int(20 / seconds)):
                seen = len(self.requests)
                self.lock.wait_for(lambda seen=seen: len(self.requests) > seen, timeout=seconds)
                if len(self.requests) == seen:
                    return
            raise AssertionError("the store is asked again and again: " + self.tell())

    def tell(self, last=20):
        return ", ".join(f"{request.operation} {request.blobs[:1]}" for request in self.requests[-last:])

    def end(self):
        close(self.listener)
        for each in self.sockets:
            close(each)


def close(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()

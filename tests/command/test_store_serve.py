# SPDX-License-Identifier: BSD-3-Clause
"""`muster store serve`: where it listens, and what clients can and cannot do to it."""

import resource
import signal
import socket
import struct
import threading

import pytest

from support.store import (
    ADD, APPEND, BARRIER, CANCEL_WAIT, CHECK, COMPARE_SET, DELETE, GET, LENGTH, LIST, MULTI_GET, MULTI_SET, POP, PUSH,
    SET, VALIDATE, WAIT, RawClient, Server, blob, request, wait_until,
)


@pytest.fixture
def server(muster):
    return Server(muster)


def taken_port():
    listener = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return listener, listener.getsockname()[1]


# where it listens


def test_it_prints_one_line_with_the_port_it_got(server):
    assert server.running.out() == f"PORT {server.port}\n"
    with server.client() as client:
        client.ping()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_with_status_0(server, number):
    with server.client():
        assert server.stop(number) == 0


def test_it_serves_both_families(server):
    for host in ("127.0.0.1", "::1"):
        with server.client(host=host) as client:
            client.set(b"/k", host.encode())
            assert client.get(b"/k") == host.encode()


@pytest.mark.parametrize("host, other", [("127.0.0.1", "::1"), ("::1", "127.0.0.1")])
def test_it_serves_one_address_alone_when_told(muster, host, other):
    server = Server(muster, "--host", host)
    with server.client(host=host) as client:
        client.ping()
    with pytest.raises(ConnectionRefusedError):
        RawClient(server.port, host=other)


def test_a_taken_port_exits_with_1_and_is_named(muster):
    listener, port = taken_port()
    with listener:
        end = muster.run(["store", "serve", "--port", port])
    assert end.status == 1, end
    assert f"port {port} is taken" in end.err and end.out == "", end


def test_an_address_of_another_machine_exits_with_1(muster):
    end = muster.run(["store", "serve", "--host", "192.0.2.1", "--port", 0])
    assert end.status == 1 and "192.0.2.1" in end.err, end


def test_an_inherited_socket_is_served(muster):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        server = Server(muster, address=("--fd", bound.fileno()), pass_fds=[bound.fileno()])
    assert server.port == port
    with server.client() as client:
        client.ping()


@pytest.mark.parametrize("make, words", [
    (lambda: open("/dev/null", "rb"), "not a socket"),
    (socket.socket, "not bound"),
])
def test_other_descriptors_are_refused(muster, make, words):
    with make() as file:
        end = muster.run(["store", "serve", "--fd", file.fileno()], pass_fds=[file.fileno()])
    assert end.status == 1 and words in end.err, end


@pytest.mark.parametrize("arguments", [
    ["--port", "x"], ["--port", 65536], ["--port", -1], ["--maximum-connections", 0], ["--fd", -1], ["more"],
])
def test_mistakes_exit_with_2(muster, arguments):
    end = muster.run(["store", "serve", *arguments])
    assert end.status == 2 and "error: " in end.err, end


# operations, byte by byte


def test_every_operation_answers_as_documented(server):
    with server.client() as client:
        client.set(b"/k", b"v")
        assert client.get(b"/k") == b"v" and client.get(b"/missing") == b""
        client.send(request(COMPARE_SET, b"/c", b"", b"a"))
        assert client.receive_blob() == b"a"
        client.send(request(COMPARE_SET, b"/none", b"zzz", b"c"))
        assert client.receive_blob() == b"zzz"
        client.send(request(ADD, b"/n", 5) + request(ADD, b"/n", -7))
        assert client.receive_number() == 5 and client.receive_number() == -2
        client.send(request(CHECK, 2, b"/k", b"/none") + request(CHECK, 1, b"/k") + request(CHECK, 0))
        assert client.receive(3) == b"\1\0\0"
        client.send(request(WAIT, 1, b"/k") + request(WAIT, 0))
        assert client.receive(2) == b"\0\0"
        client.send(request(WAIT, 1, b"/never") + bytes([CANCEL_WAIT]))
        assert client.receive(1) == b"\1"
        client.send(bytes([CANCEL_WAIT]))
        assert client.receive(1) == b"\1"
        client.send(request(APPEND, b"/k", b"w") + request(MULTI_SET, 2, b"/m1", b"A", b"/m2", b""))
        client.send(request(MULTI_GET, 4, b"/k", b"/m1", b"/m2", b"/none"))
        assert [client.receive_blob() for _ in range(4)] == [b"vw", b"A", b"", b""]
        client.send(request(PUSH, b"/q", b"e1") + request(LENGTH, b"/q") + request(POP, b"/q") + request(POP, b"/q"))
        assert client.receive_number() == 1
        assert client.receive_number() == 1 and client.receive_blob() == b"e1"
        assert client.receive_number() == 0
        client.send(request(DELETE, b"/m1") + request(DELETE, b"/m1") + bytes([7]))
        assert [client.receive_number() for _ in range(3)] == [1, 0, 4]
        client.send(bytes([LIST]))
        keys = [client.receive_blob() for _ in range(client.receive_number())]
        assert sorted(keys) == [b"/c", b"/k", b"/m2", b"/n"]
        client.send(request(BARRIER, b"/b", 1))
        assert client.receive(1) == b"\0"


def test_requests_are_understood_however_they_are_cut(server):
    stream = VALIDATE + request(SET, b"/k", b"v" * 300) + request(ADD, b"/n", 1) + request(GET, b"/k")
    stream += request(DELETE, b"/n")
    answer = struct.pack("<q", 1) + blob(b"v" * 300) + struct.pack("<q", 1)
    with server.client(greets=False) as client:
        for byte in stream:
            client.send(bytes([byte]))
        assert client.receive(len(answer)) == answer
    for cut in range(1, len(stream), 37):
        with server.client(greets=False) as client:
            client.send(stream[:cut])
            client.send(stream[cut:])
            assert client.receive(len(answer)) == answer


def test_many_pipelined_requests_are_all_answered(server):
    with server.client() as client:
        threading.Thread(target=client.send, args=(request(ADD, b"/n", 1) * 50000,)).start()
        numbers = struct.unpack("<50000q", client.receive(50000 * 8))
        assert numbers == tuple(range(1, 50001))


# clients that mean no good

@pytest.mark.parametrize("sent", [
    b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100, bytes(5), b"\x00" + b"\xff" * 4, b"\x07" + bytes(16), b"\x16\x03\x01",
])
def test_strangers_are_sent_away_at_the_door(server, sent):
    with server.client() as witness, server.client(greets=False) as stranger:
        stranger.send(sent)
        assert stranger.is_closed()
        server.wait_for_log(f"client 127.0.0.1:{stranger.socket.getsockname()[1]}: ")
        assert "not a TCPStore client" in server.running.err()
        witness.ping()


BREACHES = {
    "unknown operation": b"\x13",
    "handshake twice": VALIDATE,
    "key of 2^62 bytes": bytes([SET]) + struct.pack("<Q", 2**62),
    "key of 2^64 - 1 bytes": bytes([GET]) + b"\xff" * 8,
    "key of 20,000 bytes": request(GET, b"/" + b"k" * 20000),
    "key one byte too long": request(GET, b"/" + b"k" * 8192),
    "value of 2^40 bytes": bytes([SET]) + blob(b"/k") + struct.pack("<Q", 2**40),
    "value one byte too long": bytes([SET]) + blob(b"/k") + struct.pack("<Q", (8 << 20) + 1),
    "131,073 keys": bytes([CHECK]) + struct.pack("<Q", 131073),
    "2^61 keys": bytes([WAIT]) + struct.pack("<Q", 2**61),
    "counting what is no number": request(SET, b"/text", b"abc") + request(ADD, b"/text", 1),
    "negative number of keys": request(MULTI_GET, -1),
}


@pytest.mark.parametrize("sent", BREACHES.values(), ids=BREACHES.keys())
def test_a_breach_costs_one_connection_and_a_line_in_the_log(server, sent):
    with server.client() as witness, server.client() as culprit:
        memory = server.memory()
        culprit.send(sent)
        assert culprit.is_closed()
        server.wait_for_log(f"client 127.0.0.1:{culprit.socket.getsockname()[1]}: ")
        witness.ping()
    assert server.running.err().count("client ") == 1
    assert server.memory() < memory + (8 << 20)


def test_key_and_value_at_their_limits_are_accepted(server):
    key, value = b"/" + b"k" * 8191, b"v" * (8 << 20)
    with server.client() as client:
        client.set(key, value)
        assert client.get(key) == value


def test_limits_are_options(muster):
    server = Server(muster, "--maximum-key-bytes", 4, "--maximum-value-bytes", 8, "--maximum-keys-per-request", 2)
    for allowed, refused in [
        (request(GET, b"/abc"), request(GET, b"/abcd")),
        (request(SET, b"/a", b"12345678") + request(GET, b"/b"), request(SET, b"/a", b"123456789")),
        (request(CHECK, 2, b"/a", b"/b"), request(CHECK, 3, b"/a", b"/b", b"/c")),
    ]:
        with server.client() as client:
            client.send(allowed)
            assert client.receive(1) in (b"\0", b"\1")
        with server.client() as client:
            client.send(refused)
            assert client.is_closed()


@pytest.mark.parametrize("half", [b"\x01", b"\x01\x05\x00", bytes([SET]) + blob(b"/k") + struct.pack("<Q", 8 << 20) + b"x"])
def test_half_a_request_is_noticed_by_nobody(server, half):
    with server.client() as stalled, server.client() as other:
        stalled.send(half)
        other.set(b"/k", b"v")
        assert other.get(b"/k") == b"v"
        with server.client() as late:
            late.ping()


def test_a_client_that_leaves_in_the_middle_of_a_request_changes_nothing(server):
    with server.client() as client:
        client.send(request(SET, b"/k", b"value")[:-1])
    with server.client() as other:
        assert other.get(b"/k") == b""
    assert server.running.err() == ""


@pytest.mark.plain_build
def test_clients_that_do_not_read_are_served_nothing_further_and_lose_nothing(server):
    value, times, clients = b"x" * (4 << 20), 20, 8
    with server.client() as witness:
        witness.set(b"/big", value)
        witness.ping()
        slow = [server.client() for _ in range(clients)]
        for client in slow:
            client.send(request(GET, b"/big") * times + request(ADD, b"/served", 1))
        for _ in range(100):
            witness.send(request(ADD, b"/n", 1))
            witness.receive_number()
        assert witness.get(b"/served") == b""
        assert server.memory() < (8 + 2 * 8 * clients) << 20
        for client in slow:
            for _ in range(times):
                assert client.receive_blob() == value
            assert client.receive_number() > 0
            client.socket.close()
        assert witness.get(b"/served") == str(clients).encode()
    assert server.running.err() == ""


@pytest.mark.plain_build
def test_unfinished_requests_cannot_exceed_the_memory_limit(muster):
    server = Server(muster, "--maximum-memory", 20 << 20)
    unfinished = bytes([SET]) + blob(b"/k") + struct.pack("<Q", 8 << 20) + b"x" * ((8 << 20) - 1)
    with server.client() as witness:
        clients = [server.client() for _ in range(4)]
        for client in clients:
            try:
                client.send(unfinished)
            except (BrokenPipeError, ConnectionResetError):
                pass  # dropped while it was sending
        server.wait_for_log("memory")
        witness.ping()
        assert server.memory() < 48 << 20
        for client in clients:
            client.socket.close()


def test_a_reply_beyond_the_limit_is_not_built(muster):
    server = Server(muster, "--maximum-queued-bytes", 1 << 20)
    with server.client() as client, server.client() as greedy:
        client.set(b"/k", b"x" * 10000)
        client.ping()
        greedy.send(request(MULTI_GET, 1000, *[b"/k"] * 1000))
        assert greedy.is_closed()
        server.wait_for_log(f"a reply of {1000 * 10008} bytes, the limit is {1 << 20}")
        client.ping()


def test_of_the_unfinished_requests_the_largest_makes_room_for_values(muster):
    server = Server(muster, "--maximum-memory", 16 << 20)
    with server.client() as large, server.client() as small, server.client() as client:
        for stalled, size in ((small, 1 << 20), (large, 5 << 20)):
            stalled.send(bytes([SET]) + blob(b"/k") + struct.pack("<Q", size) + b"x" * (size - 1))
        wait_until(lambda: server.memory() > 6 << 20)
        for n in range(110):
            client.set(b"/%d" % n, b"x" * 100_000)
            client.ping()
        server.wait_for_log("this client holds most of it")
        assert large.is_closed()
        assert {len(client.get(b"/%d" % n)) for n in range(110)} == {100_000}
        small.send(b"x")
        small.ping()
        assert small.get(b"/k") == b"x" * (1 << 20)


def test_stored_values_cannot_exceed_the_memory_limit(muster):
    server = Server(muster, "--maximum-memory", 20 << 20)
    with server.client() as witness, server.client() as hoarder:
        hoarder.set(b"/1", b"x" * (8 << 20))
        hoarder.ping()
        hoarder.set(b"/2", b"x" * (8 << 20))
        try:
            hoarder.set(b"/3", b"x" * (8 << 20))
            assert hoarder.is_closed()
        except (BrokenPipeError, ConnectionResetError):
            pass
        server.wait_for_log("memory")
        witness.send(request(DELETE, b"/1"))
        assert witness.receive_number() == 1
        witness.set(b"/3", b"y")
        assert witness.get(b"/3") == b"y"


def test_connections_beyond_the_limit_are_turned_away_until_others_leave(muster):
    server = Server(muster, "--maximum-connections", 3)
    clients = [server.client() for _ in range(3)]
    with server.client(greets=False) as surplus:
        assert surplus.is_closed()
    server.wait_for_log("the limit of 3 connections")
    clients.pop().socket.close()

    def is_let_in():
        try:
            clients.append(server.client())
            return True
        except OSError:
            return False

    wait_until(is_let_in)
    for client in clients:
        client.ping()
        client.socket.close()


def test_without_descriptors_it_serves_those_who_are_in_and_does_not_spin(muster):
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))

    server = Server(muster, preexec_fn=few_files)
    clients = []
    while "no descriptor is left" not in server.running.err():
        assert len(clients) < 64
        try:
            clients.append(server.client())
        except OSError:
            break
    server.wait_for_log("no descriptor is left")
    served = clients[:8]
    before = server.processor_seconds()
    for _ in range(50):
        with server.client(greets=False) as surplus:
            assert surplus.is_closed()
        for client in served:
            client.ping()
    assert server.processor_seconds() - before < 2
    assert server.running.err().count("no descriptor is left") == 1
    for client in clients:
        client.socket.close()
    wait_until(lambda: can_connect(server))


def can_connect(server):
    try:
        with server.client():
            return True
    except OSError:
        return False


@pytest.mark.plain_build
def test_a_thousand_clients_cost_at_most_four_megabytes(server):
    clients = [server.client() for _ in range(1000)]
    for client in clients:
        client.send(request(WAIT, 1, b"/go"))
    clients[0].ping()
    with server.client() as setter:
        setter.ping()
        assert server.memory() <= 4 << 20
        setter.set(b"/go", b"now")
    for client in clients:
        assert client.receive(1) == b"\0"
        client.socket.close()


@pytest.mark.plain_build
def test_clients_that_vanish_while_waiting_leave_nothing_behind(server):
    for _ in range(20):
        clients = [server.client() for _ in range(50)]
        for client in clients:
            client.send(request(WAIT, 3, b"/a", b"/b", b"/c"))
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.socket.close()
    with server.client() as client:
        client.set(b"/a", b"v")
        assert client.get(b"/a") == b"v"
    assert server.memory() <= 6 << 20


def test_a_flood_of_strangers_does_not_flood_the_log(server):
    for _ in range(300):
        with server.client(greets=False) as stranger:
            stranger.send(b"\xff\xff")
            assert stranger.is_closed()
    assert 1 <= server.running.err().count("\n") <= 100

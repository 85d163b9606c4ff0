# SPDX-License-Identifier: BSD-3-Clause
"""`muster store get`, `set` and the others: a live store from a shell."""

import socket

import pytest

from support.store import Server


@pytest.fixture
def server(muster):
    return Server(muster)


@pytest.fixture
def ask(muster, server):
    """Runs `muster store COMMAND …` on the server; MASTER_ADDR and MASTER_PORT say where."""
    environment = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": server.port}
    return lambda *words, **more: muster.run(["store", *words], env=environment, **more)


def test_a_value_comes_back_as_it_was_stored(ask):
    assert ask("set", "k", "a value").status == 0
    end = ask("get", "k")
    assert (end.status, end.out) == (0, "a value")


def test_keys_are_those_users_write(ask, server):
    ask("set", "k", "v")
    with server.client() as client:
        assert client.get(b"/k") == b"v"
        client.set(b"raw", b"r")
        client.ping()
    assert ask("get", "--raw", "raw").out == "r"
    assert ask("get", "raw").status == 1
    assert ask("keys").out == "k\n"
    assert sorted(ask("keys", "--raw").out.split()) == ["/k", "raw"]


def test_a_missing_key_is_status_1_at_once(ask):
    end = ask("get", "missing")
    assert end.status == 1 and end.out == "" and "no such key" in end.err and end.seconds < 5


def test_bytes_pass_through_stdin_and_stdout(muster, ask, scratch):
    data = bytes(range(256)) * 10
    (scratch / "data").write_bytes(data)
    with open(scratch / "data", "rb") as file:
        assert ask("set", "k", "-", stdin=file).status == 0
    with open(scratch / "out", "wb") as out:
        assert ask("get", "k", stdout=out).status == 0
    assert (scratch / "out").read_bytes() == data


def test_several_values_are_lines_with_escapes(ask):
    assert ask("set", "a", "1", "b", "back\\slash\n").status == 0
    assert ask("get", "a", "b").out == "1\nback\\\\slash\\x0a\n"
    assert ask("set", "a", "1", "b").status == 2


def test_counters(ask):
    assert ask("add", "n").out == "1\n"
    assert ask("add", "n", "41").out == "42\n"
    assert ask("add", "n", "-50").out == "-8\n"
    ask("set", "text", "abc")
    end = ask("add", "text")
    assert end.status == 1 and "ADD" in end.err
    assert ask("get", "text").out == "abc"


def test_append_and_compare_set(ask):
    ask("append", "k", "ab")
    ask("append", "k", "c")
    assert ask("get", "k").out == "abc"
    end = ask("compare-set", "k", "abc", "new")
    assert (end.status, end.out) == (0, "new")
    end = ask("compare-set", "k", "abc", "newer")
    assert (end.status, end.out) == (1, "new")
    assert ask("compare-set", "fresh", "", "v").status == 0


def test_check_wait_and_delete_tell_by_their_status(ask):
    ask("set", "k", "v")
    assert ask("check", "k").status == 0
    assert ask("check", "k", "missing").status == 1
    assert ask("wait", "k").status == 0
    end = ask("wait", "--timeout", "0.2", "missing")
    assert end.status == 1 and "timed out" in end.err
    assert ask("delete", "k").status == 0
    assert ask("delete", "k").status == 1
    assert ask("count").out == "0\n"


def test_wait_ends_when_the_key_is_set(muster, ask, server):
    waiting = muster.start(["store", "wait", "k", "--host", "localhost", "--port", server.port, "--timeout", 30])
    ask("set", "k", "v")
    assert waiting.finish().status == 0


def test_queues(ask):
    ask("push", "q", "first")
    ask("push", "q", "second")
    assert ask("len", "q").out == "2\n"
    assert ask("pop", "q").out == "first"
    assert ask("pop", "--wait", "q").out == "second"
    end = ask("pop", "q")
    assert end.status == 1 and "empty" in end.err
    assert ask("pop", "--wait", "--timeout", "0.2", "q").status == 1


def test_keys_with_a_prefix_and_escapes(ask):
    for key in ("job/a", "job/b", "other", "new\nline"):
        ask("set", key, "v")
    assert sorted(ask("keys", "job/").out.splitlines()) == ["job/a", "job/b"]
    assert "new\\x0aline" in ask("keys").out.splitlines()


def test_watch_prints_a_value_when_it_changes(muster, ask, server):
    watching = muster.start(
        ["store", "watch", "k", "--port", server.port, "--interval", 0.01, "--changes", 3], env={"MASTER_ADDR": "127.0.0.1"}
    )
    for number, value in enumerate(("one", "two", "three\n"), 1):
        ask("set", "k", value)
        watching.wait_until(lambda: watching.out().count("\n") >= number, f"line {number}")
    assert watching.finish().status == 0
    assert watching.out() == "one\ntwo\nthree\\x0a\n"


def test_watch_ends_with_the_store(muster, server):
    watching = muster.start(["store", "watch", "k", "--host", "127.0.0.1", "--port", server.port])
    server.running.wait_until(lambda: established(server.port), "the connection")
    server.running.kill()
    end = watching.finish()
    assert end.status == 1 and "error: " in end.err, end


def established(port):
    """Whether anybody is connected to the port."""
    states = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in open(table, encoding="ascii").readlines()[1:]:
            fields = line.split()
            states += [fields[3]] if fields[1].endswith(f":{port:04X}") else []
    return "01" in states


def test_barrier_and_ping(muster, ask, server):
    first = muster.start(["store", "barrier", "b", 2, "--host", "127.0.0.1", "--port", server.port, "--timeout", 30])
    assert ask("barrier", "b", "2").status == 0
    assert first.finish().status == 0
    assert ask("barrier", "--timeout", "0.2", "alone", "2").status == 1
    assert ask("ping").status == 0


def test_no_store_is_status_1_within_the_timeout(muster):
    with socket.socket() as bound:  # bound and not listening: nobody else takes the port
        bound.bind(("127.0.0.1", 0))
        where = ["--host", "127.0.0.1", "--port", bound.getsockname()[1]]
        end = muster.run(["store", "get", "k", "--timeout", "1", *where])
    assert end.status == 1 and "refused" in end.err and end.seconds < 30, end


def test_a_server_that_says_nothing_is_status_1_within_the_timeout(muster):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = ["--host", "127.0.0.1", "--port", silent.getsockname()[1]]
        end = muster.run(["store", "get", "k", "--timeout", "0.3", *where])
    assert end.status == 1 and "does not answer" in end.err and end.seconds < 5, end


@pytest.mark.parametrize("words", [
    [], ["frobnicate"], ["get"], ["get", "k", "--port", "0"], ["get", "k", "--port", "x"], ["set", "k"],
    ["add", "k", "x"], ["get", "k", "--timeout", "-1"], ["watch", "a", "b"],
])
def test_mistakes_are_status_2(muster, words):
    end = muster.run(["store", *words])
    assert end.status == 2 and "error: " in end.err, end


def test_a_master_port_that_is_none_is_status_2(muster):
    end = muster.run(["store", "get", "k"], env={"MASTER_PORT": "none"})
    assert end.status == 2 and "MASTER_PORT" in end.err, end


@pytest.mark.parametrize("command", [
    "serve", "get", "set", "append", "add", "compare-set", "check", "wait", "delete", "keys", "count", "watch", "push",
    "pop", "len", "barrier", "ping",
])
def test_every_command_has_help_and_is_listed(muster, command):
    end = muster.run(["store", command, "--help"])
    assert end.status == 0 and end.out.startswith(f"usage: muster store {command}"), end
    assert f"muster store {command}" in muster.run(["store", "--help"]).out

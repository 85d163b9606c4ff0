# SPDX-License-Identifier: BSD-3-Clause
"""`muster status` and `muster events` against agents that are made up here, and against askers that mean no good."""

import contextlib
import fcntl
import json
import os
import re
import socket
import subprocess
import termios
import threading
import time

import pytest

from support.json_schema import check
from support.nodes import wait_until
from support.terminal import open_terminal

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n"


@pytest.fixture
def place(scratch):
    place = scratch / "announced"
    place.mkdir(mode=0o700)
    return place


@pytest.fixture
def ask(muster, place):
    return lambda *words, **more: muster.run([*words], env={"MUSTER_RUNTIME_DIR": place, **more})


@contextlib.contextmanager
def made_up_agent(place, answer, name="demo", **facts):
    """Announces a job whose agent answers each question with the bytes that `answer` makes of it; None: it says nothing."""
    path = place / "ask-made-up"
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.fspath(path))
    server.listen(8)
    announced = {"run_id": name, "host": "localhost", "port": 1, "pid": os.getpid(), "socket": os.fspath(path), "node": "n000", **facts}
    descriptor = os.open(place / "job-made-up", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, json.dumps(announced, ensure_ascii="\udcff" not in name).encode(errors="surrogateescape"))
    held = []

    def serve():
        with contextlib.suppress(OSError):
            while True:
                client = server.accept()[0]
                question = client.recv(4096)
                said = answer(question)
                if said is None:
                    held.append(client)
                    continue
                with contextlib.suppress(OSError), client:
                    client.sendall(said)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()
    for client in held:
        client.close()
    os.close(descriptor)


def entry(seq, node, kind, at, **fields):
    severity = "error" if kind in ("node_lost", "worker_failed") else "info"
    return {"schema": "muster.event/1", "seq": seq, "time": at, "node": node, "kind": kind, "severity": severity, "round": 0, **fields}


def spelled(entries):
    return b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in entries)


def answer_with(entries, head=HEAD):
    """Of the whole job nobody is asked: that is another question."""
    return lambda question: head + spelled(entries) if b"/v1/events" in question else b"HTTP/1.1 404 Not Found\r\n\r\n"


def many_nodes(count, began):
    entries = [entry(1, "n000.site", "world", began, nodes=count, workers=2 * count, charged=False, used=0, max=3)]
    for number in range(count):
        name = f"n{number:03}.site"
        entries.append(entry(len(entries) + 1, name, "joined", began + 1, rank=number, first_rank=2 * number, workers=2))
        entries.append(entry(len(entries) + 1, name, "started", began + 2, attempt=0, from_standby=0))
    return entries


def test_nodes_that_stand_equally_are_one_line_and_the_odd_ones_are_first(ask, place):
    began = time.time() - 100
    entries = many_nodes(30, began)
    entries.append(entry(len(entries) + 1, "n007.site", "node_lost", began + 40))
    with made_up_agent(place, answer_with(entries)):
        folded = ask("status")
        whole = ask("status", "--nodes")
        ranks = ask("status", "--ranks")
    table = folded.out[folded.out.index("NODES") :].splitlines()
    assert table[1].startswith("    1  lost      last news 1 min 3")
    assert table[1].endswith(" n007.site")
    assert table[2].startswith("   29  running ") and table[2].endswith(" n[000-006,008-029].site")
    assert len(re.findall(r"^n0\d\d\.site +\d+-\d+ ", whole.out, re.MULTILINE)) == 30
    assert len(re.findall(r"^\d+ +[01] +n0\d\d\.site +(?:running|lost)", ranks.out, re.MULTILINE)) == 60
    assert folded.status == whole.status == ranks.status == 3


def test_one_node_and_one_rank_are_shown_alone(ask, place):
    entries = many_nodes(30, time.time() - 100)
    with made_up_agent(place, answer_with(entries)):
        node = ask("status", "--node", "n004.site")
        rank = ask("status", "--rank", "9")
        no_node = ask("status", "--node", "n4")
        no_rank = ask("status", "--rank", "60")
    assert re.findall(r"^n\d+\.site", node.out, re.MULTILINE) == ["n004.site"]
    assert re.findall(r"^(\d+) +(\d) +(n\d+)\.site", rank.out, re.MULTILINE) == [("9", "1", "n004")]
    assert no_node.status == 2 and "the job has no node 'n4'" in no_node.err
    assert no_rank.status == 2 and "no node of the job has rank 60; there are 60 workers" in no_rank.err


def test_a_job_that_has_ended_badly_is_status_4(ask, place):
    now = time.time()
    entries = [entry(1, "n000", "started", now - 9, attempt=0, from_standby=0), entry(2, "n000", "ended", now - 1, result="failed")]
    with made_up_agent(place, answer_with(entries)):
        assert ask("status").status == 4
        assert ask("status", "--watch").status == 4


def test_events_since_a_number_or_a_time_and_of_several_kinds(ask, place):
    now = time.time()
    entries = [
        entry(1, "n000", "started", now - 7200, attempt=0, from_standby=0),
        entry(2, "n000", "stopped", now - 90),
        entry(3, "n000", "started", now - 60, attempt=1, from_standby=0),
        entry(4, "n000", "checkpoint", now - 30, step=5),
    ]
    with made_up_agent(place, answer_with(entries)):

        def seqs(*words):
            shown = ask("events", "--json", *words)
            assert shown.status == 0, shown
            return [check(json.loads(line), "event")["seq"] for line in shown.out.splitlines()]

        assert seqs("--since", "2") == [3, 4]
        assert seqs("--since", "5m") == seqs("--since", "300s") == [2, 3, 4]
        assert seqs("--since", "3h") == seqs("--since", "1d") == [1, 2, 3, 4]
        assert seqs("--kind", "stopped", "--kind", "checkpoint") == seqs("--kind", "stopped,checkpoint") == [2, 4]
        for mistake in ("x", "10", "5w", "-5", "", "99999999999999999999", "99999999999d"):
            shown = ask("events", "--since", mistake)
            if mistake != "10":
                assert shown.status == 2 and "--since" in shown.err, mistake
            else:
                assert shown.status == 0 and shown.out == ""


@pytest.mark.parametrize("timeout", ["0", "-1", "nan", "1e9", "soon"])
def test_a_timeout_that_is_none_is_refused(ask, timeout):
    told = ask("status", f"--timeout={timeout}")
    assert told.status == 2 and "timeout" in told.err


def test_an_agent_that_says_nothing_is_given_up(ask, place):
    with made_up_agent(place, lambda question: None):
        told = ask("status", "--timeout", "0.3")
    assert told.status == 1
    assert "no agent of the job answers: cannot read from " in told.err and "in time: as many ask as are answered at once, or it stands still" in told.err


def test_an_agent_that_ends_while_it_answers_is_told(ask, place):
    head = b"HTTP/1.1 200 OK\r\nMuster-Last: 9\r\n\r\n"
    whole = entry(1, "n000", "started", time.time(), attempt=0, from_standby=0)
    with made_up_agent(place, lambda question: head + spelled([whole]) + b'{"schema":"muster.event/1","seq":2,"ti'):
        told = ask("events")
    assert told.status == 0 and "started" in told.out
    assert "the agent of n000 has ended while it answered; the file events.jsonl beside its logs has the rest" in told.err


def test_what_a_later_version_tells_is_no_end_in_between(ask, place):
    head = b"HTTP/1.1 200 OK\r\nMuster-Last: 2\r\n\r\n"
    entries = [entry(1, "n000", "started", time.time(), attempt=0, from_standby=0), entry(2, "n000", "moon_phase", time.time(), phase="full")]
    with made_up_agent(place, answer_with(entries, head)):
        told = ask("events")
    assert told.status == 0 and told.err == "" and len(told.out.splitlines()) == 1


HOSTILE = ["\x1b[2J\x1b]0;title\x07", "\u202egnp.exe\u2066", "x" * 4096, "<script>alert(1)</script>", "a\nb\rc\td", "%s%n%99999d"]


@pytest.mark.parametrize("name", [*HOSTILE, "\udcff\udcfe"], ids=["escape", "bidi", "long", "script", "lines", "format", "no-utf8"])
def test_hostile_names_are_shown_as_one_line_of_text(muster, ask, place, name):
    text = name.encode(errors="replace").decode()
    entries = [
        entry(1, text, "started", time.time(), attempt=0, from_standby=0),
        entry(2, text, "worker_failed", time.time(), rank=0, local_rank=0, pid=1, exit=1, first=True, text=text),
        entry(3, text, "stopping", time.time(), reason=text, cause="worker_failed"),
    ]
    with made_up_agent(place, answer_with(entries), name=name, node=text, log_dir=text):
        for words in (["status"], ["status", "--ranks"], ["status", "--json", "--nodes"], ["events"], ["events", "--json"]):
            told = ask(*words)
            assert told.status in (0, 1, 3), told
            for shown in (told.out, told.err):
                assert not set(shown) & {"\x1b", "\x07", "\r", "\t", "\u202e", "\u2066"}, (words, shown)
            assert len(told.out) < 40000 and len(told.out.splitlines()) < 20
    assert muster.run(["--version"]).status == 0


def watch_on_terminal(muster, place, columns, rows, **more):
    """What `muster status --watch` writes to a terminal, twice renewed."""
    ours, theirs = open_terminal()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, rows.to_bytes(2, "little") + columns.to_bytes(2, "little") + bytes(4))
    environment = {**os.environ, "MUSTER_RUNTIME_DIR": os.fspath(place), "TERM": "xterm", **more}
    environment = {name: value for name, value in environment.items() if value is not None}
    running = subprocess.Popen([muster.binary, "status", "--watch"], stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while shown.count(b"\x1b[J") < 2:
        shown += os.read(ours, 65536)
    running.terminate()
    running.wait()
    os.close(ours)
    return shown.decode()


@pytest.mark.parametrize("columns, rows", [(20, 5), (80, 24), (1, 2)])
def test_a_terminal_is_renewed_in_place_within_its_rows_and_columns(muster, place, columns, rows):
    with made_up_agent(place, answer_with(many_nodes(30, time.time() - 100))):
        shown = watch_on_terminal(muster, place, columns, rows, NO_COLOR=None)
        plain = watch_on_terminal(muster, place, columns, rows, NO_COLOR="1")
    first, second, _ = re.split(r"\x1b\[\d+A\r\x1b\[J", shown, maxsplit=2)
    for screen in (first, second):
        lines = screen.replace("\r\n", "\n").splitlines()
        assert 1 <= len(lines) < rows
        assert all(len(re.sub(r"\x1b\[[\d;]*m", "", line)) <= columns for line in lines)
    assert "\x1b[32m" in shown and "\x1b[0m" in shown
    assert set(re.findall(r"\x1b\[[\d;]*([A-Za-z])", plain)) == {"A", "J"}


def test_elsewhere_a_line_is_printed_when_something_has_changed(muster, place):
    entries = many_nodes(2, time.time() - 100)
    agent = {"entries": entries}
    with made_up_agent(place, lambda question: answer_with(agent["entries"])(question)):
        running = muster.start(["status", "--watch"], env={"MUSTER_RUNTIME_DIR": place})
        running.wait_until(lambda: running.out().count("\n") == 1, "the first line", 30)
        new = [entry(100 + i, f"n00{i}.site", "ended", time.time(), result="succeeded") for i in range(2)]
        agent["entries"] = new
        told = running.finish()
    lines = told.out.splitlines()
    assert told.status == 0 and len(lines) == 2
    assert lines[0].startswith("demo  running  ") and lines[1].startswith("demo  succeeded  ")


# Of real agents.


def sockets(place):
    return sorted(place.glob("ask-*"))


@pytest.fixture
def running_job(make_job, place):
    job = make_job(1, env={"MUSTER_RUNTIME_DIR": place})
    job.start("node1")
    world = job.wait_for_world("node1")
    wait_until(lambda: len(sockets(place)) == 1, "the agent's socket")
    yield sockets(place)[0]
    world.end()
    assert job.succeeds()


def say(path, question):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(os.fspath(path))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(question)
            return client.recv(1 << 20)
        return b""


def test_a_question_of_a_megabyte_is_none(running_job, ask):
    assert say(running_job, b"GET /" + b"x" * (1 << 20)) in (b"", say(running_job, b"nonsense\n\n"))
    assert ask("status").status == 0


def test_ten_thousand_questions_leave_the_job_alone(running_job, ask):
    def many():
        for _ in range(1250):
            assert say(running_job, b"GET /v1/status HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 ")

    askers = [threading.Thread(target=many) for _ in range(8)]
    for asker in askers:
        asker.start()
    assert ask("status").status == 0
    for asker in askers:
        asker.join()
    assert ask("status").status == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_gets_no_answer_even_where_the_socket_is_open_to_all(running_job, ask):
    program = """
import os, socket
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
client = socket.socket(socket.AF_UNIX)
client.connect(os.environ["ASKED"])
try:
    client.sendall(b"GET /v1/status HTTP/1.1\\r\\n\\r\\n")
    print(client.recv(65536))
except (BrokenPipeError, ConnectionResetError):
    print(b"")
"""
    os.chmod(running_job, 0o777)
    os.chmod(running_job.parent, 0o711)
    told = subprocess.run(
        ["/usr/bin/python3", "-c", program], cwd=running_job.parent, env={"ASKED": running_job.name}, capture_output=True, text=True
    )
    os.chmod(running_job.parent, 0o700)
    assert told.stdout == "b''\n", told
    assert ask("status").status == 0


def test_who_follows_and_does_not_read_keeps_nobody_from_asking(running_job, ask):
    followers = []
    for _ in range(9):
        client = socket.socket(socket.AF_UNIX)
        client.connect(os.fspath(running_job))
        client.sendall(b"GET /v1/follow HTTP/1.1\r\n\r\n")
        followers.append(client)
    heads = [client.recv(12) for client in followers]
    assert sorted(heads) == [b"HTTP/1.1 200"] * 8 + [b"HTTP/1.1 503"]
    assert ask("status").status == 0
    for client in followers:
        client.close()


def test_a_worker_without_an_error_file_is_told_with_its_last_line(muster, scratch):
    script = scratch / "once.py"
    script.write_text(
        "import os, sys, time\n"
        'if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":\n'
        '    sys.exit("the disk is on fire")\n'
        'if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":\n'
        "    time.sleep(600)\n"
    )
    words = ["run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1", "--redirects", "2"]
    assert muster.run([*words, "--log-dir", scratch / "logs", script]).status == 0
    (file,) = (scratch / "logs").glob("*/events.jsonl")
    told = [check(json.loads(line), "event") for line in file.read_text().splitlines()]
    (failed,) = [one for one in told if one["kind"] == "worker_failed"]
    assert failed["text"] == "the disk is on fire"

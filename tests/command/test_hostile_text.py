# SPDX-License-Identifier: BSD-3-Clause
"""Text of others (workers, other nodes, whoever writes into the store) does nothing to the user's terminal: no
escape sequence and no other control character of theirs is shown. What a worker itself prints is its own."""

import json
import os
import re
import subprocess

from support.binary import clean_environment
from support.store import Server
from support.terminal import open_terminal

TITLE = "\x1b]0;owned\x07"
NASTY = f"{TITLE}\x1b[31mred\x1b[0m\x1b[2J\x9b5n\x7f"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def assert_clean(end, *said):
    found = CONTROLS.search(end.err)
    assert found is None, f"{found} in {end.err!r}"
    for words in said:
        assert words in end.err, end


def test_an_error_file_cannot_control_the_terminal(muster, scratch):
    message = {"message": NASTY, "extraInfo": {"py_callstack": f"Traceback\n  {NASTY}\n", "timestamp": "1795175835"}}
    (scratch / "nasty.json").write_text(json.dumps({"message": message}))
    script = 'cp "$NASTY" "$TORCHELASTIC_ERROR_FILE"; exit 9'
    command = ["run", "--standalone", "--no-python", "sh", "-c", script]
    end = muster.run(command, env={"NASTY": scratch / "nasty.json"})
    assert_clean(end, "exitcode  : 9", "traceback : Traceback\n    ?]0;owned?red?[2J")


def test_what_a_worker_prints_is_its_own(muster):
    end = muster.run(["run", "--standalone", "--no-python", "printf", "\\033[31mred\\033[0m\\n"])
    assert "\x1b[31mred\x1b[0m" in end.out


def test_another_nodes_failure_cannot_control_the_terminal(make_job, muster):
    server = Server(muster)
    job = make_job(2, port=server.port, restarts=0, conf=["is_host=false"])
    job.nodes("node1", "node2")
    world = job.wait_for_world("node1", "node2")
    account = {
        "rank": 1, "local_rank": 0, "group_rank": 1, "role_rank": 1, "time": 1700000000, "pid": 4711, "exit_code": 5,
        "host": f"{NASTY}\n  forged    : yes", "node": "node2_17_3", "error_file": f"/logs/{NASTY}",
        "summary": NASTY, "traceback": f"Traceback:\n  {NASTY}\n",
    }  # fmt: skip
    with server.client() as client:
        for number in range(3):
            client.set(f"/torch.rendezvous.job.{number}/muster/root_cause".encode(), json.dumps(account).encode())
    world.of("node1").end(3)
    for end in job.finish().values():
        assert end.status == 1, job.tell()
        assert_clean(end, "exitcode  : 5 (pid: 4711)")
        assert "\n  forged    : yes" not in end.err


def test_a_value_shown_on_a_terminal_does_nothing_to_it(muster):
    server = Server(muster)
    with server.client() as client:
        client.set(b"/key", NASTY.encode())
        client.set(f"/{TITLE}".encode(), b"value")
    at = ["--port", server.port]
    assert muster.run(["store", "get", *at, "key"]).out == NASTY
    assert CONTROLS.search(muster.run(["store", "keys", *at]).out) is None
    controller, terminal = open_terminal()
    command = [muster.binary, "store", "get", "--port", str(server.port), "key"]
    assert subprocess.run(command, stdout=terminal, env=clean_environment(), timeout=20).returncode == 0
    os.close(terminal)
    assert os.read(controller, 1000).decode() == "?]0;owned?red?[2J?5n?"
    os.close(controller)

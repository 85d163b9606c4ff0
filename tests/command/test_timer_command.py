# SPDX-License-Identifier: BSD-3-Clause
"""`muster timer`: serving, holding and listing timers without a job."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time

import pytest

from support.binary import clean_environment


class Server:
    def __init__(self, muster, path):
        self.path = path
        self.process = subprocess.Popen(
            [muster.binary, "timer", "serve", "--file", path], env=clean_environment(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        assert self.process.stdout.readline() == f"FILE {path}\n"

    def stop(self):
        """Ends it as a user would; what it said on the way."""
        self.process.terminate()
        err = self.process.communicate(timeout=20)[1]
        assert self.process.returncode == 0, err
        return err


@pytest.fixture
def server(muster, scratch):
    server = Server(muster, scratch / "timers")
    yield server
    if server.process.returncode is None:
        server.stop()


def ask(server, seconds, scope="mine", number=9, pid=None):
    line = json.dumps({"version": 1, "pid": pid or os.getpid(), "scope_id": scope,
                       "expiration_time": time.time() + seconds if seconds is not None else -1, "signal": number})
    with open(server.path, "w") as fifo:
        fifo.write(line + "\n")


def run(muster, server, *words):
    return muster.run(["timer", "run", "--file", server.path, *words])


def test_a_command_that_ends_in_time_gives_its_status(muster, server):
    assert run(muster, server, "--after", 30, "--scope", "load", "--", "sh", "-c", "exit 7").status == 7
    assert run(muster, server, "--after", 30, "sh", "-c", "kill -USR1 $$").status == 128 + signal.SIGUSR1
    assert muster.run(["timer", "list", "--file", server.path]).out.count("\n") == 1
    assert server.stop() == ""


@pytest.mark.parametrize("options, number", [([], 9), (["--signal", "SIGUSR1"], 10)])
def test_a_command_that_takes_longer_is_ended(muster, server, options, number):
    end = run(muster, server, "--after", 0.2, "--scope", "the load", *options, "sleep", 60)
    assert end.status == 128 + number, end
    assert re.search(rf"ended process \d+ with {signal.Signals(number).name}, .* 'the load'", server.stop())


def test_a_command_that_cannot_run_says_so(muster, server):
    end = run(muster, server, "--after", 5, "no such command")
    assert end.status == 127
    assert "cannot run no such command" in end.err


def test_who_ends_the_wrapper_ends_the_command(muster, server):
    wrapper = subprocess.Popen(
        [muster.binary, "timer", "run", "--file", server.path, "--after", "60", "sh", "-c", "echo $$; exec sleep 60"],
        stdout=subprocess.PIPE, text=True,
    )
    assert int(wrapper.stdout.readline()) > 0
    wrapper.terminate()
    assert wrapper.stdout.read() == ""  # the command held it open
    assert wrapper.wait() == -signal.SIGTERM


def test_without_a_server_nothing_is_run(muster, scratch):
    end = muster.run(["timer", "run", "--after", 1, "--file", scratch / "nobody", "touch", scratch / "ran"])
    assert end.status == 1
    assert "no timers at" in end.err
    assert not (scratch / "ran").exists()


def test_the_list_tells_who_holds_what_until_when(muster, server):
    ask(server, 100, "a 'quoted' scope", 15)
    ask(server, 200, "silent", 0)
    deadline = time.time() + 10
    while "silent" not in (listed := muster.run(["timer", "list"], env={"TORCHELASTIC_TIMER_FILE": server.path})).out:
        assert time.time() < deadline
    header, *rows = listed.out.splitlines()
    assert header.split() == ["PID", "SECONDS", "LEFT", "SIGNAL", "SCOPE"]
    assert sorted(re.sub(r"\s+\d+ +\d+\.\d+ +", "", row) for row in rows) == [
        "-         'silent'", 'SIGTERM   "a \'quoted\' scope"']
    lines = muster.run(["timer", "list", "--json", "--file", server.path]).out.splitlines()
    assert {json.loads(line)["scope_id"] for line in lines} == {"silent", "a 'quoted' scope"}
    assert {json.loads(line)["pid"] for line in lines} == {os.getpid()}


def test_a_processs_timers_end_with_it(muster, server):
    def listed():
        return muster.run(["timer", "list", "--file", server.path]).out

    child = subprocess.Popen(["sleep", "600"])
    ask(server, 600, "the dead one's", pid=child.pid)
    ask(server, 600, "mine")
    deadline = time.time() + 20
    while "'mine'" not in listed():
        assert time.time() < deadline
    assert "the dead one's" in listed()
    child.kill()  # and is a zombie, since nobody has asked for its status
    while "the dead one's" in listed():
        assert time.time() < deadline
    assert "'mine'" in listed()
    child.wait()


def test_a_jobs_timers_can_be_listed(muster, scratch):
    script = f'exec {muster.binary} timer run --after 60 --scope "a step" {muster.binary} timer list'
    end = muster.run(["run", "--standalone", "--no-python", "sh", "-c", script],
                     env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1"})
    assert end.status == 0, end
    assert "'a step'" in end.out
    assert [path for path in scratch.iterdir() if path.name.startswith("watchdog_timer_")] == []


def test_only_one_server_serves_a_path(muster, server):
    end = muster.run(["timer", "serve", "--file", server.path])
    assert end.status == 1
    assert "another program serves" in end.err
    assert stat.S_IMODE(server.path.stat().st_mode) == 0o600
    server.stop()
    assert not server.path.exists()
    assert not server.path.with_name("timers.list").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_a_process_of_another_user_gets_no_timer(server):
    stranger = subprocess.Popen(["sleep", "60"], user=12345)
    ask(server, 0, pid=stranger.pid)
    ask(server, 0, pid=1)
    victim = subprocess.Popen(["sleep", "60"])
    ask(server, 0, pid=victim.pid)
    assert victim.wait(timeout=20) == -9
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()
    assert "it is no process of this user" in server.stop()


def test_what_gets_no_timer_is_called_what_it_is(server):
    ask(server, 0, pid=server.process.pid)
    ask(server, 0, pid=1)
    victim = subprocess.Popen(["sleep", "60"])
    ask(server, 0, pid=victim.pid)
    assert victim.wait(timeout=20) == -9
    said = server.stop()
    assert f"process {server.process.pid} gets no timer 'mine': it is the process that serves" in said
    assert "process 1 gets no timer 'mine': it is process 1" in said


@pytest.mark.parametrize("words, part", [
    (["run", "true"], "--after"),
    (["run", "--after", "-1", "true"], "--after"),
    (["run", "--after", "1"], "command"),
    (["run", "--after", "1", "--signal", "KILL", "true"], "--signal"),
    (["dance"], "unknown command"),
    ([], "a command is missing"),
])
def test_mistakes_are_told(muster, scratch, words, part):
    end = muster.run(["timer", *words], env={"TORCHELASTIC_TIMER_FILE": scratch / "timers"})
    assert end.status == 2
    first, second = end.err.splitlines()
    assert "error: " in first and part in first
    assert second.startswith("usage: muster timer")
    assert muster.run(["timer", "list"]).err.count("TORCHELASTIC_TIMER_FILE") == 1


def test_a_million_malformed_lines_stop_nobody(muster, scratch):
    """Drawn by seed: noise, and mutations of a good request that no longer mean this process."""
    writer = f"""
import os, random
draw = random.Random(20261120)
good = b'{{"version": 1, "pid": 1, "scope_id": "theirs", "expiration_time": 1.5, "signal": 9}}'
fd = os.open({str(scratch / 'timers')!r}, os.O_WRONLY)
written = 0
def mutated():
    line = bytearray(good)
    for _ in range(draw.randrange(1, 4)):
        line[draw.randrange(len(line))] = draw.randrange(256)
    return bytes(line)
shapes = [mutated, lambda: good[:draw.randrange(len(good))], lambda: draw.randbytes(draw.randrange(60)),
          lambda: good * 2, lambda: b"{{" * draw.randrange(80), lambda: b"[" * 90]
pool = [draw.choice(shapes)() for _ in range(20000)]
while written < 1000000:
    lines = [draw.choice(pool) for _ in range(30)]
    written += 30
    os.write(fd, b"\\n".join(lines)[:4000] + b"\\n")
"""
    server = Server(muster, scratch / "timers")
    subprocess.run([sys.executable, "-c", writer], check=True, timeout=300)
    victim = subprocess.Popen(["sleep", "60"])
    ask(server, 0.1, pid=victim.pid)
    assert victim.wait(timeout=60) == -9
    said = server.stop()
    assert said.count("\n") < 1000

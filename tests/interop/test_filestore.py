# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's FileStore and ours on one file at the same time."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from support.binary import ROOT
from support.leaks import ScratchDirectory

pytestmark = pytest.mark.timeout(120)

SCRIPT = ROOT / "tests" / "interop" / "scripts" / "use_filestore.py"


class PyTorchsUser:
    """A process of PyTorch; each test opens a file of its own in it."""

    def __init__(self, peer, directory):
        script = shutil.copy(SCRIPT, directory)
        self.process = subprocess.Popen(
            [peer.python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=directory, text=True
        )

    def begin(self, *request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, *request):
        self.begin(*request)
        return self.answer()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(60)


def has_inotify(pid):
    """Descriptors come and go while one looks."""
    with contextlib.suppress(OSError):
        return any(os.readlink(each) == "anon_inode:inotify" for each in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    return False


@pytest.fixture(scope="module")
def pytorchs_user(peer):
    directory = ScratchDirectory()
    user = PyTorchsUser(peer, directory.path)
    yield user
    assert user.end() == 0
    assert not directory.end()


@pytest.fixture
def path(scratch):
    return scratch / "store"


@pytest.fixture
def pytorch(pytorchs_user, path):
    assert pytorchs_user.ask("open", str(path)) is None
    yield pytorchs_user
    assert pytorchs_user.ask("close") is None


@pytest.fixture
def start(muster, path):
    return lambda command, *words: muster.start(["store", command, "--file", path, "--timeout", 60, *words])


@pytest.fixture
def ask(start):
    """`muster store COMMAND` on the file: its status and what it printed."""

    def run(*words):
        end = start(*words).finish()
        assert end.err == "" or end.status != 0
        return end.status, end.out

    return run


def test_pytorch_reads_what_we_write(pytorch, ask):
    assert ask("set", "k", "v") == (0, "")
    assert pytorch.ask("get", "k") == "v"
    assert ask("set", "empty", "") == (0, "")
    assert pytorch.ask("get", "empty") == ""
    assert ask("set", "a", "1", "b", "2") == (0, "")
    assert pytorch.ask("multi_get", ["a", "b"]) == ["1", "2"]
    assert ask("add", "n", "5") == (0, "5\n")
    assert ask("add", "n", "-7") == (0, "-2\n")
    assert pytorch.ask("add", "n", 1) == -1
    assert ask("append", "k", "w") == (0, "")
    assert pytorch.ask("get", "k") == "vw"
    assert ask("delete", "k") == (0, "")
    assert pytorch.ask("check", ["k"]) is False
    assert ask("compare-set", "x", "", "1") == (0, "1")
    assert pytorch.ask("compare_set", "x", "1", "2") == "2"
    assert ask("set", "", "of the empty key") == (0, "")
    assert pytorch.ask("get", "") == "of the empty key"


def test_we_read_what_pytorch_writes(pytorch, ask):
    pytorch.ask("set", "k", "v")
    assert ask("get", "k") == (0, "v")
    pytorch.ask("append", "k", "w")
    assert ask("get", "k") == (0, "vw")
    assert pytorch.ask("add", "n", 3) == 3
    assert ask("add", "n", "1") == (0, "4\n")
    pytorch.ask("multi_set", ["a", "b"], ["1", "2"])
    assert ask("get", "a", "b") == (0, "1\n2\n")
    assert pytorch.ask("delete_key", "a") is True
    assert ask("get", "a")[0] == 1 and ask("delete", "a")[0] == 1
    assert ask("check", "b", "n") == (0, "")
    pytorch.ask("set", "", "of the empty key")
    assert ask("get", "") == (0, "of the empty key")


def test_both_answer_a_compare_set_alike(pytorch, ask):
    cases = [("absent", "a", "b"), ("k", "", "1"), ("k", "2", "3"), ("k", "", "3"), ("k", "1", ""), ("k", "", "4")]
    for key, expected, desired in cases:
        ours = ask("compare-set", f"ours/{key}", expected, desired)[1]
        assert pytorch.ask("compare_set", f"theirs/{key}", expected, desired) == ours, (key, expected, desired)
    assert ask("get", "ours/k", "theirs/k") == (0, "4\n4\n")
    assert pytorch.ask("check", ["ours/absent"]) is False and pytorch.ask("check", ["theirs/absent"]) is False


def test_both_count_and_list_the_same_keys(pytorch, ask):
    pytorch.ask("set", "theirs", "1")
    ask("set", "ours", "2")
    pytorch.ask("set", "gone", "3")
    ask("delete", "gone")
    assert ask("count") == (0, f"{pytorch.ask('num_keys')}\n")
    assert sorted(ask("keys")[1].split()) == ["ours", "theirs"]
    assert {"ours", "theirs"} <= set(pytorch.ask("list_keys"))


def test_a_counter_that_is_no_number_stays_as_it_is(pytorch, ask):
    pytorch.ask("set", "n", "many")
    assert ask("add", "n")[0] == 1
    assert "error" in pytorch.ask("add", "n", 1)
    assert ask("get", "n") == (0, "many")


def test_large_and_binary_values_pass(pytorch, ask, muster, path, scratch):
    data = bytes(range(256)) * 20000
    (scratch / "data").write_bytes(data)
    with open(scratch / "data", "rb") as file:
        assert muster.run(["store", "set", "--file", path, "k", "-"], stdin=file).status == 0
    assert pytorch.ask("get", "k").encode("latin-1") == data
    pytorch.ask("append", "k", "end")
    with open(scratch / "out", "wb") as out:
        assert muster.run(["store", "get", "--file", path, "k"], stdout=out).status == 0
    assert (scratch / "out").read_bytes() == data + b"end"


def test_pytorchs_wait_is_released_by_us(pytorch, ask):
    pytorch.begin("get", "late")
    assert ask("set", "late", "v") == (0, "")
    assert pytorch.answer() == "v"


def test_our_wait_is_released_by_pytorch(pytorch, start, ask):
    waiting = start("wait", "first", "second")
    ask("set", "first", "1")
    pytorch.ask("set", "second", "2")
    assert waiting.finish().status == 0


def test_a_wait_is_given_up_in_time(pytorch, muster, path):
    end = muster.run(["store", "wait", "--file", path, "--timeout", "0.2", "never"])
    assert end.status == 1 and "timed out" in end.err


def test_a_change_that_inotify_does_not_tell_of_is_found(pytorch, start, path):
    """As on a network file system: who writes and does not close is not told of."""
    waiting = start("wait", "k")
    waiting.wait_until(lambda: has_inotify(waiting.pid), "the watch")
    with open(path, "ab") as file:
        file.write(b"\x02\x00\x00\x00/k\x01\x00\x00\x00v")
        file.flush()
        assert waiting.finish().status == 0
    assert pytorch.ask("get", "k") == "v"


def test_no_count_is_lost_between_both(pytorch, start, ask):
    pytorch.begin("add_many", "n", 1, 300)
    ours = []
    for _ in range(20):
        ours += [int(each.finish().out) for each in [start("add", "n", "1") for _ in range(4)]]
    theirs = pytorch.answer()
    assert sorted(ours + theirs) == list(range(1, 381))
    assert ask("get", "n") == (0, "380")


def test_exactly_one_wins_each_compare_set(pytorch, ask):
    ask("set", "turn", "0")
    pytorch.begin("count_until", "turn", "end")
    turns = 0
    while turns < 20:
        value = ask("get", "turn")[1]
        turns += ask("compare-set", "turn", value, f"{int(value.split()[0]) + 1} after our {turns}")[0] == 0
    ask("set", "end", "")
    theirs = pytorch.answer()
    assert int(ask("get", "turn")[1].split()[0]) == turns + theirs and theirs > 0


def test_a_lock_that_another_keeps_is_waited_for(pytorch, muster, path, start):
    """A reader need not wait for a reader; a writer does, and says so when its time is up."""
    holder = muster.start(
        ["-c", f"import fcntl; f = open({str(path)!r}); fcntl.flock(f, fcntl.LOCK_SH); print('locked', flush=True); input()"],
        program="/usr/bin/python3", stdin=subprocess.PIPE,
    )
    holder.wait_until(lambda: "locked" in holder.out(), "the lock")
    assert start("check", "missing").finish().err == ""
    end = muster.run(["store", "set", "--file", path, "--timeout", "0.2", "k", "v"])
    assert end.status == 1 and "locked" in end.err and str(path) in end.err
    setting = start("set", "k", "v")
    holder.process.stdin.close()
    assert setting.finish().status == 0
    assert pytorch.ask("get", "k") == "v"


def test_a_torn_record_of_a_killed_writer_hinders_no_reader(pytorch, ask, muster, path):
    pytorch.ask("set", "k", "v")
    whole = path.read_bytes()
    with open(path, "ab") as file:
        file.write(b"\x05\x00\x00\x00/to")
    assert ask("get", "k") == (0, "v")
    end = muster.run(["store", "set", "--file", path, "--timeout", "0.2", "l", "w"])
    assert end.status == 1 and "middle of a record" in end.err and str(path) in end.err
    assert path.read_bytes() == whole + b"\x05\x00\x00\x00/to"
    path.write_bytes(whole)
    assert ask("set", "l", "w") == (0, "") and pytorch.ask("get", "l") == "w"


@pytest.mark.parametrize("kind, words", [
    ("missing", "No such file"), ("directory", "regular file"), ("script", "no FileStore"), ("fifo", "regular file"),
])
def test_what_is_no_filestore_is_named_and_left_alone(muster, scratch, kind, words):
    path = scratch / "not a store"
    contents = b"#!/bin/sh\necho\n"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        subprocess.run(["mkfifo", path], check=True)
    elif kind == "script":
        path.write_bytes(contents)
    end = muster.run(["store", "set", "--file", path, "k", "v"])
    assert end.status == 1 and words in end.err and str(path) in end.err
    assert kind != "script" or path.read_bytes() == contents
    assert kind != "missing" or not path.exists()

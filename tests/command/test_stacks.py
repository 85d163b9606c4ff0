# SPDX-License-Identifier: BSD-3-Clause
"""`muster stacks`: what the workers of a job do now. With standby workers each Python can be asked, of any version."""

import json
import os
import socket

import pytest

from support.json_schema import check
from support.nodes import wait_until
from support.standby_jobs import Job

# Rank 1 is where no other is. All run until they are told to end.
WORKER = """
import os, time

def runs_ahead():
    while not os.path.exists("end"):
        time.sleep(0.01)

def waits_for_data():
    while not os.path.exists("end"):
        time.sleep(0.01)

def main(depth):
    rank = os.environ["RANK"]
    if depth > 0:
        return main(depth - 1)
    open("ready." + rank, "w").close()
    (waits_for_data if rank == "1" else runs_ahead)()

main(DEPTH)
"""


@pytest.fixture
def place(scratch):
    return scratch / "announced"


@pytest.fixture
def ask(muster, place):
    return lambda *words: muster.run(["stacks", *words], env={"MUSTER_RUNTIME_DIR": place}, timeout=60)


@pytest.fixture
def job(muster, scratch, place, request):
    script = WORKER.replace("DEPTH", str(getattr(request, "param", 0)))
    made = Job(muster, scratch, workers=3, script=script, MUSTER_RUNTIME_DIR=place)
    made.wait_for(lambda: len(list(scratch.glob("ready.*"))) == 3)
    made.wait_for(lambda: any('"socket"' in path.read_text() for path in place.glob("job-*")))
    return made


def look(ask, *words):
    told = ask(*words, "--json")
    assert told.status == 0, told
    return check(json.loads(told.out), "stacks")


def function_of(stack):
    return stack["stack"][0].rpartition(" in ")[2] if stack["stack"] else None


def test_the_worker_that_is_elsewhere_comes_first_and_all_run_on(ask, job, scratch):
    wait_until(lambda: all(function_of(one) for one in look(ask, "--all")["stacks"]), "the workers have said hello")
    odd, equal = look(ask, "--all")["stacks"]
    assert (odd["ranks"], function_of(odd)) == ([1], "waits_for_data")
    assert (equal["ranks"], function_of(equal)) == ([0, 2], "runs_ahead")
    assert [line.rpartition(" in ")[2] for line in odd["stack"]] == ["waits_for_data", "main", "<module>"]
    assert "sleeping" in odd["words"] and equal["times"] == [1, 1]
    shown = ask("--all")
    assert shown.status == 0 and shown.out.startswith("1 of 3 workers: rank 1: sleeping"), shown
    assert "\n2 of 3 workers: ranks 0,2: sleeping" in shown.out and " in waits_for_data\n" in shown.out, shown
    (scratch / "end").touch()
    ended = job.running.finish()
    assert ended.status == 0 and "Restarting" not in ended.err, ended


def test_only_those_who_are_asked_for_are_looked_at(ask, job):
    assert [one["ranks"] for one in look(ask, "1")["stacks"]] == [[1]]
    assert sorted(rank for one in look(ask, "1", "0")["stacks"] for rank in one["ranks"]) == [0, 1]
    told = ask("1", "7-9")
    assert told.status == 1 and "rank 7-9: no agent of this machine has such a worker now" in told.err, told
    assert told.out.count("rank 1") == 1 and "rank 0" not in told.out, told
    assert ask("7").status == 1


def test_samples_are_counted_by_the_innermost_line(ask, job):
    wait_until(lambda: all(function_of(one) for one in look(ask, "--all")["stacks"]), "the workers have said hello")
    told = look(ask, "--all", "--samples", 3)
    assert told["looks"] == 9 and {function_of(one): sum(one["times"]) for one in told["stacks"]} == {"waits_for_data": 3, "runs_ahead": 6}


@pytest.mark.parametrize("job", [80], indirect=True)
def test_a_record_does_not_grow_by_questions(ask, job):
    """A worker's Python writes its answer to its record, whose room is for what it imports."""
    wait_until(lambda: all(function_of(one) for one in look(ask, "--all")["stacks"]), "the workers have said hello")

    def sizes(name_of_size, unit=1):
        fds = f"/proc/{job.running.pid}/fd"
        found = {}
        for name in os.listdir(fds):
            try:
                if "muster-standby-record" in os.readlink(f"{fds}/{name}"):
                    found[name] = getattr(os.stat(f"{fds}/{name}"), name_of_size) * unit
            except FileNotFoundError:
                pass
        return found

    while not all(length > 32 * 1024 for length in sizes("st_size").values()):
        assert len(look(ask, "--all")["stacks"][0]["stack"]) == 16
    wait_until(lambda: all(kept <= 16 * 1024 for kept in sizes("st_blocks", 512).values()), "the answers are forgotten")


@pytest.mark.parametrize(
    "words, complaint",
    [
        ([], "which ranks? As 3 or 0-7,12, or --all"),
        (["--all", "3"], "either ranks or --all"),
        (["job", "x"], "'x' is no list of at most 256 ranks, as 0-7,12"),
        (["3-1", "3-1"], "'3-1' is no list"),
        (["--all", "--samples", "0"], "must be 1 to 3600"),
        (["--all", "--samples", "3601"], "must be 1 to 3600"),
    ],
)
def test_a_usage_mistake_is_said(ask, words, complaint):
    told = ask(*words)
    assert told.status == 2 and complaint in told.err, told


def test_without_a_job_nobody_can_be_asked(ask):
    told = ask("--all")
    assert told.status == 1 and "no agent of a job announces itself on this machine" in told.err, told


def test_a_question_that_is_none_is_refused_and_others_are_answered(job, place):
    (path,) = place.glob("ask-*")

    def answer(question):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            client.connect(str(path))
            client.sendall(question)
            come = b""
            while piece := client.recv(65536):
                come += piece
        return come

    assert answer(b"GET /v1/stacks?ranks=a HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert answer(b"GET /v1/stacks?ranks=" + b"1," * 1000 + b"1 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert answer(b"GET /v1/stacks?ranks=9 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 OK\r\n")


def test_who_goes_away_before_the_answer_holds_up_nobody(job, place, ask):
    (path,) = place.glob("ask-*")
    for _ in range(4):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET /v1/stacks HTTP/1.1\r\n\r\n")
    assert look(ask, "--all")["looks"] == 3

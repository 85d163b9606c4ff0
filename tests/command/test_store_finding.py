# SPDX-License-Identifier: BSD-3-Clause
"""`muster store` finds the job of this machine by itself."""

import contextlib
import json
import os
import re
import shutil
import signal

import pytest

from support.ports import free_port
from support.transcripts import transcript

# One node, and an id that the test knows: --standalone takes a random one.
ALONE = ("--nnodes", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0")

# A worker that tells where its store is, and runs until the test lets it go.
WORKER = """#!/bin/sh
echo "$MASTER_PORT" >"$NAME.part" && mv "$NAME.part" "$NAME.port"
until [ -e "$NAME.go" ]; do sleep 0.05; done
"""


@pytest.fixture
def start_job(muster, scratch):
    """Starts a job; when this returns, it runs and has announced itself. Each has a name, by which it is let go."""
    muster.script("worker.sh", WORKER)

    def start(name):
        before = announced(scratch)
        running = muster.start(["run", *ALONE, "--rdzv-id", name, "--no-python", "./worker.sh"], env={"NAME": name})
        running.wait_until((scratch / f"{name}.port").exists, "the worker", 60)
        running.wait_until(lambda: len(announced(scratch)) > len(before), "the announcement", 60)
        return running

    return start


def announced(scratch):
    """The announcements that are whole and name a store. One may go away while they are read."""
    texts = []
    for path in (scratch / "announced").glob("job-*"):
        with contextlib.suppress(FileNotFoundError):
            texts.append(path.read_text(encoding="utf-8"))
    return [json.loads(text) for text in texts if text.endswith("\n") and '"port"' in text]


def port_of(scratch, name):
    return int((scratch / f"{name}.port").read_text(encoding="utf-8"))


def told_lines(told):
    """In a bare system nobody knows the name localhost, and the job gives its workers the address."""
    return told.err.replace("127.0.0.1", "localhost").splitlines()


def end(scratch, running, name):
    (scratch / f"{name}.go").touch()
    finished = running.finish()
    assert finished.status == 0, finished


def test_the_one_job_is_found_and_said(muster, scratch, start_job):
    running = start_job("job")
    port = port_of(scratch, "job")
    assert muster.run(["store", "set", "step", "7", "--port", port]).status == 0
    found = muster.run(["store", "get", "step"])
    assert (found.status, found.out) == (0, "7"), found
    (shown,) = transcript("store get step")[:1]
    assert told_lines(found) == [shown.replace("29431", str(port))]
    end(scratch, running, "job")


def test_what_was_removed_is_announced_anew_with_the_next_workers(muster, scratch):
    """The directory, too: somebody tidies up."""
    muster.script("worker.sh", WORKER + "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || { rm NAME.go job.port; exit 3; }\n".replace("NAME", "job"))
    options = [*ALONE, "--max-restarts", 1, "--rdzv-id", "job", "--no-python", "./worker.sh"]
    running = muster.start(["run", *options], env={"NAME": "job"})
    running.wait_until(lambda: announced(scratch), "the announcement", 60)
    running.wait_until((scratch / "job.port").exists, "the worker", 60)
    shutil.rmtree(scratch / "announced")
    (scratch / "job.go").touch()
    running.wait_until(lambda: not (scratch / "job.go").exists() and (scratch / "job.port").exists(), "the second worker", 60)
    running.wait_until(lambda: announced(scratch), "the second announcement", 60)
    end(scratch, running, "job")


def test_what_the_command_line_says_goes_before(muster, scratch, start_job):
    running = start_job("job")
    port = port_of(scratch, "job")
    for words, env in ((["--port", port], {}), ([], {"MASTER_ADDR": "localhost", "MASTER_PORT": port})):
        told = muster.run(["store", "ping", *words], env=env)
        assert (told.status, told.err) == (0, ""), told
    end(scratch, running, "job")


def test_of_several_jobs_one_has_to_be_named(muster, scratch, start_job):
    jobs = {name: start_job(name) for name in ("first", "second")}
    told = muster.run(["store", "keys"])
    assert told.status == 2 and told.out == "", told
    pids = "|".join(str(job.pid) for job in jobs.values())
    lines = [re.sub(rf"agent ({pids})$", "agent 4711", line) for line in told_lines(told)]
    shown = transcript("store keys")
    for name, port in (("first", "29431"), ("second", "29432")):
        shown = [line.replace(port, str(port_of(scratch, name))) for line in shown]
    assert lines == shown, told
    for name, job in jobs.items():
        end(scratch, job, name)


def test_nothing_is_left_when_the_job_ends(muster, scratch, start_job):
    running = start_job("job")
    assert [job["run_id"] for job in announced(scratch)] == ["job"]
    assert (scratch / "announced").stat().st_mode & 0o777 == 0o700
    end(scratch, running, "job")
    assert not list((scratch / "announced").iterdir())
    told = muster.run(["store", "ping", "--timeout", "0.1"])
    assert f"no job of this user announces itself on this machine (in {scratch}/announced)" in told.err, told


def test_what_a_killed_agent_has_left_is_not_found(muster, scratch, start_job):
    killed = start_job("killed")
    killed.signal(signal.SIGKILL)
    killed.process.wait()
    (scratch / "killed.go").touch()
    assert len(announced(scratch)) == 1
    # The guardian, which may be the agent's child, may hold the lock until it has ended the workers.
    killed.wait_until(lambda: muster.run(["store", "ping", "--timeout", "0.1"]).err.count("no job of this user") == 1,
                      "the guardian's end", 60)
    assert not announced(scratch)


def test_two_agents_of_one_job_are_one_job(muster, scratch):
    muster.script("worker.sh", WORKER)
    port = free_port()
    nodes = [
        muster.start(["run", "--nnodes", 2, "--node-rank", rank, "--master-addr", "127.0.0.1", "--master-port", port,
                      "--rdzv-id", "job", "--no-python", "./worker.sh"], env={"NAME": f"node{rank}"})
        for rank in range(2)
    ]
    for rank, node in enumerate(nodes):
        node.wait_until((scratch / f"node{rank}.port").exists, "the worker", 60)
    nodes[0].wait_until(lambda: len(announced(scratch)) == 2, "both announcements", 60)
    found = muster.run(["store", "ping"])
    assert found.status == 0 and f"job 'job': --host 127.0.0.1 --port {port}\n" in found.err, found
    for rank in range(2):
        (scratch / f"node{rank}.go").touch()
    assert [node.finish().status for node in nodes] == [0, 0]


def test_a_directory_that_others_may_enter_is_refused_in_words(muster, scratch):
    directory = scratch / "announced"
    directory.mkdir()
    directory.chmod(0o755)
    job = muster.run(["run", "--standalone", "--no-python", "true"])
    refusal = f"{directory} is open to other users (mode 0755; chmod 700 makes it yours)"
    assert job.status == 0 and f"`muster store` will not find this job by itself: {refusal}\n" in job.err, job
    assert not os.listdir(directory)
    told = muster.run(["store", "ping", "--timeout", "0.1"])
    assert f"warning: not looking for jobs there: {refusal}\n" in told.err, told

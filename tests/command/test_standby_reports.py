# SPDX-License-Identifier: BSD-3-Clause
"""A standby worker that has become a worker is that worker: in reports, error files, timers, events and at the exit."""

import json
import signal
import sys

import pytest

from support import timers
from support.ports import free_port
from support.standby_jobs import AFTER, WORKER, exists, kill, read_story, ready_job

# In the second attempt, rank 1 does what the file says.
ACTING = WORKER.replace("while not", """if environment["TORCHELASTIC_RESTART_COUNT"] + environment["RANK"] == "11":
    exec(open("act.py").read())
while not""")


def end_by(muster, scratch, act, *options, **environment):
    """Lets a worker that was a standby worker act, and the job end by that; (its pid, the job, the end)"""
    (scratch / "act.py").write_text(act)
    job, first, spares = ready_job(muster, scratch, *options, script=ACTING, restarts=1, **environment)
    kill(first[0]["pid"])
    job.wait_for(lambda: len(job.story(1)) == 2)
    worker = job.story(1)[1]
    assert {line["pid"] for line in job.story(1)} == set(spares)
    (scratch / "go").write_text("")
    return worker, job, job.running.finish()


AWAIT = "while not os.path.exists('go'):\n    time.sleep(0.01)\n"  # until the test has seen who runs


def root_cause(end):
    return end.err.split("Root Cause")[1]


def test_the_failure_report_and_the_error_file_are_those_of_the_worker(muster, scratch):
    message = {"message": {"message": "RuntimeError: broken", "extraInfo": {"py_callstack": "RuntimeError: broken, here", "timestamp": "1"}}}
    act = AWAIT + f"with open(environment['TORCHELASTIC_ERROR_FILE'], 'w') as file:\n    file.write({json.dumps(message)!r})\nsys.exit(17)\n"
    worker, _, end = end_by(muster, scratch, act, "--log-dir", "logs")
    assert end.status == 1, end
    report = root_cause(end)
    assert "rank      : 1 (local_rank: 1)" in report
    assert f"exitcode  : 17 (pid: {worker['pid']})" in report
    assert worker["error"] in report and "/attempt_1/1/" in worker["error"]
    assert "traceback : RuntimeError: broken, here" in report


@pytest.mark.parametrize("act, words", [
    ("os.kill(os.getpid(), signal.SIGSEGV)", "exitcode  : -11"),
    ("os.kill(os.getpid(), signal.SIGKILL)", "exitcode  : -9"),
    ("os._exit(3)", "exitcode  : 3"),
], ids=["SIGSEGV", "SIGKILL", "_exit"])
def test_every_way_to_end_is_reported_with_the_workers_number(muster, scratch, act, words):
    worker, _, end = end_by(muster, scratch, f"import signal\n{AWAIT}{act}\n")
    assert end.status == 1, end
    assert f"{words} (pid: {worker['pid']})" in root_cause(end)


def test_a_timer_ends_the_worker(muster, scratch):
    act = timers.PREAMBLE + AWAIT + "acquire('my step', 0.1)\ntime.sleep(600)\n"
    worker, _, end = end_by(muster, scratch, act, TORCHELASTIC_ENABLE_FILE_TIMER=1, TORCHELASTIC_TIMER_FILE="timers")
    assert end.status == 1, end
    report = root_cause(end)
    assert f"exitcode  : -9 (pid: {worker['pid']})" in report
    assert "killed by the watchdog: timer 'my step' expired" in report


def test_events_name_the_worker_and_its_end(muster, scratch):
    _, _, end = end_by(muster, scratch, AWAIT + "sys.exit(5)\n", "--event-log-handler", "file:events")
    assert end.status == 1, end
    events = [json.loads(line) for line in (scratch / "events").read_text().splitlines()]
    assert "standby.used" in [event["name"] for event in events]
    failed = [event["metadata"] for event in events if event["name"] == "torchelastic.worker.status.FAILED"]
    assert [metadata["global_rank"] for metadata in failed if metadata["global_rank"] is not None] == [1], failed


BARRIER = WORKER.replace('"end." + environment["TORCHELASTIC_RESTART_COUNT"]', '"end.%s" % environment["RANK"]')


def test_a_node_whose_worker_was_a_standby_worker_waits_at_the_exit(muster, scratch):
    (scratch / "worker.py").write_text(BARRIER)
    endpoint = f"127.0.0.1:{free_port()}"
    nodes = [
        muster.start(
            ["run", "--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "job",
             "--standby", "on", "--standby-after", AFTER, "--max-restarts", 3, "worker.py"],
            env={"PYTHON_EXEC": sys.executable, "LOGLEVEL": "INFO"},
        )
        for _ in range(2)
    ]

    def story(attempt):
        return read_story(scratch, attempt)

    nodes[0].wait_until(lambda: len(story(0)) == 2, "the first world", 60)
    for node in nodes:
        node.wait_until(lambda: "standby workers ready: 1 of 1" in node.err(), "a standby worker", 60)  # noqa: B023
    kill(story(0)[0]["pid"], signal.SIGKILL)
    nodes[0].wait_until(lambda: len(story(1)) == 2, "the second world", 60)
    for node in nodes:
        node.wait_until(lambda: "started from standby: 1 of 1" in node.err(), "its use", 60)  # noqa: B023
    first, second = story(1)
    (agent,) = (node for node in nodes if node.pid == first["parent"])
    (scratch / "end.0").write_text("")
    agent.wait_until(lambda: not exists(first["pid"]), "the end of rank 0", 60)
    assert agent.process.poll() is None and exists(second["pid"]), "it waits for the other node"
    (scratch / "end.1").write_text("")
    assert [node.finish().status for node in nodes] == [0, 0]
    assert len(story(1)) == 2 and not story(2)

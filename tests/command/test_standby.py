# SPDX-License-Identifier: BSD-3-Clause
"""Standby workers, as real processes: who takes a worker's place, with what, and what is left behind."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import sys
import time

import pytest

from support.ports import free_port
from support.probes import SERVING, Probe
from support.standby_jobs import AFTER, WORKER, Job, exists, kill, pids_below, read_story, ready_job
from support.store import wait_until
from support.transcripts import transcript


def test_a_standby_worker_is_the_worker_in_everything(muster, scratch):
    job = Job(muster, scratch)
    first = job.attempt(0)
    job.wait_until_ready()
    spares = job.spares()
    assert len(spares) == 2
    os.kill(first[0]["pid"], signal.SIGKILL)
    second = job.attempt(1)
    assert sorted(line["pid"] for line in second) == spares
    job.wait_for(lambda: job.said("started from standby: 2 of 2 workers") == 1)
    for before, after in zip(first, second):
        same = ("rank", "arguments", "directory", "names", "input", "score", "parent")
        assert {name: before[name] for name in same} == {name: after[name] for name in same}
        assert after["session"] == after["pid"]
        assert f"/attempt_1/{after['rank']}/" in after["error"]
        assert not any(name.startswith(("MUSTER_STANDBY", "PYTHONPATH")) for name in after["names"])
    end = job.end(1)
    assert end.status == 0, end
    assert sorted(end.out.splitlines()) == [f"attempt {attempt} rank {rank}" for attempt in (0, 1) for rank in (0, 1)]


def test_a_standby_worker_that_is_stopped_costs_a_second_and_no_restart(muster, scratch):
    job, first, spares = ready_job(muster, scratch, restarts=1)
    kill(spares[0], signal.SIGSTOP)
    kill(first[0]["pid"])
    second = job.attempt(1)
    assert len({line["pid"] for line in second} & set(spares)) == 1
    assert spares[0] not in {line["pid"] for line in second}
    job.wait_for(lambda: job.said("does not answer; the worker is started anew") == 1)
    job.wait_for(lambda: job.said("started from standby: 1 of 2 workers") == 1)
    end = job.end(1)
    assert end.status == 0, end
    assert len(job.story(1)) == 2


@pytest.mark.parametrize("stopped", [1, 2])
def test_a_signal_ends_a_start_that_waits_for_standby_workers(muster, scratch, stopped):
    job, first, spares = ready_job(muster, scratch, workers=2)
    for spare in spares[:stopped]:
        kill(spare, signal.SIGSTOP)
    kill(first[0]["pid"])
    job.wait_for(lambda: job.said("restarting the workers"))
    job.wait_for(lambda: not {line["pid"] for line in first} & pids_below(job.running.pid))
    job.running.signal(signal.SIGTERM)
    end = job.running.finish(timeout=20)
    assert end.status == 1, end
    assert "stopped by SIGTERM" in end.err
    assert not any(exists(spare) for spare in spares)


def test_a_standby_worker_that_is_killed_while_it_waits_is_not_missed(muster, scratch):
    job, first, spares = ready_job(muster, scratch)
    kill(spares[1])
    job.wait_for(lambda: not exists(spares[1]))
    kill(first[1]["pid"])
    second = job.attempt(1)
    assert len({line["pid"] for line in second} & set(spares)) == 1
    end = job.end(1)
    assert end.status == 0, end
    assert len(job.story(1)) == 2


def test_an_agent_that_is_killed_leaves_no_standby_worker(muster, scratch):
    job, first, spares = ready_job(muster, scratch)
    job.running.kill()
    deadline = time.monotonic() + 20
    while any(exists(pid) for pid in spares + [line["pid"] for line in first]) or list(scratch.glob("muster_standby_*")):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_job_that_ends_leaves_no_standby_worker_and_no_directory(muster, scratch):
    job, _, spares = ready_job(muster, scratch)
    assert len(list(scratch.glob("muster_standby_*"))) == 1
    end = job.end(0)
    assert end.status == 0, end
    assert not any(exists(pid) for pid in spares)
    assert list(scratch.glob("muster_standby_*")) == []


def test_a_hook_that_was_tidied_away_is_there_again_for_the_next_standby_worker(muster, scratch):
    """Without it that would run the program."""
    job = Job(muster, scratch, "--standby-after", 1)
    first = job.attempt(0)
    (hook,) = scratch.glob("muster_standby_*")
    shutil.rmtree(hook)
    job.wait_until_ready()
    assert job.said(f"the hook of standby workers, {hook}, was removed while the job ran; it is made anew") == 1
    assert job.said("KeyError") == 0
    assert hook.exists()
    kill(job.running.pid)
    job.running.process.wait()
    wait_until(lambda: not any(map(exists, [line["pid"] for line in first])) and not hook.exists(), 100)


def own_memory(pid):
    """KiB of a process that are no file's."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon:"))


@pytest.mark.parametrize("parent", ["on", "off"])
def test_fifty_deaths_leave_nothing_behind(muster, scratch, parent):
    """An agent that kept an environment for each of them would have grown by some 10 MiB in the last forty."""
    large = {f"LARGE_{number}": str(number) * 100000 for number in range(3)}
    job = Job(muster, scratch, "--standby-parent", parent, workers=1, restarts=50, **large)
    descriptors, memory = [], []
    for attempt in range(50):
        worker = job.attempt(attempt)[0]
        job.wait_until_ready(attempt + 1)
        descriptors.append(len(os.listdir(f"/proc/{job.running.pid}/fd")))
        memory.append(own_memory(job.running.pid))
        job.wait_for(lambda: len(pids_below(job.running.pid)) == (3 if parent == "on" else 2))
        kill(worker["pid"])
    job.attempt(50)
    job.wait_for(lambda: job.said("started from standby: 1 of 1 workers") == 50)
    assert max(descriptors[5:]) <= max(descriptors[:5]) + 2  # one may be about to be closed at that moment
    if b"__asan_init" not in pathlib.Path(muster.binary).read_bytes():  # which keeps what is freed for a while
        assert max(memory[10:]) <= max(memory[:10]) + 4096, memory
    end = job.end(50)
    assert end.status == 0, end


def test_a_hook_that_is_not_reached_means_no_standby_worker(muster, scratch):
    wrapper = muster.script("wrapper", f"#!/bin/sh\nexec {sys.executable} -S \"$@\"\n")
    job = Job(muster, scratch, PYTHON_EXEC=wrapper)
    first = job.attempt(0)
    job.wait_for(lambda: job.said("no worker has reached their hook"))
    assert job.spares() == []
    kill(first[0]["pid"])
    job.attempt(1)
    end = job.end(1)
    assert end.status == 0, end
    assert job.said("no worker has reached their hook") == 1
    assert len((scratch / "story").read_text().splitlines()) == 4


def test_a_standby_worker_that_runs_on_its_own_is_the_last_one(muster, scratch):
    wrapper = muster.script("wrapper", f"""#!/bin/sh
case $MUSTER_STANDBY in
*role=spare*) exec sh -c 'echo ghost >>ghosts; exit 4' ;;
*) exec {sys.executable} "$@" ;;
esac
""")
    job = Job(muster, scratch, PYTHON_EXEC=wrapper)
    first = job.attempt(0)
    job.wait_for(lambda: job.said("ended with status 4 before it was ready"))
    kill(first[0]["pid"])
    job.attempt(1)
    end = job.end(1)
    assert end.status == 0, end
    assert (scratch / "ghosts").read_text() == "ghost\n"


def test_a_script_that_is_edited_meanwhile_runs_as_it_is_then(muster, scratch):
    job, first, spares = ready_job(muster, scratch)
    (scratch / "worker.py").write_text(WORKER.replace('"attempt %s', '"edited attempt %s'))
    kill(first[0]["pid"])
    second = job.attempt(1)
    assert {line["pid"] for line in second} == set(spares)
    end = job.end(1)
    assert end.status == 0, end
    assert end.out.count("edited attempt 1") == 2


@pytest.mark.parametrize("parent", ["on", "off"])
def test_a_dirty_standby_worker_says_why_once_and_workers_start_as_before(muster, scratch, parent):
    library = scratch / "lib" / "site-packages"
    library.mkdir(parents=True)
    (library / "talks.py").write_text("print('x' * 70000)\n")
    job = Job(muster, scratch, "--standby-parent", parent, script="import talks\n" + WORKER, PYTHONPATH=library)
    first = job.attempt(0)
    job.wait_for(lambda: job.said("there are no standby workers in this job from now on"))
    job.wait_for(lambda: job.said("would not be what a worker is: imported modules printed more than") == 1)
    assert job.said("since one parent cannot fork them: imported modules printed") == (parent == "on")
    kill(first[0]["pid"])
    job.attempt(1)
    end = job.end(1)
    assert end.status == 0, end
    assert job.said("there are no standby workers in this job from now on") == 1
    assert job.said("started from standby: 0 of 2 workers; cold: local rank 0-1 (none any more)\n") == 1


SLOW = """
import os, time
while "muster-standby" in os.readlink("/proc/self/fd/1") and os.path.exists("slow"):
    time.sleep(0.01)
"""


def test_workers_that_are_started_cold_are_told_of_with_why(muster, scratch):
    command = "run --standalone --standby on --nproc-per-node 2 --max-restarts 1 train.py"
    library = scratch / "lib" / "site-packages"
    library.mkdir(parents=True)
    (library / "takes_long.py").write_text(SLOW)
    (scratch / "slow").write_text("")
    job = Job(muster, scratch, script="import takes_long\n" + WORKER, PYTHONPATH=library)
    first = job.attempt(0)
    job.wait_for(job.spares)
    kill(first[0]["pid"])
    job.attempt(1)
    (line,) = transcript(command)
    job.wait_for(lambda: job.said(f"] {line}\n") == 1)
    (scratch / "slow").unlink()
    end = job.end(1)
    assert end.status == 0, end


def test_a_library_that_is_mended_meanwhile_is_the_mended_one_in_a_worker_that_is_started_anew(muster, scratch):
    library = scratch / "lib" / "site-packages"
    library.mkdir(parents=True)
    (library / "model.py").write_text("VERSION = 'old'\n")
    job, first, spares = ready_job(muster, scratch, script="import model\nprint(model.VERSION)\n" + WORKER, PYTHONPATH=library)
    (library / "model.py").write_text("VERSION = 'mended'\n")
    kill(first[0]["pid"])
    second = job.attempt(1)
    assert not {line["pid"] for line in second} & set(spares)
    job.wait_until_ready(2)
    new = job.spares()
    kill(second[0]["pid"])
    assert {line["pid"] for line in job.attempt(2)} == set(new)
    end = job.end(2)
    assert end.status == 0, end
    assert [end.out.count(word) for word in ("old", "mended")] == [2, 4]
    said = f"is out of date: {library}/model.py has changed since it was imported; the worker is started anew"
    assert job.said(said) == 2 and job.said("there are no standby workers") == 0


def test_what_one_rank_imports_is_imported_early_for_that_rank_alone(muster, scratch):
    library = scratch / "lib" / "site-packages"
    library.mkdir(parents=True)
    (library / "only_first.py").write_text("import atexit\natexit.register(print, 'leaves', flush=True)\n")
    script = "import os\nif os.environ['LOCAL_RANK'] == '0': import only_first\n"
    script += "import sys\nprint('rank', os.environ['RANK'], 'only_first' in sys.modules, flush=True)\n"
    job, first, spares = ready_job(muster, scratch, script=script + WORKER, PYTHONPATH=library)
    kill(first[1]["pid"])
    assert {line["pid"] for line in job.attempt(1)} == set(spares)
    end = job.end(1)
    assert end.status == 0, end
    assert [end.out.count(words) for words in ("rank 0 True", "rank 1 False")] == [2, 2]
    assert end.out.count("leaves") == 1


# A library of three: `door` must not be imported early, and `house` needs it. Each says where it was imported, and when.
NOTE = "import os, time\nprint(f'imported {__name__} {os.getpid()} {time.time()}\\n', end='', flush=True)\n"
HOUSE = {
    "door": NOTE + "if os.environ.get('RANK') is None: raise KeyError('RANK')\n",
    "house": NOTE + "import garden, door\n",
    "garden": NOTE,
}
LIVING = WORKER.replace("import json,", "import house, json,")


def imported(out, name, since):
    """Pids of the processes that have imported it since then, and of those that have before."""
    lines = [line[line.index("imported ") :].split() for line in out.splitlines() if "imported " in line]
    found = [(int(pid), float(at) >= since) for _, module, pid, at in lines if module == name]
    return {pid for pid, is_late in found if is_late}, {pid for pid, is_late in found if not is_late}


@pytest.mark.parametrize("parent", ["on", "off"])
def test_what_may_not_be_imported_early_waits_for_the_program_with_all_that_needs_it(muster, scratch, parent):
    library = scratch / "lib" / "site-packages"
    library.mkdir(parents=True)
    for name, text in HOUSE.items():
        (library / f"{name}.py").write_text(text)
    job = Job(muster, scratch, "--standby-parent", parent, script=LIVING, PYTHONPATH=library)
    first = job.attempt(0)
    job.wait_until_ready()
    assert job.said("door reads RANK while it is imported; 2 module(s) wait for the program from now on") == 1
    spares, killed = set(job.spares()), time.time()
    early = set(job.parents()) if parent == "on" else spares
    kill(first[0]["pid"])
    second = job.attempt(1)
    assert {line["pid"] for line in second} == spares
    end = job.end(1)
    assert end.status == 0, end
    assert early <= imported(end.out, "garden", killed)[1]
    assert all(imported(end.out, name, killed)[0] == spares for name in ("house", "door"))
    assert job.said("there are no standby workers") == 0


@pytest.mark.parametrize("parent", ["on", "off"])
@pytest.mark.parametrize("season", ["wet", "a secret"])
def test_what_a_library_changes_that_was_left_out_is_changed_for_it_or_what_comes_then_waits_too(
        muster, scratch, season, parent):
    """`house` sets a variable that `garden` may read. The program does not see it before it has imported that."""
    library = scratch / "lib" / "site-packages"
    library.mkdir(parents=True)
    garden = NOTE + "print(f'season {os.getpid()} {os.environ.get(\"SEASON\")}\\n', end='', flush=True)\n"
    changes = {**HOUSE, "house": NOTE + f"import door\nos.environ['SEASON'] = '{season}'\nimport garden\n", "garden": garden}
    for name, text in changes.items():
        (library / f"{name}.py").write_text(text)
    seen = "import os\nprint(f'seen {os.environ.get(\"SEASON\")}\\n', end='', flush=True)\n"
    job = Job(muster, scratch, "--standby-parent", parent, script=seen + LIVING, PYTHONPATH=library)
    first = job.attempt(0)
    job.wait_until_ready()
    spares, killed = set(job.spares()), time.time()
    early = set(job.parents()) if parent == "on" else spares
    kill(first[0]["pid"])
    assert {line["pid"] for line in job.attempt(1)} == spares
    end = job.end(1)
    assert end.status == 0
    late, before = imported(end.out, "garden", killed)
    assert late >= spares if season == "a secret" else before >= early
    assert end.out.count("season ") == end.out.count(f" {season}")
    assert parent == "on" or end.out.count("season ") == 4  # else each child prints what its parent has, too
    assert end.out.count("seen None") == 4


def test_a_crash_loop_is_as_it_is_without_standby_workers(muster, scratch):
    (scratch / "crash.py").write_text("import sys; open('runs', 'a').write('x'); sys.exit(3)")
    end = muster.run(
        ["run", "--standalone", "--standby", "on", "--nproc-per-node", "1", "--max-restarts", "10", "crash.py"],
        env={"PYTHON_EXEC": sys.executable},
    )
    assert end.status == 1, end
    assert (scratch / "runs").read_text() == "x" * 11


def test_a_crash_loop_uses_the_standby_workers_that_there_are_and_makes_no_more(muster, scratch):
    failing = "if os.environ['TORCHELASTIC_RESTART_COUNT'] != '0':\n    sys.exit(3)\n"
    script = WORKER.replace("line = ", failing + "line = ")
    job, first, spares = ready_job(muster, scratch, "--standby-after", "2", "--standby-parent", "off", script=script, restarts=6)
    kill(first[0]["pid"])
    end = job.running.finish()
    assert end.status == 1, end
    told = [job.story(attempt) for attempt in range(1, 7)]
    started = [{line["pid"] for line in attempt} for attempt in told]
    assert all(1 <= len(attempt) <= 2 for attempt in told), f"a rank runs once in each attempt: {told}"
    assert started[0] <= set(spares) and not set(spares) & set().union(*started[1:])
    assert job.said("standby workers ready") == job.said("started from standby: 2 of 2 workers\n") == 1
    assert job.said("started from standby: 0 of 2 workers; cold: local rank 0-1 (none yet: workers were not quiet)\n") == 5
    assert not any(exists(spare) for spare in spares)


def test_a_standby_worker_that_is_killed_at_its_gate_is_not_missed(muster, scratch):
    """It was told to become the worker, stands still, and ends."""
    job, first, spares = ready_job(muster, scratch, restarts=1)
    kill(spares[0], signal.SIGSTOP)
    kill(first[0]["pid"])
    job.wait_for(lambda: {line["pid"] for line in job.story(1)} & set(spares))
    with contextlib.suppress(ProcessLookupError):  # on a slow machine the agent has ended it itself, after a second
        kill(spares[0])
    second = job.attempt(1)
    assert spares[0] not in {line["pid"] for line in second}
    job.wait_for(lambda: job.said("started from standby: 1 of 2 workers") == 1)
    end = job.end(1)
    assert end.status == 0, end
    assert len(job.story(1)) == 2


def test_a_large_environment_goes_through_the_gate(muster, scratch):
    large = {f"LARGE_{number}": str(number) * 100000 for number in range(3)}
    job, first, spares = ready_job(muster, scratch, workers=1, **large)
    kill(first[0]["pid"])
    second = job.attempt(1)
    assert [line["pid"] for line in second] == spares
    assert second[0]["names"] == first[0]["names"]
    end = job.end(1)
    assert end.status == 0, end


TELL_STREAMS = """
streams = [type(stream).__name__ for stream in (sys.stdin, sys.stdout, sys.stderr)]
for number in range(5):
    try:
        streams.append(os.readlink("/proc/self/fd/%d" % number).split(":")[0])
    except OSError:
        streams.append("none")
import decimal"""


@pytest.mark.parametrize("closed", [[0], [1], [0, 1]], ids=["stdin", "stdout", "both"])
def test_an_agent_that_was_started_without_standard_streams_has_standby_workers(muster, scratch, closed):
    job, first, spares = ready_job(
        muster, scratch,
        script=WORKER.replace('"born":', '"streams": streams, "born":').replace("import decimal", TELL_STREAMS),
        popen={"preexec_fn": lambda: [os.close(number) for number in closed]})
    kill(first[0]["pid"])
    second = job.attempt(1)
    assert sorted(line["pid"] for line in second) == spares
    assert [line["streams"] for line in second] == [line["streams"] for line in first]
    end = job.end(1)
    assert end.status == 0, end


def test_what_workers_write_goes_to_their_files_of_the_attempt(muster, scratch):
    job, first, spares = ready_job(muster, scratch, "--log-dir", "logs", "-r", "1", "-t", "2")
    kill(first[0]["pid"])
    assert {line["pid"] for line in job.attempt(1)} == set(spares)
    end = job.end(1)
    assert end.status == 0, end
    assert end.out == ""
    for attempt in (0, 1):
        for rank in (0, 1):
            paths = list((scratch / "logs").glob(f"*/attempt_{attempt}/{rank}/stdout.log"))
            assert [path.read_text() for path in paths] == [f"attempt {attempt} rank {rank}\n"]


def test_a_job_without_standby_workers_is_as_before(muster, scratch):
    job = Job(muster, scratch, standby="off")
    first = job.attempt(0)
    time.sleep(3 * AFTER)
    assert job.spares() == []
    assert not any(name.startswith(("MUSTER_STANDBY", "PYTHONPATH")) for name in first[0]["names"])
    assert list(scratch.glob("muster_standby_*")) == []
    end = job.end(0)
    assert end.status == 0, end


def test_a_job_runs_without_standby_workers_where_their_hook_has_no_place(muster, scratch):
    job = Job(muster, scratch, "--log-dir", "logs", TMPDIR=scratch / "missing")
    first = job.attempt(0)
    assert job.said("there are no standby workers in this job: cannot make a directory in") == 1
    kill(first[0]["pid"])
    job.attempt(1)
    end = job.end(1)
    assert end.status == 0, end


def test_there_is_no_standby_worker_where_there_is_no_restart(muster, scratch):
    job = Job(muster, scratch, restarts=1)
    kill(job.attempt(0)[0]["pid"])
    job.attempt(1)
    time.sleep(3 * AFTER)
    assert job.spares() == []
    end = job.end(1)
    assert end.status == 0, end


def test_standby_workers_are_told_of_in_events_and_metrics(muster, scratch):
    (scratch / "lib").mkdir()
    job = Job(muster, scratch, "--event-log-handler", "file:events", "--standby-parent", "off", workers=1,
              PYTHONPATH=scratch / "lib", **SERVING)
    first = job.attempt(0)
    job.wait_until_ready()
    probe = Probe(job.running)
    assert probe.metrics()["muster_standby_ready"] == 1
    assert probe.metrics()["muster_standby_used_total"] == 0
    kill(first[0]["pid"])
    job.attempt(1)
    job.wait_for(lambda: job.said("started from standby"))
    assert probe.metrics()["muster_standby_used_total"] == 1
    (scratch / "lib/sitecustomize.py").write_text("import os\nos.getenv('RANK')\n")
    job.wait_for(lambda: job.said("there are no standby workers in this job from now on"))
    assert probe.metrics()["muster_standby_dirty{dirty}"] == 1
    assert probe.metrics()["muster_standby_dirty{late}"] == 0
    end = job.end(1)
    assert end.status == 0, end
    events = [json.loads(line) for line in (scratch / "events").read_text().splitlines()]
    names = [event["name"] for event in events if event["name"].startswith("standby.")]
    assert names == ["standby.ready", "standby.used", "standby.dirty"]


def test_a_node_without_standby_workers_starts_its_own_as_before(muster, scratch):
    (scratch / "worker.py").write_text(WORKER)
    endpoint = f"127.0.0.1:{free_port()}"
    nodes = [
        muster.start(
            ["run", "--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "job",
             "--standby", standby, "--standby-after", AFTER, "--max-restarts", 3, "worker.py"],
            env={"PYTHON_EXEC": sys.executable, "LOGLEVEL": "INFO"},
        )
        for standby in ("on", "off")
    ]

    def story(attempt):
        return read_story(scratch, attempt)

    nodes[0].wait_until(lambda: len(story(0)) == 2, "the first world", 60)
    nodes[0].wait_until(lambda: "standby workers ready: 1 of 1" in nodes[0].err(), "a standby worker", 60)
    kill(story(0)[0]["pid"])
    nodes[0].wait_until(lambda: len(story(1)) == 2, "the second world", 60)
    nodes[0].wait_until(lambda: "started from standby: 1 of 1" in nodes[0].err(), "the standby worker", 60)
    (scratch / "end.1").write_text("")
    assert [node.finish().status for node in nodes] == [0, 0]
    assert len(story(1)) == 2
    assert "started from standby" not in nodes[1].err()

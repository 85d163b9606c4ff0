# SPDX-License-Identifier: BSD-3-Clause
"""Standby workers that are ready, and what workers import after that: they import it, too, without ending."""

import os
import signal

import pytest

from support.gatekeeper import memory_file
from support.standby_jobs import WAITING, WORKER, Job, exists, importing, kill
from support.standby_programs import MARKED, keeper, library, marks, write  # noqa: F401 (fixtures)

played = pytest.mark.plain_build  # the hook is Python alone, and the agent is played here


def listed(library, *names):
    return {name: str(library / f"{name}.py") for name in names}


@played
def test_a_standby_worker_learns_and_becomes_the_worker(keeper, scratch, library):
    write(library, {f"{name}.py": "import os\nprint(__name__)\n" for name in ("one", "two", "three")})
    write(scratch, {"script.py": "import one, two, three, sys\nprint('ran', sys.argv)\n"})
    spare = keeper.spare(["script.py", "x"], PYTHONPATH=library)
    assert spare.warm(listed(library, "one"))[:2] == (1, 0)
    assert spare.teach(listed(library, "two", "nowhere"))[:2] == (2, 1)
    assert spare.teach(listed(library, "one", "three"))[:2] == (3, 1)
    assert spare.teach({})[:2] == (3, 1)
    spare.open_gate(keeper.streams())
    outcome = spare.finish()
    assert (outcome.status, outcome.err) == (0, b"")
    assert outcome.out == b"one\ntwo\nthree\nran ['script.py', 'x']\n"
    assert keeper.cold(["script.py", "x"], PYTHONPATH=library).out == outcome.out


@played
@pytest.mark.parametrize("text, words", [
    ("import os\nos.environ.get('RANK')\n", "reads RANK while it is imported"),
    ("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n", "started a thread"),
    ("import socket\nkept = socket.socket()\n", "opened socket:"),
], ids=["rank", "thread", "socket"])
def test_what_is_wrong_with_a_later_import_is_named(keeper, scratch, library, text, words):
    write(library, {"fine.py": "", "later.py": text})
    write(scratch, {"script.py": MARKED})
    spare = keeper.spare(["script.py"], PYTHONPATH=library)
    spare.warm(listed(library, "fine"))
    spare.send_list(b"T", listed(library, "later"))
    reason, names = spare.left_out()
    assert words in reason and names == ["later"]
    assert marks(scratch) == 0


@played
@pytest.mark.parametrize("mark, modules", [("\t", 2), ("!", 1)], ids=["worker", "other node"])
def test_another_node_is_believed_only_of_the_interpreters_own_libraries(keeper, scratch, library, tmp_path, mark, modules):
    write(library, {"one.py": ""})
    write(tmp_path, {"elsewhere.py": "print('elsewhere')\n"})
    write(scratch, {"script.py": ""})
    spare = keeper.spare(["script.py"], PYTHONPATH=f"{library}:{tmp_path}")
    spare.give_lines(f"one{mark}{library}/one.py\nelsewhere{mark}{tmp_path}/elsewhere.py\n")
    assert spare.await_ready()[0] == modules


@played
@pytest.mark.parametrize("mark, season", [("\t", "wet"), ("!", "none")], ids=["worker", "other node"])
def test_another_node_decides_of_no_variable(keeper, scratch, library, mark, season):
    write(library, {"one.py": "import os\nprint(os.environ.get('SEASON', 'none'))\n"})
    write(scratch, {"script.py": "import one\n"})
    spare = keeper.spare(["script.py"], PYTHONPATH=library)
    spare.give_lines(f"nowhere#\n=1 SEASON{mark}wet\none\t{library}/one.py\n")
    spare.await_ready()
    spare.open_gate(keeper.streams())
    assert spare.finish().out.decode() == f"{season}\n"


HOSTILE = {
    "modules": "m{0}\t/nowhere/m{0}.py\n", "variables": "={0} V{0}\tx\n", "left out": "m{0}#\n",
    "one variable": "={0} V\tx\n", "long words": "m{0}" + "x" * 200 + "!" + "/" * 800 + "\n", "nothing": "\n",
}


@played
@pytest.mark.parametrize("kind", HOSTILE)
def test_the_longest_list_is_read_in_one_breath(keeper, scratch, kind):
    """Whatever is in it: what the work grows with is its length."""
    write(scratch, {"script.py": MARKED})
    spare = keeper.spare(["script.py"])
    text = "nowhere#\n" + "".join(HOSTILE[kind].format(number) for number in range(100000))
    spare.give_lines(text[: (1 << 20) - 1] + "\n")
    assert spare.await_ready()[1] <= 20000
    assert marks(scratch) == 0


@played
def test_garbage_is_collected_after_each_list(keeper, scratch, library):
    write(library, {"one.py": "", "two.py": "kept = [[] for _ in range(100000)]\n"})
    write(scratch, {"script.py": """
        import gc, sys
        young = range(1 if sys.version_info >= (3, 14) else 2)
        print(gc.isenabled(), sum(len(gc.get_objects(generation=number)) for number in young))
        """})
    spare = keeper.spare(["script.py"], PYTHONPATH=library)
    spare.warm(listed(library, "one"))
    spare.teach(listed(library, "two"))
    spare.open_gate(keeper.streams())
    enabled, young = spare.finish().out.split()
    assert enabled == b"True"
    assert int(young) < 50000, "what was imported is old"


@played
def test_a_further_list_that_is_none_starts_nothing(keeper, scratch):
    write(scratch, {"script.py": MARKED})
    long_one = memory_file("x" * ((1 << 20) + 1))
    keeper.keep(long_one)
    closed_pipe = os.pipe()
    for fd in closed_pipe:
        keeper.keep(fd)
    for message, fds in (b"T", []), (b"T", [long_one]), (b"T", [closed_pipe[0]]), (b"T", [0, 0]), (b"L", [long_one]):
        spare = keeper.spare(["script.py"])
        spare.warm({})
        spare.tell(message, fds)
        assert spare.reason()
    spare = keeper.spare(["script.py"])
    spare.warm({})
    assert spare.teach({"": "", "\t": "\n", "json\0": "x", "a" * 100000: "", "..": "", "json.": ""})[0] <= 30
    spare.gate.close()
    assert spare.process.wait(60) == 0
    assert marks(scratch) == 0


# Real jobs. A worker imports more when it finds the file `more`. A standby worker that does so waits as long as there is
# the file `slow`, and says that it is there.

MORE = 25  # modules: a standby worker may be behind by fewer

LATER = "import sys\nsys.path.append('libraries/site-packages')\n" + WORKER + "    if os.path.exists('more'):\n        import later\n"


@pytest.fixture
def job(muster, scratch):
    """A job whose standby workers are ready, and are taught when the file `more` is there."""
    write(scratch, {
        "libraries/site-packages/later.py": "".join(f"import later_{number}\n" for number in range(MORE)),
        "libraries/site-packages/later_0.py": WAITING,
        **{f"libraries/site-packages/later_{number}.py": "" for number in range(1, MORE)},
    })
    job = Job(muster, scratch, "--standby-parent", "off", script=LATER, PYTHONPATH=scratch / "libraries/site-packages")
    job.first = job.attempt(0)
    job.wait_until_ready()
    job.waiting = job.spares()
    assert len(job.waiting) == 2
    return job


def begin_to_learn(job, scratch):
    """(the standby worker that learns until `slow` is gone, the other one)"""
    (scratch / "slow").write_text("")
    (scratch / "more").write_text("")
    job.wait_for(lambda: importing(scratch))
    (learner,) = importing(scratch)
    (other,) = set(job.waiting) - {learner}
    (scratch / "more").unlink()  # so that the workers of the next attempt are like those of the first
    return learner, other


def await_second_attempt(job):
    """Kills a worker; returns which standby workers have become workers of the next attempt, for which nobody waited."""
    kill(job.first[0]["pid"])
    second = job.attempt(1)
    assert job.said("does not answer") == 0
    return {line["pid"] for line in second} & set(job.waiting)


def test_standby_workers_learn_without_ending(job, scratch):
    (scratch / "more").write_text("")
    job.wait_for(lambda: job.said("standby workers have imported what workers did since: 2 of 2") == 1)
    assert importing(scratch) == job.waiting == job.spares()
    assert job.said("standby workers ready") == 1
    kill(job.first[0]["pid"])
    assert sorted(line["pid"] for line in job.attempt(1)) == job.waiting
    assert job.end(1).status == 0


def test_a_worker_that_dies_while_its_standby_worker_learns_is_started_anew(job, scratch):
    learner, other = begin_to_learn(job, scratch)
    assert await_second_attempt(job) == {other}
    job.wait_for(lambda: job.said("started from standby: 1 of 2 workers; cold: local rank 0 (learning)\n") == 1)
    assert exists(learner), "it is good for another time"
    (scratch / "slow").unlink()
    job.wait_until_ready(2)
    assert learner in job.spares()
    end = job.end(1)
    assert end.status == 0, end
    assert not exists(learner)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_standby_worker_that_is_lost_while_it_learns_is_not_missed(job, scratch, number):
    learner, other = begin_to_learn(job, scratch)
    kill(learner, number)
    if number == signal.SIGKILL:
        job.wait_for(lambda: not exists(learner))
        assert await_second_attempt(job) <= {other}, "it may be the next one to learn"
    else:
        assert await_second_attempt(job) == {other}
    end = job.end(1)
    assert end.status == 0, end
    assert not exists(learner)


def test_an_agent_that_is_killed_leaves_no_standby_worker_that_learns(job, scratch):
    begin_to_learn(job, scratch)
    job.running.kill()
    everybody = job.waiting + [line["pid"] for line in job.first]
    job.running.wait_until(lambda: not any(map(exists, everybody)), "the end of all", 60)

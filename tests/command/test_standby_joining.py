# SPDX-License-Identifier: BSD-3-Clause
"""A node that joins a running job makes its standby workers ready first: real agents, a module that takes its time."""

import os
import sys

import pytest

from support.binary import ROOT
from support.nodes import Node
from support.ports import free_port
from support.standby_programs import relocate_python

# What happens is told by names in one directory. A module that is imported early could not write into a file.
TELL = """
import os, time
def tell(what):
    name = f"{time.time_ns()} {os.getpid()} {what} {os.environ['NODE']}"
    os.mknod(os.path.join(os.environ["STORY"], name.replace("/", ":")))
"""
# A library: it lies outside the program's directory.
LIBRARY = TELL + """
import time
tell("imports")
time.sleep(0.5)
"""
WORKER = TELL + """
import signal, sys, time
import slow_library
def end(*_):
    tell("ended")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
tell(f"runs/{os.environ['WORLD_SIZE']}" if "RANK" in os.environ else "ghost")
while not os.path.exists("end"):
    time.sleep(0.01)
"""


TOKEN = "t" * 32  # what others have imported is taken only from nodes that prove themselves
LIST = "/torch.rendezvous.job/muster/standby"


def hostile(mark):
    """One name is out of the way, so that a variable is set for those that come after it."""
    return f"zzz#\n=1 BROWSER\tsh -c 'touch {mark}' %s\nantigravity\t{os.path.dirname(os.__file__)}/antigravity.py\n"


class Job:
    def __init__(self, muster, scratch, nnodes="1:2", parent="off"):
        self.muster, self.scratch, self.nnodes, self.port = muster, scratch, nnodes, free_port()
        library = scratch / "lib" / "site-packages"
        library.mkdir(parents=True)
        (library / "slow_library.py").write_text(LIBRARY)
        (scratch / "worker.py").write_text(WORKER)
        (scratch / "story").mkdir()
        self.path, self.nodes, self.parent = library, [], parent
        self.importers = 1 if parent == "on" else 2  # of a node with two standby workers

    def start(self, name, *options, standby="on", python=sys.executable, path=None, token=TOKEN):
        running = self.muster.start(
            ["run", "--nnodes", self.nnodes, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{self.port}",
             "--rdzv-id", "job", "--rdzv-conf", "last_call_timeout=1", "--local-addr", name, "--nproc-per-node", 2,
             "--max-restarts", 3, "--standby", standby, "--standby-after", 0.2, "--standby-parent", self.parent, *options, "worker.py"],
            env={"NODE": name, "STORY": self.scratch / "story", "PYTHONPATH": path or self.path,
                 "PYTHON_EXEC": python, "LOGLEVEL": "INFO", "MUSTER_JOB_TOKEN": token})
        self.nodes.append(Node(name, running))
        return self.nodes[-1]

    def store(self, command, *words):
        return self.muster.run(["store", command, "--host", "127.0.0.1", "--port", self.port, *words])

    def story(self):
        names = sorted(path.name for path in (self.scratch / "story").iterdir())
        return [name.split(" ", 2)[2].replace(":", "/") for name in names]

    def wait_for(self, line, count=2):
        self.nodes[0].running.wait_until(lambda: self.story().count(line) == count, f"{count} times {line!r}", 60)

    def start_first(self, **how):
        """A world of one node whose list is published."""
        one = self.start("one", **how)
        if how.get("standby") == "off":
            self.wait_for("runs/2 one")
        else:
            one.wait_for_log("standby workers ready: 2 of 2", timeout=60)
        return one

    def end(self):
        (self.scratch / "end").touch()
        ends = [node.finish(60) for node in self.nodes]
        assert [end.status for end in ends] == [0] * len(ends), ends
        assert not [line for line in self.story() if line.startswith("ghost")], self.story()
        return ends


@pytest.fixture(params=["on", "off"], ids=["parent", "separate"])
def job(muster, scratch, request):
    """Each standby worker imports by itself, or one process of a node does."""
    return Job(muster, scratch, parent=request.param)


def test_the_world_runs_on_until_the_new_nodes_standby_workers_are_ready(job):
    job.start_first()
    two = job.start("two")
    job.wait_for("runs/4 two")
    job.wait_for("runs/4 one")
    job.end()
    story = job.story()
    assert story.count("imports two") == job.importers, story
    assert max(at for at, line in enumerate(story) if line == "imports two") < story.index("ended one"), story
    assert story.count("ended one") == 2, "the world was interrupted once"
    assert "the job runs: this node makes its standby workers ready before it joins, for 30 s at most" in two.err()
    assert "started from standby: 2 of 2 workers" in two.err()


def test_a_new_node_runs_the_program_up_to_its_line_before_it_joins(job):
    """It knows from the world that the program has one: its own workers have not run yet."""
    lined = WORKER.replace("def end(", "tell('builds')\nimport muster.standby\ncame = muster.standby.wait()\ndef end(")
    (job.scratch / "worker.py").write_text(lined.replace('tell(f"runs/', 'tell(f"came/{came}")\ntell(f"runs/'))
    path = f"{job.path}:{ROOT / 'python'}"
    one = job.start_first(path=path)
    assert "2 at the line of their program" in one.err()
    two = job.start("two", path=path)
    job.wait_for("runs/4 two")
    job.wait_for("runs/4 one")
    job.end()
    story = job.story()
    assert story[: story.index("ended one")].count("builds two") == 2, story
    assert (story.count("came/True two"), story.count("came/False two")) == (2, 0), story
    assert (story.count("came/True one"), story.count("came/False one")) == (2, 2), story
    assert "started from standby: 2 of 2 workers" in two.err()


def test_a_node_whose_python_and_packages_lie_elsewhere_joins_warm(job, tmp_path):
    """Outside the directory of the program, below which all is the user's own code."""
    python = relocate_python(tmp_path / "prefix")
    one, other = (tmp_path / name / "site-packages" for name in ("one", "other"))
    one.parent.mkdir()
    other.parent.mkdir()
    job.path.rename(one)
    job.start_first(path=f"{one}:{other}")
    one.rename(other)  # what the first node has listed is not on the second
    two = job.start("two", "--standby-timeout", 100, python=python, path=other)
    job.wait_for("runs/4 two")
    job.wait_for("runs/4 one")
    job.end()
    story = job.story()
    assert story[: story.index("ended one")].count("imports two") == job.importers, story
    assert "started from standby: 2 of 2 workers" in two.err()


def test_what_was_left_out_on_one_node_no_other_tries_to_import(job):
    (job.path / "reads_rank.py").write_text("import os\nos.environ.get('RANK')\n")
    (job.scratch / "worker.py").write_text(WORKER.replace("import slow_library", "import reads_rank, slow_library"))
    one = job.start_first()
    two = job.start("two")
    job.wait_for("runs/4 two")
    job.end()
    assert one.err().count("reads_rank reads RANK while it is imported; 1 module(s) wait for the program") == 1
    assert "wait for the program" not in two.err()
    assert "started from standby: 2 of 2 workers" in two.err()


def test_without_a_list_a_node_joins_at_once(job):
    job.start_first(standby="off")
    two = job.start("two")
    job.wait_for("runs/4 two")
    job.end()
    story = job.story()
    assert story.index("ended one") < story.index("imports two"), story
    assert "the job runs" not in two.err()


def test_nodes_that_do_not_prove_themselves_tell_and_are_told_nothing(job):
    job.start_first(token=None)
    assert job.store("check", LIST).status == 1, "anybody could have written it"
    mark = job.scratch / "mark"
    assert job.store("set", LIST, hostile(mark)).status == 0
    two = job.start("two", token=None)
    job.wait_for("runs/4 two")
    two.wait_for_log("standby workers ready: 2 of 2", timeout=60)
    job.end()
    story = job.story()
    assert story.index("ended one") < story.index("imports two"), story
    assert "this node joins it without standby workers, since what these would import is taken only from nodes that" in two.err()
    assert not mark.exists()


def test_what_a_node_tells_is_checked_where_it_is_read(job, tmp_path):
    """By one that has proved itself, but no node of ours would write it."""
    job.start_first()
    mark, evil = job.scratch / "mark", tmp_path / "evil"
    evil.mkdir()
    (evil / "evil.py").write_text(f"open({str(mark)!r}, 'w')\n")
    (job.path / "shows_season.py").write_text("import os\nprint('season', os.environ.get('SEASON'))\n")
    (job.scratch / "worker.py").write_text(WORKER.replace("import slow_library", "import slow_library, shows_season"))
    told = f"{hostile(mark)}evil\t{evil}/evil.py\n=2 SEASON\twet\nshows_season\t{job.path}/shows_season.py\n"
    (job.scratch / "token").write_text(TOKEN)
    (job.scratch / "token").chmod(0o600)
    assert job.store("set", "--token-file", job.scratch / "token", LIST, told).status == 0
    two = job.start("two", path=f"{job.path}:{evil}")
    job.wait_for("runs/4 two")
    end = job.end()[1]
    assert "the job runs: this node makes its standby workers ready before it joins" in two.err()
    assert "started from standby: 2 of 2 workers" in two.err()
    assert not mark.exists()
    assert end.out.count("season None") == 2, "another node decides of no variable here"


def test_a_node_that_shall_not_wait_joins_at_once(job):
    job.start_first()
    two = job.start("two", "--standby-timeout", 0)
    job.wait_for("runs/4 two")
    job.end()
    story = job.story()
    assert story.index("ended one") < story.index("imports two"), story
    assert "the job runs" not in two.err()


def test_who_is_not_ready_in_time_joins_cold(job):
    job.start_first()
    job.path.joinpath("slow_library.py").write_text(LIBRARY + "time.sleep(3 if 'RANK' not in os.environ else 0)\n")
    two = job.start("two", "--standby-timeout", 0.5)
    job.wait_for("runs/4 two")
    job.end()
    assert "the job runs" in two.err() and "started from standby" not in two.err()


def test_a_node_whose_python_does_not_run_the_hook_joins_cold_and_without_a_ghost(job, muster):
    job.start_first()
    wrapper = muster.script("python", f'#!/bin/sh\nexec env -u MUSTER_STANDBY {sys.executable} "$@"\n')
    two = job.start("two", python=wrapper)
    job.wait_for("runs/4 two")
    job.end()
    assert "this node has no standby workers before it joins: its Python does not run their hook" in two.err()


def test_a_node_beyond_the_maximum_is_warm_when_its_turn_comes(job):
    job.start_first()
    two = job.start("two")
    job.wait_for("runs/4 two")
    three = job.start("three")
    three.wait_for_log("standby workers ready: 2 of 2", timeout=60)
    assert not [line for line in job.story() if line.startswith("runs") and line.endswith("three")]
    two.kill()
    job.nodes.remove(two)
    job.wait_for("runs/4 three")
    job.end()
    assert "started from standby: 2 of 2 workers" in three.err()

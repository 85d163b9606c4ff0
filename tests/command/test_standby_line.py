# SPDX-License-Identifier: BSD-3-Clause
"""Programs that call muster.standby.wait(): their standby workers have run them up to there."""

import difflib
import os
import re
import shutil
import sys
import textwrap

import pytest

from support.binary import ROOT
from support.gatekeeper import ROUND, Gatekeeper, read_file
from support.standby_jobs import Job, kill
from support.standby_programs import write

LINE = "import muster.standby\ncame = muster.standby.wait()\n"
LASTING = {name: ROUND[name] for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID")}


@pytest.fixture(params=["system", "peer"])
def keeper(request, scratch):
    python = sys.executable if request.param == "system" else request.getfixturevalue("peer").python
    write(scratch, {"site-packages/muster/__init__.py": ""})
    shutil.copy(ROOT / "python/muster/standby.py", scratch / "site-packages/muster/standby.py")
    keeper = Gatekeeper(python, scratch)
    with keeper.closing:
        yield keeper


def path(scratch):
    return {"PYTHONPATH": scratch / "site-packages"}


def line_of(keeper, scratch, words=("script.py",), **how):
    """What a worker has recorded that has come to the line."""
    recorded = keeper.recorded(words, **path(scratch), **how)
    assert recorded.status == 0, recorded.err
    return recorded.modules()


def spare_of(keeper, scratch, words=("script.py",), **names):
    return keeper.spare(words, **path(scratch), **LASTING, **names)


# Everything that a program can find different between a cold start and one from the line, but for its process.
STATE = """
    import gc, os, signal, sys, threading
    print(sys.argv, sys.path, __name__, __file__, __package__, sys.flags, os.getcwd(), os.umask(0o22))
    print(open("/proc/self/cmdline").read().split("\\0"), open("/proc/self/comm").read())
    print(list(os.environ.items()) == [tuple(map(os.fsdecode, item)) for item in os.environb.items()], type(os.environ._data))
    print(sorted(os.environ.items()), os.environ._data is sys.modules["posix"].environ)
    print(sorted(int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) < 900))
    print([os.readlink("/proc/self/fd/%d" % fd) for fd in range(3)], [stream.fileno() for stream in (sys.stdin, sys.stdout)])
    print({number: signal.getsignal(number) for number in range(1, 32) if number not in (9, 19)})
    print(gc.isenabled(), gc.get_freeze_count(), sys.meta_path, sys.path_hooks, [thread.name for thread in threading.enumerate()], sys.stdin.read())
    print(sorted(name for name in sys.modules if "standby" in name), sys.excepthook, sys.getrefcount(None) > 0)
    state = open("/proc/self/status").read()
    print([line for line in state.splitlines() if line.startswith(("Umask", "SigB", "SigI", "Cpus", "Seccomp", "NoNew"))])
"""

PROGRAMS = {
    "nothing": ("", STATE),
    "what it prints": ("print('above', flush=True)\nimport sys\nprint('wrong', file=sys.stderr)\n", "print('below')\n"),
    "prints in pieces": ("import sys\nsys.stdout.write('one line ')\n", "print('of two pieces')\n"),
    "a directory": ("import os\nos.mkdir('inner') if not os.path.exists('inner') else 0\nos.chdir('inner')\n", STATE),
    "an umask": ("import os\nos.umask(0o77)\n", STATE),
    "files": ("import os\nkept = open('/dev/null'), open('/dev/zero', 'rb')\n", STATE),
    "the environment": ("import os\nos.environ['OWN'] = '1'\ndel os.environ['HOME']\nos.environ['LANG'] = 'x'\n", STATE),
    "a variable of its round": ("import os\nos.environ['MASTER_PORT'] = '1'\nprint(os.environ['MASTER_PORT'])\n", STATE),
    "a rank of this node": ("import os\nprint(os.environ['LOCAL_RANK'], os.environ['LOCAL_WORLD_SIZE'])\n", STATE),
    "one rank less": ("import os\nprint(os.environ.pop('LOCAL_RANK'))\n", STATE),
    "signals": ("import signal\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)\n", STATE),
    "seeds": ("import random\nrandom.seed(7)\nprint(random.random())\n", "print(random.random())\n"),
    "a thread": ("import threading\nevent = threading.Event()\nthread = threading.Thread(target=event.wait)\nthread.start()\n",
                 "event.set()\nthread.join()\nprint('joined')\n"),
    "no garbage": ("import gc\ngc.disable()\ngc.freeze()\ngc.unfreeze()\n", STATE),
    "a stream of its own": ("import os\nfile = open('own', 'w')\nos.dup2(file.fileno(), 1)\nprint('there')\n",
                            "print('here')\nprint(os.path.exists('own'), file=__import__('sys').stderr)\n"),
    "fails below": ("import json\n", "def fail():\n    json.loads('{')\nfail()\n"),
    "exits below": ("import atexit\natexit.register(print, 'at last')\n", "raise SystemExit('done')\n"),
    "twice": ("", "print(muster.standby.wait())\n"),
    "children": ("import multiprocessing as m\n", """
        import os, sys
        def child(queue):
            queue.put((os.environ["RANK"], sys.argv, "PYTHONPATH" in os.environ, muster.standby.wait()))
        if __name__ == "__main__":
            for method in "fork", "spawn":
                queue = m.get_context(method).Queue()
                process = m.get_context(method).Process(target=child, args=(queue,))
                process.start()
                print(queue.get())
                process.join()
        """),
    "a function": ("def main():\n    import muster.standby\n    return muster.standby.wait()\nmain()\n", None),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_behind_its_line_what_it_is_without_standby_workers(keeper, scratch, name):
    above, below = PROGRAMS[name]
    line = "" if below is None else LINE
    write(scratch, {"script.py": textwrap.dedent(above) + line + textwrap.dedent(below or STATE)})
    words = ["script.py", "one", "two"]
    cold, recorded = keeper.cold(words, **path(scratch)), keeper.recorded(words, **path(scratch))
    assert sum(module.startswith("__line__.") for module in recorded.modules()) == 1
    spare = spare_of(keeper, scratch, words)
    spare.come_to_line(recorded.modules())
    spare.open_gate(keeper.streams())
    warm = spare.finish()
    for outcome in recorded, warm:
        told = outcome.err.decode()
        if name in ("twice", "children"):  # of a fork; the two others are started anew
            told, count = re.subn(r".*script\.py:\d+: RuntimeWarning: muster\.standby\.wait\(\) does nothing here: .*\n.*\n", "", told)
            assert count == 1, outcome.err
        assert (outcome.status, told) == (cold.status, cold.err.decode())
        different = "\n".join(difflib.unified_diff(hide(cold.out), hide(outcome.out), lineterm="", n=0))
        assert not different, different


def hide(out):
    """What is told of the hook itself: two names in what the agent of these tests gives, and numbers of files."""
    text = re.sub(r"0x[0-9a-f]+|/memfd:\S+", "", out.decode())
    return re.sub(r"\('PYTHONPATH', '[^']*hook directory:([^']*)'\)", r"('PYTHONPATH', '\1')", text).splitlines()


@pytest.mark.parametrize("words", [
    ["script.py"], ["./script.py"], ["{place}/script.py"], ["link.py"], ["-m", "script"], ["-m", "package.inner"], ["package"],
    ["-O", "script.py"], ["-c", "import runpy, sys\nsys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')",
                        "script.py"],
], ids=" ".join)
def test_every_way_to_name_a_program_leads_to_its_line(keeper, scratch, words):
    program = "print('built', __name__, flush=True)\n" + LINE + "import os\nprint(came, os.environ['RANK'], __file__)\n"
    write(scratch, {"script.py": program, "package/__init__.py": "", "package/inner.py": program, "package/__main__.py": program})
    (scratch / "link.py").symlink_to("script.py")
    words = [word.format(place=scratch) for word in words]
    spare = spare_of(keeper, scratch, words)
    spare.come_to_line(line_of(keeper, scratch, words))
    assert spare.captured and read_file(spare.captured[1]).startswith(b"built __main__\n")
    spare.open_gate(keeper.streams())
    warm = spare.finish()
    assert warm.out.decode().splitlines()[0] == "built __main__" and warm.out.decode().splitlines()[1].startswith("True 1 ")


# How it is read, and where that is told to be.
READS = {
    "os.environ": ("import os\nvalue = 1\nos.environ['RANK']\n", "RANK", 3),
    "get": ("import os\nos.environ.get('WORLD_SIZE', '1')\n", "WORLD_SIZE", 2),
    "getenv": ("import os\ndef rank():\n    return int(os.getenv('GROUP_RANK', 0))\nrank()\n", "GROUP_RANK", 3),
    "in": ("import os\nif 'MASTER_ADDR' in os.environ: pass\n", "MASTER_ADDR", 2),
    "pop": ("import os\nos.environ.pop('MASTER_PORT', None)\n", "MASTER_PORT", 2),
    "setdefault": ("import os\nos.environ.setdefault('MASTER_ADDR', 'localhost')\n", "MASTER_ADDR", 2),
    "del": ("import os\ntry:\n    del os.environ['ROLE_RANK']\nexcept KeyError: pass\n", "ROLE_RANK", 3),
    "bytes": ("import os\nos.environb.get(b'RANK')\n", "RANK", 2),
    "restarts": ("import os\nos.environ.get('TORCHELASTIC_RESTART_COUNT')\n", "TORCHELASTIC_RESTART_COUNT", 2),
    "error file": ("import os\nos.environ.get('TORCHELASTIC_ERROR_FILE')\n", "TORCHELASTIC_ERROR_FILE", 2),
    "a library": ("x = 1\nimport of_a_library\n", "RANK", 2),
    "a thread": ("import os, threading\nthread = threading.Thread(target=os.getenv, args=('RANK',))\nthread.start()\nthread.join()\n",
                 "RANK", None),
    "a child": ("import os\nif os.fork() == 0:\n    os.getenv('RANK')\n    os._exit(0)\nos.wait()\n", "RANK", 3),
    "an exception's handler": ("import os\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    os.getenv('RANK')\n", "RANK", 5),
}


@pytest.mark.parametrize("how", READS)
def test_a_variable_of_the_round_is_not_read_above_the_line(keeper, scratch, how):
    above, name, number = READS[how]
    write(scratch, {"script.py": above + LINE, "site-packages/of_a_library.py": "import os\nos.getenv('RANK')\n"})
    learned = line_of(keeper, scratch)
    line = next(module for module in learned if module.startswith("__line__."))
    spare = spare_of(keeper, scratch)
    spare.give_list(learned)
    reason, names = spare.left_out(status=None if how == "a child" else 77)  # The agent ends it as well.
    assert names == [line]
    assert reason.startswith(f"{name} is read in ") and reason.endswith(", above muster.standby.wait()")
    assert number is None or re.search(rf"script\.py, line {number}\b", reason), reason
    # The next one imports what workers do, and runs nothing of the program.
    spare = spare_of(keeper, scratch)
    spare.warm({line: None})
    assert read_file(spare.captured[1]) == b""


def test_a_child_from_above_the_line_may_read_when_its_parent_is_a_worker(keeper, scratch):
    """The agent, which listens no more, has nothing to end then."""
    write(scratch, {"script.py": """
        import os
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(reading, 1)
            os._exit(5 if os.environ.get("RANK") is None else 6)
        import muster.standby
        print(muster.standby.wait(), flush=True)
        input()
        os.write(writing, b"x")
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """})
    learned = line_of(keeper, scratch, streams=keeper.streams(b"\n"))
    spare = spare_of(keeper, scratch)
    spare.come_to_line(learned)
    reading, writing = map(keeper.keep, os.pipe())
    streams = [reading, *keeper.streams()[1:]]
    spare.open_gate(streams)
    spare.gate.close()
    os.write(writing, b"\n")
    assert spare.process.wait(60) == 0
    assert read_file(streams[1]) == b"True\n5\n"


def test_what_is_read_of_all_variables_is_what_is_there(keeper, scratch):
    above = "import os, subprocess, sys\nprint(sorted(dict(os.environ)) == sorted(os.environ.copy()), 'OTHER' in os.environ)\n"
    above += "subprocess.run([sys.executable, '-c', 'import os; print(os.getenv(\"RANK\"))'], env={**os.environ})\n"
    write(scratch, {"script.py": above + LINE + "print(os.environ['RANK'])\n"})
    spare = spare_of(keeper, scratch)
    spare.come_to_line(line_of(keeper, scratch))
    spare.open_gate(keeper.streams())
    assert spare.finish().out.decode().split() == ["True", "False", "None", "1"]


FAILURES = {
    "an exception": ("raise ValueError('no data')\n", "ValueError: no data"),
    "of a library": ("import json\njson.loads('{')\n", "json.decoder.JSONDecodeError: Expecting property name"),
    "a hook for exceptions": ("import sys\nsys.excepthook = lambda *_: None\nopen('/nowhere')\n", "FileNotFoundError: [Errno 2]"),
    "told to a file": ("""
        import os
        try:
            raise RuntimeError("first")
        except RuntimeError:
            os.getenv("TORCHELASTIC_ERROR_FILE")
            raise
        """, "RuntimeError: first"),
    "of several lines": ("raise ValueError('one\\ntwo')\n", "ValueError: one\ntwo"),
    "no syntax": ("exec('(')\n", "SyntaxError: "),
}


@pytest.mark.parametrize("how", FAILURES)
def test_a_failure_above_the_line_is_told_by_its_last_line(keeper, scratch, how):
    """Above the line a worker finds what a standby worker does not."""
    above, told = FAILURES[how]
    above = f"import os\nif os.path.exists('fails'):\n{textwrap.indent(textwrap.dedent(above), '    ')}"
    write(scratch, {"script.py": above + LINE})
    learned = line_of(keeper, scratch)
    (scratch / "fails").touch()
    spare = spare_of(keeper, scratch)
    spare.give_list(learned)
    kind, body = spare.hear()
    assert (kind, body.decode()[: len(told)]) == ("E", told)
    assert spare.process.wait(60) == 77


@pytest.mark.parametrize("end", ["raise SystemExit", "import sys; sys.exit('done')", "0"])
def test_a_program_that_does_not_come_to_its_line_any_more_is_told(keeper, scratch, end):
    write(scratch, {"script.py": f"import os\nif os.path.exists('ends'):\n    {end}\nelse:\n" + textwrap.indent(LINE, "    ")})
    learned = line_of(keeper, scratch)
    (scratch / "ends").touch()
    reason = spare_of(keeper, scratch).dirty(learned)
    assert reason == "the program has come to its end without a call of muster.standby.wait()"


def test_a_program_that_is_another_one_now_is_not_run(keeper, scratch):
    write(scratch, {"script.py": LINE})
    learned = line_of(keeper, scratch)
    write(scratch, {"script.py": "open('mark', 'w')\n"})
    spare = spare_of(keeper, scratch)
    spare.warm(learned)
    assert not (scratch / "mark").exists()


@pytest.mark.parametrize("changes", ["script.py", "own.py"])
def test_a_program_that_changes_while_its_standby_worker_waits_is_started_anew(keeper, scratch, changes):
    write(scratch, {"script.py": "import own\n" + LINE, "own.py": ""})
    spare = spare_of(keeper, scratch)
    spare.come_to_line(line_of(keeper, scratch))
    with open(scratch / changes, "a") as file:
        file.write("# changed\n")
    spare.tell(b"G" + bytes(4) + spare.body(), [*keeper.streams(), keeper.record_file()])
    reason, names = spare.left_out()
    assert reason == f"{scratch / changes} has changed since it was imported" and names == []


def test_a_program_that_changes_while_a_worker_runs_has_not_come_to_a_line(keeper, scratch):
    """The new one might never come to one."""
    write(scratch, {"script.py": "open('script.py', 'w').write('open(\"mark\", \"w\")')\n" + LINE})
    recorded = keeper.recorded(["script.py"], **path(scratch))
    assert recorded.status == 0 and not re.search("^__line__[.][0-9a-f]", recorded.record, re.MULTILINE)


@pytest.mark.parametrize("where, word", [
    ("import threading\nthread = threading.Thread(target=wait)\nthread.start()\nthread.join()\n", "in another thread than the main one"),
    ("import os\nif os.fork() == 0:\n    wait()\n    os._exit(0)\nos.wait()\n", "in a child of the worker"),
    ("wait()\nwait()\n", "it has been called before"),
])
def test_a_call_that_can_do_nothing_warns(keeper, scratch, where, word):
    program = "import muster.standby\ndef wait():\n    print(muster.standby.wait(), flush=True)\n" + where + "print('end')\n"
    write(scratch, {"script.py": program})
    cold, recorded = keeper.cold(["script.py"], **path(scratch)), keeper.recorded(["script.py"], **path(scratch))
    assert recorded.out == cold.out and b"False" in cold.out and cold.err == b""
    assert recorded.err.count(b"RuntimeWarning: muster.standby.wait() does nothing here: ") == 1
    assert word in recorded.err.decode() and "script.py:3: " in recorded.err.decode()
    assert recorded.record.count("__line__.") == where.startswith("wait()")


def test_much_that_is_printed_above_the_line_is_cut(keeper, scratch):
    write(scratch, {"script.py": "for number in range(20000): print(number)\n" + LINE + "print('below')\n"})
    spare = spare_of(keeper, scratch)
    spare.come_to_line(line_of(keeper, scratch))
    spare.open_gate(keeper.streams())
    out = spare.finish().out.decode()
    assert out.startswith("[") and "bytes that were printed before this are left out]\n" in out
    assert out.endswith("19998\n19999\nbelow\n") and len(out) < 70000


def test_the_package_is_all_that_a_program_needs_elsewhere(scratch, muster):
    """Under another launcher, and where there are no standby workers."""
    write(scratch, {"script.py": "import sys\nbefore = set(sys.modules)\n" + LINE + "print(came, sorted(set(sys.modules) - before))\n"})
    names = {"PYTHONPATH": ROOT / "python", "PYTHON_EXEC": sys.executable}
    for options in [], ["--standby", "on", "--max-restarts", 1]:
        end = muster.run(["run", "--standalone", *options, "script.py"], env=names)
        assert end.status == 0, end
        assert end.out.splitlines()[-1] == "False ['muster', 'muster.standby']"


# Jobs.

BUILT = """
import json, os, sys
with open("built", "a") as file:
    file.write("%d\\n" % os.getpid())
print("building", flush=True)
""" + LINE
WORKER = BUILT + """
import time
with open("story", "a") as file:
    file.write(json.dumps({"attempt": int(os.environ["TORCHELASTIC_RESTART_COUNT"]), "rank": int(os.environ["RANK"]),
                           "pid": os.getpid(), "came": came}) + "\\n")
print("attempt %s rank %s" % (os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]), flush=True)
while not os.path.exists("end." + os.environ["TORCHELASTIC_RESTART_COUNT"]):
    time.sleep(0.01)
"""


def start(muster, scratch, *options, script=WORKER, **how):
    return Job(muster, scratch, *options, script=script, PYTHONPATH=ROOT / "python", **how)


def built(scratch):
    return [int(line) for line in (scratch / "built").read_text().split()]


@pytest.mark.parametrize("parent", ["on", "off"])
def test_workers_that_start_from_the_line_have_done_what_is_above_it(muster, scratch, parent):
    job = start(muster, scratch, "--standby-parent", parent)
    first = job.attempt(0)
    for attempt in (1, 2):
        job.wait_for(lambda: job.said("standby workers ready: 2 of 2") >= attempt and len(built(scratch)) == 2 + 2 * attempt)
        kill(job.story(attempt - 1)[0]["pid"])
        job.attempt(attempt)
    job.wait_for(lambda: job.said("started from standby: 2 of 2 workers") == 2)
    job.wait_for(lambda: job.said("2 at the line of their program") >= 3)
    end = job.end(2)
    assert end.status == 0, end
    assert [line["came"] for line in first] == [False, False]
    for attempt in (1, 2):
        assert all(line["came"] and line["pid"] in built(scratch) for line in job.story(attempt))
    lines = end.out.splitlines()
    assert lines.count("building") == 6 and [lines.count(f"attempt {attempt} rank 0") for attempt in range(3)] == [1, 1, 1]
    assert len(built(scratch)) == len(set(built(scratch))) == 8  # no process has built twice


@pytest.mark.parametrize("parent", ["on", "off"])
def test_a_line_that_workers_come_to_late_is_learned(muster, scratch, parent):
    """Their standby workers have imported what they had imported until then."""
    late = "import os, time\nwhile os.environ['LOCAL_RANK'] == '1' and not os.path.exists('on'): time.sleep(0.01)\n"
    job = start(muster, scratch, "--standby-parent", parent, script=late + WORKER)
    job.wait_for(lambda: job.said("standby workers ready: 2 of 2") == 1)
    (scratch / "on").touch()
    job.attempt(0)
    job.wait_for(lambda: job.said("2 at the line of their program") == 1)
    kill(job.story(0)[0]["pid"])
    assert all(line["came"] for line in job.attempt(1))
    assert job.end(1).status == 0


def test_a_read_above_the_line_is_told_and_costs_only_the_line(muster, scratch):
    job = start(muster, scratch, script="import os\nrank = int(os.environ['RANK'])\n" + WORKER)
    job.attempt(0)
    job.wait_for(lambda: job.said("standby workers ready: 2 of 2") == 1)
    assert job.said("cannot come to the line of its program: RANK is read in ") == 1
    assert job.said("worker.py, line 2, above muster.standby.wait()") == 1
    kill(job.story(0)[0]["pid"])
    job.attempt(1)
    job.wait_for(lambda: job.said("started from standby: 2 of 2 workers") == 1)
    assert not any(line["came"] for line in job.story(1))
    assert job.end(1).status == 0


def test_a_failure_above_the_line_is_told_once_and_the_job_goes_on(muster, scratch):
    program = "import os\nif 'muster-standby' in os.readlink('/proc/self/fd/1'):\n    1 / 0\n"
    job = start(muster, scratch, script=program + WORKER)
    job.attempt(0)
    job.wait_for(lambda: job.said("has failed above the line of its program: ZeroDivisionError: division by zero") == 1)
    job.wait_for(lambda: not job.spares())
    kill(job.story(0)[0]["pid"])
    assert not any(line["came"] for line in job.attempt(1))
    end = job.end(1)
    assert end.status == 0, end
    assert job.said("ZeroDivisionError: division by zero") == 1


@pytest.mark.parametrize("parent", ["on", "off"])
def test_a_program_that_is_edited_is_learned_anew(muster, scratch, parent):
    job = start(muster, scratch, "--standby-parent", parent, workers=1)
    job.attempt(0)
    job.wait_for(lambda: job.said("at the line of its program") == 1)
    (scratch / "worker.py").write_text("value = 1\n" + WORKER)
    kill(job.story(0)[0]["pid"])
    assert not job.attempt(1)[0]["came"]
    assert job.said("worker.py has changed since it was imported") == 1
    job.wait_for(lambda: job.said("at the line of its program") == 2)
    kill(job.story(1)[0]["pid"])
    assert job.attempt(2)[0]["came"]
    assert job.end(2).status == 0

# SPDX-License-Identifier: BSD-3-Clause
"""`--progress`: what workers say of their steps, and what becomes of it in the chronicle and the status."""

import json
import os
import sys
import textwrap

import pytest

from support.binary import ROOT
from support.json_schema import check
from support.nodes import wait_until

PYTHON = ROOT / "python"

# Each attempt goes on where the checkpoint of the one before was.
HEAD = f"""
import ctypes, mmap, os, signal, sys, time
sys.path.insert(0, {str(PYTHON)!r})
import muster.progress
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])

def page():
    memory = mmap.mmap(int(os.environ["MUSTER_PROGRESS"]), 4096)
    return memoryview(memory)[2048 : 2048 + 8 * 14].cast("Q")
"""


@pytest.fixture
def play(muster, scratch):
    def play(body, *options, status=0):
        """The entries of a job whose two workers run this program."""
        program = scratch / "program.py"
        program.write_text(HEAD + textwrap.dedent(body))
        job = ["run", "--standalone", "--nproc-per-node", 2, "--max-restarts", 1, "--chronicle", scratch / "events", *options]
        ran = muster.run([*map(str, job), program], env={"PYTHON_EXEC": sys.executable, "MUSTER_RUNTIME_DIR": scratch / "announced"})
        assert ran.status == status, ran
        ran.entries = [check(json.loads(line), "event") for line in (scratch / "events").read_text().splitlines()]
        return ran

    return play


def of_kind(ran, kind, *names):
    found = [entry for entry in ran.entries if entry["kind"] == kind]
    return [tuple(entry.get(name) for name in names) for entry in found]


def test_steps_before_and_after_a_failure_are_told_with_their_numbers(play):
    ran = play(
        """
        for n in range(1 if attempt == 0 else 11, 31):
            time.sleep(0.01)
            muster.progress.step(n)
            if n == 10:
                muster.progress.checkpoint(n)
            if n == 20 and attempt == 0 and rank == 0:
                os.kill(os.getpid(), 9)
        """,
        "--progress", "auto",
    )
    assert of_kind(ran, "progress", "step", "source") == [(1, "program"), (20, "program"), (11, "program"), (30, "program")]
    assert of_kind(ran, "checkpoint", "step")[0] == (10,)
    kinds = [entry["kind"] for entry in ran.entries]
    assert kinds.count("training") == 2
    assert kinds.index("started") < kinds.index("training") < kinds.index("worker_failed")
    assert kinds.index("progress") < kinds.index("worker_failed")


def test_status_of_a_training_job_has_its_steps_and_its_goodput(muster, make_job, scratch):
    place = scratch / "announced"
    script = scratch / "steps.py"
    script.write_text(
        HEAD
        + textwrap.dedent(
            """
            first = 1 if attempt == 0 else 11
            for n in range(first, 21):
                muster.progress.step(n)
                time.sleep(0.01)
            if attempt == 0:
                sys.exit(7)
            open("there.%d" % rank, "w").close()
            while not os.path.exists("end"):
                time.sleep(0.02)
            """
        )
    )
    words = ["run", "--standalone", "--nproc-per-node", 2, "--max-restarts", 1, "--progress", "auto", script]
    agent = muster.start(list(map(str, words)), env={"MUSTER_RUNTIME_DIR": place, "PYTHON_EXEC": sys.executable}, cwd=scratch)
    def trains():
        told = muster.run(["status", "--json", "--nodes"], env={"MUSTER_RUNTIME_DIR": place})
        found = check(json.loads(told.out), "status") if told.out else None
        if found and found["job"]["state"] == "training" and found["recoveries"] and found["recoveries"][0]["redone_steps"] is not None:
            return found
        return None

    told = wait_until(trains, "a job that trains again")
    assert told["progress"]["source"] == "program" and 11 <= told["progress"]["step"] <= 20
    assert told["nodes"]["step"] == [told["progress"]["step"]] and told["nodes"]["state"] == ["training"]
    (recovery,) = told["recoveries"]
    assert 0 < recovery["redone_steps"] <= 10 and recovery["over"]  # by the first step that was seen
    assert list(recovery["phases"])[-1] == "training"
    account = told["account"]
    assert account["running"] == 0 and account["redone"] is not None
    parts = [account[name] for name in ("running", "training_kept", "redone", "starting", "waiting", "ending")]
    assert sum(parts) + sum(account["recovering"].values()) == pytest.approx(account["wall"], abs=1e-5)
    shown = muster.run(["status"], env={"MUSTER_RUNTIME_DIR": place})
    assert shown.status == 0 and "  step " in shown.out and "  goodput " in shown.out, shown
    assert "training again " in shown.out and ", 10 steps again, and one restart\n" in shown.out, shown
    (scratch / "end").touch()
    assert agent.finish().status == 0


@pytest.mark.parametrize("options", [("--standby", "off"), ("--progress", "off"), ("--standby", "on", "--progress", "off")])
def test_without_it_workers_have_no_page_and_calls_do_nothing(play, options):
    ran = play(
        """
        assert "MUSTER_PROGRESS" not in os.environ
        muster.progress.step(1)
        muster.progress.step("no number")
        muster.progress.checkpoint(1)
        with muster.progress.waiting():
            pass
        """,
        *options,
    )
    assert not of_kind(ran, "training") and not of_kind(ran, "progress") and not of_kind(ran, "checkpoint")


def test_an_agent_that_a_worker_starts_hands_its_page_on_to_nobody(play):
    ran = play(
        """
        import subprocess
        inner = [os.environ["MUSTER_UNDER_TEST"], "run", "--standalone", "--no-python", "sh", "-c", "test -z \\"$MUSTER_PROGRESS\\""]
        sys.exit(subprocess.call(inner) if rank == 0 else 0)
        """.replace('os.environ["MUSTER_UNDER_TEST"]', repr(os.environ.get("MUSTER_BINARY", str(ROOT / "build/src/main/muster")))),
        "--progress", "auto",
    )
    assert not of_kind(ran, "worker_failed")


def test_children_of_a_worker_say_nothing(play):
    ran = play(
        f"""
        import subprocess
        muster.progress.step(1)
        if os.fork() == 0:
            muster.progress.step(99)
            os._exit(0)
        os.wait()
        child = "import sys; sys.path.insert(0, {str(PYTHON)!r}); import muster.progress; muster.progress.step(98)"
        subprocess.run([sys.executable, "-c", child], check=True, close_fds=False)
        assert page()[3] == 1 and page()[4] == 1
        """,
        "--progress", "auto",
    )
    assert of_kind(ran, "progress", "step") == [(1,)]


@pytest.mark.parametrize("number", ["-1", "2**64", "1.5", "'7'", "None"])
def test_a_number_that_is_none_is_refused_with_what_is_expected(play, number):
    play(
        f"""
        for call in muster.progress.step, muster.progress.checkpoint:
            try:
                call({number})
            except ValueError as error:
                assert "give a whole number from 0 on" in str(error) and repr({number}) in str(error)
            else:
                sys.exit(3)
        """,
        "--progress", "auto",
    )


@pytest.mark.parametrize(
    "deed",
    [
        "memory = page(); memory[:] = memoryview(b'\\xff' * 8 * 14).cast('Q')",
        "memory = page(); memory[3] = 2**53; memory[4] = 2**64 - 1; memory[8] = 77",
        "muster.progress.step(2**63)",
        "memory = page(); memory[5] = 2**64 - 1; memory[7] = 1; memory[3] = 1; memory[8] = 1",
        "muster.progress.step(50); muster.progress.step(3); muster.progress.step(0)",
        "os.closerange(3, 64)",
        "muster.progress.step(5); os.close(int(os.environ['MUSTER_PROGRESS']))",
        "os.ftruncate(int(os.environ['MUSTER_PROGRESS']), 1 << 20)",
    ],
)
def test_a_worker_may_do_anything_with_its_page(play, deed):
    ran = play(
        f"""
        try:
            {deed}
        except (OSError, ValueError):
            pass
        time.sleep(0.2)
        """,
        "--progress", "auto",
    )
    assert ran.entries[-1]["kind"] == "ended" and ran.entries[-1]["result"] == "succeeded"
    for step, rate in of_kind(ran, "progress", "step", "rate"):
        assert 0 <= step <= 2**53 and (rate is None or rate >= 0)


def test_the_page_cannot_be_made_shorter(play):
    play(
        """
        try:
            os.ftruncate(int(os.environ["MUSTER_PROGRESS"]), 10)
        except PermissionError:
            sys.exit(0)
        sys.exit(3)
        """,
        "--progress", "auto",
    )




STUB = {
    "torch/__init__.py": "from torch import optim\nimport colorsys\n",
    "torch/optim/__init__.py": "from torch.optim import optimizer\n",
    "torch/optim/optimizer.py": """
class Handle:
    def __init__(self, hook):
        self.hook = hook
        hooks.append(hook)
    def remove(self):
        hooks.remove(self.hook)
hooks = []
def register_optimizer_step_post_hook(hook):
    return Handle(hook)
class SGD:
    def step(self):
        for hook in list(hooks):
            hook(self, (), {})
""",
}


def test_without_standby_workers_a_hook_of_its_own_counts_the_steps_and_leaves_no_trace(play, scratch):
    for name, text in STUB.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    ran = play(
        """
        import torch, json
        assert "MUSTER_STANDBY" not in os.environ and "PYTHONPATH" not in os.environ, os.environ
        assert not [name for name in sys.modules if name.startswith("muster_standby")]
        assert not [path for path in sys.path if "standby" in path], sys.path
        assert not hasattr(sys.modules["_frozen_importlib"]._find_spec, "found")  # it is done, and gone
        optimizer = torch.optim.optimizer.SGD()
        for n in range(5):
            optimizer.step()
            time.sleep(0.02)
        """,
        "--standby", "off", "--progress", "auto",
    )  # fmt: skip
    assert of_kind(ran, "training", "source") == [("optimizer",)]
    assert of_kind(ran, "progress", "step", "source")[-1] == (5, "optimizer")


def test_a_program_that_tells_its_steps_ends_the_counting_of_that_hook(play, scratch):
    for name, text in STUB.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    ran = play(
        """
        import torch
        optimizer = torch.optim.optimizer.SGD()
        for n in range(100, 105):
            optimizer.step()
            muster.progress.step(n)
        assert not torch.optim.optimizer.hooks
        """,
        "--standby", "off", "--progress", "auto",
    )  # fmt: skip
    assert of_kind(ran, "progress", "step", "source")[-1] == (104, "program")

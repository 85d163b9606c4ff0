# SPDX-License-Identifier: BSD-3-Clause
"""muster.launcher: functions and programs as workers, from inside a program."""

import functools
import os
import pathlib
import signal
import sys

import pytest

from support.own_library import environment, import_module

launcher = import_module("muster.launcher")

pytestmark = pytest.mark.plain_build


def config_of(workers=2, **members):
    return launcher.LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=workers, **{"max_restarts": 0, **members})


PROGRAM = '''\
import os, pathlib, signal, sys
from muster import launcher

def add(number, text):
    rank = int(os.environ["RANK"])
    return {"sum": number + rank, "text": text, "role": os.environ["ROLE_NAME"], "is_main": __name__ == "__main__"}

def fail(folder):
    rank = int(os.environ["RANK"])
    if rank == 1:
        raise ValueError("the loss is no number")
    pathlib.Path(folder, "rank0").touch()
    signal.pause()

def fail_once():
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if attempt == 0 and os.environ["RANK"] == "0":
        sys.exit(3)
    if attempt == 0:
        signal.pause()
    return attempt

def give_no_value():
    sys.exit(0)

def killed():
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    what, folder = sys.argv[1:]
    config = launcher.LaunchConfig(1, 1, 2, role="trainer", max_restarts=1 if what == "fail_once" else 0)
    arguments = {"add": (40, "x"), "fail": (folder,)}.get(what, ())
    try:
        print(launcher.elastic_launch(config, globals()[what])(*arguments))
    except launcher.ChildFailedError as failed:
        rank, first = failed.get_first_failure()
        print(failed.name, rank, first.local_rank, first.exitcode, first.signal_name(), "ValueError: the loss is no number" in first.message)
        print(str(failed).splitlines()[0], file=sys.stderr)
'''


@pytest.fixture
def launch(muster, scratch):
    """A function of a program that launches itself, and what the program has said."""
    script = scratch / "program.py"
    script.write_text(PROGRAM)

    def launch(what):
        return muster.run([script, what, scratch], program=sys.executable, env={**environment(), "TMPDIR": scratch})

    yield launch
    assert not list(scratch.glob("muster-launch-*"))


def test_functions_return_values_by_rank(launch):
    end = launch("add")
    values = {"text": "x", "role": "trainer", "is_main": False}
    assert end.status == 0, end
    assert eval(end.out) == {0: {"sum": 40, **values}, 1: {"sum": 41, **values}}, end


def test_an_exception_of_a_function_is_the_root_cause(launch):
    end = launch("fail")
    assert end.out == "fail 1 1 1 <N/A> True\n", end
    assert "fail has failed: rank 1 (local rank 1, process " in end.err


def test_copies_of_this_process_run_any_function(scratch):
    base, restarts = 40, []

    def work(number):
        if int(os.environ["TORCHELASTIC_RESTART_COUNT"]) == 0 and os.environ["RANK"] == "1":
            restarts.append(1)
            raise ValueError("the first time")
        return base + number + int(os.environ["RANK"]), len(restarts), int(os.environ["WORLD_SIZE"])

    values = launcher.elastic_launch(config_of(start_method="fork", max_restarts=1), work)(1)
    assert values == {0: (41, 0, 2), 1: (42, 0, 2)}
    assert "RANK" not in os.environ


def test_a_copy_of_this_process_that_fails_is_the_root_cause():
    def work():
        if os.environ["RANK"] == "1":
            raise ValueError("the loss is no number")
        signal.pause()

    with pytest.raises(launcher.ChildFailedError) as raised:
        launcher.elastic_launch(config_of(start_method="fork"), work)()
    rank, first = raised.value.get_first_failure()
    assert (rank, first.exitcode) == (1, 1)
    assert "ValueError: the loss is no number" in first.message


def test_functions_are_called_again_after_a_failure(launch):
    end = launch("fail_once")
    assert end.status == 0 and eval(end.out) == {0: 1, 1: 1}, end


def test_a_function_that_exits_well_returns_none(launch):
    assert launch("give_no_value").out == "{0: None, 1: None}\n"


def test_a_signal_is_a_failure(launch):
    assert launch("killed").out.split()[3:] == ["-9", "SIGKILL", "False"]


def test_a_program_runs_with_its_arguments(scratch):
    values = launcher.elastic_launch(config_of(), "sh")("-c", 'echo "$1 $RANK" > "$0/$RANK"', scratch, "here")
    assert values == {0: None, 1: None}
    assert [pathlib.Path(scratch, str(rank)).read_text() for rank in range(2)] == ["here 0\n", "here 1\n"]


def test_logs_and_other_members_are_those_of_the_command(scratch):
    logs = launcher.DefaultLogsSpecs(str(scratch / "logs"), {0: 1}, 0)
    config = config_of(logs_specs=logs, run_id="mine", virtual_local_rank=True, shutdown_timeout=3)
    launcher.launch_agent(config, "sh", ["-c", 'echo "$TORCHELASTIC_RUN_ID $LOCAL_RANK"'])
    (out,) = (scratch / "logs").glob("**/0/stdout.log")
    assert out.read_text() == "mine 0\n"


@pytest.mark.parametrize("config, entrypoint, error, text", [
    (config_of(0), "true", ValueError, "local_world_size is 0"),
    (config_of(rdzv_endpoint="host:x", rdzv_backend="c10d"), "true", ValueError, "host:x"),
    (config_of(shutdown_timeout="soon"), "true", ValueError, "soon"),
    (config_of(), 3, TypeError, "a function or the name of a program"),
    (config_of(), lambda: None, ValueError, "has a name in a module"),
    (config_of(), functools.partial(print, file=sys.stdout), ValueError, "can be pickled"),
])
def test_what_cannot_be_launched(config, entrypoint, error, text):
    with pytest.raises(error) as raised:
        launcher.elastic_launch(config, entrypoint)()
    assert text in str(raised.value), raised.value


def test_an_exception_of_the_program_ends_the_job(scratch):
    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            launcher.elastic_launch(config_of(1), "sh")("-c", f'kill -USR1 {os.getpid()}; exec sleep 600')
    finally:
        signal.signal(signal.SIGUSR1, before)

# SPDX-License-Identifier: BSD-3-Clause
"""muster.run in the place of torch.distributed.run, for programs that start jobs in process and fill a namespace."""

import json
import re
import sys

import pytest

from support.ports import free_port
from support.own_library import LIBRARY
from support.python_package import install_package

CALL = """\
import argparse, json, sys
import muster.run
try:
    muster.run.run(argparse.Namespace(**json.loads(sys.argv[1])))
    print("returned")
except muster.run.LaunchFailed as failed:
    print("failed with", failed.status, *["and a ValueError"] * isinstance(failed, ValueError))
except ValueError as wrong:
    print(wrong)
"""

# What PyTorch's parser gives for a command line that says nothing but the script.
DEFAULTS = {
    "nnodes": "1:1", "nproc_per_node": "1", "rdzv_backend": "static", "rdzv_endpoint": "", "rdzv_id": "none",
    "rdzv_conf": "", "standalone": False, "max_restarts": 0, "monitor_interval": 0.1, "start_method": "spawn",
    "event_log_handler": "null", "role": "default", "module": False, "no_python": False, "run_path": False,
    "log_dir": None, "redirects": "0", "tee": "0", "log_line_prefix_template": "", "local_ranks_filter": "",
    "duplicate_stdout_filters": [], "duplicate_stderr_filters": [], "node_rank": 0, "master_addr": "127.0.0.1",
    "master_port": None, "local_addr": None, "logs_specs": None, "numa_binding": None,
    "signals_to_handle": "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "shutdown_timeout": None, "virtual_local_rank": False,
    "print_completion": None,
}


@pytest.fixture
def call(muster, binary, scratch):
    """Calls muster.run.run with a namespace of these fields, in a process of its own."""
    site = install_package(scratch, binary)

    def call(environment=None, **fields):
        return muster.run(["-c", CALL, json.dumps(fields)], program=sys.executable,
                          env={"PYTHONPATH": site, **(environment or {})})

    return call


def shell(script, **fields):
    return {"no_python": True, "training_script": "/bin/sh", "training_script_args": ["-c", script], **fields}


def test_a_namespace_of_defaults_runs_the_script_under_this_interpreter(call, scratch):
    script = scratch / "script.py"
    script.write_text("import sys; print(sys.executable, sys.argv[1:])\n")
    result = call(**DEFAULTS, training_script=str(script), training_script_args=["--lr", "-1", "--", "a b", ""])
    assert result.out.splitlines() == [f"{sys.executable} ['--lr', '-1', '--', 'a b', '']", "returned"], result


def test_what_the_namespace_says_is_what_runs(call):
    fields = {**DEFAULTS, **shell('echo "$WORLD_SIZE $TORCHELASTIC_MAX_RESTARTS $TORCHELASTIC_RUN_ID"')}
    result = call(**{**fields, "nproc_per_node": 2, "max_restarts": 3, "rdzv_id": "seven", "rdzv_backend": "c10d",
                     "rdzv_endpoint": "localhost:0"})
    assert result.out.splitlines() == ["2 3 seven"] * 2 + ["returned"], result


def test_a_namespace_may_lack_what_has_a_default(call):
    result = call(**shell("echo rank $RANK"))
    assert result.out.splitlines() == ["rank 0", "returned"], result


def test_a_job_that_fails_raises_its_status(call):
    result = call(**DEFAULTS | shell("exit 3"))
    assert result.out == "failed with 1\n", result
    assert "exitcode  : 3" in result.err


def test_a_namespace_without_a_script_is_refused(call):
    assert call(nproc_per_node="2").out == "the namespace has no training_script\n"


def test_a_value_that_is_refused_is_named_and_a_value_error(call):
    result = call(**DEFAULTS | shell("true", nproc_per_node="2x"))
    assert result.out == "failed with 2 and a ValueError\n", result
    assert "'2x'" in result.err


def test_variables_do_not_say_what_the_namespace_leaves_unset(call):
    result = call({"PET_RUN_PATH": "1", "PET_LOCAL_ADDR": "192.0.2.1", "PET_EXIT_CODE": "worker"}, **DEFAULTS | shell("exit 3"))
    assert result.out == "failed with 3\n", result  # what only Muster knows is still said by its variable


HANDLED = """
import json, logging, sys, threading
import muster.run
got = []
class Handler(logging.Handler):
    def emit(self, record):
        got.append(json.loads(record.getMessage()))
def function(line):
    got.append(json.loads(line))
    raise ValueError("said by the handler")
muster.run.register_event_handler("mine", Handler())
muster.run.register_event_handler("fails", function)
muster.run.main([*sys.argv[1:], "--max-restarts", "2", "--no-python", "sh", "-c", 'test "$TORCHELASTIC_RESTART_COUNT" = 1'])
names = [event["name"].split(".")[-1] for event in got]
print(names.count("START"), names[-1])
"""


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["--event-log-handler", "mine"], {}),
        (["--event_log_handler=mine"], {}),
        (["--event-log-handler=fails"], {}),
        ([], {"PET_EVENT_LOG_HANDLER": "mine"}),
    ],
)
def test_a_handler_that_the_program_registers_gets_the_events(muster, scratch, binary, words, variables):
    result = muster.run(["-c", HANDLED, *words], program=sys.executable,
                        env={"PYTHONPATH": install_package(scratch, binary), **variables})
    assert result.out == "2 SUCCEEDED\n", result
    assert ("said by the handler" in result.err) == ("fails" in "".join(words)), result


def test_options_of_the_script_are_not_the_launchers(muster, scratch, binary):
    script = HANDLED.replace('"--no-python"', '"--event-log-handler", "mine", "--no-python"').replace("= 1", "= 1 && echo $*")
    words = ["sh", "--event-log-handler", "fails"]
    script = script.replace("""echo $*'])""", f"""echo $*', *{words!r}])""")
    result = muster.run(["-c", script], program=sys.executable, env={"PYTHONPATH": install_package(scratch, binary)})
    assert result.out == "--event-log-handler fails\n2 SUCCEEDED\n", result


LOGS_SPECS = """
import json, os
from muster.launcher import LogsDest, LogsSpecs
class Flat(LogsSpecs):
    def reify(self, envs):
        with open(os.path.join(self.log_dir, "made.json"), "w") as file:
            json.dump([self.redirects, self.tee, sorted(self.local_ranks_filter or ())], file)
        return LogsDest(stdouts={rank: f"{self.log_dir}/{env['TORCHELASTIC_RUN_ID']}.{env['RANK']}.txt" for rank, env in envs.items()})
def refused(**members):
    raise ValueError("the disk is full")
"""
SPECIFIED = """
import sys, muster.run
muster.run.register_event_handler("mine", lambda line: print("event", flush=True) if '"state": "START"' in line else None)
try:
    muster.run.main(sys.argv[1:])
except muster.run.UsageMistake as mistake:
    print("mistake", mistake.status)
except muster.run.LaunchFailed as failed:
    print("failed with", failed.status)
"""


@pytest.fixture
def specified(muster, scratch, binary):
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built (-Dlibrary=false)")
    modules, logs = scratch / "modules", scratch / "logs"
    (modules / "fake-1.0.dist-info").mkdir(parents=True)
    (modules / "fake.py").write_text(LOGS_SPECS)
    (modules / "fake-1.0.dist-info/entry_points.txt").write_text(
        "[torchrun.logs_specs]\nflat = fake:Flat\nbroken = fake:Missing\nrefused = fake:refused\n")
    logs.mkdir()
    package = install_package(scratch, binary)

    def run(*words, **variables):
        return muster.run(["-c", SPECIFIED, f"--log-dir={logs}", *words], program=sys.executable,
                          env={"PYTHONPATH": f"{package}:{modules}", "MUSTER_LIBRARY": LIBRARY, **variables})

    run.logs = logs
    return run


def test_a_class_of_a_package_says_where_workers_write(specified):
    end = specified("--logs-specs", "flat", "-r", "1", "--local-ranks-filter=0", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0",
                    "--rdzv-id=job", "--no-python", "--event-log-handler", "mine", "sh", "-c", "echo I am $RANK", PET_NPROC_PER_NODE="2")
    assert end.out == "event\nevent\n", end
    assert [(specified.logs / f"job.{rank}.txt").read_text() for rank in range(2)] == ["I am 0\n", "I am 1\n"]
    assert (specified.logs / "made.json").read_text() == "[1, 0, [0]]"


@pytest.mark.parametrize("words, said", [
    (["--logs-specs=flat", "--no-python", "sh", "-c", "exit 3"], "failed with 1"),
    (["--logs-specs=other", "true"], "mistake 2"),
    (["--logs-specs=broken", "true"], "mistake 2"),
    (["--logs-specs=refused", "true"], "mistake 2"),
    (["--logs-specs=flat", "-r", "x", "true"], "mistake 2"),
    (["--logs-specs=flat", "--nope", "true"], "mistake 2"),
    (["--logs-specs=flat"], "mistake 2"),
    (["--logs-specs=default", "--no-python", "sh", "-c", "exit 3"], "failed with 1"),
])  # fmt: skip
def test_what_comes_of_such_a_job_is_raised(specified, words, said):
    end = specified(*words)
    assert end.out == f"{said}\n", end
    if "other" in words[0]:
        assert "no package has an entry point of this name" in end.err and "broken, flat, refused" in end.err, end


@pytest.mark.parametrize("name", ["console", "null", "", "file:x"])
def test_a_handler_cannot_take_the_name_of_another(muster, scratch, binary, name):
    script = "import sys, muster.run; muster.run.register_event_handler(sys.argv[1], print)"
    result = muster.run(["-c", script, name], program=sys.executable, env={"PYTHONPATH": install_package(scratch, binary)})
    assert result.status == 1 and f"ValueError: {name!r} cannot be the name" in result.err, result


def test_every_option_of_the_namespace_is_one_of_this_program(muster):
    shown = set(re.findall(r"--[a-z-]+", muster.run(["run", "--help"]).out))
    fields = set(DEFAULTS) - {"print_completion"}
    assert {"--" + name.replace("_", "-") for name in fields} - shown == set()


def package_beside_torch(scratch, binary):
    """The package, and a torch.distributed.run that runs nothing."""
    site = install_package(scratch, binary)
    (site / "torch/distributed").mkdir(parents=True)
    for module in ("torch/__init__.py", "torch/distributed/__init__.py"):
        (site / module).touch()
    (site / "torch/distributed/run.py").write_text("def main(args): print('not replaced')\nrun = main\n")
    return site


def test_torch_is_replaced_for_the_module_that_is_named(muster, binary, scratch):
    site = package_beside_torch(scratch, binary)
    (site / "launcher.py").write_text(
        "import sys, torch.distributed.run as torchrun\n"
        "print(__name__, sys.argv[1:])\n"
        "torchrun.main(['--no-python', '/bin/sh', '-c', sys.argv[1]])\n")
    for script, status in (("echo worker", 0), ("exit 3", 1)):
        result = muster.run(["-m", "muster.replace_torchrun", "launcher", script], program=sys.executable,
                            env={"PYTHONPATH": site})
        assert result.status == status, result
        assert result.out.splitlines() == [f"__main__ [{script!r}]", *(["worker"] if status == 0 else [])], result


def test_a_launcher_that_calls_as_fabric_does_starts_its_job_here(muster, binary, scratch):
    """Lightning's `fabric run` imports the module only when it starts the job, and always gives these five options."""
    site = package_beside_torch(scratch, binary)
    (site / "launcher.py").write_text(f"""\
import os, sys
def launch(script, words):
    import torch.distributed.run as launcher
    os.environ.setdefault("OMP_NUM_THREADS", "3")
    options = dict(nproc_per_node=2, nnodes=1, node_rank=0, master_addr="127.0.0.1", master_port={free_port()})
    launcher.main([f"--{{name}}={{value}}" for name, value in options.items()] + [script] + words)
if __name__ == "__main__":
    launch(sys.argv[1], sys.argv[2:])
""")
    script = scratch / "script.py"
    script.write_text("import os, sys\nvalue = os.environ\n"
                      "print(value['RANK'], value['WORLD_SIZE'], value['OMP_NUM_THREADS'], sys.argv[1:])\n")
    result = muster.run(["-m", "muster.replace_torchrun", "launcher", script, "--lr", "0.1"], program=sys.executable,
                        env={"PYTHONPATH": site})
    assert sorted(result.out.splitlines()) == [f"{rank} 2 3 ['--lr', '0.1']" for rank in range(2)], result


def test_the_module_that_is_replaced_may_be_the_one_that_is_named(muster, binary, scratch):
    """runpy would execute its file anew, with the functions that it has itself."""
    site = package_beside_torch(scratch, binary)
    (site / "torch/distributed/run.py").write_text("print('not replaced')\n")
    for script, status in (("echo worker", 0), ("exit 3", 1)):
        words = ["-m", "muster.replace_torchrun", "torch.distributed.run", "--no-python", "/bin/sh", "-c", script]
        result = muster.run(words, program=sys.executable, env={"PYTHONPATH": site})
        assert (result.status, result.out) == (status, "worker\n" if status == 0 else ""), result
        assert "replace_torchrun:" not in result.err, result


def test_what_is_not_launched_by_muster_is_said(muster, binary, scratch):
    site = package_beside_torch(scratch, binary)
    (site / "torch/distributed/launcher").mkdir()
    (site / "torch/distributed/launcher/__init__.py").touch()
    (site / "torch/distributed/launcher/api.py").write_text("def launch_agent(*words): print('by PyTorch', *words)\n")
    (site / "torch/distributed/run.py").write_text("import torch.distributed.launcher.api\ndef main(args): pass\nrun = main\n")
    (site / "below.py").write_text("from torch.distributed.launcher import api\napi.launch_agent('job')\n")
    (site / "nothing.py").write_text("import sys\nprint('other things')\nsys.exit(int(sys.argv[1]))\n")
    for words, out, said in ((["below"], "by PyTorch job\n", "launched by PyTorch's agent, not by Muster"),
                             (["nothing", "0"], "other things\n", "was not launched by Muster"),
                             (["nothing", "7"], "other things\n", None)):
        result = muster.run(["-m", "muster.replace_torchrun", *words], program=sys.executable, env={"PYTHONPATH": site})
        assert (result.status, result.out) == (7 if said is None else 0, out), result
        assert result.err.count("muster.replace_torchrun: ") == (said is not None) and (said or "") in result.err, result


def test_a_module_to_run_must_be_named(muster, binary, scratch):
    result = muster.run(["-m", "muster.replace_torchrun"], program=sys.executable,
                        env={"PYTHONPATH": install_package(scratch, binary)})
    assert (result.status, result.err) == (1, "usage: python -m muster.replace_torchrun MODULE [ARGUMENT...]\n")

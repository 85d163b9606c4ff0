# SPDX-License-Identifier: BSD-3-Clause
"""The wheel: pip installs it without a network, its three ways in run jobs, and uninstalling leaves nothing."""

import base64
import csv
import hashlib
import io
import os
import pathlib
import signal
import subprocess
import sys
import zipfile

import pytest

from support.binary import clean_environment
from support.nodes import wait_until

JOB = ["--nproc-per-node", "2", "--no-python", "/bin/sh", "-c"]


def make_environment(directory):
    """A virtual environment, or a skip that says why there is none."""
    made = subprocess.run([sys.executable, "-m", "venv", directory], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip("no virtual environment can be made (Debian: apt install python3-venv)")
    return pathlib.Path(directory)


def pip(environment, *arguments):
    subprocess.run([environment / "bin/python", "-m", "pip", "--quiet", *arguments], check=True,
                   env=clean_environment(PIP_DISABLE_PIP_VERSION_CHECK="1"), capture_output=True, text=True)


def files_in(environment):
    return {path.relative_to(environment) for path in environment.rglob("*") if path.name != "__pycache__"}


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    environment = make_environment(tmp_path_factory.mktemp("wheel") / "environment")
    pip(environment, "install", "--no-index", str(wheel))
    return environment


def run_in(environment, *command):
    return subprocess.run([environment / "bin" / command[0], *command[1:]], capture_output=True, text=True, timeout=600,
                          env=clean_environment())


def test_every_file_is_listed_as_it_is(wheel):
    with zipfile.ZipFile(wheel) as archive:
        record = next(name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        rows = {path: digest for path, digest, _ in csv.reader(io.StringIO(archive.read(record).decode()))}
        assert set(rows) == set(archive.namelist())
        for path in set(rows) - {record}:
            digest = base64.urlsafe_b64encode(hashlib.sha256(archive.read(path)).digest()).rstrip(b"=").decode()
            assert rows[path] == f"sha256={digest}"


def test_the_program_and_the_package_run_jobs(installed):
    for command in (["muster"], ["python", "-m", "muster"]):
        result = run_in(installed, *command, "run", *JOB, "echo rank $RANK")
        assert sorted(result.stdout.splitlines()) == ["rank 0", "rank 1"], result.stderr


def test_its_classes_need_no_library_of_the_system(installed, tmp_path):
    """In a process in which nobody has loaded libuv and jansson from elsewhere."""
    script = tmp_path / "script.py"
    script.write_text(f"""
import ctypes
from muster import library, store
system = ctypes.CDLL
def only_own(name, *rest):
    if "/" not in name:
        raise OSError("not on this system")
    return system(name, *rest)
ctypes.CDLL = only_own
kept = store.FileStore({str(tmp_path / "file")!r}, 1)
kept.set("key", "value")
print(kept.get("key"), library.load()._name)
""")
    result = run_in(installed, "python", script)
    value, path = result.stdout.split()
    assert value == "b'value'" and pathlib.Path(path).is_relative_to(installed), result.stderr


def test_it_brings_no_torchrun_unless_asked(installed):
    assert not (installed / "bin/torchrun").exists()
    result = run_in(installed, "muster", "install-torchrun", installed / "bin")
    assert result.returncode == 0, result.stderr
    assert run_in(installed, "torchrun", *JOB, "echo $RANK").stdout.split() in (["0", "1"], ["1", "0"])
    (installed / "bin/torchrun").unlink()


def test_scripts_run_under_the_interpreter_that_runs_the_package(installed, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys; print(sys.prefix)\n")
    for module in ("muster", "muster.run"):
        words = ["run"] if module == "muster" else []
        result = run_in(installed, "python", "-m", module, *words, str(script))
        assert result.stdout.strip() == str(installed), result.stderr


IN_PROCESS = """\
import muster.run, sys
try:
    print("before")
    muster.run.main(sys.argv[1:])
    print("after")
except muster.run.LaunchFailed as failed:
    print(failed, flush=True)
"""


def start_in_process(installed, script, **popen):
    return subprocess.Popen([installed / "bin/python", "-c", IN_PROCESS, *JOB, script], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=clean_environment(), **popen)


def test_main_returns_when_the_job_has_ended(installed):
    out, err = start_in_process(installed, "echo worker").communicate(timeout=600)
    assert out.split() == ["before", "worker", "worker", "after"], err


def test_main_raises_when_the_job_has_failed(installed):
    out, err = start_in_process(installed, "exit 3").communicate(timeout=600)
    assert out.splitlines() == ["before", "muster run ended with status 1"], err
    assert "exitcode  : 3" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_the_calling_process_ends_the_job(installed, tmp_path, number):
    script = f"echo $$ > {tmp_path}/worker$RANK.new; mv {tmp_path}/worker$RANK.new {tmp_path}/worker$RANK; exec sleep 300"
    process = start_in_process(installed, script, start_new_session=True)
    files = [tmp_path / "worker0", tmp_path / "worker1"]
    wait_until(lambda: all(file.exists() for file in files), "both workers run", timeout=300)
    process.send_signal(number)
    process.communicate(timeout=600)
    wait_until(lambda: not any(os.path.exists(f"/proc/{file.read_text().strip()}") for file in files), "they are gone", timeout=300)


def test_uninstalling_leaves_nothing(wheel, tmp_path):
    environment = make_environment(tmp_path / "environment")
    before = files_in(environment)
    pip(environment, "install", "--no-index", str(wheel))
    assert run_in(environment, "python", "-m", "muster", "--version").returncode == 0
    pip(environment, "uninstall", "--yes", "muster-launch")
    assert files_in(environment) - before == set()

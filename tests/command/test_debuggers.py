# SPDX-License-Identifier: BSD-3-Clause
"""What debuggers add to the evidence: the real gdb, and a stand-in for py-spy, which Debian lacks."""

import re
import shutil
import subprocess

import pytest

from support import timers
from support.peers import give_up

HANG = "acquire('step', 0.1)\ntime.sleep(1000)\n"


@pytest.fixture
def gdb():
    """The installed gdb, if it may attach to a process here; else a skip that says why (a failure where CI=true)."""
    program, obstacle = shutil.which("gdb"), None
    if program is None:
        obstacle = "gdb is not installed; run `tools/install-dependencies tests`"
    else:
        with subprocess.Popen(["sleep", "1000"]) as sleeper:
            probe = subprocess.run([program, "-batch", "-nx", "-p", str(sleeper.pid)], capture_output=True, text=True)
            sleeper.kill()
        if "ptrace" in probe.stderr:
            obstacle = f"gdb may not attach here: {probe.stderr.strip()}"
    if obstacle:
        give_up(obstacle)
    return program


def become_an_old_python(scratch):
    """Lines of a worker that is, by its name, a Python too old to be read, and hangs."""
    shutil.copy("/bin/sleep", scratch / "python3.9")
    return f"acquire('step', 0.5)\nos.execv({str(scratch / 'python3.9')!r}, ['python3.9', '1000'])\n"


def look(muster, evidence, script=HANG, **environment):
    """The report and the console of a worker that hangs."""
    end = timers.start(
        muster, script, "--log-dir", "logs", "--evidence", evidence, "--evidence-timeout", 60, workers=1, **environment
    ).finish(100)
    assert "killed by the watchdog: timer 'step' expired" in end.err, end
    return next(muster.scratch.glob("logs/*/attempt_0/0/hang_evidence.txt")).read_text(encoding="utf-8"), end.err


@pytest.mark.timeout(120)
def test_gdb_tells_the_native_stacks_of_a_python_worker_and_of_its_child(muster, gdb):
    script = "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])\n" + HANG
    report, _ = look(muster, "full", script)
    parts = re.split(r"^gdb of process (\d+):$", report, flags=re.MULTILINE)
    assert len(parts) == 5, report
    python, child = parts[2], parts[4]
    innermost = r"#0 .*\n(?:#1 .*\n)?"  # in newer C libraries a helper without a name makes the system call
    assert re.search(rf"^Thread 1 .*\n(?:{innermost})?#[012] .*nanosleep", python, re.MULTILINE), report
    assert "Py_BytesMain" in python or "Py_RunMain" in python, report
    assert re.search(r"^#[012] .*nanosleep", child, re.MULTILINE), report
    assert report.count("[Inferior 1 (process ") == 2, "gdb is to detach"


@pytest.mark.timeout(120)
def test_gdb_is_not_asked_for_basic_evidence(muster, scratch):
    for name in ("gdb", "py-spy"):
        muster.script(name, "#!/bin/sh\n: >asked\n")
    report, _ = look(muster, "basic", PATH=f"{scratch}:/usr/bin:/bin")
    assert "gdb" not in report and "py-spy of" not in report
    assert not (scratch / "asked").exists()


def test_py_spy_is_asked_for_stacks_that_cannot_be_read(muster, scratch):
    muster.script("gdb", "#!/bin/sh\n")
    muster.script("py-spy", "#!/bin/sh\n"
                  '[ "$1 $2 $#" = "dump --pid 3" ] || { echo "py-spy: wrong arguments: $*" >&2; exit 2; }\n'
                  "printf 'Process %s: python3 train.py\\nPython v3.11.2 (/usr/bin/python3.11)\\n\\n' $3\n"
                  "printf 'Thread %s (idle): \"MainThread\"\\n    all_reduce (train.py:7)\\n' $3\n"
                  "printf '    <module> (train.py:9)\\n'\n")
    report, console = look(muster, "full", become_an_old_python(scratch), PATH=f"{scratch}:/usr/bin:/bin")
    assert "Python without a table for debuggers (before CPython 3.13)" in report
    assert "    all_reduce (train.py:7)\n" in report
    assert re.search(r"evidence: process \d+ \(local_rank 0\) is .*, at train.py:7 in all_reduce; see ", console)


def test_what_is_not_installed_is_said(muster, scratch):
    report, _ = look(muster, "full", PATH=scratch)
    assert re.search(r"^gdb of process \d+: it is not installed$", report, re.MULTILINE), report


def test_a_py_spy_that_fails_is_quoted(muster, scratch):
    muster.script("gdb", "#!/bin/sh\n")
    muster.script("py-spy", "#!/bin/sh\necho 'Permission Denied: Try running again as root' >&2\nexit 1\n")
    report, console = look(muster, "full", become_an_old_python(scratch), PATH=f"{scratch}:/usr/bin:/bin")
    assert "\nPermission Denied: Try running again as root\n" in report
    assert " at " not in re.search(r"evidence: process .*?; see ", console).group(0)

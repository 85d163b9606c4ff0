# SPDX-License-Identifier: BSD-3-Clause
"""Running the real binary."""

import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# What a launcher would pass on or read: a test decides these itself.
SCRUBBED = ("PET_", "SLURM", "TORCHELASTIC_", "TORCH_", "MASTER_", "OMP_", "LOGLEVEL", "PYTHON_EXEC", "MUSTER_")
SCRUBBED_EXACTLY = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES")

# Agents of tests do not announce themselves where this user's programs look for jobs.
NO_RUNTIME_DIRECTORY = "/nonexistent/muster"


def find_binary():
    """MUSTER_BINARY, else src/main/muster of MUSTER_BUILD, else of build/."""
    if "MUSTER_BINARY" in os.environ:
        return pathlib.Path(os.environ["MUSTER_BINARY"]).resolve()
    build = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
    path = build / "src" / "main" / "muster"
    if not path.is_file():
        raise RuntimeError(f"{path} is not built; run `make build` or set MUSTER_BINARY")
    return path


def load_tool(name):
    """tools/NAME.py as a module."""
    specification = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def clean_environment(**changes):
    """This process's environment without what a launcher reads, plus the changes (None removes)."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(SCRUBBED) and name not in SCRUBBED_EXACTLY
    }
    environment["MUSTER_RUNTIME_DIR"] = NO_RUNTIME_DIRECTORY
    for name, value in changes.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = str(value)
    return environment


class Finished:
    """How a run ended: exit status, both streams as text, seconds it took."""

    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def __repr__(self):
        return f"status {self.status} after {self.seconds:.2f} s\n-- stdout\n{self.out}\n-- stderr\n{self.err}"


CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT}


class Running:
    """A started process whose output goes to files, so that no pipe can fill."""

    def __init__(self, command, scratch, number, environment, spawn=subprocess.Popen, **popen):
        self.out_path = scratch / f"run{number}.out"
        self.err_path = scratch / f"run{number}.err"
        self.started = time.monotonic()
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            popen.setdefault("stdin", subprocess.DEVNULL)
            popen.setdefault("stdout", out)
            popen.setdefault("stderr", err)
            popen.setdefault("cwd", scratch)
            self.process = spawn([str(word) for word in command], env=environment, **popen)

    @property
    def pid(self):
        return self.process.pid

    def out(self):
        return self.out_path.read_text(encoding="utf-8", errors="replace")

    def err(self):
        return self.err_path.read_text(encoding="utf-8", errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def wait_until(self, condition, what, timeout=20):
        """Waits for a condition of the outside world; fails with both streams when it never holds."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {timeout} s for {what}\n{self.out()}\n{self.err()}")
            time.sleep(0.005)

    def finish(self, timeout=60):
        """Waits for the end and returns it; a run that does not end is killed and fails the test."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)
            time.sleep(0.2)
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"still running after {timeout} s\n{self.out()}\n{self.err()}") from None
        return Finished(status, self.out(), self.err(), time.monotonic() - self.started)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Muster:
    """Starts the binary (or another program) inside a scratch directory."""

    def __init__(self, binary, scratch):
        self.binary, self.scratch, self.started = binary, scratch, []

    def environment(self, **changes):
        """The tests' mark is in it: a process that outlives its test is found by it (support.leaks). This
        machine's own munge is kept away: a test that wants one has its own (support.munge). So are the jobs of
        other tests, and of this user: `muster store` finds only those of this test."""
        marks = {"TMPDIR": self.scratch, "SCRATCH_OF_TEST": self.scratch}
        marks["MUSTER_MUNGE_SOCKET"] = self.scratch / "no-munge"
        marks["MUSTER_RUNTIME_DIR"] = self.scratch / "announced"
        return clean_environment(**{**marks, **changes})

    def share(self):
        """Makes binary and scratch directory anybody's: other users may not reach into a home or a build directory."""
        self.binary = shutil.copy(self.binary, self.scratch / "muster")
        self.scratch.chmod(0o777)

    def start(self, arguments, env=None, program=None, on=None, **popen):
        """Starts `muster ARGUMENTS`; `env` holds changes to the environment (None removes), `on` may be a
        host of support.network, `spawn` Peer.spawn for another program of the peer's."""
        command = [program or self.binary, *arguments]
        running = Running(
            on.command(command) if on else command,
            self.scratch,
            len(self.started),
            self.environment(**(env or {})),
            **popen,
        )
        self.started.append(running)
        return running

    def run(self, arguments, env=None, timeout=60, **popen):
        """Runs `muster ARGUMENTS` to its end."""
        return self.start(arguments, env=env, **popen).finish(timeout)

    def script(self, name, text):
        """Writes an executable script into the scratch directory and returns its path."""
        path = self.scratch / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def end(self):
        """A test may not look at how each of its programs ended; it fails all the same where one crashed."""
        for running in self.started:
            running.kill()
        crashes = [(running.process.args, running.err()) for running in self.started if -running.process.returncode in CRASHES]
        assert not crashes, crashes

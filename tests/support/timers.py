# SPDX-License-Identifier: BSD-3-Clause
"""Workers that use watchdog timers without PyTorch: what FileTimerClient writes, and what a broken or
stopped client would."""

import json
import os
import select
import signal
import sys

# Put in front of a worker's own lines.
PREAMBLE = """
import json, os, signal, sys, time

RANK, ATTEMPT = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])

def write(text):
    fd = os.open(os.environ["TORCHELASTIC_TIMER_FILE"], os.O_WRONLY | os.O_NONBLOCK)
    os.write(fd, text.encode())
    os.close(fd)

def request(scope, seconds, number=signal.SIGKILL, pid=None):
    expiration = -1 if seconds is None else time.time() + seconds
    return json.dumps({"version": 1, "pid": os.getpid() if pid is None else pid, "scope_id": scope,
                       "expiration_time": expiration, "signal": int(number)}) + "\\n"

def acquire(*words, **more):
    write(request(*words, **more))

def release(scope):
    write(request(scope, None, 0))

def note(name):
    open(f"{name}.{RANK}.{ATTEMPT}", "w").close()
"""


def start(muster, script, *options, workers=2, timer_file="timers", popen=None, **environment):
    """Starts workers that run PREAMBLE and `script` under a watchdog."""
    path = muster.scratch / "worker.py"
    path.write_text(PREAMBLE + script, encoding="utf-8")
    variables = {
        "TORCHELASTIC_ENABLE_FILE_TIMER": "1",
        "TORCHELASTIC_TIMER_FILE": timer_file,
        "PYTHON_EXEC": sys.executable,
        **environment,
    }
    return muster.start(
        ["run", "--standalone", "--nproc-per-node", workers, *options, path], env=variables, **(popen or {}))


def expire_together(path, pids, scope="step"):
    """Asks, in the name of all of these processes, for timers that have expired already: in as few
    writes as a pipe allows."""
    lines = [
        json.dumps({"pid": pid, "scope_id": scope, "expiration_time": 1, "signal": int(signal.SIGKILL)}) + "\n"
        for pid in pids
    ]
    fifo = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    while lines:
        batch = ""
        while lines and len(batch) + len(lines[0]) <= select.PIPE_BUF:
            batch += lines.pop(0)
        os.write(fifo, batch.encode())
    os.close(fifo)

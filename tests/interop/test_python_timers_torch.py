# SPDX-License-Identifier: BSD-3-Clause
"""muster.timer with PyTorch's FileTimerServer, and PyTorch's FileTimerClient with muster.timer_server."""

import queue
import shutil
import signal
import subprocess
import sys

import pytest

from support.binary import ROOT
from support.own_library import environment, import_module

pytestmark = [pytest.mark.timeout(120), pytest.mark.plain_build]
timer_server = import_module("muster.timer_server")

# Three timers that are given back, then one that is not; of either kind.
CLIENT = """\
import signal, sys, time
if sys.argv[1] == "torch":
    import torch.distributed.elastic.timer as timer
else:
    import muster.timer as timer
timer.configure(timer.FileTimerClient(sys.argv[2], signal.SIGUSR1))
for _ in range(3):
    with timer.expires(after=60):
        pass
print("released", flush=True)
with timer.expires(after=0.1, scope="hangs"):
    time.sleep(600)
"""


def test_pytorchs_server_ends_what_hangs(muster, peer, scratch):
    shutil.copy(ROOT / "tests/interop/scripts/serve_timers.py", scratch)
    server = muster.start([scratch / "serve_timers.py", scratch / "timers"], program=peer.python, stdin=subprocess.PIPE)
    server.wait_until(lambda: "serving" in server.out(), "PyTorch's server", timeout=60)
    end = muster.run(["-c", CLIENT, "muster", scratch / "timers"], program=sys.executable, env=environment())
    server.process.stdin.close()
    server.finish()
    assert (end.status, end.out) == (-signal.SIGUSR1, "released\n"), end


def test_pytorchs_client_is_ended(muster, peer, scratch):
    told = queue.Queue()
    server = timer_server.FileTimerServer(scratch / "timers", "run", log_event=lambda *event: told.put(event))
    server.start()
    try:
        script = muster.script("client.py", CLIENT)  # the peer's interpreter is behind a shell
        end = muster.run([script, "torch", scratch / "timers"], program=peer.python, timeout=100)
        assert end.out == "released\n" and end.status in (-signal.SIGUSR1, 128 + signal.SIGUSR1), end
        assert told.get(timeout=60) == ("watchdog started", None)
        name, request = told.get(timeout=60)
        assert (name, request.scope_id, request.signal) == ("timer expired", "hangs", signal.SIGUSR1)
        assert told.get(timeout=60) == ("kill worker process", request)
    finally:
        server.stop()

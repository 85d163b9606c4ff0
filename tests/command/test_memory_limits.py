# SPDX-License-Identifier: BSD-3-Clause
"""An agent whose memory is limited while it runs (`prlimit --pid`): it goes on with what it has, or says that there is
none, ends its workers and then itself."""

import pathlib
import re
import resource
import signal

import pytest

from support import timers

pytestmark = pytest.mark.plain_build  # a sanitizer takes memory of its own

KIB = 1024
SENTENCE = "there is no memory for the agent, so this node ends"
# What the program says where not even that is possible.
LAST_WORDS = "cannot go on: no memory is left for the program"

# Each timer stays in the agent's memory.
FLOOD = """
note("ready")
while not os.path.exists("go"):
    time.sleep(0.01)
number = 0
while True:
    lines = ""
    while len(lines) < 3000:
        lines += request(f"{number:0800}", 1000)
        number += 1
    try:
        write(lines)
    except BlockingIOError:
        time.sleep(0.001)
"""

FAILING = """
if ATTEMPT < 3:
    note("ready")
    while not os.path.exists("go"):
        time.sleep(0.01)
    print("x" * 100000, flush=True)
    sys.exit(1)
"""


def size_of(pid, name):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE).group(1)) * KIB


def limit(running, left, kind=resource.RLIMIT_AS):
    """What the agent has now, and so many KiB more."""
    has = size_of(running.pid, "VmSize" if kind == resource.RLIMIT_AS else "VmData")
    resource.prlimit(running.pid, kind, (has + left * KIB, resource.RLIM_INFINITY))


def run(muster, scratch, script, left, kind, *options):
    running = timers.start(muster, script, *options)
    running.wait_until(lambda: len(list(scratch.glob("ready.*.0"))) == 2, "the workers")
    limit(running, left, kind)
    (scratch / "go").touch()
    return running.finish()


@pytest.mark.parametrize("kind", [resource.RLIMIT_AS, resource.RLIMIT_DATA], ids=["as", "data"])
@pytest.mark.parametrize("left", [0, 1500, 6000])
def test_an_agent_without_memory_says_so_and_ends_its_workers_and_itself(muster, scratch, left, kind):
    end = run(muster, scratch, FLOOD, left, kind)
    assert end.status == 1, end
    assert end.err.count(SENTENCE) == 1 and LAST_WORDS not in end.err, end


@pytest.mark.parametrize("left", [0, 100, 300, 1500])
def test_a_restart_in_little_memory_succeeds_or_fails(muster, scratch, left):
    end = run(muster, scratch, FAILING, left, resource.RLIMIT_AS, "--max-restarts=3", "--tee=3", "--log-dir", "logs")
    assert end.status in (0, 1), end
    assert end.status == 0 or "memory" in end.err, end


def test_memory_that_comes_back_is_enough(muster, scratch):
    running = timers.start(muster, FLOOD)
    running.wait_until(lambda: len(list(scratch.glob("ready.*.0"))) == 2, "the workers")
    limit(running, 0)
    resource.prlimit(running.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    (scratch / "go").touch()
    running.signal(signal.SIGTERM)
    end = running.finish()
    assert end.status == 1 and SENTENCE not in end.err, end

# SPDX-License-Identifier: BSD-3-Clause
"""Defects of torchrun in how its nodes keep what they share: polling, storms, clocks, pickles, addresses.
The other half of test_defects_of_several_nodes.py."""

import base64
import os
import pathlib
import pickle
import re
import struct
import subprocess
import time

import pytest

from support.binary import ROOT
from support.nodes import IMPATIENT, WORKER, Job
from support.store import COMPARE_SET, RawClient, Server
from support.store_proxy import StoreProxy

# Addresses, and by them the nodes' names; ranks follow their order.
ONE, TWO, THREE, FOUR = "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"


@pytest.fixture
def make_proxy():
    """make_proxy(port): counts what is asked of that store."""
    proxies = []

    def make(port, **how):
        proxies.append(StoreProxy(port, **how))
        return proxies[-1]

    yield make
    for proxy in proxies:
        proxy.end()


# Polling


def times_woken(pid):
    """How often all threads of a process went to sleep by themselves."""
    texts = [status.read_text(encoding="ascii") for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.MULTILINE)[1]) for text in texts)


class Watched:
    """A job whose signs of life are ten minutes apart, and all of whose nodes but the host are overheard."""

    def __init__(self, muster, make_proxy, nnodes):
        self.job = Job(muster, nnodes, conf=["keep_alive_interval=600"])
        self.host = self.job.start_host(TWO)
        self.proxy = make_proxy(self.job.port)

    def start(self, name):
        return self.job.start(name, "--rdzv-endpoint", f"127.0.0.1:{self.proxy.port}", conf=["is_host=false"])

    def expect_idleness(self, nodes, seconds):
        self.proxy.wait_for_silence(1.5)  # who was not told of a change looks again after a second
        asked, pings, woken = self.proxy.count(), self.proxy.pings, [times_woken(node.pid) for node in nodes]
        began = time.monotonic()
        time.sleep(seconds)
        assert self.proxy.count() == asked, self.proxy.tell(self.proxy.count() - asked)
        guests = len(nodes) - 1
        seconds = time.monotonic() - began
        assert self.proxy.pings - pings <= guests * (seconds + 1)  # a sign of life each second
        for node, before in zip(nodes, woken):  # each looks at its connections twice a second
            answers = 2 * len(nodes) if node is nodes[0] else 2
            assert times_woken(node.pid) - before <= (4 + answers) * (seconds + 1), node.err()


def test_an_idle_node_asks_nothing_and_sleeps(muster, make_proxy):
    """Every torchrun node fetches the whole state once a second, a spare too, and wakes up ten times. A node of
    Muster's says once a second that it lives."""
    watched = Watched(muster, make_proxy, "3:3")
    nodes = [watched.start(name) for name in (ONE, THREE)]
    world = watched.job.wait_for_world(ONE, TWO, THREE)
    spare = watched.start(FOUR)
    spare.wait_for_log("written won")  # it is in the record
    # longer than until a node that waits says so first: a spare looks for no other job then
    watched.expect_idleness([watched.host, *nodes, spare], seconds=6)
    world.end()
    assert watched.job.succeeds()


def test_a_node_that_asks_nothing_learns_of_everything(muster, make_proxy):
    """torchrun's nodes hear of a failure or a newcomer by their polls, of a loss not at all."""
    watched = Watched(muster, make_proxy, "1:4")
    job = watched.job
    one, lost = watched.start(ONE), watched.start(THREE)
    first = job.wait_for_world(ONE, TWO, THREE)
    watched.expect_idleness([watched.host, one, lost], seconds=1)
    first.of(THREE).end(3)
    second = job.wait_for_world(ONE, TWO, THREE)
    second.of(TWO).end(3)
    job.wait_for_world(ONE, TWO, THREE)
    watched.start(FOUR)
    job.wait_for_world(ONE, TWO, THREE, FOUR)
    lost.kill()
    job.wait_for_world(ONE, TWO, FOUR).end()
    assert job.succeeds()


# Storms


def is_join(request):
    """Whether it compares the record with one that was seen."""
    return request.operation == COMPARE_SET and request.blobs[0] == b"/torch.rendezvous.job" and request.blobs[1]


def test_nodes_that_come_at_once_do_not_storm_the_store(muster, make_proxy):
    """torchrun's nodes try again without pause, with the whole state each time: of n nodes at a store some
    milliseconds away one gets through at a time, after n²/2 attempts."""
    count = 32
    proxy = make_proxy(Server(muster).port, delay=0.003)
    proxy.hold(COMPARE_SET, count)  # they begin in step
    job = Job(muster, count, port=proxy.port, conf=["is_host=false"])
    names = [f"127.0.0.{number + 1}" for number in range(count)]
    job.nodes(*names)
    world = job.wait_for_world(*names)
    attempts = sum(bool(is_join(request)) for request in proxy.requests)
    assert count <= attempts <= 10 * count, "n²/2 are 16 for each"
    world.end()
    assert job.succeeds()


# Clocks

# The wall clock of who loads it is off by as many seconds as a file says at that time.
SHIFTED_CLOCK = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;

__attribute__((constructor)) static void find_shift(void) {
    int fd = open(getenv("CLOCK_SHIFT"), O_RDONLY);
    shift = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (shift == MAP_FAILED) {
        abort();
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (shift != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        now->tv_sec += *shift;
    }
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

int timespec_get(struct timespec *now, int base) {
    clock_gettime(CLOCK_REALTIME, now);
    return base;
}
"""

DAY = 86400


class Clocks:
    """A wall clock for each node."""

    def __init__(self, scratch):
        self.scratch = scratch
        source, self.library = scratch / "clock.c", scratch / "clock.so"
        source.write_text(SHIFTED_CLOCK, encoding="ascii")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.library, source], check=True, timeout=60)

    def shift(self, name, seconds):
        """Sets it; running programs see that at once."""
        path = self.scratch / f"shift.{name}"
        with open(path, "r+b" if path.exists() else "wb") as file:
            file.write(struct.pack("<q", seconds))

    def environment(self, name):
        sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return {
            "LD_PRELOAD": self.library,
            "CLOCK_SHIFT": self.scratch / f"shift.{name}",
            "ASAN_OPTIONS": sanitizer.lstrip(":"),
        }


def days_in(log):
    """The dates a node has put in front of its lines, as MMDD."""
    return set(re.findall(r"^[VIWE](\d{4}) ", log, re.MULTILINE))


@pytest.mark.parametrize("store", ["presence", "heartbeats"])
def test_wall_clocks_decide_nothing(muster, scratch, store):
    """torchrun's nodes compare each other's times with their own clocks: 15 s of difference, and they expel
    the others or themselves; the last call ends at once or never."""
    how = {} if store == "presence" else {"port": Server(muster).port}
    job = Job(muster, "2:4", conf=IMPATIENT, **how)
    clocks, today = Clocks(scratch), days_in(time.strftime("I%m%d "))

    def start(name, seconds):
        clocks.shift(name, seconds)
        return job.start(name, env=clocks.environment(name), conf=[f"is_host={store == 'presence' and name == TWO}"])

    nodes = [start(TWO, 0), start(ONE, -100 * DAY), start(THREE, 100 * DAY)]
    world = job.wait_for_world(ONE, TWO, THREE)  # after a last call
    worlds = len(job.worlds())
    assert [days_in(node.err()) & today == today for node in nodes] == [True, False, False]
    for name, seconds in [(ONE, 100 * DAY), (TWO, 3600), (THREE, -7200)]:
        clocks.shift(name, seconds)
    time.sleep(3.5)  # nobody may be silent for more than 2 s
    assert all(worker.is_running() for worker in world.workers), job.tell()
    start(FOUR, -3 * DAY)
    last = job.wait_for_world(ONE, TWO, THREE, FOUR)
    assert len(job.worlds()) == worlds + 1, job.tell()
    last.end()
    assert job.succeeds()


# Pickles

RECORD = b"/torch.rendezvous.job"


class Command:
    """What is unpickled by running it."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def malicious_record(scratch, protocol):
    """A record that leaves a file behind when PyTorch reads it, as spelled by that protocol."""
    return base64.b64encode(pickle.dumps(Command(f"touch {scratch}/executed"), protocol))


def end_of_refusal(node):
    end = node.finish()
    assert end.status == 1, end
    assert "the record of job 'job' in the store" in end.err and "cannot be used" in end.err, end
    assert f"{os.system.__module__}.system" in end.err, end  # by name


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_record_that_would_run_a_command_is_refused_by_name(muster, scratch, protocol):
    """torchrun runs whatever who can reach the port has put there."""
    server = Server(muster)
    record = malicious_record(scratch, protocol)
    with server.client() as client:
        client.set(RECORD, record)
        end_of_refusal(Job(muster, "1:2", port=server.port, conf=["is_host=false"]).start(ONE))
        assert client.get(RECORD) == record
    assert not (scratch / "executed").exists()


def test_a_running_job_refuses_a_record_that_would_run_a_command(muster, scratch):
    job = Job(muster, "2:2", conf=["keep_alive_interval=1"])
    host = job.start_host(ONE)
    other = job.start(TWO)
    world = job.wait_for_world(ONE, TWO)
    with RawClient(job.port) as client:
        client.set(RECORD, malicious_record(scratch, 4))
        end_of_refusal(host)
    assert other.finish().status == 1, job.tell()
    assert not any(worker.is_running() for worker in world.workers)
    assert not (scratch / "executed").exists()


# Addresses

# Enters a host whose own name leads to itself only, as on many images.
LOOPBACK_NAME = """\
hosts=$1
shift
mount --bind "$hosts" /etc/hosts || exit 125
exec "$@"
"""


class LoopbackNamedHost:
    """A host of support.network that maps its own name to 127.0.0.1; `others` it finds by their addresses."""

    def __init__(self, host, others, scratch):
        self.host = host
        self.hosts_file = scratch / f"{host.name}.hosts"
        lines = [f"127.0.0.1 localhost {host.name}"] + [f"{other.address} {other.name}" for other in others]
        self.hosts_file.write_text("\n".join(lines) + "\n", encoding="ascii")

    def command(self, words):
        return self.host.command(["sh", "-c", LOOPBACK_NAME, "sh", self.hosts_file, *words])


def test_a_name_that_leads_to_the_machine_itself_is_not_given_to_others(muster, make_network, scratch):
    """torchrun publishes `localhost` where the host's own name maps to 127.0.0.1; nobody else reaches that."""
    hosts = make_network(2).hosts
    machines = [LoopbackNamedHost(host, [other for other in hosts if other is not host], scratch) for host in hosts]
    job = Job(muster, "2:2", host="node1", env={"MUSTER": muster.binary})
    meeting = muster.script(
        "meeting.sh",
        '"$MUSTER" store set "here/$RANK" x && "$MUSTER" store wait here/0 here/1 || exit 8\n' + WORKER,
    )
    for host, machine in zip(hosts, machines):
        job.start(host.name, on=machine, script=meeting)
    world = job.wait_for_world("node1", "node2")
    assert world.store.split(":")[0] in {hosts[0].address, hosts[1].address}
    world.end()
    assert job.succeeds()


def test_compatibility_page_names_every_defect_test_of_several_nodes():
    page = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
    here = pathlib.Path(__file__)
    for path in (here, here.with_name("test_defects_of_several_nodes.py")):
        names = re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(names) > 5
        assert [name for name in names if name not in page and "compatibility_page" not in name] == []

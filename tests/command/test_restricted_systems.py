# SPDX-License-Identifier: BSD-3-Clause
"""Systems that lack something: a seccomp profile that denies a system call, no /proc, no init."""

import errno
import os
import pathlib
import signal
import sys

import pytest

from support.leaks import processes_with
from support.network import require_network
from support.ports import free_port

pytestmark = pytest.mark.threads

DENY = pathlib.Path(__file__).resolve().parent.parent / "support" / "deny_system_call.py"
PIDFD_SEND_SIGNAL = 424  # the same number on all architectures

# Its child is in another session, where a signal to the worker's group does not reach it, and does not obey.
WORKER = """#!/bin/sh
setsid sh -c 'trap "" TERM; : >ready; while :; do sleep 0.05; done' &
wait
"""
OPTIONS = ["run", "--standalone", "--shutdown-timeout", "0.3", "--no-python"]


def end_of_stopped_job(muster, scratch, command):
    running = muster.start([*command[1:], *OPTIONS, muster.script("worker", WORKER)], program=command[0])
    running.wait_until((scratch / "ready").exists, "the worker's child")
    os.kill(running.pid, signal.SIGTERM)
    return running.finish(timeout=20)


def check(end, scratch):
    assert end.status == 1, end
    assert "hang in the kernel" not in end.err, end
    assert processes_with(scratch) == []


# Neither a file nor a name server knows a name.
NAMELESS = 'mount --bind none /etc/hosts; mount --bind servers /etc/resolv.conf; exec "$@"'


@pytest.mark.parametrize("options, address", [
    (["--standalone"], "127.0.0.1"),  # the workers' resolver does not know the name either
    (["--nnodes", "1:1", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:{port}", "--rdzv-id", "job"], None),
    (["--nnodes", "1", "--master-addr", "localhost", "--master-port", "{port}"], "localhost"),
], ids=["standalone", "c10d", "static"])
def test_localhost_is_this_machine_where_nobody_knows_the_name(muster, scratch, options, address):
    require_network()
    (scratch / "none").touch()
    (scratch / "servers").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    port = free_port()
    command = ["--mount", "sh", "-ec", NAMELESS, "sh", muster.binary, "run", *[word.format(port=port) for word in options]]
    end = muster.start([*command, "--no-python", "sh", "-c", "echo at $MASTER_ADDR"], program="unshare").finish()
    assert end.status == 0 and "open to whoever reaches this machine" not in end.err, end
    assert address is None or end.out == f"at {address}\n", end


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_without_pidfd_send_signal_the_shutdown_timeout_holds(muster, scratch, error):
    command = [sys.executable, DENY, PIDFD_SEND_SIGNAL, getattr(errno, error), muster.binary]
    check(end_of_stopped_job(muster, scratch, command), scratch)


def test_without_proc_the_shutdown_timeout_holds(muster, scratch):
    require_network()
    hide = 'mount -t tmpfs none /proc && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", hide, "sh", muster.binary]
    check(end_of_stopped_job(muster, scratch, command), scratch)


# Kills the guardian, and ends when there is another one.
KILLS_GUARDIAN = """#!/bin/sh
guardian() { grep -lx muster-guardian /proc/[0-9]*/comm 2>/dev/null | cut -d/ -f3; }
first=$(guardian)
kill -KILL $first
while [ -z "$(guardian)" ] || [ "$(guardian)" = "$first" ]; do sleep 0.05; done
"""


def test_the_first_process_of_a_container_does_not_wait_for_its_new_guardian(muster):
    """It is the parent of whatever has lost its own, the guardian among them."""
    require_network()
    command = ["unshare", "--pid", "--fork", "--mount-proc", muster.binary, "run", "--standalone", "--no-python"]
    end = muster.start([*command[1:], muster.script("worker", KILLS_GUARDIAN)], program=command[0]).finish()
    assert end.status == 0, end
    assert "takes its place" in end.err and "left behind" not in end.err, end

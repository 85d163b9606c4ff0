# SPDX-License-Identifier: BSD-3-Clause
"""What a worker finds itself in: session, signals, descriptors, CPUs."""

import json
import os
import signal
import sys

import pytest

FACTS = """
import json, os, signal, sys
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
json.dump({
    "session": os.getsid(0), "group": os.getpgid(0), "pid": os.getpid(), "parent": os.getppid(),
    "blocked": int(status["SigBlk"], 16), "ignored": int(status["SigIgn"], 16),
    "descriptors": {fd: os.readlink("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd") if fd != "3"},
    "cpus": sorted(os.sched_getaffinity(0)), "limits": open("/proc/self/limits").read(),
}, open("facts." + os.environ["RANK"], "w"))
"""


def facts_of(muster, scratch, *options, workers=2, **popen):
    (scratch / "facts.py").write_text(FACTS)
    end = muster.run(
        ["run", "--standalone", "--nproc-per-node", workers, *options, "facts.py"],
        env={"PYTHON_EXEC": sys.executable}, **popen,
    )
    assert end.status == 0, end
    return [json.loads((scratch / f"facts.{rank}").read_text()) for rank in range(workers)]


def test_every_worker_leads_a_session_of_its_own(muster, scratch):
    for facts in facts_of(muster, scratch):
        assert facts["session"] == facts["group"] == facts["pid"]


def mask_of(*numbers):
    return sum(1 << (number - 1) for number in numbers)


def test_blocked_signals_of_the_caller_are_reset_and_so_is_what_it_ignores_for_itself(muster, scratch):
    def prepare():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN)

    # Python itself ignores SIGPIPE and SIGXFSZ in every process; 32 and 33 are the C library's own, and
    # ignored in everything that make starts
    expected = mask_of(signal.SIGPIPE, signal.SIGXFSZ, 32, 33)
    for facts in facts_of(muster, scratch, preexec_fn=prepare, restore_signals=False):
        assert facts["blocked"] == 0
        assert facts["ignored"] & ~expected == 0


IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR2)


def ignore():
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)


def test_what_whoever_started_the_agent_ignores_is_ignored_in_workers(muster, scratch):
    for facts in facts_of(muster, scratch, preexec_fn=ignore):
        assert facts["ignored"] & mask_of(*IGNORED) == mask_of(*IGNORED)


def test_a_signal_that_is_named_is_not_ignored_in_workers(muster, scratch):
    for facts in facts_of(muster, scratch, "--signals-to-handle", "SIGTERM,SIGHUP", preexec_fn=ignore):
        assert facts["ignored"] & mask_of(*IGNORED) == mask_of(signal.SIGINT, signal.SIGQUIT, signal.SIGUSR2)


def test_no_descriptor_of_the_agent_leaks_into_a_worker(muster, scratch):
    for options in ([], ["--tee", "3"], ["-r", "3"]):
        for facts in facts_of(muster, scratch, *options):
            assert set(facts["descriptors"]) == {"0", "1", "2"}


def test_descriptors_the_caller_passed_on_are_closed_as_torchrun_closes_them(muster, scratch):
    reader, writer = os.pipe()
    for facts in facts_of(muster, scratch, pass_fds=[reader, writer]):
        assert set(facts["descriptors"]) == {"0", "1", "2"}
    os.close(reader)
    os.close(writer)


def test_a_worker_dies_with_its_agent_even_without_the_guardian(muster, scratch):
    script = muster.script("worker", "#!/bin/sh\ngrep -q . /proc/self/status; : >ready.$RANK; exec sleep 300\n")
    running = muster.start(["run", "--standalone", "--nproc-per-node", 2, "--no-python", script])
    running.wait_until(lambda: len(list(scratch.glob("ready.*"))) == 2, "the workers")
    running.signal(signal.SIGKILL)
    running.finish()


@pytest.mark.skipif(not os.path.isdir("/sys/devices/system/cpu"), reason="there is no /sys here, where CPUs are described")
@pytest.mark.parametrize("binding", ["node", "socket", "exclusive", "core-complex"])
def test_numa_binding_spreads_workers_over_the_cpus_without_a_gpu(muster, scratch, binding):
    allowed = os.sched_getaffinity(0)
    facts = facts_of(muster, scratch, "--numa-binding", binding)
    for one in facts:
        assert one["cpus"] and set(one["cpus"]) <= allowed
    if binding == "exclusive" and len(allowed) > 1:
        assert not set(facts[0]["cpus"]) & set(facts[1]["cpus"])


def test_workers_are_not_bound_unless_asked(muster, scratch):
    for facts in facts_of(muster, scratch):
        assert set(facts["cpus"]) == os.sched_getaffinity(0)

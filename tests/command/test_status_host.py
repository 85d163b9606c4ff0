# SPDX-License-Identifier: BSD-3-Clause
"""`muster status` and `muster events` of a job whose nodes are elsewhere: the host of its store is asked."""

import json
import os
import time

import pytest

from support.json_schema import check
from support.nodes import wait_until
from support.store import PUSH, RawClient, request


@pytest.fixture
def places(scratch):
    """Each node announces itself where the others do not look, as on a machine of its own."""

    def place(name):
        path = scratch / f"announced_{name}"
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    return place


@pytest.fixture
def ask(muster, places):
    def ask(*words, at="nobody"):
        return muster.run([*words], env={"MUSTER_RUNTIME_DIR": places(at)})

    return ask


def start(job, places, name, **how):
    return job.start(name, env={"MUSTER_RUNTIME_DIR": places(name)}, **how)


def wait_for(ask, is_so, *words, at="nobody"):
    def find():
        told = ask("status", "--json", "--nodes", *words, at=at)
        found = json.loads(told.out) if told.status in (0, 3, 4) and told.out else None
        return found if found and is_so(found) else None

    return check(wait_until(find, "the status"), "status")


def is_recovered(told):
    recoveries = told["recoveries"]
    return told["seen"]["from"] == "host" and told["job"]["state"] == "running" and recoveries and recoveries[-1]["over"]


def test_any_node_and_the_endpoint_show_the_whole_job(make_job, ask, places):
    job = make_job(3)
    for name in ("node1", "node2", "node3"):
        start(job, places, name)
    culprit = job.wait_for_world("node1", "node2", "node3").of("node2")
    culprit.end(7)
    world = job.wait_for_world("node1", "node2", "node3")
    elsewhere = ["--rdzv-endpoint", job.endpoint, "--rdzv-id", "job"]
    wait_until(lambda: ask("events", "--kind", "started", *elsewhere).out.count("\n") == 6, "the starts")
    for words, at in [([], "node1"), ([], "node3"), (elsewhere, "nobody")]:
        told = wait_for(ask, lambda told: is_recovered(told) and told["seen"]["complete"], *words, at=at)
        assert told["job"]["id"] == "job" and told["job"]["restarts"]["used"] == 1
        assert sorted(told["nodes"]["name"]) == ["node1", "node2", "node3"]
        assert told["nodes"]["state"] == ["running"] * 3
        (recovery,) = told["recoveries"]
        assert (recovery["cause"], recovery["node"], recovery["rank"], recovery["exit"]) == ("worker_failed", "node2", culprit.rank, 7)
        assert sum(phase["took"] for phase in recovery["phases"].values()) == pytest.approx(recovery["took"], abs=1e-5)
        shown = ask("status", *words, at=at)
        assert shown.status == 0 and " only" not in shown.out.splitlines()[0], shown
        assert f"rank {culprit.rank} on node2: exit code 7\n" in shown.out
        entries = [check(json.loads(line), "event") for line in ask("events", "--json", *words, at=at).out.splitlines()]
        assert sorted(entry["seq"] for entry in entries) == list(range(1, len(entries) + 1))
        assert entries == sorted(entries, key=lambda entry: entry["time"])
        assert [entry["node"] for entry in entries if entry["kind"] == "worker_failed"] == ["node2"]
        assert sorted(entry["node"] for entry in entries if entry["kind"] == "started") == sorted(["node1", "node2", "node3"] * 2)
    world.end()
    assert job.succeeds()


def test_who_has_another_token_or_names_another_job_is_told_so(make_job, ask, places, scratch):
    token, other = scratch / "token", scratch / "other"
    for path, text in ((token, "0123456789abcdef0123456789abcdef"), (other, "another token, as long as that one")):
        path.write_text(text)
        os.chmod(path, 0o600)
    job = make_job(2, "--token-file", token)
    for name in ("node1", "node2"):
        start(job, places, name)
    world = job.wait_for_world("node1", "node2")
    words = ["--rdzv-endpoint", job.endpoint, "--timeout", "5"]
    wait_for(ask, lambda told: told["seen"]["complete"], *words, "--rdzv-id", "job", "--token-file", token)
    for more in ([], ["--token-file", other]):
        refused = ask("status", *words, "--rdzv-id", "job", *more)
        assert refused.status == 1 and "token" in refused.err and not refused.out, refused
    nobody = ask("status", *words, "--rdzv-id", "another", "--token-file", token)
    assert nobody.status == 1 and "no agent that keeps a chronicle of this job hosts the store" in nobody.err, nobody
    mistake = ask("status", "--rdzv-endpoint", "a:b:c")
    assert mistake.status == 2 and "a:b:c" in mistake.err, mistake
    world.end()
    assert job.succeeds()


def test_nonsense_in_the_queue_and_many_questions_change_nothing(make_job, ask, places):
    job = make_job(2)
    for name in ("node1", "node2"):
        start(job, places, name)
    world = job.wait_for_world("node1", "node2")
    words = ["--rdzv-endpoint", job.endpoint, "--rdzv-id", "job"]
    wait_for(ask, lambda told: told["seen"]["complete"], *words)
    queue = b"/torch.rendezvous.job/muster/telling/asked"
    with RawClient(job.port) as client:
        for nonsense in (b"", b"\x01", b"\x01\xff", b"ask/1 x", b"\x00" * 1000, b"x" * 1000000):
            client.send(request(PUSH, queue, nonsense))
        client.ping()
        told = wait_for(ask, lambda told: told["seen"]["complete"], *words)
        assert sorted(told["nodes"]["name"]) == ["node1", "node2"]
        client.send(request(PUSH, queue, b"ask/1 00000000000000ff status 0") * 300)  # nobody takes these answers
        client.ping()
    refused = wait_until(lambda: (told := ask("status", *words, "--timeout", "1")).status == 1 and told, "the refusal")
    assert "too many have asked" in refused.err or "has not answered" in refused.err, refused
    culprit = world.of("node2")
    culprit.end(3)
    world = job.wait_for_world("node1", "node2")
    world.end()
    assert job.succeeds()


def test_the_next_host_knows_what_the_nodes_that_are_left_tell_again(make_job, ask, places, scratch):
    register = scratch / "register"
    register.mkdir(mode=0o700)
    job = make_job("2:3", "--rdzv-backend", "dir", path=register)
    host = start(job, places, "node1")
    host.wait_for_log("this node hosts the store")
    for name in ("node2", "node3"):
        start(job, places, name)
    job.wait_for_world("node1", "node2", "node3")
    words = ["--rdzv-backend", "dir", "--rdzv-endpoint", job.endpoint, "--rdzv-id", "job"]
    before = wait_for(ask, lambda told: told["seen"]["complete"], *words)
    host.kill()
    world = job.wait_for_world("node2", "node3")

    def is_taken_over(told):
        return told["job"]["state"] == "running" and told["job"]["nodes"]["here"] == 2 and told["seen"]["complete"]

    told = wait_for(ask, is_taken_over, *words)
    assert told["job"]["began"] <= before["job"]["since"]  # the starts before were told again
    assert [recovery["cause"] for recovery in told["recoveries"]] == ["node_lost"]
    assert ask("status", at="node3").status == 0
    world.end()
    assert job.succeeds()


def test_the_next_host_goes_on_with_the_account_and_the_recoveries(make_job, ask, places, scratch):
    register = scratch / "register"
    register.mkdir(mode=0o700)
    job = make_job("2:3", "--rdzv-backend", "dir", path=register)
    host = start(job, places, "node1")
    host.wait_for_log("this node hosts the store")
    for name in ("node2", "node3"):
        start(job, places, name)
    words = ["--rdzv-backend", "dir", "--rdzv-endpoint", job.endpoint, "--rdzv-id", "job"]
    world = job.wait_for_world("node1", "node2", "node3")
    for failures in (1, 2, 3):
        world.of("node3").end(7)
        world = job.wait_for_world("node1", "node2", "node3")
        told = wait_for(ask, lambda told: is_recovered(told) and len(told["recoveries"]) == failures, *words)
        began = told["job"]["began"]
        assert told["job"]["host_changed"] is None
        if failures == 1:  # what is settled then is told to the nodes with the next rounds
            time.sleep(7)
    time.sleep(2)  # They ask for it 0.2 s after a round has begun.
    host.kill()
    world = job.wait_for_world("node2", "node3")

    def is_taken_over(told):
        return told["job"]["state"] == "running" and told["job"]["nodes"]["here"] == 2 and told["seen"]["complete"]

    def is_account_kept(told):
        return (told["job"]["host_changed"] or {}).get("account_kept")

    told = wait_for(ask, lambda told: is_taken_over(told) and is_account_kept(told), *words)
    assert told["job"]["began"] == pytest.approx(began, abs=0.5)
    assert [recovery["cause"] for recovery in told["recoveries"]] == ["worker_failed"] * 3 + ["node_lost"]
    assert [recovery["node"] for recovery in told["recoveries"]][:3] == ["node3"] * 3
    account = told["account"]
    parts = [account[name] for name in ("running", "starting", "waiting", "ending")] + list(account["recovering"].values())
    assert sum(parts) == pytest.approx(account["wall"], abs=1e-3)
    shown = ask("status", *words).out
    assert "before the host changed, " in shown and "the account and the recoveries are kept, events are not" in shown
    world.end()
    assert job.succeeds()


def test_a_node_whose_clock_differs_is_named(make_job, ask, places):
    """The clock that is told wrong is that of a made-up node: no test sets the clock of this machine."""
    job = make_job(2)
    for name in ("node1", "node2"):
        start(job, places, name)
    world = job.wait_for_world("node1", "node2")
    words = ["--rdzv-endpoint", job.endpoint, "--rdzv-id", "job"]
    told = wait_for(ask, lambda told: told["seen"]["complete"], *words)
    assert told["nodes"]["clock_offset"] == [None, None]

    def size(number):
        out = b""
        while number >= 0x80:
            out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
        return out + bytes([number])

    said = int((time.time() + 600) * 1e6)
    name = size(5) + b"node9"
    entry = bytes([16, 0]) + size(1) + size(0) + size(0) + size(0)  # spares
    with RawClient(job.port) as client:
        client.send(request(PUSH, b"/torch.rendezvous.job/muster/telling/asked", b"\x01" + size(said) + size(said) + name + size(len(entry)) + entry))
        client.ping()
    told = wait_for(ask, lambda told: "node9" in told["nodes"]["name"], *words)
    offsets = dict(zip(told["nodes"]["name"], told["nodes"]["clock_offset"]))
    assert offsets["node9"] == pytest.approx(600, abs=60) and offsets["node1"] is None and offsets["node2"] is None
    assert "  clocks differ from the host's: node9 is 9 min " in ask("status", *words).out or "node9 is 10 min " in ask("status", *words).out
    world.end()
    assert job.succeeds()

# SPDX-License-Identifier: BSD-3-Clause
"""Jobs whose register is a directory: any node may die, the one that hosts the job's store included."""

import base64
import contextlib
import json
import pickle
import signal

import pytest

from support.disks import small_file_system
from support.network import require_network
from support.nodes import start_nodes, wait_until
from support.records import records, spelled  # noqa: F401 (a fixture)
from support.store import COMPARE_SET, RawClient, request

QUICK = ["keep_alive_interval=1", "silence_timeout=1"]
# The first world has all nodes, also where they are slow to start: what follows counts worlds and entries.
PATIENT = ["last_call_timeout=20"]


@pytest.fixture
def make_register_job(make_job, scratch):
    """make_register_job("2:3"): nodes of this machine, whose register is a directory of the test's."""

    def make(nnodes, *options, register=None, **how):
        if register is None:
            register = scratch / "register"
            register.mkdir()
        return make_job(nnodes, "--rdzv-backend", "dir", *options, path=register, **how)

    return make


@pytest.fixture
def small_disk(scratch):
    """A mounted file system with room for next to nothing."""
    with small_file_system(scratch / "small", "size=256k") as path:
        yield path


@pytest.fixture(params=[[], ["delegation=true"]], ids=["alone", "delegating"])
def make_job_of_each_kind(make_register_job, request):
    """The same, whose nodes write the record themselves, or have it written by their host."""
    return lambda *arguments, conf=(), **how: make_register_job(*arguments, conf=[*conf, *request.param], **how)


# A worker in a container, whose process id says nothing outside of it: it runs until it is told that all shall end.
POD_WORKER = """\
echo "node=$NODE rank=$RANK/$WORLD_SIZE local=0/1 group=$RANK/$WORLD_SIZE role=default:$RANK/$WORLD_SIZE\
 store=$MASTER_ADDR:$MASTER_PORT restarts=$TORCHELASTIC_RESTART_COUNT pid=$$" >>worlds
until [ -e over ]; do sleep 0.02; done
"""


@pytest.fixture
def make_pods(make_job_of_each_kind, muster, scratch):
    """pods = make_pods("2:3"); pods("name", "address") starts a node whose agent has the process id 1."""
    require_network()

    def make(nnodes):
        job = make_job_of_each_kind(nnodes, conf=QUICK)
        script = muster.script("pod.sh", POD_WORKER)

        def start(name, address="127.0.0.1"):
            return job.start(name, address=address, script=script, is_pod=True)

        start.job = job
        yield start
        (scratch / "over").touch()

    with contextlib.ExitStack() as stack:
        yield lambda nnodes: stack.enter_context(contextlib.contextmanager(make)(nnodes))


def hosts_the_second_term(job, first):
    """Kills the first host, and returns the next one as soon as it has claimed its place."""
    first.kill()
    wait_until(path_of_entry(job, 3).exists, "a claim")
    pid = int(entry_of(job, 3)["host"].rsplit("_", 2)[1])
    return next(node for node in job.started if node.pid == pid)


def path_of_entry(job, number):
    return job.scratch / f"register/muster-job/entry.{number:012}"


def entry_of(job, number):
    return json.loads(path_of_entry(job, number).read_text(encoding="utf-8"))


def port_of_first_host(job):
    return int(entry_of(job, 1)["addresses"].split()[0])


def test_agents_of_one_host_name_and_process_id_are_two_nodes(make_pods, scratch):
    """Containers of one machine that have its network: each agent is process 1 there."""
    pods = make_pods("2:2")
    host = pods("first")
    host.wait_for_log("this node hosts the store")
    pods("second")
    world = pods.job.wait_for_world("first", "second")
    assert world.restarts == {0}, pods.job.tell()
    (scratch / "over").touch()
    assert pods.job.succeeds()
    entries = [json.loads(path.read_text()) for path in sorted((scratch / "register/muster-job").glob("entry.*"))]
    assert {entry["term"] for entry in entries} == {1} and entries[-1]["kind"] == "close", entries
    assert len({entry["process"] for entry in entries}) == 1 and len(entries[0]["process"]) == 32, entries


def test_a_pod_that_is_started_again_in_place_is_not_the_host_that_was_killed(make_pods, scratch):
    pods = make_pods("2:3")
    pods("first", "127.0.0.1").wait_for_log("this node hosts the store")
    pods("second", "127.0.0.2")
    pods("third", "127.0.0.3")
    pods.job.wait_for_world("first", "second", "third")
    pods.job.started[0].kill()
    again = pods("again", "127.0.0.1")
    world = pods.job.wait_for_world("again", "second", "third")
    assert world.restarts == {0}, pods.job.tell()
    assert "hosts the store" not in again.err() or entry_of(pods.job, 3)["term"] > 1, pods.job.tell()
    (scratch / "over").touch()
    assert pods.job.succeeds()


def test_a_pod_that_comes_back_under_the_hosts_name_claims_its_place_as_any_node_does(make_pods, scratch):
    """A StatefulSet that is started again: its first pod has the name and the process id of the last host."""
    pods = make_pods("1:2")
    pods("first", "127.0.0.1").wait_for_log("this node hosts the store")
    pods("second", "127.0.0.2")
    pods.job.wait_for_largest_world(2)
    for node in pods.job.started:
        node.kill()
    last = len(list((scratch / "register/muster-job").glob("entry.*")))
    former, number = entry_of(pods.job, last), last + 1
    pods("again", "127.0.0.1").wait_for_log("this node hosts the store")
    claim = entry_of(pods.job, number)
    assert claim["kind"] == "claim" and claim["term"] == former["term"] + 1, pods.job.tell()
    assert claim["host"].rsplit("_", 1)[0] == former["host"].rsplit("_", 1)[0] and claim["process"] != former["process"]
    pods("last", "127.0.0.2")
    pods.job.wait_for_world("again", "last")
    (scratch / "over").touch()
    assert pods.job.succeeds()


def test_a_killed_host_is_succeeded_and_its_workers_cost_one_restart_of_the_others(make_job_of_each_kind):
    job = make_job_of_each_kind("2:3")
    start_nodes(job, 3)
    job.started[0].kill()
    world = job.wait_for_world("node2", "node3")
    assert world.restarts == {0}, job.tell()
    assert len(job.worlds()) == 2, job.tell()
    world.end()
    assert job.succeeds()


def test_who_alone_is_left_of_the_agents_of_a_machine_waits_for_none_of_them(make_job_of_each_kind):
    job = make_job_of_each_kind("1:5", conf=["silence_timeout=600"])
    start_nodes(job, 5)
    for node in job.started[:4]:
        node.signal(signal.SIGKILL)
    job.wait_for_world("node5").end()
    assert job.started[4].finish().status == 0, job.tell()
    assert "the process on this machine has ended: node " in job.started[4].err(), job.tell()


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "told to end"])
def test_a_host_whose_worker_is_done_is_not_missed(make_job_of_each_kind, way):
    job = make_job_of_each_kind("1:3", conf=PATIENT)
    first = start_nodes(job, 3)
    first.of("node1").end(0)
    job.started[0].wait_for_log("successfully finished")
    entry = path_of_entry(job, 3)
    wait_until(entry.exists, "an entry that says so")
    if way == signal.SIGKILL:
        job.started[0].kill()
    else:
        job.started[0].signal(way)
    wait_until(lambda: any("hosts the store" in node.err() for node in job.started[1:]), "the next host")
    for name in ("node2", "node3"):
        first.of(name).end(0)
    assert [node.finish().status for node in job.started[1:]] == [0, 0], job.tell()
    assert len(job.worlds()) == 1, job.tell()


def test_a_node_that_was_done_and_gone_is_not_missed_by_the_next_host(make_job_of_each_kind):
    job = make_job_of_each_kind("1:3", conf=PATIENT)
    first = start_nodes(job, 3)
    first.of("node2").end(0)
    job.started[0].wait_for_log(" draining")  # the host has heard so; before, the node would be missed
    job.started[1].kill()
    entry = path_of_entry(job, 3)
    wait_until(entry.exists, "an entry that says so")
    first.of("node1").end(0)
    wait_until(path_of_entry(job, 4).exists, "another one")
    job.started[0].kill()
    job.started[2].wait_for_log("hosts the store")
    first.of("node3").end(0)
    assert job.started[2].finish().status == 0, job.tell()
    assert len(job.worlds()) == 1, job.tell()


def test_nodes_that_have_a_token_outlive_their_host(make_register_job):
    """Each host asks all others for a proof."""
    job = make_register_job("2:3", env={"MUSTER_JOB_TOKEN": "a secret of this job's nodes"})
    start_nodes(job, 3)
    job.started[0].kill()
    job.wait_for_world("node2", "node3").end()
    assert job.succeeds()


def test_every_host_in_turn_may_be_killed(make_job_of_each_kind):
    job = make_job_of_each_kind("1:4")
    start_nodes(job, 4)
    job.started[0].kill()
    job.wait_for_world("node2", "node3", "node4")
    hosts = [node for node in job.started[1:] if "hosts the store" in node.err()]
    hosts[-1].kill()
    others = [node.name for node in job.started[1:] if not node.was_killed]
    world = job.wait_for_world(*others)
    world.end()
    assert job.succeeds()


def test_host_and_successor_may_be_killed_one_after_the_other(make_job_of_each_kind):
    """Of neither is a sign of life awaited: with these settings that would take ten minutes."""
    job = make_job_of_each_kind("2:4", conf=["silence_timeout=600"])
    start_nodes(job, 4)
    hosts_the_second_term(job, job.started[0]).kill()
    world = job.wait_for_world(*(node.name for node in job.started if not node.was_killed))
    assert world.restarts == {0}, job.tell()
    world.end()
    assert job.succeeds()


@pytest.mark.parametrize("options", [[], ["--settling-time", "0"]], ids=["default", "0"])
def test_others_go_on_when_the_host_is_told_to_end(make_job_of_each_kind, options):
    job = make_job_of_each_kind("2:3", *options)
    start_nodes(job, 3)
    job.started[0].signal(signal.SIGTERM)
    world = job.wait_for_world("node2", "node3")
    assert job.started[0].finish().status == 1
    assert world.restarts == {0} and "may be on its way" not in job.tell(), job.tell()
    world.end()
    assert [node.finish().status for node in job.started[1:]] == [0, 0], job.tell()


def test_a_host_that_is_told_to_end_names_the_next_one(make_job_of_each_kind):
    """So nobody finds its host gone, and the workers of the others begin once more, with the round without it."""
    job = make_job_of_each_kind("2:4", conf=PATIENT)
    start_nodes(job, 4)
    job.started[0].signal(signal.SIGTERM)
    world = job.wait_for_world("node2", "node3", "node4")
    assert job.started[0].finish().status == 1
    wait_until(lambda: all("moves to another node" in node.err() for node in job.started[2:]), "that all follow")
    kinds = [entry_of(job, number)["kind"] for number in range(1, 5)]
    assert kinds == ["claim", "commit", "commit", "handover"] and not path_of_entry(job, 5).exists(), job.tell()
    assert f"_{job.started[1].pid}_" in entry_of(job, 4)["host"], "not the first of those who stay"
    assert "this node takes over the job's store" in job.started[1].err(), job.tell()
    assert not any("to the host of the job's store is lost" in node.err() for node in job.started[1:]), job.tell()
    world.end()
    assert [node.finish().status for node in job.started[1:]] == [0, 0, 0], job.tell()
    assert len(job.worlds()) == 2, job.tell()


def test_every_host_in_turn_may_be_told_to_end(make_job_of_each_kind):
    job = make_job_of_each_kind("1:4", conf=PATIENT)
    world = start_nodes(job, 4)
    for number in range(3):
        job.started[number].signal(signal.SIGTERM)
        world = job.wait_for_world(*(node.name for node in job.started[number + 1 :]))
        assert job.started[number].finish().status == 1, job.tell()
    kinds = [entry_of(job, number)["kind"] for number in range(1, 9)]
    assert kinds == ["claim", "commit"] + 3 * ["commit", "handover"], job.tell()
    assert world.restarts == {0}, job.tell()
    world.end()
    assert job.started[3].finish().status == 0, job.tell()


def test_a_host_that_leaves_does_not_wait_for_a_successor_that_stands_still(make_job_of_each_kind):
    job = make_job_of_each_kind("1:3", conf=[*PATIENT, *QUICK])
    start_nodes(job, 3)
    job.started[1].signal(signal.SIGSTOP)
    job.started[0].signal(signal.SIGTERM)
    assert job.started[0].finish(10).status == 1, job.tell()
    world = job.wait_for_world("node3")
    assert "hosts the store" in job.started[2].err(), job.tell()
    job.started[1].kill()
    world.end()
    assert job.started[2].finish().status == 0, job.tell()


def test_a_signal_to_all_ends_a_job_with_its_first_host(make_job_of_each_kind):
    job = make_job_of_each_kind("2:6")
    start_nodes(job, 6)
    for node in job.started:
        node.signal(signal.SIGTERM)
    assert {node.finish().status for node in job.started} == {1}, job.tell()
    assert not any("hosts the store" in node.err() for node in job.started[1:]), job.tell()


def test_a_spare_takes_the_place_of_a_killed_host(make_register_job):
    job = make_register_job("2:2")
    start_nodes(job, 2)
    job.start("node3", address="127.0.0.1").wait_for_log("rendezvous -> present")
    job.started[0].kill()
    world = job.wait_for_world("node2", "node3")
    assert world.restarts == {0}, job.tell()
    world.end()
    assert job.succeeds()


def test_a_job_goes_on_where_it_was_when_all_nodes_were_killed(make_register_job):
    job = make_register_job("2:2", conf=QUICK)
    first = start_nodes(job, 2)
    first.of("node2").end(3)
    again = job.wait_for_world("node1", "node2")
    assert again.restarts == {1}
    for node in job.started:
        node.kill()
    for number in (1, 2):
        job.start(f"node{number}", address="127.0.0.1")
    world = job.wait_for_world("node1", "node2")
    assert world.restarts == {1}, job.tell()
    world.end()
    assert job.succeeds()


def test_a_job_that_is_started_again_with_other_nnodes_is_told_so(make_register_job, scratch):
    former = make_register_job("2:2", conf=QUICK)
    start_nodes(former, 2)
    for node in former.started:
        node.kill()
    job = make_register_job("1:1", conf=QUICK, register=scratch / "register")
    job.start("node3", address="127.0.0.1")
    world = job.wait_for_world("node3")
    assert job.started[0].err().count("is of a job with --nnodes 2:2, and this node was given 1:1") == 1, job.tell()
    world.end()
    assert job.succeeds()


def test_a_job_that_is_over_is_not_begun_again(make_register_job):
    job = make_register_job("2:2")
    start_nodes(job, 2).end()
    assert job.succeeds()
    late = job.start("node3", address="127.0.0.1")
    end = late.finish()
    assert end.status == 1 and "is over: its record is closed" in end.err, job.tell()


def test_a_node_that_comes_too_late_is_told_so_also_where_nobody_can_host_any_more(make_register_job, small_disk):
    """It would have to write a claim to find out otherwise."""
    job = make_register_job("2:2", register=small_disk)
    start_nodes(job, 2).end()
    assert job.succeeds()
    with open(small_disk / "filling", "wb", buffering=0) as filling, contextlib.suppress(OSError):
        while True:
            filling.write(bytes(4096))
    end = job.start("node3", address="127.0.0.1").finish()
    assert end.status == 1 and "is over: its record is closed; a new job needs another --rdzv-id" in end.err, job.tell()


def test_a_record_full_of_nodes_that_nobody_has_seen_keeps_no_host_from_ending(make_register_job, records):  # noqa: F811
    """Anybody who reaches the store can write one, where the job has no token."""
    job = make_register_job("1:2", conf=["silence_timeout=1"])
    host = job.start("node1", address="127.0.0.1")
    job.wait_for_world("node1")
    port = port_of_first_host(job)
    state = pickle.loads(base64.b64decode(base64.b64decode(entry_of(job, 2)["record"])))
    for number in range(30000):
        ghost = records._NodeDesc()
        ghost.__dict__.update(addr=f"ghost{number}", pid=1, local_id=0x40000001)
        state.participants[ghost] = number + 1
    with RawClient(port) as client:
        client.set(b"/torch.rendezvous.job", spelled(state))
        host.wait_for_log("node_silent ghost0_1_")
    host.signal(signal.SIGTERM)
    assert host.finish().status == 1, job.tell()


def test_a_host_that_stood_still_is_deposed_and_follows(make_job_of_each_kind):
    job = make_job_of_each_kind("2:3", conf=QUICK)
    start_nodes(job, 3)
    stopped = job.started[0]
    stopped.signal(signal.SIGSTOP)
    job.wait_for_world("node2", "node3")
    stopped.signal(signal.SIGCONT)
    world = job.wait_for_world("node1", "node2", "node3")
    assert "this one does not any more" in stopped.err(), job.tell()
    assert world.restarts == {0}, job.tell()
    with RawClient(port_of_first_host(job)) as deposed:
        answer = json.loads(deposed.get(b"/torch.rendezvous.job/muster/host"))
    assert answer == {"muster_host": 1, "term": 2, "place": entry_of(job, 3)["addresses"]}, job.tell()
    world.end()
    assert job.succeeds()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_any_machine_may_be_cut_off(make_register_job, make_network, number):
    job = make_register_job("2:3", conf=QUICK)
    hosts = make_network(3).hosts
    for host in hosts:
        node = job.start(host.name, on=host)
        if host is hosts[0]:
            node.wait_for_log("this node hosts the store")
    job.wait_for_world("node1", "node2", "node3")
    hosts[number - 1].unplug()
    survivors = [host.name for host in hosts if host.number != number]
    world = job.wait_for_world(*survivors)
    hosts[number - 1].plug()
    world = job.wait_for_world("node1", "node2", "node3")
    assert world.restarts == {0}, job.tell()
    world.end()
    assert job.succeeds()


def test_a_host_whose_machine_is_gone_without_a_word_is_succeeded(make_register_job, make_network):
    job = make_register_job("2:3")
    hosts = make_network(3).hosts
    for host in hosts:
        node = job.start(host.name, on=host)
        if host is hosts[0]:
            node.wait_for_log("this node hosts the store")
    job.wait_for_world("node1", "node2", "node3")
    hosts[0].unplug()
    job.started[0].kill()
    world = job.wait_for_world("node2", "node3")
    assert world.restarts == {0}, job.tell()
    assert len(job.worlds()) == 2, job.tell()
    world.end()
    assert job.succeeds()


def test_a_node_of_torchruns_is_turned_away_with_a_sentence(make_register_job):
    """Here a client that greets and asks as torchrun does; tests/interop has torchrun itself."""
    job = make_register_job("2:2")
    world = start_nodes(job, 2)
    key = b"/torch.rendezvous.job"
    with RawClient(port_of_first_host(job), timeout=60) as stranger:
        stranger.send(request(COMPARE_SET, key, b"", b"Y2FuaW1hZGFt"))
        told = base64.b64decode(stranger.receive_blob())
        assert told.startswith(b"c") and b"--rdzv-backend c10d" in told.split(b"\n")[0], told
        assert base64.b64decode(stranger.get(key)) == told
    job.started[0].wait_for_log("it is a node of torchrun's")
    world.end()
    assert job.succeeds()
    said = [line for line in job.started[0].err().splitlines() if "node of torchrun's" in line]
    assert len(said) == 1 and "127.0.0.1" in said[0] and said[0].startswith("W"), said


def test_a_register_that_is_not_there_is_one_clear_error(muster):
    end = muster.run(
        ["run", "--nnodes", "2", "--rdzv-backend", "dir", "--rdzv-endpoint", muster.scratch / "nowhere", "--rdzv-id", "job",
         "--local-addr", "127.0.0.1", "--no-python", "true"]  # fmt: skip
    )
    assert end.status == 1 and str(muster.scratch / "nowhere") in end.err, end.err


@pytest.mark.parametrize(
    "mount, expected",
    [
        ("mount -t tmpfs -o size=16k none register; cat /dev/zero >register/filling 2>&- || true",
         "cannot write in it (the file system is full: remove something): No space left on device"),
        ("mount -t tmpfs -o ro none register", "(it must be mounted for writing): Read-only file system"),
    ],
    ids=["full", "read-only"],
)  # fmt: skip
def test_a_register_that_takes_nothing_is_one_clear_error(muster, mount, expected):
    require_network()
    (muster.scratch / "register").mkdir()
    words = ["run", "--nnodes", "2", "--rdzv-backend", "dir", "--rdzv-endpoint", muster.scratch / "register", "--rdzv-id", "job",
             "--local-addr", "127.0.0.1", "--no-python", "true"]  # fmt: skip
    enter = ["--mount", "sh", "-ec", f'{mount}; exec "$@"', "sh", muster.binary]
    end = muster.start([*enter, *words], program="unshare").finish()
    assert end.status == 1 and f"the directory of --rdzv-endpoint, {muster.scratch}/register: " in end.err, end.err
    assert end.err.count(expected) == 1, end.err


def test_a_node_that_comes_while_the_register_takes_nothing_ends_no_world(make_job_of_each_kind, small_disk):
    """It waits until the host can commit a world with it, and both say why."""
    job = make_job_of_each_kind("1:3", register=small_disk)
    world = start_nodes(job, 2)
    with open(small_disk / "filling", "wb", buffering=0) as filling, contextlib.suppress(OSError):
        while True:
            filling.write(bytes(4096))
    job.started[0].wait_for_log("register stuck")
    late = job.start("node3", address="127.0.0.1")
    late.wait_for_log("their host admits nobody as long as it cannot write the job's register")
    assert all(worker.is_running() for worker in world.workers) and len(job.worlds()) == 1, job.tell()
    host = job.started[0].err()
    assert host.count("is not renewed: ") == 1 and "the job runs on, and no node is admitted meanwhile" in host, job.tell()
    (small_disk / "filling").unlink()
    job.wait_for_world("node1", "node2", "node3").end()
    assert job.succeeds()
    assert "this node's term is renewed again" in job.started[0].err()


def test_a_register_that_is_full_for_a_while_is_said_once_and_holds_a_round_up_until_it_is_not(make_register_job, small_disk):
    job = make_register_job("2", register=small_disk)
    world = start_nodes(job, 2)
    with open(small_disk / "filling", "wb", buffering=0) as filling, contextlib.suppress(OSError):
        while True:
            filling.write(bytes(4096))
    world.of("node2").end(3)
    job.started[0].wait_for_log("succession <- register_failed", count=3)
    (small_disk / "filling").unlink()
    world = job.wait_for_world("node1", "node2")
    assert world.restarts == {1} and len(job.worlds()) == 2, job.tell()
    world.end()
    assert job.succeeds()
    warnings = [line for line in job.started[0].err().splitlines() if line.startswith("W")]
    # a renewal that comes meanwhile is another matter
    said = [line for line in warnings if "the file system is full" in line and "is not renewed" not in line]
    assert len(said) == 1, said


def test_a_host_ends_when_a_register_that_was_full_has_taken_the_end_of_the_job(make_job_of_each_kind, small_disk):
    job = make_job_of_each_kind("1:2", register=small_disk)
    world = start_nodes(job, 2)
    with open(small_disk / "filling", "wb", buffering=0) as filling, contextlib.suppress(OSError):
        while True:
            filling.write(bytes(4096))
    world.end()
    assert job.started[1].finish().status == 0, job.tell()
    job.started[0].wait_for_log("succession <- register_failed", count=2)
    (small_disk / "filling").unlink()
    assert job.started[0].finish().status == 0, job.tell()
    entries = sorted((small_disk / "muster-job").glob("entry.*"))
    assert json.loads(entries[-1].read_text())["kind"] == "close", job.tell()


@pytest.mark.parametrize("place", ["a register", "node2"])
def test_rank_0_publishes_the_address_that_was_tried_not_a_name_that_leads_elsewhere(muster, make_network, scratch, place):
    """Each node's own name leads into a network that the other one has not. Rank 0 is node1, and hosts the
    register's store or none."""
    hosts = make_network(2).hosts
    (scratch / "register").mkdir()
    meeting = ["--rdzv-backend", "dir", "--rdzv-endpoint", scratch / "register"]
    if place == "node2":
        meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{hosts[1].address}:29400"]
    words = [muster.binary, "run", "--nnodes", "2", *meeting, "--rdzv-id", "two", "--no-python", "sh", "-c", "echo at $MASTER_ADDR"]
    nodes = []
    for i, host in enumerate(hosts):
        elsewhere = f"198.51.100.{i + 1}"
        host.run("ip", "address", "add", f"{elsewhere}/32", "dev", "lo")
        names = scratch / f"{host.name}.names"
        names.write_text(f"127.0.0.1 localhost\n{elsewhere} {host.name}\n", encoding="ascii")
        enter = ["sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(names), *words]
        command = host.command(enter)
        nodes.append(muster.start(command[1:], program=command[0]))
    ends = [running.finish() for running in nodes]
    assert [end.out for end in ends] == [f"at {hosts[0].address}\n"] * 2, ends

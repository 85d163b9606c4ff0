# SPDX-License-Identifier: BSD-3-Clause
"""The example programs of libmuster, which have nothing of ours but that library, under the real agent."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from support.binary import ROOT
from support.own_library import LIBRARY
from support.records import node_of, records, spelled, state_of  # noqa: F401 (a fixture)
from support.store import Server

EXAMPLES = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build")).resolve() / "examples"


@pytest.mark.parametrize("program", ["store_worker", "store_worker_static"])
def test_workers_in_c_meet_in_the_agents_store(muster, program):
    end = muster.run(["run", "--standalone", "--nproc-per-node", 3, "--no-python", EXAMPLES / program])
    assert end.status == 0, end
    expected = {f"worker {rank}: the shares of 3 workers make 6" for rank in range(3)}
    assert set(end.out.splitlines()) == expected, end


def test_worker_says_what_is_missing(muster, binary):
    end = muster.run(
        ["run", "--standalone", "--nproc-per-node", 1, "--no-python", "/usr/bin/env", "-u", "MASTER_ADDR",
         EXAMPLES / "store_worker"])  # fmt: skip
    assert end.status == 1, end
    assert "store_worker: MASTER_ADDR is not set" in end.err, end


@pytest.mark.plain_build
@pytest.mark.parametrize("words, wholly", [([], []), (["--static"], []), (["--static"], ["-static"])],
                         ids=["shared", "static", "wholly-static"])
def test_a_program_is_built_with_what_pkg_config_says(scratch, words, wholly):
    if wholly and not list(pathlib.Path("/usr/lib").glob("*/libuv_a.a")):
        pytest.skip("libuv's archive is missing (Debian: libuv1-dev)")
    if shutil.which("pkg-config") is None or shutil.which("cc") is None:
        pytest.skip("pkg-config or cc is missing")
    build = EXAMPLES.parent
    (scratch / "lib").mkdir()
    library = "libmuster.a" if words else "libmuster.so"
    (scratch / "lib" / library).symlink_to(build / "src/library/libmuster.a" if words else LIBRARY)
    told = subprocess.run(
        ["pkg-config", *words, f"--define-variable=libdir={scratch}/lib", f"--define-variable=includedir={ROOT}/include",
         "--cflags", "--libs", "libmuster"], check=True, capture_output=True, text=True,
        env={**os.environ, "PKG_CONFIG_PATH": str(build / "meson-private")})  # fmt: skip
    program = scratch / "store_worker"
    subprocess.run(["cc", *wholly, "-o", program, ROOT / "examples/library/store_worker.c", *told.stdout.split()], check=True)
    end = subprocess.run([program], capture_output=True, text=True, check=False,
                         env={"LD_LIBRARY_PATH": str(pathlib.Path(LIBRARY).parent)})  # fmt: skip
    assert end.returncode == 2 and "store_worker: MASTER_ADDR is not set" in end.stderr, end


@pytest.mark.plain_build
def test_a_changed_interface_is_noticed(scratch):
    if shutil.which("abidiff") is None:
        pytest.skip("abidiff is missing (Debian: apt install abigail-tools)")
    abi = (ROOT / "src/library/libmuster.abi").read_text(encoding="utf-8")
    changed = scratch / "changed.abi"
    changed.write_text(re.sub(r"(name='muster_tcp_store_settings' size-in-bits=)'640'", r"\1'704'", abi), encoding="utf-8")
    sys.path.insert(0, str(ROOT / "tools"))
    import check_library

    assert list(check_library.complaints_of_abidiff(ROOT / "src/library/libmuster.abi", LIBRARY)) == []
    complaints = list(check_library.complaints_of_abidiff(changed, LIBRARY))
    assert len(complaints) == 1 and "muster_store_new_tcp" in complaints[0]


def bad_input_tools():
    """What compares the rows of bad input with the headers, the headers, and the text of each file of tests with what is made for it."""
    sys.path.insert(0, str(ROOT / "tools"))
    import check_bad_input
    import make_bad_input

    headers = sorted((ROOT / "include/muster").glob("*.h"))
    tests = sorted((ROOT / "tests/library").glob("bad_*_test.c"))
    return check_bad_input, headers, {path.name: make_bad_input.text_of_test(path, headers) for path in tests}


@pytest.mark.parametrize("name, row, replacement, complaint", [
    ("store_requests", "REFUSED(muster_store_get, key, TOO_LONG,", "REFUSED(muster_store_get, key, LONG,",
     "bad input: muster_store_get key TOO_LONG is not tried"),
    ("store", "IN_EACH(muster_store_fd,", "IN_EACH(muster_store_df,", "bad input: muster_store_fd is not tried in each situation"),
    ("store", "(int)muster_store_timeout(store)", "300", "bad_store_test.c: muster_store_timeout 300 -1: muster_store_timeout is not in"),
    ("store_server", '"it serves until it is freed"', '""', "bad_store_server_test.c: muster_store_server TOO_LATE \"\": there is no reason"),
    ("store_server", "NEVER_HAPPENS(muster_store_server, TOO_LATE,", "NEVER_HAPPENS(muster_store_server, FORKED,",
     "muster_store_server: FORKED: the rows and NEVER_HAPPENS differ"),
], ids=["kind", "function", "call", "reason", "never"])  # fmt: skip
def test_a_row_of_bad_input_that_is_missing_is_noticed(name, row, replacement, complaint):
    check_bad_input, headers, texts = bad_input_tools()
    assert check_bad_input.complaints(headers, texts)[0] == []
    text = texts[f"bad_{name}_test.c"]
    assert row in text
    said = check_bad_input.complaints(headers, {**texts, f"bad_{name}_test.c": text.replace(row, replacement)})[0]
    assert any(line.startswith(complaint) for line in said), said


def test_a_function_without_rows_of_bad_input_is_noticed(scratch):
    sys.path.insert(0, str(ROOT / "tools"))
    import check_bad_input

    header = scratch / "more.h"
    header.write_text("struct muster_more;\nint muster_more_do(struct muster_more *more, const char *name, double seconds,\n"
                      "    void (*done)(void *context), void *context);\n", encoding="utf-8")  # fmt: skip
    kinds = ["done IS_NULL", *(f"name {kind}" for kind in ("EMPTY", "IS_NULL", "NOT_UTF8", "TOO_LONG")),
             *(f"seconds {kind}" for kind in ("ABOVE", "BELOW", "NOT_A_NUMBER"))]  # fmt: skip
    assert check_bad_input.complaints([header], {})[0] == [
        *(f"bad input: muster_more_do {kind} is not tried" for kind in kinds),
        "bad input: muster_more_do is not tried in each situation",
    ]


@pytest.mark.parametrize("name, included, is_fine", [
    ("main/timer/timer_command.c", "host/loop/snapshot_socket.h", False),
    ("main/rendezvous/rendezvous_command.c", "wire/rendezvous/rendezvous_state_pickle.h", False),
    ("main/store/store_session.c", "agent/agent.h", False),
    ("main/muster.c", "core/rendezvous/rendezvous_state.h", False),
    ("main/timer/timer_command.c", "base/text.h", True),
    ("main/timer/timer_command.c", "core/workers/signal_name.h", True),
    ("main/muster.c", "agent/agent.h", True),
])  # fmt: skip
def test_a_command_that_goes_behind_the_headers_is_noticed(name, included, is_fine):
    sys.path.insert(0, str(ROOT / "tools"))
    import check_floors

    complaints = list(check_floors.complaints_about(ROOT / "src", name, [('"', included)]))
    assert (complaints == []) == is_fine, complaints
    assert is_fine or "behind a header of libmuster" in complaints[0]


@pytest.mark.parametrize("name, included, complaint", [
    ("wire/register/etcd_message.c", "wire/register/etcd.pb-c.h", None),
    ("wire/register/etcd_message.h", "wire/register/etcd.pb-c.h", "is for the sources of wire/register"),
    ("wire/round/round_exchange_store.c", "wire/register/etcd.pb-c.h", "is for the sources of wire/register"),
    ("host/register/etcd_register.c", "wire/register/etcd.pb-c.h", "is for the sources of wire/register"),
    ("wire/register/etcd_message.c", "wire/register/consul.pb-c.h", "does not exist"),
])  # fmt: skip
def test_a_header_that_the_build_makes_is_for_its_room(name, included, complaint):
    sys.path.insert(0, str(ROOT / "tools"))
    import check_floors

    complaints = list(check_floors.complaints_about(ROOT / "src", name, [('"', included)]))
    assert [complaint in found for found in complaints] == ([True] if complaint else []), complaints


def test_server_with_a_loop_of_its_own_ends_what_hangs(muster, scratch):
    server = subprocess.Popen(
        [EXAMPLES / "timer_loop", scratch / "timers"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout.readline() == "serving\n"
        end = muster.run(["timer", "run", "--file", scratch / "timers", "--after", 0.2, "--scope", "hang", "--",
                          "sleep", 600])  # fmt: skip
        assert end.status == 128 + 9, end
        line = server.stdout.readline()
        assert line.startswith("ended process ") and line.endswith(": hang\n"), line
    finally:
        server.stdin.close()
    assert server.wait(60) == 0
    server.stdout.close()


def start_in_a_loop(name, *words):
    """A program that says its port, and ends with its input."""
    program = subprocess.Popen([EXAMPLES / name, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return program, int(re.fullmatch(r"port (\d+)\n", program.stdout.readline())[1])


def end_input(program):
    program.stdin.close()
    assert program.wait(60) == 0
    program.stdout.close()


def test_store_is_served_in_a_loop_of_the_program(muster):
    program, port = start_in_a_loop("store_host")
    try:
        place = ["--host", "127.0.0.1", "--port", port]
        assert muster.run(["store", "set", *place, "key", "value"]).status == 0
        end = muster.run(["store", "get", *place, "key"])
        assert (end.status, end.out) == (0, "value"), end
    finally:
        end_input(program)


def status_of(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as answer:
        return answer.code


def test_probes_are_answered_in_a_loop_of_the_program():
    program, port = start_in_a_loop("probed_loop", "0.001")
    try:
        while status_of(port) == 200:  # it has made progress when it began
            pass
        assert status_of(port) == 503
    finally:
        end_input(program)
    program, port = start_in_a_loop("probed_loop")
    try:
        assert status_of(port) == 200
    finally:
        end_input(program)


def test_program_says_how_a_job_stands(muster, records):  # noqa: F811
    server = Server(muster)
    words = [EXAMPLES / "job_status", "127.0.0.1", str(server.port), "job"]
    end = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert end.returncode == 1 and "no record of job 'job'" in end.stderr, end
    one, two, three = (node_of(records, number) for number in (1, 2, 3))
    state = state_of(records, round=4, complete=True, participants={two: 0, one: 1}, redundancy_list={three})
    with server.client() as client:
        client.set(b"/torch.rendezvous.job", spelled(state))
        client.ping()
    end = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert end.returncode == 0, end
    lines = end.stdout.splitlines()
    assert lines[0] == "round 4: 2 nodes take part, 0 wait, 1 are spares"
    assert sorted(lines[1:]) == ["rank 0: node2", "rank 1: node1"]


@pytest.mark.parametrize("words, status, said", [
    (["127.0.0.1", "PORT", "key", "0.1"], 75, "wait_for_key: timed out: "),
    (["", "PORT", "key", "60"], 2, "wait_for_key: invalid value: there is no host\n"),
    (["127.0.0.1", "PORT", "k" * 9000, "60"], 2, "wait_for_key: limit passed: a key has more than 8191 bytes"),
    (["127.0.0.1", "PORT"], 2, "usage: wait_for_key HOST PORT KEY SECONDS (libmuster "),
], ids=["time", "host", "key", "usage"])  # fmt: skip
def test_program_tells_failures_apart(muster, words, status, said):
    server = Server(muster)
    words = [EXAMPLES / "wait_for_key", *(word.replace("PORT", str(server.port)) for word in words)]
    end = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert end.returncode == status and end.stderr.startswith(said), end
    with server.client() as client:
        client.set(b"/key", b"value")
        client.ping()
    whole = [EXAMPLES / "wait_for_key", "127.0.0.1", str(server.port), "key", "60"]
    assert subprocess.run(whole, check=False, timeout=60).returncode == 0


def test_children_are_ended_when_their_time_is_over():
    end = subprocess.run([EXAMPLES / "timed_children", "0.2"], capture_output=True, text=True, check=False, timeout=60)
    assert (end.returncode, end.stdout) == (0, "child 1 was ended: load a batch\nchild 0: done\nchild 1: killed\n"), end


@pytest.mark.parametrize("status", [0, 3])
def test_metrics_of_a_job_are_written(scratch, status):
    words = [EXAMPLES / "metrics_to_file", scratch / "metrics", "sh", "-c", f"exit {status}"]
    end = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert end.returncode == (1 if status else 0), end
    lines = (scratch / "metrics").read_text()
    assert re.search(r"^\[\d+(\.\d+)?\]\[torchelastic\]: SimpleElasticAgent\._rendezvous\.success=1$", lines, re.MULTILINE), lines


JOBS = "2 test $RANK = 0 || exit 3\n1 exit 0\n0 exit 0\n3 exit 0\n"


def test_scheduler_runs_jobs_in_a_loop_of_its_own():
    end = subprocess.run([EXAMPLES / "scheduler"], input=JOBS, capture_output=True, text=True, check=False, timeout=300)
    lines = end.stdout.splitlines()
    assert end.returncode == 1, end
    assert "job 1: FAILED, rank 1 ended with 3" in lines, end
    assert "job 2: SUCCEEDED" in lines, end
    assert any(line.startswith("job 3: local_world_size is 0") for line in lines), end
    assert {f"job 4: rank {rank} runs" for rank in range(3)} <= set(lines), end
    assert lines.count("job 4: SUCCEEDED") == 1, end


def test_scheduler_that_is_to_end_stops_its_jobs():
    scheduler = subprocess.Popen(
        [EXAMPLES / "scheduler"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        scheduler.stdin.write("1 exec sleep 1000\n")
        scheduler.stdin.flush()
        assert scheduler.stdout.readline() == "job 1: rank 0 runs\n"
        scheduler.terminate()
        assert scheduler.stdout.readline() == "job 1: STOPPED\n"
        assert scheduler.wait(300) == 1
    finally:
        scheduler.stdin.close()
        scheduler.stdout.close()


def read_until(process, pattern):
    """The match of the first line that has it."""
    for line in process.stdout:
        match = re.search(pattern, line)
        if match is not None:
            return match
    raise AssertionError(f"it has ended without a line like {pattern}")


@pytest.mark.parametrize("serves", [True, False], ids=["rank 0", "another rank"])
def test_parameter_servers_go_on_when_one_is_killed(scratch, serves):
    job = [subprocess.Popen([EXAMPLES / "parameter_server", scratch, "2", "3"], stdout=subprocess.PIPE, text=True)
           for _ in range(3)]  # fmt: skip
    try:
        ranks = [int(read_until(process, "rank ([0-9]) of 3")[1]) for process in job]
        assert sorted(ranks) == [0, 1, 2]
        victim = next(process for process, rank in zip(job, ranks) if (rank == 0) == serves)
        victim.kill()
        rest = [process for process in job if process is not victim]
        places = [read_until(process, "rank ([0-9]) of 2 is at step ([0-9]+)") for process in rest]
        assert sorted(int(place[1]) for place in places) == [0, 1]
        assert all(int(place[2]) > 0 for place in places), "what was trained before is lost"
        rest[0].terminate()
        for process in rest:
            assert int(read_until(process, "ends at step ([0-9]+)")[1]) > 0
            assert process.wait(300) == 0
    finally:
        for process in job:
            process.kill()
            process.wait()
            process.stdout.close()


def test_elastic_nodes_keep_their_record_in_a_directory_and_check_themselves(scratch):
    command = "until test -e go; do sleep 0.01; done"
    checks = ["true", "true", "touch checked; false"]
    nodes = [subprocess.Popen([EXAMPLES / "elastic_node", scratch, "2", "3", command], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "NODE_CHECK": check}) for check in checks]
    try:
        pids = [read_until(node, "node [0-2] of 3 runs process ([0-9]+)")[1] for node in nodes]
        os.kill(int(pids[0]), signal.SIGKILL)  # a failure, after which all nodes restart their workers
        assert nodes[2].communicate(timeout=300)[0] == "ended: restart_workers: 'touch checked; false' has failed\n"
        assert nodes[2].returncode == 1 and (scratch / "checked").exists()
        for node in nodes[:2]:
            read_until(node, "node [01] of 2 runs")
        (scratch / "go").touch()
        assert [node.wait(300) for node in nodes[:2]] == [0, 0]
    finally:
        for node in nodes:
            node.kill()
            node.wait()
            node.stdout.close()

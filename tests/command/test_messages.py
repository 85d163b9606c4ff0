# SPDX-License-Identifier: BSD-3-Clause
"""What docs/messages.md shows is what Muster says."""

import re
import shlex
import signal
import socket

import pytest

from support.binary import ROOT
from support.ports import free_port
from support.transcripts import transcript


def test_a_mistake_comes_first_and_names_what_was_meant(muster):
    command = "run --max-retries 3 train.py"
    end = muster.run(command.split())
    assert end.status == 2, end
    assert end.err.splitlines() == transcript(command)


def said(end):
    """The log's own words, without what was said of single processes."""
    lines = [line.split("] ", 1)[1] for line in end.err.splitlines() if re.match(r"[WE]\d{4} ", line)]
    return [line for line in lines if not line.startswith(("Sending process", "evidence: "))]


def test_a_signal_says_how_long_it_takes_and_how_to_make_it_shorter(muster, scratch):
    command = "run --standalone --no-python ./deaf.sh"
    muster.script("deaf.sh", "#!/bin/sh\ntrap '' INT TERM\n: >ready\nwhile :; do sleep 1; done\n")
    running = muster.start(command.split())
    running.wait_until((scratch / "ready").exists, "the worker")
    running.signal(signal.SIGINT)
    running.wait_until(lambda: "a second signal kills them" in running.err(), "the first answer")

    def is_killing():  # one that comes within moments is the first one again
        running.signal(signal.SIGINT)
        return "killing workers" in running.err()

    running.wait_until(is_killing, "the second answer")
    end = running.finish()
    assert end.status == 1, end
    assert said(end) == transcript(command), end


def test_a_node_says_whom_it_waits_for(muster):
    command = "run --nnodes 2 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:29437 --rdzv-id job --local-addr node1 train.py"
    muster.script("train.py", "")
    running = muster.start(command.replace("29437", str(free_port())).split())
    (line,) = transcript(command)
    running.wait_until(lambda: "is here: node1" in running.err(), "what it waits for", 100)
    running.signal(signal.SIGTERM)
    lines = [re.sub(r"for \d+ s: ", "for 5 s: ", line) for line in said(running.finish())]
    assert line in lines, running.err()


OF_THREE_NODES = """
import os, pathlib, signal, sys, time
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    if os.environ["NODE"] == "node3":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        pathlib.Path("deaf").touch()
    while os.environ["NODE"] != "node2" or not os.path.exists("deaf"):
        time.sleep(0.02)
        if os.environ["NODE"] == "node3" and os.path.exists("may_end"):
            break
    sys.exit(3)
"""


@pytest.mark.parametrize("delegates", [False, True], ids=["each node", "the host"])
def test_while_old_workers_end_a_node_says_whose(muster, scratch, delegates):
    command = "run --nnodes 3 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:29443 --local-addr node1 train.py"
    (line,) = transcript(command)
    command_of_another = command.replace("node1", "node2")
    muster.script("train.py", OF_THREE_NODES)
    command = command.replace("29443", str(free_port())).replace("run ", "run --max-restarts 1 ")
    nodes = []
    for name in ("node1", "node2", "node3"):
        conf = f"delegation={str(delegates).lower()},is_host={int(name == 'node1')}"
        words = command.replace("node1", name).replace("--local-addr", f"--rdzv-conf {conf} --local-addr").split()
        nodes.append(muster.start(words, env={"NODE": name}))
    nodes[0].wait_until(lambda: "not ready: node3" in nodes[0].err(), "whom it waits for", 100)
    (scratch / "may_end").touch()
    assert {running.finish().status for running in nodes} == {0}
    lines = [re.sub(r"for \d+ s: ", "for 5 s: ", line) for line in nodes[0].err().splitlines()]
    assert any(said.endswith(line) for said in lines), nodes[0].err()
    others = nodes[1].err() + nodes[2].err()
    (named,) = transcript(command_of_another)
    named = named if not delegates else named.replace("node1", "the node that hosts the store")
    assert named.split(": ")[1] in others, others
    assert "round 1 of 3 nodes begins" not in others and "at work" not in others, others


def test_during_the_last_call_a_node_says_when_it_ends(muster):
    command = "run --nnodes 2:4 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:29441 --rdzv-id job --local-addr node1 train.py"
    (line,) = transcript(command)
    # On a machine that has much to do it may be said only after 60 s.
    patient = command.replace("29441", str(free_port())).replace("run ", "run --rdzv-conf last_call_timeout=300 ")
    muster.script("train.py", "")
    nodes = [muster.start(patient.replace("node1", node).split()) for node in ("node1", "node2")]
    first, second = nodes
    first.wait_until(lambda: "begin without others" in first.err(), "the last call", 100)
    second.wait_until(lambda: "node1 says for which" in second.err(), "who says so", 100)
    for running in nodes:
        running.signal(signal.SIGTERM)
    told = "\n".join(said(first.finish())).replace("node2, node1", "node1, node2")
    told = re.sub(r"for \d+ s: ", "for 5 s: ", told)
    told = re.sub(r"in \d+ s \(last_call_timeout: 300 s\)", "in 25 s (last_call_timeout: 30 s)", told)
    assert line in told.splitlines(), told
    assert "begin without others" not in second.finish().err, second.err()


def slurm_step(nodes):
    """Slurm's variables on the first node of a step, and the port that follows from its number."""
    first, count, others = 20000, 9391, 41 * 97
    port = free_port()
    while not first + others <= port < first + count:
        port = free_port()
    variables = {"SLURM_JOB_ID": 41, "SLURM_STEP_ID": port - first - others, "SLURM_JOB_NUM_NODES": nodes,
                 "SLURM_STEP_NUM_NODES": nodes, "SLURM_STEP_NODELIST": f"node[1-{nodes}]",
                 "SLURM_STEP_TASKS_PER_NODE": f"1(x{nodes})", "SLURMD_NODENAME": "node1"}  # fmt: skip
    return variables, port


def test_under_slurm_a_node_says_who_is_missing(muster):
    """Without Slurm: its variables say which nodes there are. The second node is told where the first one is,
    whose name leads nowhere here."""
    variables, port = slurm_step(3)
    second = ["--nnodes", 3, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}",
              "--rdzv-id", f"41.{variables['SLURM_STEP_ID']}", "--rdzv-conf", "is_host=false"]  # fmt: skip
    muster.script("train.py", "")
    first = muster.start(["run", "--local-addr", "node1", "train.py"], env=variables)
    last = muster.start(["run", *map(str, second), "--local-addr", "node2", "train.py"])
    first.wait_until(lambda: "; missing: node3" in first.err(), "who is missing", 100)
    for running in (first, last):
        running.signal(signal.SIGTERM)
    # Either may have come first.
    lines = [re.sub(r"for \d+ s: ", "for 5 s: ", line).replace("node2, node1", "node1, node2")
             for line in said(first.finish())]
    last.finish()
    (line,) = transcript("run --local-addr node1 train.py")
    assert line in lines, first.err()


def test_nodes_with_different_names_for_one_job_are_told_of_each_other(muster):
    command = "run --nnodes 2 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:29437 --rdzv-id run-2 --local-addr node2 train.py"
    other = command.replace("run-2", "run-1").replace("node2", "node1")
    port = str(free_port())
    muster.script("train.py", "")
    first, last = [muster.start(words.replace("29437", port).split()) for words in (other, command)]
    for running in (first, last):
        running.wait_until(lambda running=running: "another job waits" in running.err(), "the other job", 100)
    for running in (last, first):
        running.signal(signal.SIGTERM)
    lines = [re.sub(r"for \d+ s: ", "for 5 s: ", line) for line in said(last.finish())]
    first.finish()
    for line in transcript(command):
        assert line in lines, last.err()
    assert "--rdzv-id 'run-2': node2; this one is --rdzv-id 'run-1'" in first.err(), first.err()


# What differs from one run to the next, and what stands for it.
PASSING = (
    (r"(pid:?) \d+", r"\1 4711"),
    (r"master_addr=127\.0\.0\.1", "master_addr=localhost"),  # where nobody knows that name
    (r"master_port=\d+", "master_port=29500"),
    (r"(run_id +): .*", r"\1: job"),
    (r"binary: \S+", "binary: /usr/bin/python3"),
    (r"time      : .*", "time      : 2026-11-20_09:03:02"),
    (r"host      : .*", "host      : node1"),
    (r"logs/[^/\s]+", "logs/job_x1y2z3a4"),
)


def without_passing(text, scratch):
    text = text.replace(str(scratch.resolve()), "/home/user")
    for pattern, shown in PASSING:
        text = re.sub(pattern, shown, text)
    return [line.rstrip() for line in text.splitlines()]


def test_a_report_has_the_last_lines_of_the_worker_that_failed_first(muster, scratch):
    command = "run --standalone --redirects 2 --log-dir logs train.py"
    muster.script("train.py", 'raise ValueError("boom")\n')
    end = muster.run(command.split())
    assert end.status == 1, end
    report = end.err[end.err.index("failed (exitcode") :]
    assert without_passing(report, scratch) == transcript(command), end


ONCE = """
import os, shutil
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    {first}
"""


@pytest.mark.parametrize("name, first", [("once.py", 'raise ValueError("boom")'), ("purge.py", 'shutil.rmtree("logs")\n    os._exit(1)')])
def test_a_restart_says_what_is_worth_knowing_of_the_logs(muster, scratch, name, first):
    command = f"run --standalone --max-restarts 1 --redirects 2 --log-dir logs {name}"
    muster.script(name, ONCE.format(first=first))
    end = muster.run(command.split())
    assert end.status == 0, end
    assert without_passing("\n".join(said(end)), scratch) == transcript(command), end


FAILS_ON_THE_LAST = """
import pathlib, os, sys, time
pathlib.Path(f"up{os.environ['RANK']}").touch()
while not all(os.path.exists(f"up{rank}") for rank in range(3)):
    time.sleep(0.02)
if os.environ["RANK"] == "2":
    sys.exit(7)
time.sleep(1000)
"""


@pytest.mark.parametrize("level", ["WARNING", "DEBUG"])
def test_of_many_nodes_one_has_the_report_and_the_others_name_it(muster, level):
    commands = ["run --nnodes 3 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:29451 --rdzv-id job "
                f"--local-addr node{i} fails.py" for i in (1, 2, 3)]
    port = str(free_port())
    muster.script("fails.py", FAILS_ON_THE_LAST)
    nodes = [muster.start(command.replace("29451", port).split(), env={"LOGLEVEL": level}) for command in commands]
    ends = [running.finish() for running in nodes]
    assert [end.status for end in ends] == [1, 1, 1], ends
    reports = ["ChildFailedError" in end.err for end in ends]
    assert reports == ([False, False, True] if level == "WARNING" else [True] * 3), ends
    for end, command in zip(ends[1:], commands[1:]):
        shown = "\n".join(transcript(command)).replace("pid: 4711", "PID").replace("/usr/bin/python3", "PYTHON")
        told = re.sub(r"binary: \S+", "binary: PYTHON", re.sub(r"pid: \d+", "PID", end.err))
        told = re.sub(r"process \d+", "process 4711", told).replace(f"on {socket.gethostname()} failed", "on node3 failed")
        for line in shown.splitlines():
            assert f"] {line}\n" in told, (line, end)


def test_of_many_nodes_one_tells_how_the_job_goes_and_the_others_say_a_line(muster, scratch):
    commands = ["run --nnodes 2 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:29451 --rdzv-id job --log-dir logs "
                f"--rdzv-conf is_host={i} --local-addr node{2 - i} train.py" for i in (1, 0)]
    port = str(free_port())
    muster.script("train.py", "")
    nodes = [muster.start(command.replace("29451", port).split(), env={"LOGLEVEL": "INFO"}) for command in commands]
    ends = [running.finish() for running in nodes]
    assert [end.status for end in ends] == [0, 0], ends
    first, other = (without_passing(re.sub(r"^[IWE]\d{4} .*?\] ", "", end.err, flags=re.MULTILINE), scratch) for end in ends)
    about_munge = "the nodes of this job do not prove themselves"  # each machine says why it has none
    assert [line for line in other if not line.startswith(about_munge)] == transcript(commands[1]), ends
    for line in ("Starting elastic_operator with launch configs:", "  group_world_size=2", "[default] Starting worker group"):
        assert first.count(line) == 1, ends


def test_of_many_nodes_one_speaks_of_what_concerns_all(muster):
    """Of where they meet, of a name that none was given, and of OMP_NUM_THREADS."""
    port = free_port()
    muster.script("train.py", "")
    options = ["--nnodes", 3, "--nproc-per-node", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}"]
    nodes = [muster.start(["run", *options, "--local-addr", f"node{i}", "train.py"]) for i in (1, 2, 3)]
    errors = "".join(running.finish().err for running in nodes)
    for line in ("which is a different place on every machine", "no --rdzv-id is given", "OMP_NUM_THREADS is not set"):
        assert errors.count(line) == 1, errors


@pytest.mark.parametrize("kind", ["nodes that come and go", "fixed nodes"])
def test_what_is_odd_about_the_options_of_all_nodes_is_said_once(muster, kind):
    port = free_port()
    muster.script("train.py", "")
    nodes = []
    for i in (0, 1, 2):
        meeting = (["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-conf", f"is_host={int(i == 0)}",
                    "--local-addr", f"node{i}"] if kind == "nodes that come and go" else  # fmt: skip
                   ["--node-rank", i, "--master-addr", "127.0.0.1", "--master-port", port])
        variables = {"PET_NNODE": 3, **({"PET_NODE_RANKS": 3} if i == 2 else {})}
        nodes.append(muster.start(["run", "--nnodes", 3, *meeting, "train.py"], env=variables))
        nodes[0].wait_until(lambda: "PET_NNODE is no option" in nodes[0].err(), "the first word", 100)
    ends = [running.finish() for running in nodes]
    assert [end.status for end in ends] == [0, 0, 0], ends
    assert nodes[0].err().count("PET_NNODE is no option") == 1, ends
    assert ends[2].err.count("PET_NODE_RANKS is no option") == 1, ends
    for end in ends[1:]:  # one that was kept waiting speaks for itself
        assert "PET_NNODE is no option" not in end.err or "waiting for" in end.err, ends


def test_under_srun_a_line_and_a_directory_name_the_node(muster, scratch):
    variables, port = slurm_step(2)
    meeting = ["--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}",
               "--rdzv-id", f"41.{variables['SLURM_STEP_ID']}"]  # fmt: skip
    nodes = []
    for name in ("node1", "node2"):
        conf = f"is_host={str(name == 'node1').lower()}"
        words = ["run", *meeting, "--rdzv-conf", conf, "--local-addr", name, "--tee", 3, "--log-dir", "logs", "--no-python", "echo", "done"]
        nodes.append(muster.start(words, env={**variables, "SLURMD_NODENAME": name}))
    ends = [running.finish() for running in nodes]
    assert [end.out for end in ends] == ["[node1.default0]:done\n", "[node2.default0]:done\n"], ends
    names = sorted(path.name[:-9] for path in (scratch / "logs").iterdir())
    assert names == [f"41.{variables['SLURM_STEP_ID']}_{node}" for node in ("node1", "node2")], names


def test_two_agents_of_one_machine_under_slurm_are_told_of_by_the_later_one(muster):
    options = ["--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}", "--rdzv-id", "twice"]
    command = [*options, "--no-python", "true"]
    for variables, count in (({"SLURM_JOB_ID": 41}, 1), ({}, 0)):
        nodes = [muster.start(["run", *command], env=variables) for _ in range(2)]
        errors = "".join(running.finish().err for running in nodes)
        assert errors.count("two agents of ") == count, errors
        for running in nodes[: 2 * count]:
            assert re.search(rf"two agents of .*\b{running.process.pid}\b", errors), errors


def test_how_a_job_goes_is_said_to_who_asks_for_it(muster, scratch):
    command = "run --standalone --standby off --nproc-per-node 2 --max-restarts 1 --log-dir logs train.py"
    # Rank 0 ends after rank 1, so that a restart has somebody to stop.
    muster.script("train.py", """
import os, time
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    if os.environ["RANK"] == "1":
        os._exit(3)
    time.sleep(1000)
""")
    end = muster.run(command.split(), env={"LOGLEVEL": "INFO"})
    assert end.status == 0, end
    lines = re.sub(r"^[IWE]\d{4} .*?\] ", "", end.err, flags=re.MULTILINE)
    lines = without_passing(lines[lines.index("Starting elastic") :], scratch)
    shown = transcript(command)
    assert lines[: len(shown)] == shown, end
    assert "  restart_count=1" in lines[len(shown) :] and lines[-1].endswith("all workers have succeeded"), end


def test_lines_and_directories_name_the_host(muster, scratch):
    command = ("run --standalone --tee 1 --log-dir logs/${host} --log-line-prefix-template '[${host} ${rank}] ' "
               "--no-python echo done")
    end = muster.run(shlex.split(command))
    host = socket.gethostname()
    assert end.status == 0, end
    assert end.out.replace(f"[{host} ", "[node1 ").splitlines() == transcript(command), end
    assert [path.name for path in (scratch / "logs").iterdir()] == [host]


def test_a_fixed_node_says_what_is_needed(muster):
    command = "run --nnodes 2 --node-rank 0 --master-addr 127.0.0.1 --master-port 29438 train.py"
    port = str(free_port())
    muster.script("train.py", "")
    running = muster.start(command.replace("29438", port).split())
    (line,) = transcript(command)
    running.wait_until(lambda: "two nodes have the same (timeout: 900 s)\n" in running.err(), "what it waits for", 100)
    other = muster.start(command.replace("29438", port).replace("--node-rank 0", "--node-rank 1").split())
    ends = [running.finish(), other.finish()]
    lines = [re.sub(r"for \d+ s: ", "for 5 s: ", said_line) for said_line in said(ends[0])]
    assert line.replace("29438", port) in lines, running.err()
    assert [end.status for end in ends] == [0, 0], ends  # it was worth the waiting


def test_a_node_that_does_not_reach_the_store_says_why(muster):
    command = "run --nnodes 2 --node-rank 1 --master-addr 127.0.0.1 --master-port 29440 train.py"
    port = str(free_port())
    muster.script("train.py", "")
    running = muster.start(command.replace("29440", port).split())
    running.wait_until(lambda: "(timeout: 900 s)\n" in running.err(), "what it waits for", 100)
    running.signal(signal.SIGTERM)
    (line,) = transcript(command)
    lines = [re.sub(r"for \d+ s: ", "for 5 s: ", re.sub(r"\d+ attempts", "14 attempts", said_line)) for said_line in said(running.finish())]
    assert line.replace("29440", port) in lines, running.err()


def test_nodes_without_a_place_to_meet_are_told_at_once(muster):
    """With a port of its own, which is the one thing that is not in the page's words."""
    port = str(free_port())
    muster.script("train.py", "")
    running = muster.start(["run", "--nnodes", 2, "--master-port", port, "train.py"])
    running.wait_until(lambda: "without --master-addr" in running.err(), "the warning", 100)
    running.signal(signal.SIGTERM)
    (line,) = transcript("run --nnodes 2 train.py")
    assert line.replace("29500", port) in said(running.finish()), running.err()


def test_two_nodes_with_one_rank_name_each_other(muster):
    port = str(free_port())
    command = "run --nnodes 3 --node-rank {} --master-addr 127.0.0.1 --master-port 29439 --local-addr {} train.py"
    muster.script("train.py", "")
    zero, first, last = [muster.start(command.format(rank, name).replace("29439", port).split())
                         for rank, name in ((0, "node0"), (1, "node1"), (1, "node2"))]
    both = {"node1": first, "node2": last}
    for running in both.values():
        running.wait_until(lambda running=running: "give each node a rank of its own" in running.err(), "the warning", 100)
    # Either may have come first.
    names = {name for name, running in both.items() if "belongs to another node" in running.err()}
    (late,) = names
    (early,) = both.keys() - names
    for running in (zero, first, last):
        running.signal(signal.SIGTERM)
    ends = {name: said(running.finish()) for name, running in both.items()}
    zero.finish()
    for name, shown_name in ((late, "node2"), (early, "node1")):
        (line,) = transcript(command.format(1, shown_name))
        line = line.replace("node1", "EARLY").replace("node2", late).replace("EARLY", early)
        assert line in [re.sub(r"\(pid \d+\)", "(pid 4711)", words) for words in ends[name]], ends


def flat(text):
    return re.sub(r"\s+", " ", text)


def said_in_logs():
    """What is literal in each warning and error of the sources: (file, parts between what differs)."""
    for path in sorted((ROOT / "src").rglob("*.c")):
        source = re.sub(r'"\s*PRI\w+\s*"', "d", path.read_text(encoding="utf-8"))
        source = re.sub(r'"\s*\n\s*"', "", source)
        for line in re.findall(r'\blog_(?:warning|error)\(\s*[^,"]+,\s*"((?:[^"\\]|\\.)*)"', source):
            yield path.name, [flat(part).strip() for part in re.split(r"%[-+0-9.*]*(?:zu|lld|ld|[dsguf])", line)]


def test_each_warning_is_on_the_page():
    """Its longest words are, or those of another part of it: at the end of the page there are tables for them."""
    page = flat((ROOT / "docs/messages.md").read_text(encoding="utf-8"))
    lines = list(said_in_logs())
    missing = [
        (name, parts) for name, parts in lines
        if max(map(len, parts)) >= 12 and not any(part[:20] in page for part in parts if len(part) >= 12)
    ]  # fmt: skip
    assert len(lines) > 80 and missing == [], missing

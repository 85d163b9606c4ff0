# SPDX-License-Identifier: BSD-3-Clause
"""The same jobs under torchrun and muster: what workers see, what is left on disk, what is reported."""

import json
import re
import time

import pytest

import chosen_differences
from support.binary import ROOT
from support.ports import free_port
from support.side_by_side import SideBySide, normalise

pytestmark = pytest.mark.timeout(180)

LOCALLY = ["--standalone", "--nproc-per-node", "2"]

FAILING = {
    "exits_with_3": """
import os, sys, time

def has_ended(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "Z"

if os.environ["RANK"] == "0":
    with open("rank_0.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename("rank_0.new", "rank_0")
    sys.exit(0)
try:
    while not os.path.exists("rank_0"):
        time.sleep(0.01)
    while not has_ended(open("rank_0").read()):
        time.sleep(0.01)
except (FileNotFoundError, ProcessLookupError):
    pass  # it is not even a zombie any more
sys.exit(3)
""",
    "kills_itself": (
        "import os, signal, time\n"
        "os.kill(os.getpid(), signal.SIGKILL) if os.environ['RANK'] == '1' else time.sleep(60)\n"
    ),
    "ignores_nothing": (
        "import os, sys, time\n"
        "time.sleep(0.3 if os.environ['RANK'] == '0' else 60)\nsys.exit(7)\n"
    ),
}

RECORDED = """
import os, time
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    if os.environ["RANK"] == "0":
        raise ValueError('boom \\u00e9 "q"\\nline2')
    time.sleep(60)

main()
"""

PRINTING = r"""
import os, sys
rank = os.environ["RANK"]
for number in range(3):
    # one write per line: where nothing is redirected, both launchers leave the console to the workers
    sys.stdout.write(f"out {number} of {rank}\n")
    sys.stderr.write(f"err {number} of {rank}\n")
sys.stdout.write(f"last line of {rank}\n")
"""


@pytest.fixture
def pair(muster, peer, scratch):
    return SideBySide(muster, peer, scratch)


def assert_same_environment(torchrun, muster, rank, attempt=0):
    theirs, ours = torchrun.environment(rank, attempt), muster.environment(rank, attempt)
    if not ours.get("TORCHELASTIC_ERROR_FILE"):  # the guardian finds what a worker starts by one of the two
        assert ours.pop("MUSTER_WORKER").endswith(f":{rank}")
    assert ours.pop("MUSTER_PROGRESS", "3") == "3"  # only of a job that may restart
    differing = {
        name: (theirs.get(name), ours.get(name))
        for name in theirs.keys() | ours.keys()
        if theirs.get(name) != ours.get(name)
    }
    assert differing == {}, "variable: (torchrun, muster)"


ENVIRONMENT_CASES = {
    "standalone": (LOCALLY, {}),
    "one worker": (["--nproc-per-node", "1"], {}),
    "static": (["--master-port", "0", "--nproc-per-node", "2"], {}),
    "role": ([*LOCALLY, "--role", "trainer"], {}),
    "run id": (["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "job7"], {}),
    "local address": ([*LOCALLY, "--local-addr", "127.0.0.1"], {}),
    "virtual local rank": ([*LOCALLY, "--virtual-local-rank"], {}),
    "virtual local rank of given devices": (
        [*LOCALLY, "--virtual-local-rank"], {"CUDA_VISIBLE_DEVICES": "5, 7"},
    ),
    "given devices": (LOCALLY, {"CUDA_VISIBLE_DEVICES": "3,1"}),
    "given threads": (LOCALLY, {"OMP_NUM_THREADS": "3"}),
    "error handling of nccl": (LOCALLY, {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}),
    "signals": ([*LOCALLY, "--signals-to-handle", "SIGTERM,SIGUSR1"], {}),
    "logs": ([*LOCALLY, "--log-dir", "{dir}/logs", "-r", "3"], {}),
    "no logs": ([*LOCALLY, "--log-dir", "/dev/null"], {}),
    "defaults from the environment": (
        [], {"PET_NPROC_PER_NODE": "2", "PET_MAX_RESTARTS": "4", "PET_STANDALONE": "1"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ENVIRONMENT_CASES)
def test_workers_see_the_same_environment(pair, case):
    options, variables = ENVIRONMENT_CASES[case]
    if case == "static":
        options = ["--master-port", free_port(), *options[2:]]
    sides = pair.run([*options, "dump.py", "${local_rank}", "$$x", "${rank}", "--flag"], env=variables)
    for side in sides:
        assert side.status == 0, side.end
    workers = int(sides[0].facts(0)["environment"]["WORLD_SIZE"])
    for rank in range(workers):
        assert_same_environment(*sides, rank)
        theirs, ours = (side.facts(rank) for side in sides)
        for fact in theirs.keys() - {"environment"}:
            assert ours[fact] == theirs[fact], fact


FAIL_ONCE = """
import os, sys
exec(open("dump.py").read())
sys.exit(1 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else 0)
"""


def test_a_restarted_worker_sees_the_same_environment(pair):
    sides = pair.run([*LOCALLY, "--max-restarts", "2", "fail_once.py"], files={"fail_once.py": FAIL_ONCE})
    for side in sides:
        assert side.status == 0, side.end
    for rank in range(2):
        assert_same_environment(*sides, rank, attempt=1)


LOG_CASES = {
    "redirect both": ["-r", "3"],
    "redirect stdout": ["-r", "1"],
    "tee both": ["-t", "3"],
    "redirect one, tee the other": ["-r", "0:3", "-t", "1:2"],
    "nothing redirected": [],
    "only rank 1 shown": ["-t", "3", "--local-ranks-filter", "1"],
    "filtered without redirect": ["--local-ranks-filter", "0"],
    "prefix": ["-t", "3", "--log-line-prefix-template", "<${role_name}|$rank|${local_rank}|${who}$$>"],
    "duplicates": ["-t", "3", "--duplicate-stdout-filters", "out 1,last"],
}


@pytest.mark.parametrize("case", LOG_CASES)
def test_log_tree_and_console_are_the_same(pair, case):
    sides = pair.run(
        [*LOCALLY, "--log-dir", "{dir}/logs", *LOG_CASES[case], "printing.py"], files={"printing.py": PRINTING}
    )
    torchrun, muster = sides
    assert torchrun.status == muster.status == 0, muster.end
    assert muster.tree("logs") == torchrun.tree("logs")
    assert muster.modes("logs") == torchrun.modes("logs")
    assert muster.console()[0] == torchrun.console()[0]


def test_default_log_directory_has_the_same_tree(pair):
    torchrun, muster = pair.run([*LOCALLY, "-r", "3", "printing.py"], files={"printing.py": PRINTING})
    assert muster.tree("tmp") == torchrun.tree("tmp")


def test_default_log_directory_is_not_left_empty(pair):
    torchrun, muster = pair.run([*LOCALLY, "printing.py"], files={"printing.py": PRINTING})
    assert chosen_differences.EMPTY_LOGS
    assert set(torchrun.tree("tmp").values()) == {None}, "empty directories"
    assert muster.tree("tmp") == {}


def test_log_tree_of_a_restart_is_the_same(pair):
    torchrun, muster = pair.run(
        [*LOCALLY, "--max-restarts", "1", "-r", "3", "--log-dir", "{dir}/logs", "fail_once.py"],
        files={"fail_once.py": FAIL_ONCE},
    )
    assert muster.tree("logs") == torchrun.tree("logs")


@pytest.mark.parametrize("script", FAILING)
def test_failure_report_and_exit_status_are_the_same(pair, script):
    torchrun, muster = pair.run([*LOCALLY, f"{script}.py"], files={f"{script}.py": FAILING[script]})
    assert muster.status == torchrun.status == 1, muster.end
    assert muster.report() == torchrun.report()
    assert chosen_differences.ROOT_CAUSE
    assert [heading for heading in muster.report()][1].startswith("Root Cause")


def test_report_and_error_files_of_a_recorded_exception_are_the_same(pair):
    torchrun, muster = pair.run(
        [*LOCALLY, "--log-dir", "{dir}/logs", "recorded.py"],
        files={"recorded.py": RECORDED},
        env={"TORCHELASTIC_ERROR_FILE": "{dir}/error.json"},
    )
    assert muster.status == torchrun.status == 1, muster.end
    assert muster.report() == torchrun.report()
    assert muster.tree("logs") == torchrun.tree("logs")
    ours, theirs = (
        json.loads(side_text(side, "error.json")) for side in (muster, torchrun)
    )
    assert ours == theirs


# What keeps a launcher itself from going on: (options, the words of the program, what it is called there and here).
OWN_FAILURES = {
    "a program that does not exist": (["--standalone"], ["./nowhere"], ("FileNotFoundError", "OSError")),
    "a program that may not run": (["--standalone"], ["/etc/passwd"], ("PermissionError", "OSError")),
    # after a second: torchrun leaves a worker behind whose start a signal interrupts
    "a signal": (["--standalone"], ["sh", "-c", "sleep 1; kill -15 $PPID; sleep 60"], ("SignalException", "SignalException")),
    "a log directory that cannot be": (["--standalone", "--log-dir", "/proc/nowhere"], ["true"], ("FileNotFoundError", "OSError")),
    "nodes that do not come": (
        ["--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-id", "j", "--rdzv-endpoint", "localhost:{port}",
         "--rdzv-conf", "join_timeout=1,last_call_timeout=1"],
        ["true"], ("RendezvousTimeoutError", "RendezvousError"),
    ),
    "fixed nodes that do not come": (
        ["--nnodes", "2", "--master-addr", "localhost", "--master-port", "{port}", "--rdzv-conf", "timeout=1"],
        ["true"], ("DistStoreError", "RendezvousError"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", OWN_FAILURES)
def test_a_launcher_that_fails_itself_leaves_an_error_file_of_torchruns_form(pair, what):
    options, program, names = OWN_FAILURES[what]
    options = [word.replace("{port}", str(free_port())) for word in options]
    sides = pair.run([*options, "--no-python", *program], env={"TORCHELASTIC_ERROR_FILE": "{dir}/error.json"})
    forms = []
    for side, name in zip(sides, names):
        assert side.status == 1, side.end
        content = json.loads((side.directory / "error.json").read_text())
        message, extra = content["message"], content["message"]["extraInfo"]
        assert message["message"].startswith(f"{name}: "), content
        assert message["message"].rstrip(" :") in extra["py_callstack"].splitlines()[-1]
        assert time.time() - 60 < int(extra["timestamp"]) <= time.time()
        forms.append(forms_of(content))
    assert forms[0] == forms[1]


def forms_of(value):
    if isinstance(value, dict):
        return {name: forms_of(member) for name, member in value.items()}
    return type(value).__name__


@pytest.mark.parametrize("what", ["a mistake in the options", "a worker without an error file", "a success"])
def test_no_launcher_leaves_an_error_file_after(pair, what):
    options, program = {
        "a mistake in the options": (["--no-such-option"], "true"),
        "a worker without an error file": ([], "false"),
        "a success": ([], "true"),
    }[what]
    for side in pair.run(
        ["--standalone", *options, "--no-python", program], env={"TORCHELASTIC_ERROR_FILE": "{dir}/error.json"}
    ):
        assert not (side.directory / "error.json").exists(), side.end


def test_an_empty_name_is_no_error_file(pair):
    for side in pair.run([*LOCALLY, "recorded.py"], files={"recorded.py": RECORDED}, env={"TORCHELASTIC_ERROR_FILE": ""}):
        assert side.status == 1 and "ERROR_FILE:" not in side.end.err, side.end


def side_text(side, name):
    path = side.directory / name
    assert path.exists(), f"{side.name} wrote no {name}\n{side.end}"
    return normalise(path.read_text(), side.directory)


def test_compatibility_page_states_exactly_the_chosen_differences():
    page = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
    section = page.split("\n## Chosen differences\n")[1].split("\n## ")[0]
    stated = re.findall(r"^\* \*\*(.+?)\*\*", section, re.MULTILINE)
    assert sorted(stated) == sorted(chosen_differences.ALL)

# SPDX-License-Identifier: BSD-3-Clause
"""What `muster run` exits with."""

import signal

import pytest

from support.ports import free_port

LOCALLY = ["run", "--standalone", "--nproc-per-node", 2, "--no-python"]


def test_all_workers_succeeding_gives_0(muster):
    assert muster.run([*LOCALLY, "true"]).status == 0


@pytest.mark.parametrize("script", ["exit 3", "kill -9 $$$$"])
def test_a_failed_job_gives_1_as_torchrun_does(muster, script):
    assert muster.run([*LOCALLY, "sh", "-c", script]).status == 1


@pytest.mark.parametrize("script, status", [("exit 3", 3), ("kill -9 $$$$", 137), ("kill -TERM $$$$", 143)])
def test_a_failed_job_gives_the_workers_own_status_when_asked(muster, script, status):
    end = muster.run([*LOCALLY[:-1], "--exit-code", "worker", "--no-python", "sh", "-c", script])
    assert end.status == status, end


def test_the_first_failed_worker_decides_the_status(muster):
    script = 'if [ $RANK = 1 ]; then exit 5; fi; sleep 60'
    end = muster.run([*LOCALLY[:-1], "--exit-code", "worker", "--no-python", "sh", "-c", script])
    assert end.status == 5, end


@pytest.mark.parametrize("options, status, error_file", [([], 1, "error.json"), (["--exit-code", "worker"], 143, "")])
def test_a_signal_to_the_agent_gives_its_own_status_when_asked(muster, scratch, options, status, error_file):
    script = "[ $RANK = 0 ] && kill -TERM $PPID; sleep 60"
    end = muster.run([*LOCALLY[:-1], *options, "--no-python", "sh", "-c", script], env={"TORCHELASTIC_ERROR_FILE": error_file})
    assert end.status == status, end
    assert "stopped by SIGTERM" in end.err and "error file" not in end.err, end
    assert not error_file or "got signal: 15" in (scratch / error_file).read_text()


def test_a_signal_while_the_agent_waits_for_other_nodes_gives_its_own_status_when_asked(muster):
    options = ["--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{free_port()}"]
    running = muster.start(["run", *options, "--exit-code", "worker", "--no-python", "true"], env={"LOGLEVEL": "DEBUG"})
    running.wait_until(lambda: "idle -> join" in running.err() or "joining -> join" in running.err(), "the rendezvous")
    running.signal(signal.SIGINT)
    assert running.finish().status == 128 + signal.SIGINT


def test_a_restarted_job_that_succeeds_gives_0(muster):
    script = '[ $TORCHELASTIC_RESTART_COUNT = 2 ] || exit 1'
    end = muster.run([*LOCALLY[:-1], "--max-restarts", 2, "--no-python", "sh", "-c", script])
    assert end.status == 0, end


def test_a_wrong_command_line_gives_2_and_starts_nothing(muster, scratch):
    end = muster.run(["run", "--no-such-option", "touch", scratch / "started"])
    assert end.status == 2
    error, usage = end.err.splitlines()
    assert error.startswith("muster run: error: ") and "--no-such-option" in error
    assert usage.startswith("usage: ")
    assert not (scratch / "started").exists()


def test_help_and_version_go_to_stdout(muster):
    for arguments in (["--version"], ["run", "--version"], ["--help"], ["run", "--help"]):
        end = muster.run(arguments)
        assert end.status == 0, end
        assert end.out and not end.err, end


def test_called_torchrun_it_is_muster_run(muster, scratch):
    link = scratch / "torchrun"
    link.symlink_to(muster.binary)
    end = muster.start(["--nproc-per-node", "2", "--no-python", "sh", "-c", "echo $RANK"], program=link).finish()
    assert end.status == 0
    assert sorted(end.out.split()) == ["0", "1"]


@pytest.mark.parametrize("script, status", [("exit 17", 17), ("kill -BUS $$$$", 128 + signal.SIGBUS)])
def test_a_worker_that_ends_as_told_ends_its_agent_with_its_status(muster, script, status):
    script = f"[ $RANK = 0 ] || exec sleep 600; {script}"
    options = ["--exit-on", "17,SIGBUS", "--max-restarts", 3]
    end = muster.run([*LOCALLY[:-1], *options, "--no-python", "sh", "-c", script])
    assert end.status == status, end
    assert "this node leaves the job" in end.err and "Root Cause" in end.err, end
    assert "restarting the workers" not in end.err, end


def test_a_worker_that_ends_otherwise_is_restarted(muster):
    script = "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3"
    end = muster.run([*LOCALLY[:-1], "--exit-on", "17", "--max-restarts", 1, "--no-python", "sh", "-c", script])
    assert end.status == 0, end


def test_an_end_that_is_none_is_refused(muster):
    end = muster.run([*LOCALLY[:-1], "--exit-on", "17,BUS", "--no-python", "true"])
    assert end.status == 2, end
    assert "--exit-on" in end.err and "'BUS' is neither an exit code from 1 to 255 nor a signal" in end.err, end


def test_others_go_on_when_a_node_leaves_to_be_replaced(make_job):
    job = make_job("1:2")
    stays = job.start_host("node1")
    leaves = job.start("node2", "--exit-on", "17")
    job.wait_for_world("node1", "node2").of("node2").end(17)
    assert leaves.finish().status == 17, job.tell()
    world = job.wait_for_world("node1")
    assert world.restarts == {0}, job.tell()
    world.end()
    assert stays.finish().status == 0, job.tell()

# SPDX-License-Identifier: BSD-3-Clause
"""Bad input: a clear error each, and never a job that half runs."""

import json
import os
import resource
import socket

import pytest

LOCALLY = ["run", "--standalone", "--nproc-per-node", 2]


def assert_refused(end, *said, status=None):
    """It ended with a failure of its own (no signal), and the message holds what it should."""
    assert end.status == status if status is not None else end.status in (1, 2), end
    for words in said:
        assert words in end.err, end


def test_a_missing_program_is_named_with_the_reason(muster):
    end = muster.run([*LOCALLY, "--no-python", "./no-such-program"])
    assert_refused(end, "no-such-program", "No such file or directory", status=1)


def test_a_program_that_may_not_be_executed_is_named_with_the_reason(muster, scratch):
    (scratch / "script").write_text("#!/bin/sh\n")
    assert_refused(muster.run([*LOCALLY, "--no-python", "./script"]), "script", "Permission denied", status=1)


def test_a_program_whose_interpreter_is_missing_is_named_with_the_reason(muster):
    script = muster.script("script", "#!/no/such/interpreter\n")
    end = muster.run([*LOCALLY, "--no-python", script])
    assert_refused(end, "No such file or directory", status=1)


def test_a_missing_python_is_named_with_the_reason(muster):
    end = muster.run([*LOCALLY, "script.py"], env={"PYTHON_EXEC": "/no/such/python"})
    assert_refused(end, "/no/such/python", "No such file or directory", status=1)


@pytest.mark.parametrize("count", ["0", "-1", "Two", "2x", "", "1000000000", "99999999999999999999", "1.5"])
def test_a_worker_count_that_makes_no_sense_is_refused(muster, count):
    end = muster.run(["run", f"--nproc-per-node={count}", "--no-python", "true"])
    assert_refused(end, "--nproc-per-node", status=2)


def test_a_log_directory_that_is_a_file_is_refused(muster, scratch):
    (scratch / "file").touch()
    end = muster.run([*LOCALLY, "--log-dir", scratch / "file", "--no-python", "true"])
    assert_refused(end, str(scratch / "file"), "not a directory", status=1)


def test_a_log_directory_that_cannot_be_made_is_refused(muster):
    end = muster.run([*LOCALLY, "--log-dir", "/proc/no/logs", "--no-python", "true"])
    assert_refused(end, "/proc/no", status=1)


def test_unknown_names_in_a_prefix_template_stay_as_they_are(muster):
    end = muster.run(
        [*LOCALLY, "--tee", "3", "--log-line-prefix-template", "<${rank}${who}$>", "--no-python", "echo", "hello"]
    )
    assert end.status == 0, end
    assert sorted(end.out.splitlines()) == ["<0${who}$>hello", "<1${who}$>hello"]


def test_a_port_that_is_taken_is_named(muster):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        end = muster.run(["run", "--master-port", port, "--no-python", "true"])
    assert_refused(end, str(port), "Address already in use", status=1)


@pytest.mark.parametrize("settings", ["timeout", "timeout=", "=3", "timeout=3,", ","])
def test_rendezvous_settings_that_do_not_parse_are_refused(muster, settings):
    end = muster.run(["run", "--rdzv-conf", settings, "--no-python", "true"])
    assert_refused(end, "--rdzv-conf", status=2)


def test_several_nodes_with_a_backend_of_a_later_version_are_refused(muster):
    end = muster.run(["run", "--nnodes", "2", "--rdzv-backend", "etcd-v2", "--no-python", "true"])
    assert_refused(end, "etcd-v2", "--rdzv-backend c10d", status=2)


ERROR_FILES = {
    "empty": "",
    "broken": '{"message": ',
    "no object": "[1, 2]",
    "no message": "{}",
    "a number for a message": '{"message": 7}',
    "no extra information": '{"message": {"message": "x"}}',
    "deep": "[" * 100000,
    "binary": "\x00\ufffd\x1b[31m",
}


@pytest.mark.parametrize("text", ERROR_FILES.values(), ids=ERROR_FILES.keys())
def test_an_error_file_with_bad_contents_costs_only_the_text(muster, scratch, text):
    (scratch / "bad.json").write_text(text)
    script = 'cp "$BAD" "$TORCHELASTIC_ERROR_FILE"; exit 9'
    end = muster.run([*LOCALLY, "--no-python", "sh", "-c", script], env={"BAD": scratch / "bad.json"})
    assert end.status == 1, end
    assert "exitcode  : 9" in end.err
    assert "\x1b" not in end.err


def test_a_huge_error_file_is_not_read_into_memory(muster):
    script = 'truncate -s 1G "$TORCHELASTIC_ERROR_FILE"; exit 9'
    end = muster.run([*LOCALLY, "--no-python", "sh", "-c", script], timeout=20)
    assert end.status == 1, end
    assert "exitcode  : 9" in end.err


@pytest.mark.parametrize("what", ["ln -s error.json", "mkfifo", "mkdir", "ln -s /dev/zero"])
def test_an_error_file_that_is_no_file_is_not_followed(muster, what):
    script = f'{what} "$TORCHELASTIC_ERROR_FILE"; exit 9'
    end = muster.run([*LOCALLY, "--no-python", "sh", "-c", script], timeout=20)
    assert end.status == 1, end
    assert "exitcode  : 9" in end.err


def test_a_good_error_file_ends_up_in_the_report_and_in_the_agents_own(muster, scratch):
    message = {"message": "boom", "extraInfo": {"py_callstack": "Traceback\n  line 1\n", "timestamp": "1795175835"}}
    (scratch / "good.json").write_text(json.dumps({"message": message}))
    script = '[ $RANK = 0 ] || exec sleep 60; cp "$GOOD" "$TORCHELASTIC_ERROR_FILE"; exit 9'
    own = scratch / "own.json"
    end = muster.run(
        [*LOCALLY, "--no-python", "sh", "-c", script],
        env={"GOOD": scratch / "good.json", "TORCHELASTIC_ERROR_FILE": own},
    )
    assert "traceback : Traceback" in end.err, end
    assert json.loads(own.read_text())["message"]["errorCode"] == 9


def limit(kind, value):
    return lambda: resource.setrlimit(kind, (value, value))


def test_few_descriptors_either_suffice_or_are_named(muster):
    arguments = ["run", "--standalone", "--nproc-per-node", 16, "--tee", "3", "--no-python", "true"]
    end = muster.run(arguments, preexec_fn=limit(resource.RLIMIT_NOFILE, 32))
    if end.status != 0:
        assert_refused(end, "Too many open files", status=1)


NOBODY = 65534


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 5, 6, 8])
def test_a_failing_fork_is_named_and_leaves_nothing(muster, scratch, processes):
    """The limit counts threads too, so each number stops the start at another point."""
    muster.share()  # root may always fork
    somebody_else = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    end = muster.start(
        [*LOCALLY, "--no-python", "true"], preexec_fn=limit(resource.RLIMIT_NPROC, processes),
        **somebody_else,
    ).finish()
    if end.status != 0:
        assert_refused(end, "Resource temporarily unavailable", status=1)


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 5, 6])
def test_a_failing_fork_of_a_node_with_a_register_is_named_at_once(muster, scratch, processes):
    """The register has a thread of its own. Nobody waits for other nodes because it cannot be started."""
    muster.share()
    (scratch / "register").mkdir()
    (scratch / "register").chmod(0o777)
    somebody_else = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    end = muster.start(
        ["run", "--nnodes", "1:2", "--rdzv-backend", "dir", "--rdzv-endpoint", scratch / "register", "--rdzv-id", "job",
         "--rdzv-conf", "last_call_timeout=1", "--local-addr", "127.0.0.1", "--nproc-per-node", "4", "--no-python", "true"],
        preexec_fn=limit(resource.RLIMIT_NPROC, processes), **somebody_else,
    ).finish()  # fmt: skip
    if end.status != 0:
        assert_refused(end, "Resource temporarily unavailable", status=1)


def test_a_worker_may_close_its_output(muster):
    end = muster.run([*LOCALLY, "--tee", "3", "--no-python", "sh", "-c", "exec >&- 2>&-; sleep 0.1"])
    assert end.status == 0, end


def test_binary_output_passes_unchanged_into_the_log_file(muster, scratch):
    script = "head -c 200000 /dev/urandom | tee $SCRATCH_OF_TEST/raw.$RANK"
    end = muster.run([*LOCALLY, "-r", "3", "--log-dir", scratch / "logs", "--no-python", "sh", "-c", script])
    assert end.status == 0, end
    for rank in range(2):
        (log,) = (scratch / "logs").glob(f"*/attempt_0/{rank}/stdout.log")
        assert log.read_bytes() == (scratch / f"raw.{rank}").read_bytes()

# SPDX-License-Identifier: BSD-3-Clause
"""Which option sends which stream where, and what a console in trouble costs."""

import collections
import contextlib
import os
import re
import signal
import threading

import pytest

pytestmark = pytest.mark.threads


def locally(*options, workers=2):
    return ["run", "--standalone", "--nproc-per-node", workers, *options, "--no-python"]


BOTH_STREAMS = ("sh", "-c", "echo out $RANK; echo err $RANK >&2")


def files_of(logs):
    """{"0/stdout.log": text, …} of the only attempt below a log directory."""
    (attempt,) = logs.glob("*/attempt_0")
    files = (path for path in attempt.rglob("*") if path.is_file())
    return {str(path.relative_to(attempt)): path.read_bytes().decode() for path in files}


def workers_lines(text):
    """The lines of workers on a console that also has records of the agent."""
    return sorted(line for line in text.splitlines() if re.search(r"(out|err) \d+$", line))


def test_without_options_streams_are_inherited_and_directories_empty(muster, scratch):
    end = muster.run([*locally("--log-dir", scratch / "logs"), *BOTH_STREAMS])
    assert end.status == 0, end
    assert workers_lines(end.out) == ["out 0", "out 1"]
    assert workers_lines(end.err) == ["err 0", "err 1"]
    assert files_of(scratch / "logs") == {}
    assert sorted(path.name for path in (scratch / "logs").glob("*/attempt_0/*")) == ["0", "1"]


def test_streams_are_chosen_for_each_rank(muster, scratch):
    end = muster.run(
        [*locally("-r", "0:1,11:2", "-t", "1:3,10:1", "--log-dir", scratch / "logs", workers=12), *BOTH_STREAMS]
    )
    assert end.status == 0, end
    assert files_of(scratch / "logs") == {
        "0/stdout.log": "out 0\n",
        "1/stdout.log": "out 1\n",
        "1/stderr.log": "err 1\n",
        "10/stdout.log": "out 10\n",
        "11/stderr.log": "err 11\n",
    }
    plain = {f"out {rank}" for rank in range(12)} - {"out 0", "out 1", "out 10"}
    assert set(workers_lines(end.out)) == plain | {"[default1]:out 1", "[default10]:out 10"}
    plain = {f"err {rank}" for rank in range(12)} - {"err 1", "err 11"}
    assert set(workers_lines(end.err)) == plain | {"[default1]:err 1"}


def test_ranks_outside_the_filter_write_files_but_not_the_console(muster, scratch):
    end = muster.run(
        [*locally("--local-ranks-filter", "1", "--tee", "1", "--log-dir", scratch / "logs"), *BOTH_STREAMS]
    )
    assert end.status == 0, end
    assert end.out == "[default1]:out 1\n"
    assert workers_lines(end.err) == ["err 1"]
    assert files_of(scratch / "logs") == {"0/stdout.log": "out 0\n", "1/stdout.log": "out 1\n"}


def test_the_prefix_is_made_from_the_template(muster):
    end = muster.run(
        [
            *locally("--tee", "1", "--role", "trainer"),
            *("--log-line-prefix-template", "${role_name}/$local_rank/${rank} $$> ", "echo", "hello"),
        ]
    )
    assert sorted(end.out.splitlines()) == ["trainer/0/0 $> hello", "trainer/1/1 $> hello"]


def test_an_empty_template_is_the_default_prefix(muster):
    end = muster.run([*locally("--tee", "1", "--log-line-prefix-template", "", workers=1), "echo", "hello"])
    assert end.out == "[default0]:hello\n"


def test_matching_lines_of_all_ranks_are_collected_with_their_prefixes(muster, scratch):
    script = "echo epoch $RANK; echo loss $RANK; printf 'last loss %s' $RANK"
    end = muster.run(
        [
            *locally("--tee", "1", "--duplicate-stdout-filters", "loss,nothing", "--log-dir", scratch / "logs"),
            *("sh", "-c", script),
        ]
    )
    assert end.status == 0, end
    files = files_of(scratch / "logs")
    expected = [f"[default{rank}]:{text}loss {rank}" for rank in (0, 1) for text in ("", "last ")]
    assert sorted(files["filtered_stdout.log"].splitlines()) == sorted(expected)
    assert files["0/stdout.log"] == "epoch 0\nloss 0\nlast loss 0"
    assert "filtered_stderr.log" not in files


def test_a_filtered_file_is_made_even_if_no_stream_feeds_it(muster, scratch):
    end = muster.run(
        [*locally("-r", "1", "--duplicate-stdout-filters", "out", "--log-dir", scratch / "logs"), *BOTH_STREAMS]
    )
    assert end.status == 0, end
    assert files_of(scratch / "logs")["filtered_stdout.log"] == ""


def test_without_a_log_directory_nothing_is_redirected(muster, scratch):
    end = muster.run([*locally("-r", "3", "--log-dir", "/dev/null"), *BOTH_STREAMS])
    assert end.status == 0, end
    assert workers_lines(end.out) == ["out 0", "out 1"]
    assert not list(scratch.glob("*/attempt_*"))


def test_filters_without_a_log_directory_are_refused(muster):
    end = muster.run([*locally("--tee", "1", "--log-dir", "/dev/null", "--duplicate-stdout-filters", "x"), "true"])
    assert end.status == 2, end
    assert "--log-dir" in end.err and "--duplicate-stdout-filters" in end.err


def test_a_progress_bar_becomes_one_line_per_update(muster, scratch):
    end = muster.run(
        [*locally("--tee", "1", "--log-dir", scratch / "logs", workers=1), "printf", "10%%\\r20%%\\r30%%\\r\\ndone\\n"]
    )
    assert end.out == "[default0]:10%\n[default0]:20%\n[default0]:30%\n[default0]:done\n"
    assert files_of(scratch / "logs") == {"0/stdout.log": "10%\r20%\r30%\r\ndone\n"}


def test_binary_output_reaches_the_console_as_valid_text(muster, scratch):
    reader, writer = os.pipe()
    running = muster.start(
        [*locally("--tee", "1", workers=1), "sh", "-c", "head -c 300000 /dev/urandom"], stdout=writer
    )
    os.close(writer)
    with open(reader, encoding="utf-8", errors="strict", newline="\n") as console:
        lines = console.readlines()
    assert running.finish().status == 0
    assert lines and all(line.startswith("[default0]:") and line.endswith("\n") for line in lines)


class SlowConsole:
    """A pipe for stdout and stderr together that is read only when told to."""

    def __init__(self):
        self.reader, self.writer = os.pipe()
        self.text = None
        self.thread = threading.Thread(target=self.read)

    def read(self):
        with open(self.reader, "rb") as console:
            self.text = console.read().decode()

    def start_reading(self):
        self.thread.start()

    def all(self):
        self.thread.join(60)
        return self.text


def test_a_console_that_was_stuck_gets_every_line_in_order_and_then_the_report(muster, scratch):
    console = SlowConsole()
    script = 'seq 100000; : >"finished.$RANK"; while [ ! -e go ]; do sleep 0.02; done; exit 3'
    running = muster.start([*locally("--tee", "1"), "sh", "-c", script], stdout=console.writer, stderr=console.writer)
    os.close(console.writer)
    running.wait_until(lambda: len(list(scratch.glob("finished.*"))) == 2, "both workers to finish writing")
    (scratch / "go").touch()
    console.start_reading()
    end = running.finish()
    text = console.all()
    assert end.status == 1
    numbers = collections.defaultdict(list)
    for rank, number in re.findall(r"^\[default(\d)\]:(\d+)$", text, re.MULTILINE):
        numbers[rank].append(int(number))
    for rank in "01":
        assert numbers[rank] == list(range(1, 100001))
    assert text.rindex("[default") < text.rindex("exitcode")


def test_records_of_the_agent_do_not_cut_lines_on_a_shared_console(muster):
    console = SlowConsole()
    console.start_reading()
    script = 'i=0; while [ $i -lt 3000 ]; do printf "a line of"; echo " rank $RANK"; i=$((i+1)); done; [ $RANK = 0 ]'
    running = muster.start(
        [*locally("--tee", "3", "--max-restarts", "1"), "sh", "-c", script],
        stdout=console.writer, stderr=console.writer, env={"LOGLEVEL": "DEBUG"},
    )
    os.close(console.writer)
    running.finish()
    for line in console.all().splitlines():
        if "a line of" in line:
            assert re.fullmatch(r"\[default(\d)\]:a line of( rank \1)?", line), line  # killed in a line


def test_a_console_on_a_full_disk_does_not_end_the_job(muster):
    with open("/dev/full", "wb") as full:
        end = muster.run([*locally("--tee", "1"), "seq", "1000"], stdout=full)
    assert end.status == 0, end
    assert len(re.findall("cannot write to stdout", end.err)) == 1, end


def test_a_stray_descendant_that_holds_the_pipe_does_not_hold_up_the_job(muster, scratch):
    stray = muster.script("stray_process", "#!/bin/sh\necho $$ >stray\nexec sleep 60\n")
    script = f"(setsid {stray} &); while [ ! -s stray ]; do :; done; echo done"
    end = muster.run([*locally("--tee", "1", workers=1), "sh", "-c", script], timeout=20)
    with contextlib.suppress(ProcessLookupError):  # the agent may have found it
        os.kill(int((scratch / "stray").read_text()), signal.SIGKILL)
    assert end.status == 0, end
    assert end.out == "[default0]:done\n"


@pytest.mark.plain_build
def test_eight_workers_flooding_the_console_cost_little_memory(muster, scratch):
    """The agent's peak, as the kernel counted it, while nobody reads what eight workers pour out."""
    console = SlowConsole()
    script = 'seq 200000; : >"finished.$RANK"; while [ ! -e go ]; do sleep 0.02; done'
    running = muster.start([*locally("--tee", "1", workers=8), "sh", "-c", script], stdout=console.writer)
    os.close(console.writer)
    running.wait_until(lambda: len(list(scratch.glob("finished.*"))) == 8, "all workers to finish writing")
    with open(f"/proc/{running.pid}/status", encoding="ascii") as status:
        peak = int(re.search(r"VmHWM:\s+(\d+) kB", status.read()).group(1))
    console.start_reading()
    (scratch / "go").touch()
    assert running.finish().status == 0
    assert console.all().count("\n") == 8 * 200000
    assert peak < 6 * 1024, f"{peak} kB"

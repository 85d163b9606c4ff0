# SPDX-License-Identifier: BSD-3-Clause
"""What workers write, on its way to the console and into files."""

import os
import re
import signal

import pytest

from support.disks import small_file_system
from support.network import require_network
from support.terminal import open_terminal

pytestmark = pytest.mark.threads


def locally(*options, workers=2):
    return ["run", "--standalone", "--nproc-per-node", workers, *options, "--no-python"]


def test_lines_of_several_workers_never_mix_within_a_line(muster, scratch):
    script = muster.script(
        "worker", '#!/bin/sh\ni=0\nwhile [ $i -lt 2000 ]; do printf %s "$RANK"; echo "-$i-$RANK"; i=$((i+1)); done\n'
    )
    end = muster.run([*locally("--tee", "1", workers=4), script])
    lines = end.out.splitlines()
    assert len(lines) == 8000
    for line in lines:
        assert re.fullmatch(r"\[default(\d)\]:\1-\d+-\1", line), line
    for rank in range(4):
        numbers = [int(line.split("-")[1]) for line in lines if line.startswith(f"[default{rank}]")]
        assert numbers == list(range(2000))


def test_an_unfinished_last_line_still_appears(muster):
    end = muster.run([*locally("--tee", "3"), "printf", "no newline"])
    assert sorted(end.out.splitlines()) == ["[default0]:no newline", "[default1]:no newline"]


def test_a_line_written_in_pieces_gets_one_prefix(muster):
    end = muster.run([*locally("--tee", "1"), "sh", "-c", "printf abc; sleep 0.3; echo def"])
    assert sorted(end.out.splitlines()) == ["[default0]:abcdef", "[default1]:abcdef"]


def test_redirected_streams_do_not_reach_the_console(muster, scratch):
    end = muster.run([*locally("-r", "3", "--log-dir", scratch / "logs"), "sh", "-c", "echo out; echo err >&2"])
    assert end.out == ""
    assert "err\n" not in end.err
    for name, text in (("stdout", "out\n"), ("stderr", "err\n")):
        logs = sorted((scratch / "logs").glob(f"*/attempt_0/*/{name}.log"))
        assert [log.read_text() for log in logs] == [text, text]


def test_a_closed_console_neither_blocks_nor_kills_a_worker(muster, scratch):
    reader, writer = os.pipe()
    running = muster.start(
        [*locally("--tee", "3", "--log-dir", scratch / "logs"), "sh", "-c", "sleep 0.2; seq 100000; echo done >&2"],
        stdout=writer, stderr=writer,
    )
    os.close(writer)
    os.close(reader)
    assert running.finish(timeout=30).status == 0
    for log in (scratch / "logs").glob("*/attempt_0/*/stdout.log"):
        assert log.read_text().endswith("\n100000\n")


def test_a_console_nobody_reads_does_not_block_a_worker(muster, scratch):
    reader, writer = os.pipe()
    script = "seq 300000; : >finished.$RANK"
    running = muster.start(
        [*locally("--tee", "1", "--log-dir", scratch / "logs"), "sh", "-c", script], stdout=writer
    )
    os.close(writer)
    running.wait_until(lambda: len(list(scratch.glob("finished.*"))) == 2, "workers to finish writing", timeout=30)
    os.close(reader)
    running.finish(timeout=30)


FILLS_THE_CONSOLE = "yes | head -c 300000; : >full; "


@pytest.mark.parametrize("end", ["a signal", "a failure", "a success"])
def test_a_console_nobody_reads_holds_up_the_end_no_longer_than_workers_may(muster, scratch, end):
    """And what was written is in the files. Nobody reads the agent's own words either."""
    reader, writer = os.pipe()
    rest = {"a signal": "trap 'exit 0' TERM; while :; do sleep 0.02; done", "a failure": "exit 3", "a success": ":"}[end]
    options = ["--tee", 3, "--log-dir", scratch / "logs", "--shutdown-timeout", 1]
    running = muster.start(
        [*locally(*options, workers=1), "sh", "-c", FILLS_THE_CONSOLE + rest], stdout=writer, stderr=writer)
    os.close(writer)
    running.wait_until((scratch / "full").exists, "what is written")
    if end == "a signal":
        running.signal(signal.SIGTERM)
    ended = running.finish(timeout=20)  # the patience that does not look at --shutdown-timeout is 30 s
    assert ended.status == (0 if end == "a success" else 1), ended
    assert [log.stat().st_size for log in (scratch / "logs").glob("*/attempt_0/0/stdout.log")] == [300000]
    os.close(reader)


def room_of(side):
    """Fills a terminal that nobody reads; returns how much it took."""
    os.set_blocking(side, False)
    taken = 0
    try:
        while True:
            taken += os.write(side, b"x")
    except BlockingIOError:
        return taken


def test_a_terminal_with_room_for_half_a_line_holds_up_no_agent(muster):
    """It can be written to, and yet a write would wait."""
    measured, measured_side = open_terminal()
    room = room_of(measured_side)
    terminal, side = open_terminal()
    for _ in range(room - 40):
        os.write(side, b"x")
    running = muster.start([*locally(workers=1), "sh", "-c", "exit 3"], stdout=side, stderr=side)
    assert running.finish(timeout=20).status == 1
    for fd in (measured, measured_side, terminal, side):
        os.close(fd)


@pytest.mark.plain_build
def test_a_flood_of_output_arrives_whole(muster, scratch):
    flood = "dd if=/dev/zero bs=1M count=100 status=none | tr '\\0' x | fold -w 99"
    end = muster.run([*locally("-r", "1", "--log-dir", scratch / "logs"), "sh", "-c", flood], timeout=60)
    assert end.status == 0, end
    sizes = [log.stat().st_size for log in (scratch / "logs").glob("*/attempt_0/*/stdout.log")]
    lines = -(-(100 << 20) // 99)
    assert len(sizes) == 2 and all(abs(size - (100 << 20) - lines) <= 1 for size in sizes), sizes


def test_a_very_long_line_does_not_grow_the_agent_without_bound(muster, scratch):
    script = "head -c 50000000 /dev/zero | tr '\\0' y"
    end = muster.run([*locally("--tee", "1", "--log-dir", scratch / "logs", workers=1), "sh", "-c", script])
    assert end.status == 0, end
    (log,) = (scratch / "logs").glob("*/attempt_0/0/stdout.log")
    assert log.stat().st_size == 50000000
    assert end.out.count("y") == 50000000


@pytest.fixture
def full_disk(scratch):
    """A mounted file system with room for next to nothing."""
    with small_file_system(scratch / "full", "size=64k,nr_inodes=40") as path:
        yield path


def test_a_full_disk_is_reported_once_and_does_not_end_the_job(muster, full_disk):
    end = muster.run([*locally("-r", "1", "--log-dir", full_disk / "logs", workers=1), "sh", "-c", "seq 200000"])
    assert end.status == 0, end
    assert len(re.findall(r"cannot write .*No space left on device", end.err)) == 1, end


def test_a_disk_that_fills_up_does_not_cost_the_restart(muster, full_disk):
    script = (
        "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then i=0; while : >full/$i; do i=$((i + 1)); done 2>/dev/null; "
        "head -c 99999 /dev/zero >full/rest 2>/dev/null; exit 1; fi; echo attempt 1 >&2"
    )
    end = muster.run(
        [*locally("--max-restarts", 1, "-r", "1", "-t", "2", "--log-dir", full_disk / "logs", workers=1), "sh", "-c", script]
    )
    assert end.status == 0, end
    assert "attempt 1 goes on without log files" in end.err
    assert "attempt 1\n" in end.err


def test_only_chosen_ranks_are_shown(muster):
    end = muster.run([*locally("--local-ranks-filter", "1"), "sh", "-c", "echo rank $RANK"])
    assert end.out.splitlines() == ["rank 1"]


def test_output_appears_while_the_worker_still_runs(muster, scratch):
    running = muster.start([*locally("--tee", "1", workers=1), "sh", "-c", "echo early; while [ ! -e go ]; do sleep 0.02; done"])
    running.wait_until(lambda: "early" in running.out(), "the first line")
    assert running.process.poll() is None
    (scratch / "go").touch()
    assert running.finish().status == 0


def test_logs_of_every_attempt_are_kept(muster, scratch):
    script = "echo attempt $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 2 ]"
    end = muster.run(
        [*locally("--max-restarts", "2", "-r", "1", "--log-dir", scratch / "logs", workers=1), "sh", "-c", script]
    )
    assert end.status == 0, end
    (run,) = (scratch / "logs").iterdir()
    for attempt in range(3):
        assert (run / f"attempt_{attempt}/0/stdout.log").read_text() == f"attempt {attempt}\n"


# Removes what it is told to in its first life, and writes something in its second.
PURGES = """
if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then rm -rf "$1"; exit 3; fi
echo words >&2
echo '{"message": {"message": "the reason", "extraInfo": {"timestamp": "1"}}}' >"$TORCHELASTIC_ERROR_FILE"
exit 4
"""


@pytest.mark.parametrize("is_given", [True, False], ids=["--log-dir", "TMPDIR"])
def test_a_log_directory_that_is_removed_is_made_anew(muster, scratch, is_given):
    """With all that is above it, as far as it is the job's."""
    where = scratch / "removed"
    where.mkdir()
    given = ["--log-dir", where / "a" / "b"] if is_given else []
    options = [*locally("--max-restarts", 1, "-r", 2, *given, workers=1)]
    end = muster.run([*options, "sh", "-c", PURGES, "sh", where], env={"TMPDIR": where})
    assert end.status == 1, end
    assert "was removed while the job ran; it is made anew" in end.err, end
    assert "the reason" in end.err and "last lines of log_file:\n  | words" in end.err, end
    assert len(list(where.glob("**/attempt_1/0/stderr.log"))) == 1, end


def test_where_it_cannot_be_made_anew_workers_are_told_of_no_file(muster, scratch):
    spoils = 'if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then rm -rf "$1"; : >"$1"; exit 3; fi; echo "[$TORCHELASTIC_ERROR_FILE]"'
    end = muster.run([*locally("--max-restarts", 1, "--log-dir", scratch / "logs", workers=1), "sh", "-c", spoils, "sh", scratch / "logs"])
    assert end.status == 0 and end.out == "[]\n", end
    assert "attempt 1 goes on without log files" in end.err and "is not a directory" in end.err, end


# With a copy of the program, which may lie below one of these.
NOTHING_IS_WRITABLE = """mount -t tmpfs none "$0"; cp "$1" "$0/muster"; mount -o remount,ro "$0"; shift
for d in /tmp /var/tmp /run /dev/shm; do mount -t tmpfs -o ro none $d; done; cd "$0"; exec "$0/muster" "$@\""""


def where_nothing_is_writable(muster, *options):
    require_network()
    command = ["--mount", "sh", "-c", NOTHING_IS_WRITABLE, "/mnt", muster.binary, *locally(*options, workers=1), "/bin/echo", "it runs"]
    return muster.start(command, program="unshare", env={"TMPDIR": "/tmp"}).finish()


def test_a_job_that_asks_for_no_files_needs_no_place_for_any(muster):
    end = where_nothing_is_writable(muster)
    assert end.status == 0 and end.out == "it runs\n", end
    assert "Read-only file system" in end.err, end


@pytest.mark.parametrize("options", [("-r", 1), ("-t", 3), ("--log-dir", "/mnt/logs")])
def test_who_asks_for_files_hears_where_else_they_can_be(muster, options):
    end = where_nothing_is_writable(muster, *options)
    assert end.status == 1 and end.out == "", end
    assert "Read-only file system (--log-dir names another directory, TMPDIR" in end.err, end


def test_a_restart_says_what_the_failed_worker_wrote_last_and_where(muster, scratch):
    """Nothing waits for the disk of the file, so the new workers stay until it is said."""
    script = """if [ $TORCHELASTIC_RESTART_COUNT = 1 ]; then until [ -e go ]; do sleep 0.02; done; exit 0; fi
[ $RANK = 1 ] || exec sleep 100; printf "Traceback\\n\\nboom\\033[2J\\n" >&2; exit 3"""
    running = muster.start([*locally("--max-restarts", 1, "-r", 2, "--log-dir", scratch / "logs"), "sh", "-c", script])
    running.wait_until(lambda: "wrote last" in running.err(), "the line")
    (scratch / "go").touch()
    end = running.finish()
    assert end.status == 0, end
    (log,) = (scratch.resolve() / "logs").glob("*/attempt_0/1/stderr.log")
    assert [line for line in end.err.splitlines() if line.endswith(f"local_rank 1, which failed, wrote last: boom?[2J; its log is {log}")], end


@pytest.mark.parametrize("options, said", [
    ((), "local_rank 0: its stderr went straight to the console; -t 2 keeps it in a file, too"),
    (("-r", 1), "its stderr went straight to the console; -t 2"),
    (("-t", 2, "--log-dir", "/dev/null"), "a --log-dir and -t 2 keep it"),
    (("--local-ranks-filter", 1), "was discarded (--local-ranks-filter)"),
    (("-r", 2), None),
])
def test_a_report_without_words_says_where_they_went(muster, options, said):
    """Each worker's streams are the agent's own, unless something else is asked for."""
    end = muster.run([*locally(*options, workers=2), "sh", "-c", "[ $RANK = 1 ] || { echo words >&2; exit 3; }; exec sleep 100"])
    assert end.status == 1, end
    assert end.err.count("the report has no words") == (1 if said else 0), end  # of the root cause alone
    assert said is None or said in end.err, end


def test_without_files_a_workers_terminal_stays_a_terminal(muster):
    terminal, side = open_terminal()
    running = muster.start([*locally(workers=1), "sh", "-c", "test -t 1 && test -t 2"], stdout=side, stderr=side)
    os.close(side)
    assert running.finish().status == 0
    os.close(terminal)

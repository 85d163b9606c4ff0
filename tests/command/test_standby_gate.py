# SPDX-License-Identifier: BSD-3-Clause
"""What the hook does at the gate."""

import os
import sys
import time

import pytest

from support.gatekeeper import BODY_IN_FILE, EVIDENCE_SIGNAL, ROUND, read_file, u32
from support.standby_programs import MARKED, keeper, learn, library, marks, write  # noqa: F401 (fixtures)
from support.terminal import open_terminal

pytestmark = pytest.mark.plain_build  # the hook is Python alone, and the agent is played here


def test_what_was_printed_while_warming_comes_first(keeper, scratch, library):
    write(library, {"one.py": "import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\n"})
    write(scratch, {"script.py": "print('before')\nimport one\nprint('after')\n"})
    warm = keeper.warm(["script.py"], learn(keeper, library), PYTHONPATH=library)
    assert (warm.out, warm.err) == (b"to stdout\nbefore\nafter\n", b"to stderr\n")


def open_pair(kind, path):
    """(what the worker's streams are, what we write into)"""
    if kind == "pipe":
        return os.pipe()
    if kind == "terminal":
        ours, theirs = open_terminal()
        return theirs, ours
    return os.open(path, os.O_CREAT | os.O_RDWR), os.open(path, os.O_RDWR)


@pytest.mark.parametrize("kind", ["pipe", "terminal", "file"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_streams_are_those_of_a_cold_start(keeper, scratch, kind, unbuffered):
    write(scratch, {
        "script.py": """
            import os, sys
            with open("told", "w") as file:
                for s in sys.stdin, sys.stdout, sys.stderr:
                    print(s.seekable(), s.isatty(), s.line_buffering, s.write_through, type(s.buffer), file=file)
                    print(s.name, s.mode, s.buffer.seekable(), s.tell() if s.seekable() else "", file=file)
                print(sys.stdin.readline(), os.lseek(0, 0, 1) if sys.stdin.seekable() else "", file=file)
            """,
        "without-u": f"#!/bin/sh\nshift\nexec {sys.executable} \"$@\"\n",
    })
    (scratch / "without-u").chmod(0o755)
    keeper.python = str(scratch / "without-u")
    told = []
    for way in "cold", "recorded", "warm":
        theirs, ours = open_pair(kind, scratch / "data")
        os.write(ours, b"to skip\na line\nanother\n")
        os.read(theirs, 8)
        streams = [theirs, ours if kind == "pipe" else theirs, ours if kind == "pipe" else theirs]
        names = {"PYTHONUNBUFFERED": unbuffered}
        if way == "warm":
            spare = keeper.spare(["script.py"], **names)
            spare.warm({})
            spare.open_gate(streams)
            process = spare.process
        else:
            fds = (keeper.record_file(),) if way == "recorded" else ()
            environment = keeper.environment("record" if fds else None, **names)
            process = keeper.start(["script.py"], environment, fds, streams)
        assert process.wait(60) == 0
        told.append((scratch / "told").read_text())
        os.close(theirs)
        os.close(ours)
    assert "a line" in told[0] and told == 3 * [told[0]]


def test_an_edited_script_runs_as_it_is_then(keeper, scratch):
    write(scratch, {"script.py": "print('old')\n"})
    spare = keeper.spare(["script.py"])
    spare.warm({})
    write(scratch, {"script.py": "print('new')\n"})
    spare.open_gate(keeper.streams())
    assert spare.finish().out == b"new\n"


def test_a_file_that_comes_to_hide_a_module_is_seen_at_the_gate(keeper, scratch, library):
    write(library, {"one.py": ""})
    write(scratch, {"script.py": MARKED})
    spare = keeper.spare(["script.py"], PYTHONPATH=library)
    spare.warm({"one": str(library / "one.py")})
    write(scratch, {"one.py": ""})
    spare.tell(b"G" + u32(0) + spare.body(), [*keeper.streams(), keeper.record_file()])
    assert spare.reason() == "the program's directory has changed"
    assert marks(scratch) == 0


@pytest.mark.parametrize("in_file", [False, True])
def test_the_environment_is_that_of_a_cold_start(keeper, scratch, in_file):
    write(scratch, {"script.py": """
        import os, subprocess, sys
        print(sorted(os.environ.items()), sorted(os.environb.items()), flush=True)
        lines = subprocess.run(["env", "-0"], stdout=subprocess.PIPE).stdout.split(b"\\0")
        sys.stdout.buffer.write(repr(sorted(lines)).encode())
        """})
    lasting = {f"NAME_{number}": "x" * 1000 for number in range(200 if in_file else 20)}
    lasting |= {"EQUAL": "a=b", "EMPTY": "", "BYTES": os.fsdecode(b"\xff"), "LOCAL_RANK": "1"}
    lasting["TORCHELASTIC_ERROR_FILE"] = "old"
    names = {**ROUND, "TORCHELASTIC_ERROR_FILE": "new", "TORCHELASTIC_RESTART_COUNT": "7"}
    cold = keeper.cold(["script.py"], names={**lasting, **names})
    spare = keeper.spare(["script.py"], **lasting)
    spare.warm({})
    spare.changes = {}
    spare.open_gate(keeper.streams(), names={**lasting, **names}, in_file=in_file)
    assert spare.finish().visible() == cold.visible()


def test_what_a_wrapper_and_imports_do_to_the_environment_stays(keeper, scratch, library):
    write(library, {"one.py": "import os\nos.environ['SET_BY_IMPORT'] = 'x'\nos.environ.pop('KEPT_UNTIL_IMPORT')\n"})
    write(scratch, {
        "script.py": "import one, os\nprint(sorted(os.environ.items()))\n",
        "wrapper": "#!/bin/sh\nunset UNSET\nexport SET=y CHANGED=new RANK=9 CARD=$LOCAL_RANK\n"
                   f"exec {sys.executable} \"$@\"\n",
    })
    (scratch / "wrapper").chmod(0o755)
    keeper.python = str(scratch / "wrapper")
    names = {"PYTHONPATH": library, "UNSET": "u", "CHANGED": "old", "KEPT_UNTIL_IMPORT": "k", "LOCAL_RANK": "1"}
    cold = keeper.cold(["script.py"], **names)
    recorded = keeper.recorded(["script.py"], **names)
    assert recorded.visible() == cold.visible() and b"('CARD', '1')" in cold.out
    assert keeper.warm(["script.py"], recorded.modules(), **names).visible() == cold.visible()


def test_the_directory_is_that_of_the_message(keeper, scratch):
    (scratch / "elsewhere").mkdir()
    write(scratch, {"script.py": "import os; print(os.getcwd())"})
    spare = keeper.spare([scratch / "script.py"])
    spare.warm({})
    spare.cwd = scratch / "elsewhere"
    spare.open_gate(keeper.streams())
    assert spare.finish().out.decode() == f"{scratch}/elsewhere\n"


@pytest.mark.parametrize("kind, why", [("missing", "No such file or directory"), ("file", "Not a directory")])
def test_a_directory_that_it_cannot_go_to_is_named(keeper, scratch, kind, why):
    write(scratch, {"script.py": MARKED, "file": ""})
    spare = keeper.spare(["script.py"])
    spare.warm({})
    spare.tell(b"G" + u32(0) + spare.body(cwd=scratch / kind), [*keeper.streams(), keeper.record_file()])
    assert spare.reason() == f"cannot change to the working directory {scratch}/{kind}: {why}"
    assert marks(scratch) == 0


def test_the_end_of_the_agent_is_the_end_of_the_standby_worker(keeper, scratch):
    write(scratch, {"script.py": MARKED})
    for steps in range(3):
        spare = keeper.spare(["script.py"])
        if steps == 1:
            spare.hear()
        if steps == 2:
            spare.warm({})
        spare.gate.close()
        assert spare.process.wait(60) in (0, 77)
    assert marks(scratch) == 0


def torn_messages(body):
    whole = b"G" + u32(0) + body
    yield from (whole[:length] for length in (1, 3, 5, 7, 9, 20, len(whole) - 1))
    yield b"G" + u32(0) + u32(1 << 31) + body
    yield b"G" + u32(BODY_IN_FILE)
    yield b"L"
    yield b"?" + body
    yield b"G" * 300000


def test_a_torn_or_unknown_message_starts_nothing(keeper, scratch):
    write(scratch, {"script.py": MARKED})
    for message in torn_messages(keeper.spare(["script.py"]).body()):
        for fds in [*keeper.streams(), keeper.record_file()], [], [0] * 12:
            spare = keeper.spare(["script.py"])
            spare.warm({})
            try:
                spare.tell(message, fds)
            except OSError:
                continue  # The kernel does not carry that many bytes.
            assert spare.reason()
    assert marks(scratch) == 0


def test_a_list_that_is_none_ends_the_standby_worker(keeper, scratch):
    write(scratch, {"script.py": MARKED})
    for message, fds in (b"L", []), (b"X", [0]), (b"L", [keeper.keep(os.pipe()[0])]):
        spare = keeper.spare(["script.py"])
        assert spare.hear()[0] == "H"
        spare.tell(message, fds)
        assert spare.hear()[0] in ("D", "P")
        spare.gate.close()
        assert spare.process.wait(60) in (0, 77)
    spare = keeper.spare(["script.py"])
    assert spare.warm({"": "", "\t": "\n", "json\0": "x", "a" * 100000: "", "..": "", "json.": ""})[0] <= 30
    assert marks(scratch) == 0


def test_names_come_in_the_order_of_a_worker(keeper, scratch):
    write(scratch, {"script.py": "import os, posix\nprint(*os.environ, os.environ._data is posix.environ, type(posix.environ))\n"})
    assert keeper.warm(["script.py"], {}, BEHIND="2").out == keeper.cold(["script.py"], BEHIND="2").out


# Files that change while a standby worker waits.
CHANGED = {
    "longer": lambda path: path.write_text("VERSION = 'another'\n"), "gone": lambda path: path.unlink(),
    "as long": lambda path: path.write_text("VERSION = 'new'\n"), "touched": lambda path: os.utime(path, (1, 1)),
    "replaced": lambda path: (path.with_name("x").write_text("VERSION = 'old'\n"), path.with_name("x").rename(path)),
    "directory": lambda path: path.parent.rename(path.parent.with_name("elsewhere")),
    "directories": lambda path: path.parents[1].rename(path.parents[1].with_name("elsewhere")),
}


@pytest.mark.parametrize("native", [False, True], ids=["looked at", "watched"])
@pytest.mark.parametrize("how", CHANGED)
def test_a_file_that_has_changed_since_it_was_imported_is_named(keeper, scratch, library, how, native):
    script = "import tool.part\nprint(tool.part.VERSION)\n"
    write(scratch, {"script.py": "import ctypes\n" * native + script})
    write(library, {"tool/__init__.py": "", "tool/part.py": "VERSION = 'old'\n"})
    learned, part = learn(keeper, library), library / "tool/part.py"
    spare = keeper.spare(["script.py"], PYTHONPATH=library)
    spare.warm(learned)
    CHANGED[how](part)
    streams = keeper.streams()
    spare.tell(b"G" + u32(0) + spare.body(), [*streams, keeper.record_file()])
    reason, names = spare.left_out()
    assert reason.endswith(" has changed since it was imported") and str(library / "tool") in reason and names == []
    assert read_file(streams[1]) == b""


@pytest.mark.parametrize("native", [False, True], ids=["looked at", "watched"])
def test_other_files_may_change_beside_them(keeper, scratch, library, native):
    write(scratch, {"script.py": "import ctypes\n" * native + "import one\nprint(one.VERSION)\n"})
    write(library, {"one.py": "VERSION = 'old'\n", "other.py": ""})
    learned = learn(keeper, library)
    spare = keeper.spare(["script.py"], PYTHONPATH=library)
    spare.warm(learned)
    write(library, {"other.py": "1\n", "third.txt": "2"})
    (library / "one.py").read_text()
    spare.teach({"other": str(library / "other.py")})
    (library / "third.txt").unlink()
    spare.open_gate(keeper.streams())
    assert spare.finish().out == b"old\n"


# What two standby workers must not share, and what a worker must not keep.

def test_two_standby_workers_share_no_randomness(keeper, scratch):
    write(scratch, {"script.py": """
        import random, tempfile, uuid, secrets
        name = next(tempfile._get_candidate_names())
        print(random.random(), hash("x"), uuid.uuid4(), name, secrets.token_hex(), sep="\\n")
        """})
    learned = keeper.recorded(["script.py"]).modules()
    one, two = (keeper.warm(["script.py"], learned).out.splitlines() for _ in range(2))
    assert len(one) == 5 and not set(one) & set(two)


def test_garbage_collection_is_as_before_and_due_nothing(keeper, scratch):
    write(scratch, {"script.py": """
        import gc
        print(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.collect(1))
        """})
    learned = keeper.recorded(["-c", "import json, http.client, unittest"]).modules()
    warm, cold = (one.out.split() for one in (keeper.warm(["script.py"], learned), keeper.cold(["script.py"])))
    assert warm[:-1] == cold[:-1]
    assert int(warm[-1]) <= int(cold[-1])  # How much an interpreter itself leaves depends on what is installed.


def test_evidence_is_written_when_the_signal_comes(keeper, scratch):
    write(scratch, {"script.py": """
        import threading
        def hang_here():
            open("hangs", "w").close()
            threading.Event().wait()
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        hang_here()
        """})
    streams, record = keeper.streams(), keeper.record_file()
    process = keeper.start(["script.py"], keeper.environment("record"), (record,), streams)
    assert_evidence(scratch, process, record)
    spare = keeper.spare(["script.py"])
    spare.warm({})
    (scratch / "hangs").unlink()
    spare.open_gate(streams)
    assert_evidence(scratch, spare.process, spare.record)


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def assert_evidence(scratch, process, record):
    wait_for((scratch / "hangs").exists)
    process.send_signal(EVIDENCE_SIGNAL)
    wait_for(lambda: b"in <module>" in read_file(record))
    text = read_file(record).decode()
    assert "hang_here" in text and text.count("hread 0x") == 2
    assert process.poll() is None

# SPDX-License-Identifier: BSD-3-Clause
"""When the hook refuses to become a worker, and what is no reason for that."""

import os
import pathlib
import stat
import sys
import textwrap

import pytest

from support.standby_programs import MARKED, keeper, learn, library, marks, write  # noqa: F401 (fixtures)

pytestmark = pytest.mark.plain_build  # the hook is Python alone, and the agent is played here


@pytest.mark.parametrize("words", [["script.py"], ["-m", "script"], ["-c", "import one"]], ids=" ".join)
def test_a_file_that_hides_a_learned_module_is_named(keeper, scratch, library, words):
    write(library, {"one.py": ""})
    write(scratch, {"script.py": "import one\n", "one.py": ""})
    reason = keeper.spare(words, PYTHONPATH=library).dirty({"one": str(library / "one.py")})
    assert reason == f"one in {scratch} hides a module that was imported from elsewhere"


def test_a_directory_without_modules_hides_nothing(keeper, scratch, library):
    write(library, {"one.py": ""})
    write(scratch, {"script.py": "import one; print(one.__file__)\n", "one/text": "", "one.txt": "", "one.json": ""})
    learned = learn(keeper, library)
    assert keeper.warm(["script.py"], learned, PYTHONPATH=library).out.decode() == f"{library}/one.py\n"


def test_a_safe_path_hides_nothing(keeper, scratch, library):
    write(library, {"one.py": ""})
    write(scratch, {"script.py": "import one; print(one.__file__)\n", "one.py": ""})
    if sys.version_info < (3, 11):
        pytest.skip("Python before 3.11 always looks into the script's directory")
    names = {"PYTHONPATH": library, "PYTHONSAFEPATH": "1"}
    assert keeper.warm(["script.py"], {"one": str(library / "one.py")}, **names).out.decode() == f"{library}/one.py\n"


@pytest.mark.parametrize("origin", ["library/one.py", "/elsewhere/one.py", "", "built-in"])
def test_a_module_found_elsewhere_than_by_the_workers_waits_for_the_gate(keeper, scratch, library, origin):
    """As where the program itself changes sys.path."""
    write(library, {"one.py": "", "two.py": ""})
    script = f"import sys\nsys.path.insert(0, '{scratch}/library')\nimport one, two\nprint(one.__file__)\n"
    write(scratch, {"library/one.py": "", "work/script.py": script})
    origin = origin.replace("library", f"{scratch}/library")
    spare = keeper.spare(["work/script.py"], PYTHONPATH=library)
    assert spare.warm({"one": origin, "one.part": "", "two": str(library / "two.py")})[:2] == (1, 2)
    spare.open_gate(keeper.streams())
    assert spare.finish().out.decode() == f"{scratch}/library/one.py\n"


@pytest.mark.parametrize("text", ["import one", "try:\n    import one\nexcept ImportError:\n    pass"])
def test_a_module_found_elsewhere_is_named_when_a_library_imports_it(keeper, scratch, library, text):
    write(library, {"one.py": "", "two.py": text + "\n"})
    write(scratch, {"script.py": ""})
    for listed in {"one": "/elsewhere/one.py", "two": str(library / "two.py")}, {
        "two": str(library / "two.py"), "one": "/elsewhere/one.py",
    }:
        reason, names = keeper.spare(["script.py"], PYTHONPATH=library).unsuited(listed)
        assert reason == f"one was imported from {library}/one.py instead of /elsewhere/one.py"
        assert names == ["two"]


def move_away(name, origin, library, scratch):
    """Where a module of this interpreter would lie on a node whose interpreter has it built in, or in another place."""
    if "/python3." in origin:
        return "built-in"
    if os.path.isabs(origin):
        return origin.replace(str(library), "/no/conda/dist-packages").replace(str(scratch), "/no/project")
    return f"/no/conda/lib/python3.9/lib-dynload/{name}.so"


def test_the_list_of_a_node_whose_python_lies_elsewhere_is_good_here(keeper, scratch, library):
    write(library, {"one.py": "import json, two.part\n", "two/__init__.py": "", "two/part.py": "import mmap\n"})
    write(scratch, {"script.py": "import one, mine\n", "mine.py": "print('ran')"})
    learned = learn(keeper, library)
    assert {"json", "mmap", "two.part", "mine"} < set(learned)
    elsewhere = {name: move_away(name, origin, library, scratch) for name, origin in learned.items()}
    spare = keeper.spare(["script.py"], PYTHONPATH=library)
    modules, skipped, _, _ = spare.warm(elsewhere)
    assert (modules, skipped) == (len(learned) - 1, 1)  # `mine` waits
    spare.open_gate(keeper.streams())
    assert spare.finish().out == b"ran\n"


READS = {
    "item": ("os.environ['RANK']", "RANK"),
    "get": ("os.environ.get('WORLD_SIZE')", "WORLD_SIZE"),
    "getenv": ("os.getenv('LOCAL_RANK', '0')", "LOCAL_RANK"),
    "contains": ("'MASTER_ADDR' in os.environ", "MASTER_ADDR"),
    "bytes": ("os.environb.get(b'GROUP_RANK')", "GROUP_RANK"),
    "pop": ("os.environ.pop('ROLE_RANK', None)", "ROLE_RANK"),
    "setdefault": ("os.environ.setdefault('TORCHELASTIC_RUN_ID', 'x')", "TORCHELASTIC_RUN_ID"),
}


@pytest.mark.parametrize("read", READS)
def test_a_module_that_reads_a_name_of_the_round_is_named(keeper, scratch, library, read):
    text, name = READS[read]
    write(library, {"one.py": f"import os\ntry:\n    {text}\nexcept KeyError: pass\n"})
    write(scratch, {"script.py": "import one\n"})
    spare = keeper.spare(["script.py"], PYTHONPATH=library)
    assert spare.unsuited(learn(keeper, library)) == (f"one reads {name} while it is imported", ["one"])


def test_other_names_may_be_read(keeper, scratch, library):
    write(library, {"one.py": "import os\nfound = [os.getenv('HOME'), dict(os.environ), 'RANKS' in os.environ]\n"})
    write(scratch, {"script.py": "import one\n"})
    assert keeper.warm(["script.py"], learn(keeper, library), PYTHONPATH=library).status == 0


DIRT = {
    "thread": ("import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n",
               "one started a thread"),
    "thread below threading": ("import _thread, time\n_thread.start_new_thread(time.sleep, (9,))\n",
                               "one started a thread"),
    "thread of an executor": ("import concurrent.futures as futures\nkept = futures.ThreadPoolExecutor()\n"
                              "kept.submit(len, ())\n", "one started a thread"),
    "native thread that calls Python": (
        "import ctypes, time\nlibc = ctypes.CDLL(None)\nentered = []\n"
        "@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)\n"
        "def body(_):\n    entered.append(1)\n    time.sleep(60)\n"
        "libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, body, None)\n"
        "while not entered: time.sleep(0.01)\n", "one started a thread"),
    "socket": ("import socket\nkept = socket.socket()\n", "one opened socket:["),
    "path": ("import sys\nsys.path.insert(0, '/elsewhere')\n", "one put something in front of sys.path"),
    "child": ("import subprocess\nkept = subprocess.Popen(['sleep', '9'])\n", "one started a process"),
    "own code": ("import sys\nsys.path.append(sys.argv[0].rpartition('/')[0])\nimport of_the_user\n",
                 "of_the_user is the user's own code, and was imported by a library"),
}


@pytest.mark.parametrize("kind", DIRT)
def test_what_an_imported_module_may_not_do_is_named(keeper, scratch, library, kind):
    text, reason = DIRT[kind]
    write(library, {"one.py": text})
    write(scratch, {"script.py": MARKED, "of_the_user.py": ""})
    spare = keeper.spare([scratch / "script.py"], PYTHONPATH=library)
    told, names = spare.unsuited({"one": str(library / "one.py")})
    assert told.startswith(reason) and names == ["one"]
    assert marks(scratch) == 0


def test_much_that_imported_modules_print_is_named(keeper, scratch, library):
    write(library, {"one.py": "print('x' * 65537)\n"})
    write(scratch, {"script.py": MARKED})
    spare = keeper.spare([scratch / "script.py"], PYTHONPATH=library)
    assert spare.dirty({"one": str(library / "one.py")}) == "imported modules printed more than 65536 bytes"
    assert marks(scratch) == 0


NATIVE = """
    import ctypes
    libc, kept = ctypes.CDLL(None), ctypes.c_ulong()
    sleep = ctypes.cast(libc.sleep, ctypes.c_void_p)
    assert libc.pthread_create(ctypes.byref(kept), None, sleep, ctypes.c_void_p(600)) == 0
"""


def test_threads_without_python_are_no_reason(keeper, scratch, library):
    """As libraries of numbers start them when they are imported, in a worker that is started cold as well."""
    write(library, {"one.py": NATIVE})
    write(scratch, {"script.py": "import one, os\nprint(len(os.listdir('/proc/self/task')))\n"})
    learned = learn(keeper, library)
    assert keeper.warm(["script.py"], learned, PYTHONPATH=library).out == b"2\n"


def test_a_child_of_a_thread_without_python_is_named(keeper, scratch, library):
    text = NATIVE.replace("libc.sleep", "libc.system").replace("c_void_p(600)", "c_char_p(b'sleep 60')")
    wait = "\nimport os\nwhile not any(open(f'/proc/self/task/{thread}/children').read()" \
           " for thread in os.listdir('/proc/self/task')): pass\n"
    write(library, {"one.py": textwrap.dedent(text) + wait})
    write(scratch, {"script.py": ""})
    learned = {"one": str(library / "one.py")}
    reason, names = keeper.spare(["script.py"], PYTHONPATH=library).unsuited(learned)
    assert (reason, names) == ("one started a process", ["one"])


def test_an_open_gpu_is_named(keeper, scratch, library):
    device = pathlib.Path("/dev/nvidia-of-a-test")
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError as error:
        pytest.skip(f"no device can be made: {error}")
    try:
        write(library, {"one.py": f"kept = open('{device}')\n"})
        write(scratch, {"script.py": ""})
        said = keeper.spare(["script.py"], PYTHONPATH=library).unsuited({"one": str(library / "one.py")})
        assert said == (f"one opened {device}", ["one"])
    finally:
        device.unlink()


def test_a_module_imported_before_it_is_run_is_named(keeper, scratch, library):
    write(library, {"one/__init__.py": "", "one/run.py": "", "two.py": "import one.run\n"})
    learned = {"one": str(library / "one/__init__.py"), "two": str(library / "two.py")}
    reason, names = keeper.spare(["-m", "one.run"], PYTHONPATH=library).unsuited(learned)
    assert (reason, names) == ("one.run was imported before it is run", ["two"])


def test_modules_that_cannot_be_imported_are_left_out(keeper, scratch, library):
    write(library, {
        "exits.py": "raise SystemExit(3)", "fails.py": "1/0", "interrupted.py": "raise KeyboardInterrupt",
        "tries.py": "try:\n    import fails\nexcept ArithmeticError:\n    pass\n", "fine.py": "",
    })
    write(scratch, {"script.py": "import fine, sys\nprint(sorted({'fails', 'exits', 'fine'} & set(sys.modules)))\n"})
    learned = {name: str(library / f"{name}.py") for name in ("exits", "tries", "fails", "interrupted", "fine")}
    spare = keeper.spare(["script.py"], PYTHONPATH=library)
    modules, skipped, _, memory = spare.warm({"no_such_module": "", "fine.no_such_part": "/x", **learned})
    assert (modules, skipped) == (5, 4) and memory > 1000
    spare.open_gate(keeper.streams())
    assert spare.finish().out == b"['fine']\n"


def test_code_of_the_user_waits_for_the_gate(keeper, scratch):
    """Also where the user's libraries lie in the project's directory, as those of a virtual environment do."""
    library = scratch / ".venv/lib/site-packages"
    write(library, {"one.py": ""})
    write(scratch, {"script.py": "import mine, one, os\n", "mine.py": "import os\nprint(os.environ['RANK'])\n"})
    learned = learn(keeper, library)
    spare = keeper.spare(["script.py"], PYTHONPATH=library)
    assert spare.warm(learned)[:2] == (1, 1)
    spare.open_gate(keeper.streams())
    assert spare.finish().out == b"1\n"

# SPDX-License-Identifier: BSD-3-Clause
"""When the hook refuses to become a worker, and what is no reason for that."""

import os
import pathlib
import stat
import sys
import textwrap

import pytest

from support.standby_programs import MARKED, keeper, learn, library, marks, write  # noqa: F401 (fixtures)
from support.terminal import open_terminal

pytestmark = pytest.mark.plain_build  # the hook is Python alone, and the agent is played here


@pytest.mark.parametrize("words", [["script.py"], ["-m", "script"], ["-c", "import one"]], ids=" ".join)
def test_a_file_that_hides_a_learned_module_is_the_programs(keeper, scratch, library, words):
    write(library, {"one.py": "", "two.py": "import one\n"})
    write(scratch, {"script.py": "import one\n", "one.py": "print('mine')\n"})
    spare = keeper.spare(words, PYTHONPATH=library)
    assert spare.warm({"one": str(library / "one.py")})[:2] == (0, 1)
    spare.open_gate(keeper.streams())
    assert spare.finish().out == b"mine\n"
    reason, names = keeper.spare(words, PYTHONPATH=library).unsuited({"two": str(library / "two.py")})
    assert (reason, names) == ("one is the user's own code, and was imported by a library", ["two"])


@pytest.mark.parametrize("words", [["script.py"], ["-m", "script"], ["-c", "import one"]], ids=" ".join)
def test_a_file_that_begins_to_hide_a_learned_module_is_named(keeper, scratch, library, words):
    write(library, {"one.py": ""})
    write(scratch, {"script.py": "import one\n"})
    spare = keeper.spare(words, PYTHONPATH=library)
    spare.warm({"one": str(library / "one.py")})
    write(scratch, {"one.py": ""})
    spare.send_list(b"T", {})
    assert spare.reason() == f"one in {scratch} hides a module that was imported from elsewhere"


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
    write(library, {"one.py": "import os\nfound = [os.getenv('HOME'), os.environb.get(b'PATH'), 'RANKS' in os.environ]\n"})
    write(scratch, {"script.py": "import one\n"})
    assert keeper.warm(["script.py"], learn(keeper, library), PYTHONPATH=library).status == 0


WHOLE = {
    "dict": "found = dict(os.environ)", "copy": "found = os.environ.copy()", "keys": "found = list(os.environ.keys())",
    "items": "found = list(os.environ.items())", "values": "found = list(os.environ.values())",
    "iteration": "found = [name.lower() for name in os.environ]", "or": "found = os.environ | {}" * (sys.version_info >= (3, 9)),
    "settings": "found = {name.lower(): value for name, value in os.environ.items()}.get('rank')",
    "search": "found = [value for name, value in os.environ.items() if name == 'RANK']",
    "count": "found = len(os.environ)", "text": "found = repr(os.environ)", "bytes": "found = dict(os.environb)",
    "posix": "import posix\nfound = dict(posix.environ)", "later": "from posix import environ as found",
    "splat": "found = {**os.environ}", "in a set": "found = 'RANK' in set(os.environ)", "equal": "found = os.environ == {}",
    "sorted": "found = sorted(os.environ)[:1]", "begins": "found = [name for name in os.environ if name.startswith('MAST')]",
    "file": "found = open('/proc/self/environ').read()",
}


@pytest.mark.parametrize("read", WHOLE)
def test_a_module_that_reads_the_environment_as_a_whole_is_named(keeper, scratch, library, read):
    write(library, {"one.py": f"import os\n{WHOLE[read] or WHOLE['dict']}\n", "two.py": "import one\n", "three.py": ""})
    write(scratch, {"script.py": "import two, three\n"})
    reason, names = keeper.spare(["script.py"], PYTHONPATH=library).unsuited(learn(keeper, library))
    says = {"later": "keeps posix.environ", "file": "reads /proc/self/environ while it is imported"}
    assert reason == "one " + says.get(read, "reads the environment as a whole while it is imported")
    assert sorted(names) == ["one", "two"]


def test_who_only_looks_for_names_that_begin_otherwise_may_see_all(keeper, scratch, library):
    """As tqdm does, which PyTorch imports."""
    write(library, {"one.py": """
        import os
        found = {name[5:]: value for name, value in os.environ.items() if name.startswith("TQDM_")}
        other = any(name.endswith("_PROXY") for name in os.environ) or [name for name in os.environb if b"=" in name]
        """})
    write(scratch, {"script.py": "import one\nprint(one.found, one.other)\n"})
    names = {"PYTHONPATH": library, "TQDM_COLOUR": "red"}
    learned = keeper.recorded(["script.py"], **names).modules()
    spare = keeper.spare(["script.py"], **names)
    assert spare.warm(learned)[:2] == (len(learned), 0)
    spare.open_gate(keeper.streams())
    assert spare.finish().out == keeper.cold(["script.py"], **names).out == b"{'COLOUR': 'red'} []\n"


IN_C = "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.getenv.restype = ctypes.c_char_p\n"
WALK = """
found, at = [], 0
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
while environ[at] is not None:
    found.append(environ[at])
    at += 1
"""


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "MASTER_ADDR", "TORCHELASTIC_RESTART_COUNT", "ROLE_RANK"])
@pytest.mark.parametrize("kept", ["libc.getenv(b'%s')", "bool(libc.getenv(b'%s'))"], ids=["value", "whether it is there"])
def test_c_code_that_reads_a_name_of_the_round_is_named(keeper, scratch, library, name, kept):
    write(library, {"one.py": IN_C + f"found = {kept % name}\nimport two\n", "two.py": ""})
    write(scratch, {"script.py": "import one\n"})
    reason, names = keeper.spare(["script.py"], PYTHONPATH=library).unsuited(learn(keeper, library))
    assert (reason, names) == (f"one reads {name} in C while it is imported", ["one"])


def test_c_code_that_reads_all_names_is_named(keeper, scratch, library):
    write(library, {"one.py": IN_C + WALK})
    write(scratch, {"script.py": "import one\n"})
    reason, names = keeper.spare(["script.py"], PYTHONPATH=library).unsuited(learn(keeper, library))
    assert reason.startswith("one reads ") and names == ["one"]


def test_c_code_may_read_other_names_and_change_them(keeper, scratch, library):
    """And C code of the program finds those of the round, and no other, where the kernel's list has them."""
    other = "found = libc.getenv(b'HOME'), libc.getenv(b'RA'), libc.getenv(b'WORLD'), libc.getenv(b'MASTER')\n"
    write(library, {"one.py": IN_C + other + "libc.setenv(b'SEASON', b'wet', 1)\nlibc.unsetenv(b'SEASON')\n"})
    write(scratch, {"script.py": "import one\n" + IN_C + WALK + "print(one.found, *sorted(found), sep='\\n')\n"})
    warm = keeper.warm(["script.py"], learn(keeper, library), PYTHONPATH=library)
    assert warm.out == keeper.cold(["script.py"], PYTHONPATH=library).out


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
    "child": ("import subprocess\nkept = subprocess.Popen(['sleep', '9'])\n", "one starts a process while it is imported"),
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


# What a module must not do in a process that waits beside a worker, since it would be done twice: it is refused.
REFUSED = {
    "open to write": ("open('kept', 'w')", "opens kept for writing"),
    "open to append": ("open('kept', 'a')", "opens kept for writing"),
    "open to change": ("open('kept', 'r+')", "opens kept for writing"),
    "create": ("open('new', 'x')", "opens new for writing"),
    "os.open": ("os.open('kept', os.O_WRONLY | os.O_TRUNC)", "opens kept for writing"),
    "os.open to read": ("os.open('kept', os.O_RDONLY | os.O_TRUNC)", "opens kept for writing"),
    "pathlib": ("pathlib.Path('kept').write_text('')", "opens kept for writing"),
    "logging": ("logging.FileHandler('kept', mode='w')", "opens %s/kept for writing"),
    "truncate": ("os.truncate('kept', 0)", "calls os.truncate"),
    "remove": ("os.remove('kept')", "calls os.remove"),
    "unlink": ("pathlib.Path('kept').unlink()", "calls os.remove"),
    "rename": ("os.rename('kept', 'new')", "calls os.rename"),
    "replace": ("os.replace('other', 'kept')", "calls os.rename"),
    "shutil": ("shutil.copy('other', 'kept')", "opens kept for writing"),
    "rmtree": ("shutil.rmtree('full')", "calls os.remove"),
    "mkdir": ("os.makedirs('new/directory', exist_ok=True)", "makes the directory new"),
    "rmdir": ("os.rmdir('empty')", "calls os.rmdir"),
    "link": ("os.symlink('kept', 'new')", "calls os.symlink"),
    "chmod": ("os.chmod('kept', 0)", "calls os.chmod"),
    "times": ("os.utime('kept', (1, 1))", "calls os.utime"),
    "sqlite": ("sqlite3.connect('new')", "opens the database new"),
    "beside a temporary directory": (
        "(tempfile.TemporaryDirectory(dir='../more'), os.rename('kept', 'new'))", "calls os.rename"),
    "lock": ("fcntl.flock(open('kept'), fcntl.LOCK_EX)", "calls fcntl.flock"),
    "lock of a part": ("fcntl.lockf(open('kept'), fcntl.LOCK_SH)", "calls fcntl.lockf"),
    "connection": ("socket.create_connection(('localhost', 9))", "calls socket."),
    "port": ("socket.socket().bind(('127.0.0.1', 1))", "binds a socket to ('127.0.0.1', 1)"),
    "subprocess": ("subprocess.run(['touch', 'new'])", "starts a process"),
    "system": ("os.system('touch new')", "starts a process"),
    "fork": ("os.fork() or os._exit(0)", "starts a process"),
    "exec": ("os.execvp('touch', ['touch', 'new'])", "starts a process"),
    "spawn": ("os.posix_spawnp('touch', ['touch', 'new'], {})", "starts a process"),
    "kill": ("os.kill(os.getppid(), 10)", "sends a signal"),
    "chdir": ("os.chdir('/')", "calls os.chdir"),
    "limits": ("resource.setrlimit(resource.RLIMIT_CORE, (0, 0))", "calls resource.setrlimit"),
    "stdout": ("open(1, 'w', closefd=False)", "opens descriptor 1 for writing"),
}
IMPORTS = "import fcntl, logging, os, pathlib, resource, shutil, socket, sqlite3, subprocess, tempfile\n"
FILES = {"kept": "1", "other": "2", "full/file": "3"}


def tree(place):
    return {path: (path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_text() if path.is_file() else "")
            for path in place.rglob("*")}


@pytest.mark.parametrize("catches", [False, True], ids=["plain", "with a way out"])
@pytest.mark.parametrize("kind", REFUSED)
def test_what_changes_the_world_is_refused_and_the_module_left_out(keeper, scratch, library, kind, catches):
    text, effect = REFUSED[kind]
    if catches:
        text = f"try:\n    kept = {text}\nexcept Exception:\n    open('new', 'w')"
    write(library, {"one.py": IMPORTS + text + "\n", "two.py": "import json\n"})
    place = scratch / "work"
    write(place, {**FILES, "script.py": ""})
    (place / "empty").mkdir()
    (scratch / "more").mkdir()
    listed, before = {name: str(library / f"{name}.py") for name in ("one", "two")}, tree(place)
    reason, names = keeper.spare(["script.py"], place, PYTHONPATH=library).unsuited(listed)
    assert reason.startswith("one " + (effect % place if "%" in effect else effect)), reason
    assert reason.endswith(" while it is imported") and names == ["one"]
    assert tree(place) == before


ALLOWED = {
    "reading": "found = open('kept').read()", "a bin": "found = open(os.devnull, 'w')", "a directory that is there":
    "found = os.makedirs('full', exist_ok=True)", "where temporary files are": "found = tempfile.gettempdir()",
    "a table in memory": "found = sqlite3.connect(':memory:').execute('select 1').fetchall()",
    "whether there is IPv6": "with socket.socket() as tried: tried.bind(('127.0.0.1', 0))",
    "temporary files": """
with tempfile.TemporaryDirectory() as place:
    name = os.path.join(place, 'file')
    with open(name, 'w') as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(file.fileno(), 7)
    os.link(name, name + '2')
    os.replace(name, name + '3')
    os.symlink('/etc', os.path.join(place, 'link'))
    os.makedirs(os.path.join(place, 'one/two'))
with tempfile.NamedTemporaryFile() as file: file.write(b'x')
""", "whether one lives": "os.kill(os.getpid(), 0)",
}


@pytest.mark.parametrize("kind", ALLOWED)
def test_what_changes_nothing_is_no_reason(keeper, scratch, library, kind):
    write(library, {"one.py": IMPORTS + ALLOWED[kind] + "\n"})
    write(scratch, {**FILES, "script.py": "import one\n"})
    assert keeper.spare(["script.py"], PYTHONPATH=library).warm({"one": str(library / "one.py")})[1] == 0


# What stays in the process, and would be there before the program's first line.
LEFT = {
    "dup": ("kept = os.dup(1)", "keeps a copy of a standard stream"),
    "dup with a file": ("kept = os.fdopen(os.dup(1), 'w')", "keeps a copy of a standard stream"),
    "dup2": ("os.dup2(2, 77)", "keeps a copy of a standard stream"),
    "stream over another": ("os.dup2(os.open('/dev/null', os.O_WRONLY), 1)", "changed descriptor 1"),
    "buffer": ("kept = sys.stdout.buffer", "changed a standard stream, or keeps its buffer"),
    "another stream": ("sys.stdout = open(os.devnull, 'w')", "changed a standard stream, or keeps its buffer"),
    "umask": ("os.umask(0o77)", "changed the umask"),
    "handler": ("signal.signal(signal.SIGUSR1, lambda *_: None)", "set a signal handler"),
    "default": ("signal.signal(signal.SIGINT, signal.SIG_DFL)", "set a signal handler"),
    "mask": ("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])", "blocked a signal"),
    "ignored in C": ("import ctypes; ctypes.CDLL(None).signal(12, ctypes.c_void_p(1))", "ignores a signal"),
    "timer": ("signal.setitimer(signal.ITIMER_REAL, 600, 600)", "set a timer"),
    "temporary directory": ("import tempfile; kept = tempfile.mkdtemp()", "leaves /tmp/"),
    "exit": ("atexit.register(print, 'ends')", "registered a function for the exit"),
    "file of C": ("import ctypes; ctypes.CDLL(None).fopen(b'new', b'w')", "holds %s/new open for writing"),
}


@pytest.mark.parametrize("kind", LEFT)
def test_what_stays_in_the_process_is_named(keeper, scratch, kind):
    text, effect = LEFT[kind]
    place, own = scratch / "work", scratch / "not installed"
    write(own, {"one.py": "import atexit, os, signal, sys\n" + text + "\nimport two\n", "two.py": "import csv\n"})
    write(place, {"script.py": ""})
    listed = {name: str(own / f"{name}.py") for name in ("one", "two")}
    reason, names = keeper.spare(["script.py"], place, PYTHONPATH=own).unsuited(listed)
    assert reason.startswith("one " + (effect % place if "%" in effect else effect)), reason
    assert names == ["one"]


TERMINALS = ("sys.stdout.isatty()", "sys.__stderr__.isatty()", "os.isatty(1)", "shutil.get_terminal_size()")


@pytest.mark.parametrize("ask", TERMINALS)
def test_who_asks_whether_there_is_a_terminal_is_named_where_the_agent_has_one(keeper, scratch, library, ask):
    write(library, {"one.py": f"import os, shutil, sys\nfound = {ask}\nagain = os.isatty(9)\n"})
    write(scratch, {"script.py": "import one, os, sys\nprint(one.found, os.isatty.__name__, vars(sys.stdout))\n"})
    learned = learn(keeper, library)
    cold, warm = (run(["script.py"], PYTHONPATH=library) for run in (keeper.cold, lambda *a, **k: keeper.warm(*a, learned, **k)))
    assert warm.visible() == cold.visible()
    old, (agents, others) = os.dup(0), open_terminal()
    try:
        os.dup2(others, 0)
        reason, names = keeper.spare(["script.py"], PYTHONPATH=library).unsuited(learned)
        assert (reason, names) == ("one asks whether a stream is a terminal while it is imported", ["one"])
        write(library, {"one.py": "found = False\n"})
        warm = keeper.warm(["script.py"], learned, PYTHONPATH=library)
        assert (warm.status, warm.out) == (0, cold.out) or ask.startswith("shutil")
    finally:
        os.dup2(old, 0)
        for fd in old, agents, others:
            os.close(fd)


def test_several_such_modules_are_named_by_one_standby_worker(keeper, scratch, library):
    write(library, {"one.py": "import os\nos.umask(0o77)\n", "two.py": "import os\nkept = os.dup(1)\n",
                    "three.py": "import os\nos.umask(0o27)\n", "four.py": "import os\nkept = os.dup(2)\n", "five.py": ""})
    write(scratch, {"script.py": ""})
    listed = {name: str(library / f"{name}.py") for name in ("one", "two", "three", "four", "five")}
    assert keeper.spare(["script.py"], PYTHONPATH=library).unsuited(listed)[1] == ["one", "two", "three", "four"]


def test_an_installed_package_may_have_a_function_for_the_exit(keeper, scratch, library):
    """PyTorch has several."""
    write(library, {"one.py": "import atexit, logging\natexit.register(print, 'ends')\n"})
    write(scratch, {"script.py": "import one\n"})
    assert keeper.warm(["script.py"], learn(keeper, library), PYTHONPATH=library).out == b"ends\n"


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

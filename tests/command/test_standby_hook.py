# SPDX-License-Identifier: BSD-3-Clause
"""Programs cannot tell whether they were started cold, cold with the hook, or as a standby worker."""

import difflib
import os
import re
import subprocess
import sys
import textwrap
import zipfile

import pytest

from support.gatekeeper import Gatekeeper

pytestmark = pytest.mark.plain_build  # the hook is Python alone, and the agent is played here


# Other versions of Python to try: paths of interpreters, with colons between them.
OTHERS = [path for path in os.environ.get("STANDBY_PYTHONS", "").split(":") if path]


@pytest.fixture(params=["system", "peer", *OTHERS])
def keeper(request, scratch):
    python = {"system": sys.executable}.get(request.param, request.param)
    if request.param == "peer":
        python = request.getfixturevalue("peer").python
    keeper = Gatekeeper(python, scratch)
    with keeper.closing:
        yield keeper


def write(scratch, files):
    for name, text in files.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def assert_same(outcome, cold):
    """Byte for byte, but for addresses in memory. The difference is told line by line."""
    texts = [f"{one.status}\n{one.out.decode()}\n-- stderr\n{one.err.decode()}" for one in (cold, outcome)]
    lines = [re.sub("0x[0-9a-f]{8,16}", "0x", text).splitlines() for text in texts]
    different = "\n".join(difflib.unified_diff(*lines, "cold", "not cold", lineterm="", n=0))
    assert not different, different


def compare(keeper, words, **how):
    """Runs a program in the three ways; returns how it ended and what the second way recorded."""
    cold = keeper.cold(words, **how)
    recorded = keeper.recorded(words, **how)
    assert_same(recorded, cold)
    assert recorded.record.startswith("hello 1 ")
    warm = keeper.warm(words, recorded.modules(), **how)
    assert_same(warm, cold)
    return recorded


# What a program can ask its interpreter. Descriptors above 900 are the hook's.
DUMP = """
    import gc, os, signal, sys, threading, warnings, json, io, logging
    from collections import OrderedDict
    print(sys.argv, sys.path, __name__, __file__, __spec__, __builtins__, type(__loader__), __package__, __doc__)
    print(sorted(globals()), getattr(sys, "orig_argv", None), sys.executable, sys.prefix, sys.base_prefix)
    print(sys.flags, sys.warnoptions, sys._xoptions, sys.meta_path, sys.path_hooks, sys.dont_write_bytecode)
    print(list(os.environ.items()) == [tuple(map(os.fsdecode, item)) for item in os.environb.items()])
    print(*sorted(set(os.environ.items())), sep="\\n")
    print(os.getenv("RANK"), "PYTHONPATH" in os.environ)
    for stream in sys.stdin, sys.stdout, sys.stderr:
        print(stream.name, stream.mode, stream.encoding, stream.errors, stream.line_buffering, stream.write_through)
        print(stream.seekable(), stream.isatty(), stream.newlines, stream.fileno(), stream.buffer, stream.closed)
        print(getattr(stream.buffer, "raw", None), stream.buffer.seekable())
    print(sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__)
    print(sorted(int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) < 900))
    print({number: signal.getsignal(number) for number in range(1, 32) if number not in (9, 19)})
    print(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.garbage, gc.callbacks)
    print(sys.getrecursionlimit(), sys.getswitchinterval(), sys.gettrace(), sys.getprofile(), os.getcwd())
    print(os.umask(0o22), os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), len(threading.enumerate()))
    print(open("/proc/self/autogroup").read().split()[1:] if os.path.exists("/proc/self/autogroup") else "")
    print(warnings.filters, sys.excepthook, sys.unraisablehook, sys.displayhook, sys.breakpointhook)
    print(type(os.environ).__getitem__.__qualname__, type(os.environ).__getitem__.__code__.co_filename)
    print("sitecustomize" in sys.modules, "usercustomize" in sys.modules, sys.stdin.read())
    print(logging.getLogger().handlers, io.text_encoding("x") if hasattr(io, "text_encoding") else "")
"""

SCRIPTS = {
    "introspection": DUMP,
    "uncaught exception": """
        import json
        def parse(text):
            try:
                json.loads(text)
            except ValueError as error:
                raise RuntimeError("cannot read it") from error
        parse("{")
        """,
    "exception of an import": "import json\nimport no_such_module_at_all\n",
    "exception inside an imported module": "import imported_and_failing\n",
    "exception group": """
        import sys, json
        if sys.version_info >= (3, 11):
            raise ExceptionGroup("both", [ValueError("one"), KeyError("two")])
        raise SystemExit(3)
        """,
    "syntax error": "import json\nthis is no python\n",
    "tab error": "if 1:\n\tx = 1\n        y = 2\n",
    "null byte": "x = 1\0\n",
    "exit with a text": "import sys, json; sys.exit('a text')",
    "exit 37": "import json; raise SystemExit(37)",
    "exit nothing": "raise SystemExit",
    "exit true": "import sys; sys.exit(True)",
    "exit 256": "import sys; sys.exit(256)",
    "exit -1": "import sys; sys.exit(-1)",
    "exit object": "import sys; sys.exit(['a', 'list'])",
    "_exit": "import os, json; print('last'); os._exit(9)",
    "SIGTERM": "import os, signal, json; os.kill(os.getpid(), signal.SIGTERM)",
    "SIGINT": "import os, signal, json, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)",
    "SIGKILL": "import os, signal, json; os.kill(os.getpid(), signal.SIGKILL)",
    "SIGSEGV": "import os, signal, json; os.kill(os.getpid(), signal.SIGSEGV)",
    "abort": "import os, json; os.abort()",
    "SIGTERM handled": """
        import os, signal, sys, json
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(f"told {number}"))
        os.kill(os.getpid(), signal.SIGTERM)
        """,
    "SIGPIPE": """
        import os, json
        reading, writing = os.pipe()
        os.close(reading)
        os.write(writing, b"x")
        """,
    "atexit, threads and finalizers": """
        import atexit, threading, json, weakref
        class Last:
            def __del__(self):
                print("deleted")
        kept = Last()
        cycle = [Last()]; cycle.append(cycle)
        weakref.finalize(kept, print, "finalized")
        atexit.register(print, "first registered")
        atexit.register(print, "second registered")
        thread = threading.Thread(target=lambda: (threading.main_thread().join(), print("thread", json)))
        thread.start()
        print("main ends", threading.main_thread() is threading.current_thread(), thread.name)
        """,
    "exception in a thread": """
        import threading, json
        threading.Thread(target=lambda: json.loads("{")).start()
        """,
    "unraisable": """
        class Bad:
            def __del__(self):
                raise ValueError("in a finalizer")
        Bad()
        """,
    "recursion": "def down(n): return down(n + 1)\ntry:\n    down(0)\nexcept RecursionError as error: print(error)",
    "pickling": """
        import pickle, sys
        from dataclasses import dataclass
        @dataclass
        class Point:
            x: int = 1
        text = pickle.dumps(Point(2))
        print(b"__main__" in text, pickle.loads(text), Point.__module__, sys.modules["__main__"].Point is Point)
        """,
    "source text": "import inspect\ndef here(): pass\nprint(inspect.getsource(here), inspect.stack()[-1].filename)",
    "reload and importlib": """
        import importlib, importlib.util, importlib.metadata, json, pkgutil, sys
        print(importlib.reload(json) is json, importlib.util.find_spec("csv"), pkgutil.get_data("xml", "__init__.py"))
        print(importlib.util.find_spec("xml.dom").origin, sys.modules.get("xml.dom"))
        try:
            importlib.import_module("json.nothing")
        except ImportError as error:
            print(error, error.name, error.path)
        """,
    "settrace": """
        import sys
        calls = []
        sys.settrace(lambda frame, *_: calls.append((frame.f_code.co_filename, frame.f_code.co_name)))
        import traced_module
        sys.settrace(None)
        print([call for call in calls if not call[0].startswith("<frozen")])
        """,
    "warnings of imports": """
        import warnings
        warnings.warn("from the script")
        def deep(): warnings.warn("one up", DeprecationWarning, stacklevel=2)
        deep()
        import warning_module
        """,
    "child processes": """
        import subprocess, sys, os
        code = "import sys, os; print(sys.path, 'sitecustomize' in sys.modules, os.listdir('/proc/self/fd'))"
        code += "; print(sorted(os.environ.items()))"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
        status = subprocess.run(["grep", "^Sig[BIC]", "/proc/self/status"], capture_output=True, text=True).stdout
        print(status, subprocess.run("echo $RANK $PYTHONPATH $MUSTER_STANDBY", shell=True, stdout=subprocess.PIPE))
        """,
    "exec": """
        import os, sys, json
        if len(sys.argv) < 9:
            os.execv(sys.executable, [sys.executable, *sys.argv, *"1234567"])
        print(sys.argv, os.environ["RANK"], sorted(os.listdir("/proc/self/fd")), os.getenv("PYTHONPATH"))
        """,
    "all descriptors closed": """
        import os
        os.closerange(3, 65536)
        files = [open("own file", "w+") for _ in range(3)]
        for number in range(900, 1024):
            os.dup2(files[0].fileno(), number)
        import colorsys, json
        print(os.fstat(files[0].fileno()).st_size)
        """,
    "descriptors of the usual numbers": "import os, json; print([os.open('/dev/null', 0) for _ in range(5)])",
    "logging at import": """
        import logging, sys
        logging.basicConfig(stream=sys.stdout)
        logging.warning("to stdout")
        logging.getLogger("x").handlers or logging.lastResort.handle(logging.makeLogRecord({"msg": "last"}))
        """,
    "input": "import sys; print(input(), sys.stdin.readline(), sys.stdin.buffer.read(), open(0).read())",
    "asyncio": "import asyncio\nasync def main(): await asyncio.sleep(0); print('ran')\nasyncio.run(main())",
    "faulthandler": """
        import faulthandler, json, sys
        print(faulthandler.is_enabled())
        faulthandler.dump_traceback(all_threads=False)
        """,
    "stack of a crash": """
        import faulthandler, os, signal, colorsys
        faulthandler.enable()
        os.kill(os.getpid(), signal.SIGSEGV)
        """,
}

PROCESSES = """
    import multiprocessing, os, sys, signal
    import concurrent.futures

    class Message:
        def __init__(self, text):
            self.text = text

    def child(queue, message):
        handlers = [number for number in range(1, 65) if number not in (32, 33) and signal.getsignal(number) is None]
        queue.put((message.text, __name__, sys.path, os.environ.get("PYTHONPATH"), os.environ["RANK"],
                   [name for name in os.environ if "STANDBY" in name], "sitecustomize" in sys.modules))

    def square(x):
        import colorsys
        return x * x

    if __name__ == "__main__":
        context = multiprocessing.get_context(sys.argv[1])
        queue = context.Queue()
        process = context.Process(target=child, args=(queue, Message("hello")))
        process.start()
        print(queue.get(timeout=50))
        process.join()
        print(process.exitcode)
        with context.Pool(2) as pool:
            print(pool.map(square, range(5)))
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            print(list(pool.map(square, range(5))))
        failing = context.Process(target=os._exit, args=(5,))
        failing.start()
        failing.join()
        print(failing.exitcode)
"""


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_as_if_started_cold(keeper, scratch, name):
    write(scratch, {
        "work/script.py": SCRIPTS[name],
        "work/imported_and_failing.py": "import json\ndef fail(): json.loads('{')\nfail()\n",
        "work/traced_module.py": "",
        "work/warning_module.py": "import warnings\nwarnings.warn('from a module')\n",
    })
    compare(keeper, ["work/script.py", "--an", "argument"])


# What a library can ask of the program while it is imported.
LOOKS = """
    import sys, pkgutil, os
    import __main__
    for name, value in vars(__main__).items():
        print(name, type(value) if name in ("__builtins__", "looks") else value, sep=" = ")
    print(sys.argv, sys.path, __main__ is sys.modules["__main__"], getattr(sys, "orig_argv", None))
    print(hasattr(__main__, "__file__"), getattr(__main__.__spec__, "cached", None), getattr(__main__.__loader__, "path", None))
    print([module.name for module in pkgutil.iter_modules() if module.name.startswith("plugin_")])
    print(dict(os.environ, PATH="") if "whole" in sys.argv else os.environ["HOME"])
    keeps = __main__, sys.path, sys.argv
"""


@pytest.mark.parametrize("words", [
    ["script.py", "one"], ["./script.py"], ["../{name}/script.py"], ["{place}/script.py"], ["link.py"], ["-m", "script"],
    ["package/inner.py"], ["-m", "package.inner", "-m"], ["-mpackage.inner"], ["-um", "package.inner"], ["-m", "package"],
    ["-m", "busy.inner"], ["-m", "busy"], ["-m", "none.such"], ["package"], ["archive.zip"], ["-c", "import looks", "-m"],
    ["-m", "lonely.part"], ["-O", "-m", "package.inner"], ["-X", "utf8", "script.py"], ["-W", "ignore", "script.py"],
    ["-s", "-B", "script.py"],
], ids=" ".join)
def test_libraries_see_the_program_as_they_would_in_a_worker(keeper, scratch, words):
    work = scratch / "work"
    program = "import looks\nprint(sorted(vars(looks.__main__)), looks.keeps[1] is __import__('sys').path, __file__)\n"
    write(scratch, {"library/site-packages/looks.py": LOOKS, "library/site-packages/first.py": LOOKS})
    write(work, {
        "script.py": program, "package/__init__.py": "", "package/inner.py": program, "package/__main__.py": program,
        "busy/__init__.py": "import first\n", "busy/inner.py": program, "busy/__main__.py": program, "plugin_a.py": "",
        "lonely/part.py": program,
    })
    (work / "link.py").symlink_to(scratch / "work/package/inner.py")
    with zipfile.ZipFile(work / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", program)
    words, names = [word.format(place=work, name=work.name) for word in words], {"PYTHONPATH": scratch / "library/site-packages"}
    cold, recorded = keeper.cold(words, cwd=work, **names), keeper.recorded(words, cwd=work, **names)
    assert_same(recorded, cold)
    learned = recorded.modules()
    spare = keeper.spare(words, work, **names)
    assert spare.warm(learned)[0] >= ("looks" in learned) and (cold.status == 0 or "none.such" in words)
    spare.open_gate(keeper.streams())
    warm = spare.finish()
    assert "looks" not in warm.modules()
    assert_same(warm, cold)


MODULES = """
    import json, sys
    print(*sorted(sys.modules), sep="\\n")
    print(*sorted(sys.path_importer_cache if "--caches" in sys.argv else ()), sep="\\n")
    print([len(finder) for finder in (sys.meta_path, sys.path_hooks)], type(sys.modules), sys.getrefcount(sys.modules))
"""


def test_the_hook_leaves_no_module_behind(keeper, scratch):
    write(scratch, {"script.py": MODULES})
    for words in ["script.py"], ["script.py", "--caches"]:
        cold, recorded = keeper.cold(words), keeper.recorded(words)
        assert_same(recorded, cold)
        assert_same(keeper.warm(words, {}), cold)
    # The directories that an import would have looked into are known only after an import.
    assert_same(keeper.warm(["script.py"], recorded.modules()), keeper.cold(["script.py"]))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_starts_its_children_as_ever(keeper, scratch, method):
    write(scratch, {"script.py": PROCESSES})
    compare(keeper, ["script.py", method])


@pytest.mark.parametrize("options", [
    ["-O"], ["-OO"], ["-B"], ["-X", "dev"], ["-X", "faulthandler"], ["-W", "error"], ["-W", "ignore", "-X", "utf8"],
    ["-s"], ["-b"], ["-X", "tracemalloc"], ["-q", "-d"], ["-x"],
], ids=" ".join)
def test_options_of_the_interpreter_hold(keeper, scratch, options):
    write(scratch, {"script.py": textwrap.dedent(DUMP) + "assert not sys.argv\n"})
    compare(keeper, [*options, "script.py"])


@pytest.mark.parametrize("names", [
    {"PYTHONHASHSEED": "3"}, {"PYTHONSAFEPATH": "1"}, {"PYTHONOPTIMIZE": "1"}, {"PYTHONDONTWRITEBYTECODE": "1"},
    {"PYTHONIOENCODING": "latin-1:replace"}, {"LC_ALL": "C"}, {"PYTHONUTF8": "0", "LC_ALL": "POSIX"},
    {"PYTHONWARNINGS": "error"}, {"PYTHONDEVMODE": "1"}, {"PYTHONNOUSERSITE": "1"}, {"PYTHONFAULTHANDLER": "1"},
    {"PYTHONPATH": ""}, {"PYTHONPATH": "/tmp"}, {"PYTHONPATH": "relative:/tmp"}, {"PYTHONPATH": "/tmp::/tmp:"},
    {"PYTHONPATH": ":"}, {"HOME": "/nowhere"}, {"NAME": "a=b=c", "EMPTY": "", "LINES": "1\n2"},
], ids=str)
def test_variables_hold(keeper, scratch, names):
    more = "print(hash('x') if sys.flags.hash_randomization == 0 else '')\n"
    write(scratch, {"script.py": textwrap.dedent(DUMP) + more})
    compare(keeper, ["script.py"], **names)


@pytest.mark.parametrize("words", [
    ["-m", "package.program", "-x"], ["-m", "package"], ["-mpackage.program"], ["-um", "package.program", "a m"],
    ["-m", "no_such_module"], ["-m", "package.broken"], ["-m", "package.imports_program"],
    ["-m", "json.tool", "--help"],
    ["-m", "module"], ["-c", "import sys, os, json; print(sys.argv, sys.path, os.environ['RANK'])", "a"],
    ["-c", "raise SystemExit(4)"], ["-c", "1/0"], ["no_such_script.py"], ["directory"], ["archive.zip"], ["linked.py"],
    ["package/program.py"], ["."], ["-"],
], ids=" ".join)
def test_every_way_to_name_a_program_holds(keeper, scratch, words):
    write(scratch, {
        "package/__init__.py": "print('package', __file__)",
        "package/__main__.py": DUMP,
        "package/program.py": "from __future__ import annotations\n" + textwrap.dedent(DUMP),
        "package/broken.py": "import json\njson.loads('{')",
        "package/imports_program.py": "import json, package.program\nprint(__name__, __spec__.name)",
        "module.py": DUMP,
        "__main__.py": "import sys, json; print(sys.path, sys.argv)",
        "directory/__main__.py": "import beside",
        "directory/beside.py": "import sys, json; print(__file__, sys.path)",
        "elsewhere/target.py": DUMP,
    })
    (scratch / "linked.py").symlink_to("elsewhere/target.py")
    subprocess.run([sys.executable, "-m", "zipfile", "-c", "archive.zip", "__main__.py"], cwd=scratch, check=True)
    compare(keeper, words)

# SPDX-License-Identifier: BSD-3-Clause
"""The hook leaves no traces: in the user's own sitecustomize, in caches, and wherever the interpreter lies."""

import pathlib
import shutil
import sys

import pytest

from support.standby_programs import MARKED, keeper, make_venv, relocate_python, write  # noqa: F401 (fixtures)

pytestmark = pytest.mark.plain_build  # the hook is Python alone, and the agent is played here

# What a sitecustomize of the user's can do, and how a program sees it.
CUSTOM = {
    "prints": "print('of the user', __name__, __file__)\nimport sys, json\nprint(sys.modules[__name__].__file__)\n",
    "is none": None,
    "lacks a module": "import no_such_module\n",
    "lacks itself": "raise ImportError(name='sitecustomize')\n",
    "fails": "raise ValueError('wrong')\n",
    "fails deep": "import json\ndef fail():\n    json.loads('{')\nfail()\n",
    "is no Python": "this is none\n",
    "exits": "import sys\ndef leave():\n    sys.exit('left')\nleave()\n",
    "is interrupted": "raise KeyboardInterrupt\n",
    "warns": "import warnings\nwarnings.warn('here')\nwarnings.warn('of site', stacklevel=2)\n",
    "looks at its callers": """
        import sys, traceback
        print([frame for frame in traceback.extract_stack() if not frame.filename.startswith('<frozen')])
        """,
    "marks": "import sys\nsys.marked = 1\n",
    "collects no garbage": "import gc; gc.disable()\n",
    "sets up the process": """
        import atexit, os, signal
        os.umask(0o77)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        atexit.register(print, 'of the user')
        os.environ["MASTER_ADDR"] = "of the user"
        """,
    "takes itself away": "import sys\ndel sys.modules[__name__]\n",
    "is another module": "import sys, types\nsys.modules[__name__] = types.SimpleNamespace(replaced=True)\n",
}


@pytest.mark.parametrize("kind", CUSTOM)
def test_the_users_sitecustomize_runs_as_ever(keeper, scratch, kind):
    script = """
        import gc, sys
        print(getattr(sys, "marked", 0), sys.modules.get("sitecustomize"), gc.isenabled())
        print(sys.exc_info(), [name for name in sys.modules if name.startswith("muster")])
        import os, signal, ctypes
        print(os.umask(0), signal.getsignal(signal.SIGUSR1), os.environ["MASTER_ADDR"])
        libc = ctypes.CDLL(None)
        libc.getenv.restype = ctypes.c_char_p
        print(libc.getenv(b"MASTER_ADDR"), libc.getenv(b"RANK"))
        """
    write(scratch, {"script.py": script, "custom/usercustomize.py": "print('usercustomize')\n"})
    if CUSTOM[kind] is not None:
        write(scratch, {"custom/sitecustomize.py": CUSTOM[kind]})
    words, names = ["script.py"], {"PYTHONPATH": scratch / "custom"}
    cold, recorded = keeper.cold(words, **names), keeper.recorded(words, **names)
    assert recorded.visible() == cold.visible()
    assert keeper.warm(words, recorded.modules(), **names).visible() == cold.visible()


def test_what_runs_after_a_sitecustomize_that_fails_sees_no_exception(keeper, scratch):
    """Not even a module that a standby worker imports meanwhile."""
    write(scratch, {
        "lib/one.py": "import sys\nsys.seen = sys.exc_info()\n", "custom/sitecustomize.py": "1/0\n",
        "script.py": "import one, sys\nprint(sys.seen)\n",
    })
    names = {"PYTHONPATH": f"{scratch}/custom:{scratch}/lib"}
    learned = {"one": str(scratch / "lib/one.py")}
    (scratch / "work").mkdir()
    (scratch / "script.py").rename(scratch / "work/script.py")
    warm = keeper.warm(["script.py"], learned, cwd=scratch / "work", **names)
    assert warm.out == b"(None, None, None)\n" and b"ZeroDivisionError" in warm.err


def test_a_sitecustomize_that_reads_the_rank_is_named(keeper, scratch):
    write(scratch, {"custom/sitecustomize.py": "import os\nos.getenv('RANK')\n", "script.py": MARKED})
    reason = keeper.spare(["script.py"], PYTHONPATH=scratch / "custom").dirty({})
    assert reason == "sitecustomize reads RANK while it is imported"


@pytest.mark.parametrize("others", [[], ["of somebody else"]], ids=["alone", "beside others"])
def test_a_common_cache_keeps_nothing_of_the_hook(keeper, scratch, others):
    cache = scratch / "cache"
    beside = cache / str(keeper.hook).lstrip("/") / "muster_standby"
    for name in others:
        write(beside, {name: "kept"})
    write(scratch, {"script.py": "import colorsys, sys\nprint(sys.dont_write_bytecode)\n"})
    names = {"PYTHONPYCACHEPREFIX": cache}
    recorded = keeper.recorded(["script.py"], **names)
    assert keeper.warm(["script.py"], recorded.modules(), **names).out == recorded.out == b"False\n"
    files = [path for path in cache.rglob("*") if not path.is_dir()]
    assert any(path.name.startswith("colorsys") for path in files)
    assert [path.name for path in files if str(keeper.hook) in str(path)] == others
    assert beside.parent.exists() == bool(others)


def test_a_hook_that_is_not_whole_changes_nothing(keeper, scratch):
    """As when its directory is removed while an interpreter starts."""
    script = MARKED + "import sys\nprint(sys.path, sorted(os.environ.items()), *sorted(sys.modules))\n"
    write(scratch, {"script.py": script})
    cold = keeper.cold(["script.py"])
    (scratch / "marks").unlink()
    shutil.rmtree(keeper.hook / "muster_standby")
    recorded = keeper.recorded(["script.py"])
    assert recorded.visible() == cold.visible() and recorded.record == ""
    (scratch / "marks").unlink()
    assert keeper.spare(["script.py"]).process.wait(60) == 77
    assert not (scratch / "marks").exists()


# Where an interpreter may lie. What uv and virtualenv make is a venv of an interpreter with a prefix of its own, with
# files that site runs before any sitecustomize; a package that is installed for editing is found by a finder.
def make_interpreter(scratch, layout):
    if "relocated" not in layout:
        return make_venv(sys.executable, scratch / "env", *(["--copies"] if "copied" in layout else []))
    python = relocate_python(scratch / "prefix")
    return make_venv(python, scratch / "env") if "venv" in layout else python


@pytest.mark.parametrize("layout", ["venv", "copied venv", "relocated", "venv of a relocated one", "PYTHONHOME"])
def test_interpreters_lie_anywhere(keeper, scratch, layout):
    write(scratch, {"script.py": """
        import json, sys, sysconfig
        print(sys.prefix, sys.base_prefix, sys.executable, sys.path, sysconfig.get_path("purelib"), json.__file__)
        """})
    names = {}
    if layout == "PYTHONHOME":
        names["PYTHONHOME"] = sys.base_prefix
    else:
        keeper.python = str(make_interpreter(scratch, layout))
    cold, recorded = keeper.cold(["script.py"], **names), keeper.recorded(["script.py"], **names)
    assert recorded.visible() == cold.visible() and cold.status == 0
    assert cold.out.decode().startswith(str(scratch)) == (layout != "PYTHONHOME")
    spare = keeper.spare(["script.py"], **names)
    assert spare.warm(recorded.modules())[0] > 3
    spare.open_gate(keeper.streams())
    assert spare.finish().visible() == cold.visible()


EDITABLE = """
    import importlib.util, sys
    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "edited":
                return importlib.util.spec_from_file_location(name, {path!r}, submodule_search_locations=[{place!r}])
    sys.meta_path.append(Finder)
"""


def test_packages_that_are_installed_for_editing_are_imported_before_the_gate(keeper, scratch):
    keeper.python = str(make_interpreter(scratch, "venv of a relocated one"))
    (packages,) = (scratch / "env/lib").glob("python3.*/site-packages")
    place = scratch / "sources/edited"
    write(packages, {
        "__editable__.pth": "import __editable___finder\n",
        "__editable___finder.py": EDITABLE.format(path=f"{place}/__init__.py", place=str(place)),
    })
    write(place, {"__init__.py": "from edited import part\n", "part.py": ""})
    write(scratch, {"work/script.py": "import edited, sys\nprint(edited.__file__, sys.meta_path[-1].__name__)\n"})
    words, cwd = ["script.py"], scratch / "work"
    cold, recorded = keeper.cold(words, cwd=cwd), keeper.recorded(words, cwd=cwd)
    assert recorded.visible() == cold.visible() and cold.status == 0
    assert {"edited", "edited.part"} <= set(recorded.modules())
    spare = keeper.spare(words, cwd)
    assert spare.warm(recorded.modules())[1] == 0
    spare.open_gate(keeper.streams())
    warm = spare.finish()
    assert warm.visible() == cold.visible() and "edited" not in warm.modules()


# As virtualenv patches distutils: by a finder of its own, before any sitecustomize.
PATCHING = """
    import sys
    class Finder:
        def find_spec(self, name, path=None, target=None):
            return None
    sys.meta_path.insert(0, Finder())
"""


def make_environment(scratch, kind):
    """(interpreter, variables) of an activated environment: conda's is a whole prefix, uv's a venv inside the project, of an
    interpreter that uv keeps elsewhere."""
    if kind == "conda":
        prefix = scratch / "conda/envs/train"
        write(prefix, {"conda-meta/history": "==> 2026-11-23 <==\n"})
        return relocate_python(prefix), {"CONDA_PREFIX": prefix, "CONDA_DEFAULT_ENV": "train", "PATH": f"{prefix}/bin:/usr/bin:/bin"}
    prefix = scratch / "work/.venv"
    python = make_venv(relocate_python(scratch / "share/uv/python/cpython-linux"), prefix)
    with open(prefix / "pyvenv.cfg", "a") as file:
        file.write("uv = 0.9.9\nprompt = work\n")
    return python, {"VIRTUAL_ENV": prefix, "PATH": f"{prefix}/bin:/usr/bin:/bin"}


@pytest.mark.parametrize("kind", ["conda", "uv"])
def test_packages_of_an_environment_are_imported_before_the_gate_wherever_it_lies(keeper, scratch, kind):
    (scratch / "work").mkdir()
    keeper.python, names = make_environment(scratch, kind)
    asked = keeper.cold(["-c", "import site; print(site.getsitepackages()[0])"], **names)
    packages = pathlib.Path(asked.out.decode().strip())
    assert packages.is_relative_to(scratch)
    write(packages, {
        "tool/__init__.py": "from tool import part\n", "tool/part.py": "", "_virtualenv.pth": "import _virtualenv\n",
        "_virtualenv.py": PATCHING,
    })
    write(scratch, {"work/mine.py": "", "work/script.py": """
        import os, sys, subprocess
        import tool, mine
        print(tool.__file__, mine.__file__, sys.prefix, sys.base_prefix, sys.executable, sys.path, sys.flags)
        print([type(finder).__name__ for finder in sys.meta_path], sorted(os.environ))
        print(subprocess.run(["python3", "-c", "import tool; print(tool.__file__)"], stdout=subprocess.PIPE).stdout)
        """})
    words, cwd = ["script.py"], scratch / "work"
    cold, recorded = keeper.cold(words, cwd=cwd, **names), keeper.recorded(words, cwd=cwd, **names)
    assert recorded.visible() == cold.visible() and cold.status == 0, cold.err
    assert {"tool", "tool.part", "mine"} <= set(recorded.modules())
    spare = keeper.spare(words, cwd, **names)
    assert spare.warm(recorded.modules())[1] == 1, "only `mine` waits for the gate"
    spare.open_gate(keeper.streams())
    warm = spare.finish()
    assert warm.visible() == cold.visible()
    assert "mine" in warm.modules() and "tool" not in warm.modules()

# SPDX-License-Identifier: BSD-3-Clause
"""The hook leaves no traces: in the user's own sitecustomize, in caches, and wherever the interpreter lies."""

import os
import shutil
import subprocess
import sys

import pytest

from support.standby_programs import MARKED, keeper, write  # noqa: F401 (fixtures)

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
    "takes itself away": "import sys\ndel sys.modules[__name__]\n",
    "is another module": "import sys, types\nsys.modules[__name__] = types.SimpleNamespace(replaced=True)\n",
}


@pytest.mark.parametrize("kind", CUSTOM)
def test_the_users_sitecustomize_runs_as_ever(keeper, scratch, kind):
    script = """
        import gc, sys
        print(getattr(sys, "marked", 0), sys.modules.get("sitecustomize"), gc.isenabled())
        print(sys.exc_info(), [name for name in sys.modules if name.startswith("muster")])
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
    write(scratch, {"script.py": MARKED + "import sys\nprint(sys.path, sorted(os.environ.items()), *sorted(sys.modules))\n"})
    cold = keeper.cold(["script.py"])
    (scratch / "marks").unlink()
    shutil.rmtree(keeper.hook / "muster_standby")
    recorded = keeper.recorded(["script.py"])
    assert recorded.visible() == cold.visible() and recorded.record == ""
    (scratch / "marks").unlink()
    assert keeper.spare(["script.py"]).process.wait(60) == 77
    assert not (scratch / "marks").exists()


@pytest.mark.parametrize("layout", ["venv", "copied venv", "PYTHONHOME", "relocated"])
def test_interpreters_lie_anywhere(keeper, scratch, layout):
    write(scratch, {"script.py": """
        import json, sys, sysconfig
        print(sys.prefix, sys.executable, sys.path, sysconfig.get_path("purelib"))
        """})
    names = {}
    if layout.endswith("venv"):
        copies = ["--copies"] if layout == "copied venv" else []
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", *copies, scratch / "env"], check=True)
        keeper.python = str(scratch / "env/bin/python3")
    elif layout == "PYTHONHOME":
        names["PYTHONHOME"] = sys.base_prefix
    else:
        version = f"python3.{sys.version_info[1]}"
        (scratch / "prefix/bin").mkdir(parents=True)
        (scratch / "prefix/lib").mkdir()
        shutil.copy(os.path.realpath(sys.executable), scratch / "prefix/bin/python3")
        (scratch / "prefix/lib" / version).symlink_to(os.path.dirname(os.__file__))
        keeper.python = str(scratch / "prefix/bin/python3")
    cold, recorded = keeper.cold(["script.py"], **names), keeper.recorded(["script.py"], **names)
    assert recorded.visible() == cold.visible() and cold.status == 0
    spare = keeper.spare(["script.py"], **names)
    assert spare.warm(recorded.modules())[0] > 3
    spare.open_gate(keeper.streams())
    assert spare.finish().visible() == cold.visible()

# SPDX-License-Identifier: BSD-3-Clause
"""What a standby worker may not import early is left out, with all that needs it: whatever libraries do, each module
is in the end what it is in a worker that is started cold."""

import random

import pytest

from support.standby_programs import keeper, learn, library, write  # noqa: F401 (fixtures)

pytestmark = pytest.mark.plain_build  # the hook is Python alone, and the agent is played here

ROUNDS = 8  # as core/standby/standby_plan has it
MODULES = 9
HEAD = "import os\nfound = {'season': os.environ.get('SEASON')}\n"
BAD = (
    "found['rank'] = os.environ.get('RANK', 'none')\n",
    "found['rank'] = os.environ['RANK']\n",
    "import socket\nkept = socket.socket()\n",
    "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n",
)
IMPORTS = (
    "import {0}\nfound['{0}'] = True\n",
    "try:\n    import {0}\n    found['{0}'] = True\nexcept ImportError:\n    found['{0}'] = False\n",
    "def need():\n    import {0}\nneed()\nfound['{0}'] = hasattr(__import__('sys').modules['{0}'], 'found')\n",
)
CHANGES = "os.environ['SEASON'] = '{}'\n"
SHOW = "import sys\nfor name in sorted(sys.modules):\n    if name.startswith('module'): print(name, sys.modules[name].found)\n"


def made_up(seed):
    """Modules that import each other, in cycles, too; some of them do what nobody may do early. And the script."""
    chance = random.Random(seed)
    names = [f"module{number}" for number in range(MODULES)]
    files = {}
    for name in names:
        parts = [chance.choice(IMPORTS).format(other) for other in chance.sample(names, chance.randint(0, 3)) if other != name]
        if chance.random() < 0.25:
            parts.insert(chance.randint(0, len(parts)), chance.choice(BAD))
        if chance.random() < 0.2:
            parts.insert(chance.randint(0, len(parts)), CHANGES.format(chance.choice(["wet", "dry", "a long summer"])))
        files[f"{name}.py"] = HEAD + "".join(parts)
    order = chance.sample(names, chance.randint(2, MODULES))
    return files, "".join(f"import {name}\n" for name in order) + SHOW


def ready_spare(keeper, library, learned):
    """Starts standby workers as the agent does until one is ready; returns it and what was left out."""
    for _ in range(ROUNDS):
        spare = keeper.spare(["script.py"], PYTHONPATH=library)
        spare.give_list(learned)
        kind, body = spare.hear()
        if kind == "P":
            return spare, {name for name, origin in learned.items() if origin is None}
        assert kind == "X", body
        names = [body.decode(), *spare.left_out()[1]]
        assert any(learned.get(name, "") is not None for name in names), "nothing new"
        learned.update(dict.fromkeys(names))
    raise AssertionError("no standby worker is ready")


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_modules_are_what_they_are_in_a_worker_that_is_started_cold(keeper, scratch, library, first):
    left_out = 0
    for seed in range(first, first + 10):
        files, script = made_up(seed)
        write(library, files)
        write(scratch, {"script.py": script})
        cold = keeper.cold(["script.py"], PYTHONPATH=library)
        spare, without = ready_spare(keeper, library, learn(keeper, library))
        spare.open_gate(keeper.streams())
        assert spare.finish().visible() == cold.visible(), f"seed {seed}, left out {without}"
        left_out += len(without)
    assert left_out > 0


PASSING = {
    "thread": "import threading\ndone = threading.Event()\nthread = threading.Thread(target=done.wait)\nthread.start()\n"
              "import other\ndone.set()\nthread.join()\n",
    "umask": "import os\nold = os.umask(0o77)\nimport other\nos.umask(old)\n",
    "descriptor": "import os\nold = os.dup(1)\nimport other\nos.close(old)\n",
    "handler": "import signal\nold = signal.signal(10, signal.SIG_IGN)\nimport other\nsignal.signal(10, old)\n",
    "socket": "import socket\nwith socket.socket() as opened:\n    import other\n",
    "path": "import sys\nsys.path.insert(0, '/nowhere')\nimport other\nsys.path.remove('/nowhere')\n",
}


@pytest.mark.parametrize("kind", PASSING)
def test_what_a_module_undoes_itself_is_no_reason(keeper, scratch, library, kind):
    write(library, {"passing.py": PASSING[kind], "other.py": "import json\n"})
    write(scratch, {"script.py": "import passing\n"})
    learned = learn(keeper, library)
    assert keeper.spare(["script.py"], PYTHONPATH=library).warm(learned)[:2] == (len(learned), 0)


@pytest.mark.parametrize("last", ["dry", "a long summer"])
def test_a_variable_that_is_left_to_the_program_has_each_value_in_its_time(keeper, scratch, library, last):
    bad = "import os\nos.environ.get('RANK')\nos.environ['SEASON'] = 'wet'\nimport one\ndel os.environ['SEASON']\nimport two\n"
    write(library, {"bad.py": bad + f"os.environ['SEASON'] = '{last}'\nimport three\n"})
    write(library, {f"{name}.py": HEAD + f"print('{name}', found)\n" for name in ("one", "two", "three")})
    write(scratch, {"script.py": "print('the program')\nimport bad\n"})
    spare, without = ready_spare(keeper, library, learn(keeper, library))
    assert without == {"bad"}
    spare.open_gate(keeper.streams())
    lines = ["one {'season': 'wet'}", "two {'season': None}", "the program", f"three {{'season': '{last}'}}"]
    if last == "dry":  # short enough to be told
        lines[2:] = lines[:1:-1]
    assert spare.finish().out.decode().splitlines() == lines


def test_all_that_needs_it_is_found_at_once(keeper, scratch, library):
    write(library, {
        "bad.py": "import os\nos.environ.get('RANK')\n", "one.py": "import bad\n", "two.py": "import one\n",
        "tries.py": "try:\n    import bad\nexcept ImportError:\n    pass\n", "fine.py": "import json\n",
        "package/__init__.py": "from package import inner\n", "package/inner.py": "import bad\n", "package/other.py": "",
        "needs_package.py": "import package.other\n",
    })
    write(scratch, {"script.py": "import two, tries, fine, needs_package\n"})
    learned = learn(keeper, library)
    reason, names = keeper.spare(["script.py"], PYTHONPATH=library).unsuited(learned)
    assert reason == "bad reads RANK while it is imported"
    assert sorted(names) == ["bad", "needs_package", "one", "package", "package.inner", "tries", "two"]
    learned.update(dict.fromkeys(names))
    modules, skipped, _, _ = keeper.spare(["script.py"], PYTHONPATH=library).warm(learned)
    assert modules > 3 and skipped == 1  # `package.other`, whose package waits


def test_who_needs_what_is_left_out_is_named(keeper, scratch, library):
    """As where another node has left it out, or a list was learned since."""
    write(library, {"one.py": "", "two.py": "import one\n"})
    write(scratch, {"script.py": ""})
    spare = keeper.spare(["script.py"], PYTHONPATH=library)
    listed = {"one": None, "two": str(library / "two.py")}
    assert spare.unsuited(listed) == ("two imports one, which waits for the program", ["two"])

# SPDX-License-Identifier: BSD-3-Clause
"""What the hook of standby workers learns in a worker, and where it does nothing."""

import ast
import io
import re
import tokenize

import pytest

from support.binary import ROOT
from support.gatekeeper import HOOK, memory_file
from support.standby_programs import MARKED, keeper, learn, library, marks, write  # noqa: F401 (fixtures)

pytestmark = pytest.mark.plain_build  # the hook is Python alone, and the agent is played here


@pytest.mark.parametrize("path", sorted(HOOK.rglob("*.py")), ids=lambda path: path.stem)
def test_the_hook_is_python_3_8_in_small_files(path):
    text = path.read_text(encoding="utf-8")
    ast.parse(text, feature_version=(3, 8))
    assert len(text.splitlines()) <= 200


def code_lines(path):
    """How many lines have code: no blank line, comment or text of documentation has."""
    text, lines, begins = path.read_text(encoding="utf-8"), set(), True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_layout = token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
        if not is_layout and token.type not in (tokenize.COMMENT, tokenize.ENDMARKER):
            if not (begins and token.type == tokenize.STRING):
                lines.update(range(token.start[0], token.end[0] + 1))
        if token.type != tokenize.COMMENT:
            begins = is_layout
    return len(lines)


def test_little_of_the_hook_runs_in_a_worker_that_is_started_cold(keeper, scratch):
    write(scratch, {"script.py": ""})
    told = keeper.recorded(["-X", "importtime", "script.py"]).err.decode()
    imported = {line.rpartition("|")[2].strip() for line in told.splitlines()}
    parts = {f"muster_standby.{path.stem}" for path in HOOK.glob("muster_standby/*.py") if path.stem != "__init__"}
    assert imported & parts == {"muster_standby.record", "muster_standby.notice", "muster_standby.steps"}
    files = ("sitecustomize.py", *(f"muster_standby/{part}.py" for part in ("__init__", "record", "notice", "steps")))
    assert sum(code_lines(HOOK / name) for name in files) <= 250


def test_what_is_learned_has_the_order_in_which_imports_began(keeper, scratch, library):
    write(library, {
        "first.py": "value = 1\nfrom second import other\n",
        "second.py": "from first import value\nother = 2\n",
        "alone/__init__.py": "from alone.inner import *\n",
        "alone/inner.py": "",
    })
    write(scratch, {"script.py": "import first, alone\n"})
    learned = learn(keeper, library)
    assert list(learned) == ["first", "second", "alone", "alone.inner"]
    assert learned["alone.inner"] == str(library / "alone/inner.py")
    # Asked for alone, `second` cannot be imported.
    assert keeper.cold(["-c", "import second"], PYTHONPATH=library).status == 1
    assert keeper.spare(["script.py"], PYTHONPATH=library).warm(learned)[:2] == (4, 0)


@pytest.mark.parametrize("end", ["os._exit(5)", "os.kill(os.getpid(), 9)", "os.execv('/bin/true', ['true'])"])
def test_what_was_imported_is_known_however_the_worker_ends(keeper, scratch, end):
    write(scratch, {"script.py": f"import os, colorsys\n{end}\n"})
    assert "colorsys" in keeper.recorded(["script.py"]).modules()


def test_children_record_nothing(keeper, scratch):
    write(scratch, {"script.py": """
        import os, subprocess, sys
        if os.fork() == 0:
            import colorsys
            os._exit(0)
        os.wait()
        subprocess.run([sys.executable, "-c", "import wave"], check=True)
        """})
    assert not {"colorsys", "wave"} & set(keeper.recorded(["script.py"]).modules())


def test_modules_that_were_only_asked_for_are_not_recorded(keeper, scratch):
    write(scratch, {"script.py": """
        import importlib.util, importlib
        importlib.util.find_spec("colorsys")
        importlib.reload(importlib.import_module("wave"))
        """})
    names = list(keeper.recorded(["script.py"]).modules())
    assert "colorsys" not in names and names.count("wave") == 1


def test_a_worker_that_becomes_one_at_the_gate_records_what_is_new(keeper, scratch):
    write(scratch, {"script.py": "import colorsys, wave\n"})
    spare = keeper.spare(["script.py"])
    spare.warm({"colorsys": keeper.recorded(["script.py"]).modules()["colorsys"]})
    spare.open_gate(keeper.streams())
    outcome = spare.finish()
    assert outcome.record.startswith(f"hello 1 {spare.process.pid}\n")
    assert "wave" in outcome.modules() and "colorsys" not in outcome.modules()


CHANGES = {
    "script": ("os.environ['X'] = '1'", False),
    "own module": ("import sets_it", False),
    "removal": ("del os.environ['HOME']", False),
    "function of a library": ("import library; library.set_it()", False),
    "library": ("import library_sets", True),
    "names of the round": ("os.environ['MASTER_PORT'] = '1'", True),
    "the same value": ("os.environ['HOME'] = os.environ['HOME']", True),
    "and back": ("os.environ['X'] = '1'; del os.environ['X']", True),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("later", ["import wave", "import library; library.import_it()"])
@pytest.mark.parametrize("words", [
    ["script.py"], ["-m", "script"], ["-c", "exec(open('script.py').read())"],
], ids=" ".join)
def test_nothing_is_learned_after_the_program_changed_its_environment(keeper, scratch, library, change, later, words):
    text, is_learned = CHANGES[change]
    write(library, {
        "library.py": "import os\ndef set_it(): os.environ['X'] = '1'\ndef import_it(): import wave\n",
        "library_sets.py": "import os\nos.environ['X'] = '1'\nimport colorsys\n",
    })
    write(scratch, {
        "script.py": f"import os, sys, cmd\n{text}\n{later}\n",
        "sets_it.py": "import os\nos.environ['X'] = '1'\n",
    })
    learned = keeper.recorded(words, PYTHONPATH=library).modules()
    assert "cmd" in learned and ("wave" in learned) == is_learned


SECRETS = ("CARD_PIN", "pin", "DB_PASS", "MY_PASSWORD", "SECRET", "HF_TOKEN", "API_KEY", "ADMIN_PWD", "CREDENTIAL", "AUTH")


@pytest.mark.parametrize("name", SECRETS)
def test_no_name_and_no_value_of_a_secret_is_written_down(keeper, scratch, library, name):
    write(library, {
        "sets.py": f"import os\nos.environ['{name}'] = '12345'\nos.environ['SEASON'] = 'wet'\nimport colorsys\n",
        "unsets.py": f"import os\ndel os.environ['{name}']\nimport wave\n",
    })
    write(scratch, {"script.py": "import sets, unsets\n"})
    record = keeper.recorded(["script.py"], PYTHONPATH=library).record
    lines = [line for line in record.splitlines() if line.startswith("=")]
    assert sorted(line.partition(" ")[2] for line in lines) == ["?\t?", "?\t?", "SEASON\twet"], record
    assert name not in record and "12345" not in record


def test_the_agent_and_the_hook_take_the_same_names_for_secrets():
    text = (ROOT / "src/core/standby/standby_preparation.c").read_text(encoding="utf-8")
    words = re.search(r"secrets\[\] = \{(.*?)\}", text, re.DOTALL)[1]
    hook = re.search(r"^SECRETS = \((.*)\)$", (HOOK / "muster_standby/record.py").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert re.findall(r"\w+", words) == re.findall(r"\w+", hook) != []


@pytest.mark.parametrize("options", [["-S"], ["-I"], ["-E"]], ids=" ".join)
def test_an_interpreter_that_does_not_reach_the_hook_says_no_hello(keeper, scratch, options):
    write(scratch, {"script.py": MARKED})
    recorded = keeper.recorded([*options, "script.py"])
    assert (recorded.record, recorded.status, marks(scratch)) == ("", 0, 1)


def test_a_wrapper_that_cleans_the_environment_says_no_hello(keeper, scratch):
    write(scratch, {"script.py": "pass", "wrapper": "#!/bin/sh\nexec env -i python3 \"$@\""})
    (scratch / "wrapper").chmod(0o755)
    keeper.python = str(scratch / "wrapper")
    assert keeper.recorded(["script.py"]).record == ""


def test_a_file_of_somebody_else_is_not_written_to(keeper, scratch):
    write(scratch, {"script.py": MARKED, "file": ""})
    environment = keeper.environment("record")
    streams = keeper.streams()
    with open(scratch / "file", "r+b") as file:
        assert keeper.start(["script.py"], environment, (file.fileno(),), streams).wait(60) == 0
    assert keeper.start(["script.py"], environment, (), streams).wait(60) == 0
    assert (scratch / "file").read_text() == "" and marks(scratch) == 2


@pytest.mark.parametrize("given", ["nothing", "file"])
def test_a_standby_worker_without_a_gate_runs_nothing(keeper, scratch, given):
    write(scratch, {"script.py": MARKED})
    fds = (keeper.keep(memory_file()),) if given == "file" else ()
    assert keeper.start(["script.py"], keeper.environment("spare"), fds, keeper.streams()).wait(60) == 77
    assert marks(scratch) == 0

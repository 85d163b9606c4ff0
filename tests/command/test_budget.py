# SPDX-License-Identifier: BSD-3-Clause
"""What `tools/check_budget.py` counts, and when it complains: of a small house of its own."""

import importlib
import subprocess
import sys

import pytest

from support.binary import ROOT

HOUSE = {
    "src/base/text.h": '#ifndef T\n#define T\nint text_size(void);\nint text_room(void); /* text_width, "text_of" */\n#endif\n',
    "src/base/text.c": '#include "base/text.h"\n\nint text_size(void) {\n    return text_room();\n}\n\nint text_room(void) {\n    return 1;\n}\n\n'
                       'static int own(void) {\n    return 2;\n}\n',
    "src/base/one.c": '#include "base/text.h"\n\nint one(void) {\n    return text_size();\n}\n',
    "src/base/two.c": '#include "base/text.h"\n\nint two(void) {\n    return one(); /* text_room() */\n}\n',
    "src/base/meson.build": "base_modules = ['text', 'one', 'two']\n",
    "tests/base/text_test.c": "int test;\n",
    "tests/meson.build": "",
    "tools/walls": "# walls\n",
    "tools/budget": "# how large\nsrc_lines 100\nsrc_files 4\nexternal 4\nexternal_for_tests 2\nwalls 0\ncircles 0\ntest_lines 500\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def budget():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        yield importlib.import_module("check_budget")
    finally:
        sys.path.remove(str(ROOT / "tools"))


@pytest.fixture
def house(scratch, budget, monkeypatch):
    monkeypatch.setattr(budget, "TESTED_FLOORS", ("base",))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(scratch.parent))
    for name, text in HOUSE.items():
        (scratch / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).write_text(text)
    return scratch


def change(house, name, old, new):
    text = (house / name).read_text()
    assert old in text
    (house / name).write_text(text.replace(old, new))


def commit(house):
    git = ["git", "-C", house, "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True, capture_output=True)


def test_what_only_its_own_source_calls_is_external_for_tests(budget, house):
    numbers, walls, for_tests = budget.measure(house)
    # neither a prototype nor a comment is a use
    assert (numbers["external"], for_tests, walls) == (4, ["text_room", "two"], [])
    assert numbers["src_files"] == 4 and numbers["test_lines"] == 1
    change(house, "src/base/text.h", "#endif", "#define TEXT_ROOM text_room()\n#endif")
    assert budget.measure(house)[2] == ["two"]  # a macro is one
    (house / "include").mkdir()
    (house / "include/face.h").write_text("int two(void);\n")
    assert budget.measure(house)[2] == []  # and so is a public header
    assert budget.check(house) == []


def test_a_number_above_its_budget_is_a_complaint(budget, house, capsys):
    assert budget.check(house) == []
    assert "4 external " in capsys.readouterr().out
    change(house, "src/base/one.c", "\nint one", "\nint three(void) {\n    return 3;\n}\n\nint one")
    assert [complaint.split(": ")[1] for complaint in budget.check(house)] == [
        "5 external where 4 are allowed", "3 external_for_tests where 2 are allowed"]  # fmt: skip


def test_a_budget_is_raised_with_a_reason_and_lowered_without(budget, house):
    commit(house)
    change(house, "tools/budget", "external 4", "external 9")
    change(house, "tools/budget", "src_lines 100", "src_lines 90")
    raised = ["tools/budget: external was raised from 4 to 9; add `raised external from 4 to 9: reason`"]
    assert budget.check(house) == raised
    commit(house)
    assert budget.check(house) == raised  # the next commit does not hide it
    change(house, "src/base/text.c", "return 2", "return 3")
    commit(house)
    assert budget.check(house) == raised
    (house / "tools/budget").write_text((house / "tools/budget").read_text() + "raised external from 4 to 9: a store\n")
    assert budget.check(house) == []
    commit(house)
    assert budget.check(house) == []
    change(house, "tools/budget", "external 9", "external 12")  # an old reason is none for it
    assert len(budget.check(house)) == 1


def test_without_history_the_numbers_are_compared(budget, house):
    change(house, "tools/budget", "external 4", "external 9")
    assert budget.check(house) == []


def test_a_header_for_one_is_a_wall_with_a_reason(budget, house):
    (house / "src/base/two.c").write_text("int two(void) {\n    return 2;\n}\n")
    change(house, "tools/budget", "walls 0", "walls 1")
    change(house, "tools/budget", "for_tests 2", "for_tests 3")
    assert [complaint.split(":")[0] for complaint in budget.check(house)] == ["src/base/text.h"]
    (house / "tools/walls").write_text("# walls\nsrc/base/text.h: \n")
    assert len(budget.check(house)) == 1
    (house / "tools/walls").write_text("# walls\nsrc/base/text.h: hostile input\n")
    assert budget.check(house) == []
    (house / "src/base/two.c").write_text(HOUSE["src/base/two.c"])
    assert budget.check(house) == ["tools/walls: src/base/text.h is no wall any more; remove the line"]


def test_a_room_has_tests_and_each_is_built(budget, house):
    (house / "tests/base/other_test.c").write_text("")
    (house / "src/base/room").mkdir()
    assert [complaint.split(" ")[0] for complaint in budget.check(house)] == ["tests/base/other_test.c", "src/base/room:"]
    (house / "tests/meson.build").write_text("further_tests = {'base': ['other']}\n")
    (house / "tests/base/room").mkdir()
    (house / "tests/base/room/corner_test.c").write_text("")
    assert [complaint.split(" ")[0] for complaint in budget.check(house)] == ["tests/base/room/corner_test.c"]


def test_renewing_lowers_of_itself_and_raises_with_a_reason(budget, house):
    commit(house)
    change(house, "tools/budget", "external 4", "external 8")
    commit(house)
    assert budget.renew(house, "") == [] and "external 4\n" in (house / "tools/budget").read_text()
    commit(house)
    change(house, "src/base/one.c", "\nint one", "\nint three(void) {\n    return 3;\n}\n\nint one")
    before = (house / "tools/budget").read_text()
    assert budget.renew(house, "")[-1] == "--renew 'REASON' is needed" and (house / "tools/budget").read_text() == before
    assert budget.renew(house, "three is more than two") == []
    assert "raised external from 4 to 5: three is more than two\n" in (house / "tools/budget").read_text()
    assert [complaint for complaint in budget.check(house) if "external was raised from 4 to 5" in complaint] == []


def test_circles_are_counted_through_sources(budget, house):
    assert budget.measure(house)[0]["circles"] == 0
    (house / "src/base/one.h").write_text("")
    change(house, "src/base/text.c", "#include", '#include "base/one.h"\n#include')
    assert budget.measure(house)[0]["circles"] == 1

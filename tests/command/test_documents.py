# SPDX-License-Identifier: BSD-3-Clause
"""The pages keep up with the code."""

import collections
import re

from support.binary import ROOT, load_tool

PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]


# What the path of a file of this repository begins with, as pages write it: floors without src/.
PLACES = ("src", "base", "core", "wire", "options", "host", "agent", "library", "main", "tests", "tools", "bench", "examples", "fuzz")


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def room_arrows():
    """{room: the rooms it may include}, as tools/check_floors.py has them."""
    return load_tool("check_floors").ROOM_ARROWS


def rooms_in_source():
    """{room: the floors it lies on}."""
    rooms = collections.defaultdict(set)
    for path in (ROOT / "src").glob("*/*/"):
        if path.is_dir():
            rooms[path.name].add(path.parent.name)
    return dict(rooms)


def rooms_on_page():
    """{room: (its floors, the files to begin with)}."""
    section = read("docs/architecture.md").split("\n## Rooms\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| .*? \| ([\w, ]+) \| (.*) \|$", section, re.MULTILINE)
    return {room: (set(floors.split(", ")), re.findall(r"`([^`]+)`", files)) for room, floors, files in rows}


def test_architecture_has_a_row_for_every_room_and_no_other():
    assert {room: floors for room, (floors, files) in rooms_on_page().items()} == rooms_in_source()


def test_architecture_begins_the_reading_of_a_room_in_that_room():
    for room, (floors, files) in rooms_on_page().items():
        assert 1 <= len(files) <= 3, room
        assert {file.split("/")[1] for file in files} == {room}
        assert {file.split("/")[0] for file in files} <= floors


def test_files_that_the_pages_name_exist():
    missing, count = [], 0
    for page in PAGES:
        for name in re.findall(r"`((?:%s)/[\w./-]*)`" % "|".join(PLACES), read(page)):
            count += 1
            if not any((root / name).exists() for root in (ROOT, ROOT / "src")):
                missing.append(f"{page}: {name}")
    assert count > 50
    assert missing == []


def test_tests_that_the_page_of_reliability_names_exist():
    named = re.findall(r"`(tests/[\w/]+\.py)`: ((?:`test_\w+`(?:, )?)+)", read("docs/reliability.md"))
    assert len(named) > 10
    missing = [
        f"{file}: {name}"
        for file, names in named
        for name in re.findall(r"`(\w+)`", names)
        if f"def {name}(" not in read(file)
    ]
    assert missing == []


def test_rooms_of_the_arrows_exist():
    named = {room for arrow in room_arrows().items() for room in (arrow[0], *arrow[1])}
    assert len(named) > 10
    assert [room for room in sorted(named) if not (ROOT / "src" / room).is_dir()] == []


def test_links_between_pages_lead_somewhere():
    missing = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)", read(page)):
            if "://" not in target and not (ROOT / page).parent.joinpath(target).exists():
                missing.append(f"{page}: {target}")
    assert missing == []


def test_compatibility_page_has_a_row_for_every_option(muster):
    found = re.findall(r"(?<![\w-])--[a-z][a-z_-]*[a-z]", muster.run(["run", "--help"]).out)
    shown = {option.replace("_", "-") for option in found}
    named = set(re.findall(r"`(--[a-z-]+)`", read("docs/compatibility.md").split("\n## Chosen")[0]))
    assert {option for option in shown if option != "--help"} - named == set()


def test_figures_are_measured_and_written():
    for page in ("README.md", "docs/performance.md"):
        assert "Not measured yet" not in read(page), f"{page}: run `make bench`"

# SPDX-License-Identifier: BSD-3-Clause
"""The pages keep up with the code."""

import re

from support.binary import ROOT

PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def test_architecture_names_every_module_and_no_other():
    modules = {
        path.stem for path in (ROOT / "src").rglob("*.c") if path.parent.name != "main"
    } | {path.stem for path in (ROOT / "src").rglob("*.h")}
    table = read("docs/architecture.md").split("\n## Nouns\n")[1].split("\n## ")[0]
    rows = "\n".join(line for line in table.splitlines() if line.startswith("|"))
    named = set(re.findall(r"`(\w+)`", rows))
    assert modules - named == set(), "in src but not on the page"
    assert named - modules == set(), "on the page but not in src"


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

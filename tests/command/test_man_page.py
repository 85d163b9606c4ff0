# SPDX-License-Identifier: BSD-3-Clause
"""The man page keeps up with the option table, which `--help` prints."""

import re

from support.binary import ROOT


def options_in(text):
    return {word.replace("_", "-") for word in re.findall(r"(?<![\w-])--[a-z][a-z_-]*[a-z]", text)}


def test_man_page_and_help_name_the_same_options(muster):
    shown = options_in(muster.run(["run", "--help"]).out)
    page = (ROOT / "man/muster.1.scd").read_text(encoding="utf-8").replace("\\_", "_")
    section = page.split("\n# OPTIONS\n")[1].split("\n# THE STORE\n")[0]
    described = {
        option
        for line in section.splitlines()
        if line.startswith("*-")
        for option in options_in(line)
    }
    assert len(described) > 30
    assert shown - described == set(), "in --help but not on the man page"
    assert described - shown == set(), "on the man page but not in --help"


def test_man_page_states_every_exit_status():
    page = (ROOT / "man/muster.1.scd").read_text(encoding="utf-8")
    section = page.split("\n# EXIT STATUS\n")[1].split("\n# ")[0]
    assert re.findall(r"^\*(\d+)\*$", section, re.MULTILINE) == ["0", "1", "2"]

# SPDX-License-Identifier: BSD-3-Clause
"""The man page keeps up with the option table, which `--help` prints."""

import re

import pytest

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


def settings_of_rendezvous_on_man_page():
    """{key: (default, whether it is said to have no effect)} of `c10d`."""
    page = (ROOT / "man/muster.1.scd").read_text(encoding="utf-8").replace("\\_", "_")
    section = page.split("\nFor *c10d*:\n")[1].split("\n# ")[0]
    found = {}
    for keys, text in re.findall(r"^(\*.*\*)\n((?:\t.*\n?)+)", section, re.MULTILINE):
        keys = re.findall(r"\*(\w+)\*", keys)
        defaults = re.findall(r"\d+|tcp|false|true", text.rpartition("Default:")[2])
        for key, default in zip(keys, defaults if len(defaults) == len(keys) else [None] * len(keys)):
            found[key] = (default, "without effect" in text)
    return found


def settings_of_rendezvous_in_docs():
    page = (ROOT / "docs/several-nodes.md").read_text(encoding="utf-8").split("\n## Settings\n")[1]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", page, re.MULTILINE)
    return {
        key: ("".join(re.findall(r"^`?(\d+|tcp)`?$", default)) or None, "without effect" in text)
        for key, default, text in rows
    }


def test_man_page_and_docs_say_the_same_of_every_setting_of_the_rendezvous():
    assert len(settings_of_rendezvous_in_docs()) >= 11
    assert settings_of_rendezvous_on_man_page() == settings_of_rendezvous_in_docs()


def test_man_page_states_every_exit_status():
    page = (ROOT / "man/muster.1.scd").read_text(encoding="utf-8")
    section = page.split("\n# EXIT STATUS\n")[1].split("\n# ")[0]
    assert re.findall(r"^\*(\d+)\*$", section, re.MULTILINE) == ["0", "1", "2", "75", "76"]


def commands_in(text):
    return set(re.findall(r"^(?:usage:)? *muster (?:store|timer|rendezvous) ([a-z-]+)", text, re.MULTILINE))


@pytest.mark.parametrize("family, least", [("store", 3), ("timer", 3), ("rendezvous", 1)])
def test_the_page_of_a_family_has_all_its_commands_and_options(muster, family, least):
    page = (ROOT / f"man/muster-{family}.1.scd").read_text(encoding="utf-8").replace("\\_", "_")
    commands = commands_in(muster.run([family, "--help"]).out)
    assert len(commands) >= least
    for command in commands:
        assert re.search(rf"[* ]{command}\*", page), command
        for option in options_in(muster.run([family, command, "--help"]).out) - {"--help", "--maximum-memory"}:
            assert f"*{option}*" in page, f"{command} {option}"


@pytest.mark.parametrize("page", ["muster.1", "muster-store.1", "muster-timer.1"])
def test_pages_say_how_much_is_logged(page):
    assert "LOGLEVEL" in (ROOT / f"man/{page}.scd").read_text(encoding="utf-8")

# SPDX-License-Identifier: BSD-3-Clause
"""The Dockerfile of examples/container, by simple rules: no engine builds it here."""

import json
import re

from support.binary import ROOT

INSTRUCTIONS = {"ARG", "FROM", "RUN", "COPY", "ENTRYPOINT", "CMD"}  # those that it uses


def instructions():
    """[(instruction, its arguments)], with continued lines joined and comments left out."""
    text = (ROOT / "examples/container/Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines()]


def test_it_has_only_known_instructions_and_begins_with_its_image():
    found = instructions()
    assert {name for name, arguments in found} == INSTRUCTIONS
    assert [name for name, arguments in found][:2] == ["ARG", "FROM"]
    variable = found[0][1].split("=")[0]
    assert found[1][1] == f"${{{variable}}}"


def test_commands_are_lists_of_words():
    for name, arguments in instructions():
        if name in ("ENTRYPOINT", "CMD"):
            words = json.loads(arguments)
            assert words and all(isinstance(word, str) for word in words)


def test_what_it_copies_is_there_or_is_made_by_the_build():
    copied = [arguments.split() for name, arguments in instructions() if name == "COPY"]
    made = (ROOT / "tools/build-portable").read_text(encoding="utf-8")
    assert copied
    for source, target in copied:
        assert target.startswith("/")
        assert (ROOT / source).is_file() or source.replace("x86_64", "$architecture") in made, source

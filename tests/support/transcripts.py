# SPDX-License-Identifier: BSD-3-Clause
"""What docs/messages.md shows."""

import re

from support.binary import ROOT


def transcript(command, page="messages"):
    """The lines that the page shows below `$ muster COMMAND`."""
    page = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    shown = re.search(r"^    \$ muster " + re.escape(command) + r"\n((?:    .*\n)+)", page, re.MULTILINE)
    assert shown is not None, command
    return [line.removeprefix("    ") for line in shown.group(1).splitlines()]

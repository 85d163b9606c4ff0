#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws docs/recovery.svg from what a real demo printed.

    tools/demo --transcript recovery.json && tools/draw_recovery.py recovery.json docs/recovery.svg

The picture shows a terminal. Every line appears at its time in the run, only slower, and stays.
"""

import json
import re
import sys
from html import escape

LINE_HEIGHT = 19
WIDTH = 900
MARGIN = 18
TITLE_HEIGHT = 34
SLOWNESS = 3.0  # seconds of the picture for each second of the run
COLOURS = {"command": "#e6edf3", "job": "#9fb1c1", "kill": "#ff7b72", "demo": "#7ee787", "agent": "#d2a8ff"}

STYLE = """
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre }
.line { animation: appear 0.01s linear backwards }
@keyframes appear { from { opacity: 0 } to { opacity: 1 } }
@media (prefers-reduced-motion: reduce) { .line { animation: none } }
"""


def kind_of(line):
    """The kind of a line: the agent's own lines look different from its workers'."""
    if line["kind"] == "job" and not line["text"].startswith(("worker ", "step ", "continuing ", "final ")):
        return "agent"
    return line["kind"]


def text_of(line):
    if line["kind"] not in ("job", "kill"):
        return line["text"]
    without_place = re.sub(r"^[A-Z]\d{4} \S+ \d+ \S+:\d+\] ", "", line["text"])
    without_place = re.sub(r"(of binary: )\S*/", r"\1", without_place)
    return f"{line['seconds']:6.3f} s  {without_place}"


def shortened(text, limit=112):
    return text if len(text) <= limit else text[: limit - 1] + "…"


def draw(lines):
    height = TITLE_HEIGHT + 2 * MARGIN + LINE_HEIGHT * len(lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"'
        ' aria-label="Terminal: a training job loses a worker and recovers">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#0d1117"/>',
    ]
    for number, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f")):
        parts.append(f'<circle cx="{MARGIN + 4 + 20 * number}" cy="{MARGIN}" r="6" fill="{colour}"/>')
    latest = 0.0
    for number, line in enumerate(lines):
        latest = max(latest, line["seconds"])
        y = TITLE_HEIGHT + MARGIN + LINE_HEIGHT * number
        weight = ' font-weight="bold"' if line["kind"] in ("kill", "command") else ""
        parts.append(
            f'<text class="line" x="{MARGIN}" y="{y}" fill="{COLOURS[kind_of(line)]}"{weight}'
            f' style="animation-delay:{latest * SLOWNESS:.2f}s">{escape(shortened(text_of(line)))}</text>'
        )
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = json.load(file)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(draw(lines))


if __name__ == "__main__":
    main()

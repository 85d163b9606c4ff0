# SPDX-License-Identifier: BSD-3-Clause
"""Draws docs/standby.svg: what lies between the death of a worker and the next training step, for each launcher."""

from html import escape

from recovery import FOUR_WORKERS, PHASES, STANDBY

WIDTH, LEFT, RIGHT = 900, 190, 90  # the bars lie between the names and the figures
BAR, GAP, TOP = 30, 20, 76
LONGER = (50, 40, 30, 20, 10, 5, 2)  # how many times longer the shortest bar may be drawn once more
TOLD = {
    "seen": ("agent notices", "#9aa4ae"),
    "gone": ("old workers end", "#e3a13a"),
    "script": ("new workers start", "#5aa9f0"),
    "group": ("imports, process group", "#b795f2"),
    "first": ("first training step", "#4fbf67"),
}
NAMES = {"torchrun": "torchrun", "muster": "Muster", STANDBY: "Muster, spares ready"}

STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px }
.total { font-weight: 600 }
.in { fill: #0d1117; font-size: 12px; text-anchor: middle }
.name { text-anchor: end }
.small { font-size: 12px; opacity: 0.75 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .in { fill: #0d1117 } }
"""


def middle_kills(rows):
    """The phases in ms of each side's kill of median length (of two in the middle, the longer), where all were measured."""
    found = {measured["name"]: measured["sides"] for measured in rows}
    if FOUR_WORKERS not in found:
        return {}
    kills = {}
    for side in NAMES:
        reached = [value for value in found[FOUR_WORKERS].get(side, []) if value is not None]
        if not reached:
            return {}
        index = reached.index(sorted(reached)[len(reached) // 2])
        first = FOUR_WORKERS.split(",")[0]
        kills[side] = {phase: found[f"{first}: {told}"][side][index] for phase, told in PHASES.items()}
    return kills


def seconds(milliseconds):
    return f"{milliseconds / 1000:.2f} s" if milliseconds >= 1000 else f"{milliseconds:.0f} ms"


def text(x, y, what, kind):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(what)}</text>'


def bar(phases, y, scale):
    """The stacked phases of one kill, with their lengths where there is room."""
    parts, x = [], float(LEFT)
    for phase, length in phases.items():
        width = length * scale
        parts.append(f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{BAR}" fill="{TOLD[phase][1]}"/>')
        if width > 52:
            parts.append(text(x + width / 2, y + BAR / 2 + 4, seconds(length), "in"))
        x += width
    return parts, x


def legend(y):
    parts, x = [], float(LEFT)
    for told, colour in TOLD.values():
        parts.append(f'<rect x="{x:.1f}" y="{y - 10}" width="11" height="11" rx="2" fill="{colour}"/>')
        parts.append(text(x + 16, y, told, "small"))
        x += 34 + 6.6 * len(told)
    return parts


def longer_bar(phases, y, scale):
    """The last bar once more, as long as fits, with lines that say that it is the same."""
    total = sum(phases.values())
    times = next((times for times in LONGER if total * scale * times <= WIDTH - LEFT - RIGHT), 1)
    parts, end = bar(phases, y, scale * times)
    above = y - GAP
    corners = f"{LEFT},{above} {LEFT + total * scale:.2f},{above} {end:.2f},{y} {LEFT},{y}"
    parts.append(f'<polygon points="{corners}" fill="#9aa4ae" opacity="0.25"/>')
    parts.append(text(LEFT - 12, y + BAR / 2 + 4, f"the same, {times} times longer", "name small"))
    return parts


def draw(result):
    """The picture as SVG text; None where a launcher was not measured."""
    kills = middle_kills(result["rows"])
    if not kills:
        return None
    scale = (WIDTH - LEFT - RIGHT) / max(sum(phases.values()) for phases in kills.values())
    parts, y = [], TOP
    for side, phases in kills.items():
        drawn, end = bar(phases, y, scale)
        parts += [*drawn, text(LEFT - 12, y + BAR / 2 + 4, NAMES[side], "name")]
        parts.append(text(end + 8, y + BAR / 2 + 4, seconds(sum(phases.values())), "total"))
        y += BAR + GAP
    parts += longer_bar(kills[STANDBY], y, scale)
    height = y + BAR + 16
    title = "A worker is killed: the time until the last of 4 PyTorch workers has done its next training step"
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"'
        f' aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        text(16, 26, title, "title"),
        *legend(54),
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"

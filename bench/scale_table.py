# SPDX-License-Identifier: BSD-3-Clause
"""The figures of many agents: how they are kept, their table, and docs/scale.svg."""

import math
from html import escape

SIDES = {
    "torchrun": ("torchrun", "#9aa4ae"),
    "delegation=false": ("Muster, each node writes", "#e3a13a"),
    "delegation=true": ("Muster, the host writes for all", "#2f81f7"),
    "alone": ("as many jobs of one agent", "#4fbf67"),
}
QUANTITIES = {
    "start": "last start to world running",
    "failure": "a worker fails to all new workers",
    "stop": "SIGTERM to the last end",
    "done": "work done to the last end",
    "start_bytes": "bytes per agent, start",
    "failure_bytes": "bytes per agent, failure",
}

PLOT_WIDTH, PLOT_HEIGHT, ACROSS, LEFT, TOP, GAP_X, GAP_Y = 220, 150, 3, 60, 96, 75, 66
STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px }
.head { font-weight: 600 }
.y { text-anchor: end; opacity: 0.75; font-size: 11px }
.x { text-anchor: middle; opacity: 0.75; font-size: 11px }
.grid { stroke: #9aa4ae; stroke-opacity: 0.35 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } }
"""


def condensed(measured):
    """The row with the smallest, the middle and the largest figure of each side, and how many there were."""
    sides = {}
    for side, figures in measured["sides"].items():
        order = sorted(figures, key=lambda figure: math.inf if figure is None else figure)
        sides[side] = [order[0], order[len(order) // 2], order[-1]]
    return {**measured, "sides": sides, "runs": {side: len(figures) for side, figures in measured["sides"].items()}}


def shown(value, unit, bound):
    if value is None:
        return f"over {bound / 1000:,.0f} s"
    if unit == "ms":
        return f"{value / 1000:.2f} s" if value >= 1000 else f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"
    return f"{value / 1000:,.1f} KB" if unit == "bytes" else f"{value:.1f} {unit}"


def cell(measured, side):
    figures = measured["sides"].get(side) if measured else None
    if not figures:
        return ""
    least, middle, most = (shown(figure, measured["unit"], measured.get("bound")) for figure in figures)
    return middle if least == most else f"{middle} ({least} to {most})"


def by_agents(result):
    """agents -> quantity -> row"""
    found = {}
    for measured in result["rows"]:
        if "agents" in measured:
            found.setdefault(measured["agents"], {})[measured["quantity"]] = measured
    return found


def table(result):
    lines = [f"| agents | who | {' | '.join(QUANTITIES.values())} |", "|---" * (len(QUANTITIES) + 2) + "|"]
    for agents, rows in sorted(by_agents(result).items()):
        told = f"{agents:,}"
        for side, (name, _) in SIDES.items():
            cells = [cell(rows.get(quantity), side) for quantity in QUANTITIES]
            if any(cells):
                lines.append(f"| {told} | {name} | {' | '.join(cells)} |")
                told = ""
        wanted = [rows[quantity]["wanted"] if quantity in rows else "" for quantity in QUANTITIES]
        if any(wanted):
            lines.append(f"| | wanted | {' | '.join(wanted)} |")
    return lines


def traffic_table(result):
    """Messages and bytes of each simulated node."""
    rows = [measured for measured in result["rows"] if "simulated" in measured]
    parts = list(dict.fromkeys(measured["part"] for measured in rows))
    told = {measured["part"]: measured["name"].split(", ", 1)[1].split(":")[0] for measured in rows}
    lines = [f"| simulated nodes | {' | '.join(told[part] for part in parts)} |", "|---" * (len(parts) + 1) + "|"]
    for count in sorted({measured["simulated"] for measured in rows}):
        cells = []
        for part in parts:
            found = {each["unit"]: each for each in rows if (each["simulated"], each["part"]) == (count, part)}
            messages, size = (next(iter(found[unit]["sides"].values()))[0] for unit in ("messages", "bytes"))
            cells.append(f"{messages:.1f} messages, {size / 1000:,.1f} KB")
        lines.append(f"| {count:,} | {' | '.join(cells)} |")
    return lines if rows else []


def bare_table(result):
    rows = [measured for measured in result["rows"] if "bare" in measured]
    lines = ["| bare members | median (smallest to largest) | wanted |", "|---|---|---|"]
    for measured in rows:
        lines += [f"| {measured['name']} | {cell(measured, side)} | {measured['wanted']} |" for side in measured["sides"]]
    return lines if rows else []


def text(x, y, what, kind):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(what)}</text>'


class Plot:
    """One quantity against the number of agents, both logarithmic."""

    def __init__(self, place, title, points, agents):
        self.left = LEFT + place % ACROSS * (PLOT_WIDTH + GAP_X)
        self.top = TOP + place // ACROSS * (PLOT_HEIGHT + GAP_Y)
        self.title, self.points, self.agents = title, points, agents
        values = [value for series in points.values() for _, value in series]
        self.low, self.high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        self.high = max(self.high, self.low + 1)

    def x(self, agents):
        low, high = math.log10(self.agents[0]), math.log10(self.agents[-1])
        return self.left + (PLOT_WIDTH * (math.log10(agents) - low) / (high - low) if high > low else PLOT_WIDTH / 2)

    def y(self, value):
        return self.top + PLOT_HEIGHT * (self.high - math.log10(value)) / (self.high - self.low)

    def draw(self, tell):
        parts = [text(self.left, self.top - 12, self.title, "head")]
        for power in range(self.low, self.high + 1):
            y = self.y(10**power)
            parts.append(f'<line class="grid" x1="{self.left}" y1="{y:.1f}" x2="{self.left + PLOT_WIDTH}" y2="{y:.1f}"/>')
            parts.append(text(self.left - 6, y + 4, tell(10**power), "y"))
        for agents in self.agents:
            parts.append(text(self.x(agents), self.top + PLOT_HEIGHT + 18, f"{agents:,}", "x"))
        for side, series in self.points.items():
            places = [(self.x(agents), self.y(value)) for agents, value in series]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            colour = SIDES[side][1]
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        return parts


def series_of(rows, quantity):
    """side -> [(agents, middle figure)], of those that were reached; nothing lies on a logarithmic scale at zero."""
    points = {}
    for side in SIDES:
        for agents, measured in sorted(rows.items()):
            figures = measured.get(quantity, {"sides": {}})["sides"].get(side)
            if figures and figures[1]:
                points.setdefault(side, []).append((agents, figures[1]))
    return points


def tell_time(milliseconds):
    return f"{milliseconds / 1000:g} s" if milliseconds >= 1000 else f"{milliseconds:g} ms"


def tell_bytes(count):
    for unit, size in (("MB", 10**6), ("KB", 10**3)):
        if count >= size:
            return f"{count / size:g} {unit}"
    return f"{count:g} B"


def legend(y, sides):
    parts, x = [], float(LEFT)
    for name, colour in (SIDES[side] for side in sides):
        parts.append(f'<rect x="{x:.1f}" y="{y - 10}" width="11" height="11" rx="2" fill="{colour}"/>')
        parts.append(text(x + 16, y, name, "small"))
        x += 38 + 6.4 * len(name)
    return parts


def draw(result):
    """The picture as SVG text; None where nothing was measured."""
    rows = by_agents(result)
    drawn = {quantity: series_of(rows, quantity) for quantity in QUANTITIES}
    drawn = {quantity: points for quantity, points in drawn.items() if points}
    if not drawn:
        return None
    width = LEFT + ACROSS * (PLOT_WIDTH + GAP_X) - 30
    height = TOP + math.ceil(len(drawn) / ACROSS) * (PLOT_HEIGHT + GAP_Y) - 20
    title = "What a job costs as its agents become many (middle of the runs, both scales logarithmic)"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        f' aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        text(16, 26, title, "title"),
        *legend(52, [side for side in SIDES if any(side in points for points in drawn.values())]),
    ]
    for place, (quantity, points) in enumerate(drawn.items()):
        tell = tell_bytes if quantity.endswith("bytes") else tell_time
        parts += Plot(place, QUANTITIES[quantity], points, sorted(rows)).draw(tell)
    return "\n".join([*parts, "</svg>"]) + "\n"


def lines(root, result, full_table):
    """All that docs/performance.md says of it; the picture is drawn, too."""
    machine = full_table({**result, "rows": []})[0]
    found = [machine, "", *table(result)]
    drawn = draw(result)
    if drawn is not None:
        (root / "docs/scale.svg").write_text(drawn, encoding="utf-8")
        told = "Time and bytes against the number of agents: torchrun, Muster, and as many jobs of one agent"
        found += ["", f"![{told}](scale.svg)"]
    for further in (bare_table(result), traffic_table(result)):
        found += ["", *further] if further else []
    return found

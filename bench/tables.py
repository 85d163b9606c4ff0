#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Puts the figures of bench/results/ into docs/performance.md and README.md, between their markers, and draws the
pictures of a recovery and of many agents."""

import json
import math
import pathlib
import re

import measure
import picture
import scale_table
from recovery import AGAIN, FOUR_WORKERS, JOINING, READY, STANDBY

MARKER = re.compile(r"(<!-- figures:([\w-]+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)

APART = "-"  # PART-MACHINE: what was measured on another machine, which has a table of its own

# The rows of the README's table: what a user feels. docs/performance.md has them all.
HEADLINES = (
    FOUR_WORKERS,
    AGAIN,
    READY,
    JOINING,
    "no-op job, 2 workers, wall time",
    "worker exit to first instruction of the last worker of the new group, 4 shell workers",
    "4 agents, one worker fails: all new workers running",
    "4 agents, one killed with SIGKILL: survivors' new workers running",
    "4 agents, the first killed, which hosts the store: survivors' new workers running",
    "a node joins a running 1:2 job: new world running",
)


def figure(value, unit, bound=None):
    """A figure with three significant digits and its unit."""
    if value is None:
        return "not measured"
    if math.isinf(value):
        return f"not within {bound:,.0f} {unit}"
    if value >= 10000:
        text = f"{value:,.0f}"
    elif value >= 100:
        text = f"{value:.0f}"
    elif value >= 10:
        text = f"{value:.1f}"
    else:
        text = f"{value:.2f}"
    return f"{text} {unit}"


def times(measured, side="muster"):
    """How many times better than torchrun a side is, in words."""
    value = measure.ratio(measured, side=side)
    if value is None:
        return ""
    text = f"{value:,.0f} times" if value >= 10 else f"{value:.1f} times"
    return f"over {text}" if math.isinf(measure.median(measured["sides"]["torchrun"])) else text


def shown(measured, value):
    return figure(value, measured["unit"], measured.get("bound"))


def load(root):
    results = {}
    for path in sorted((root / "bench/results").glob("*.json")):
        results[path.stem] = json.loads(path.read_text(encoding="utf-8"))
    return results


def short_table(results):
    mine = [result for name, result in results.items() if APART not in name]
    rows = {measured["name"]: measured for result in mine for measured in result["rows"]}
    shown_rows = [rows[name] for name in HEADLINES if name in rows and (name in (AGAIN, READY) or measure.ratio(rows[name]) is not None)]
    sides = ["torchrun", "muster"]
    if any(measured["sides"].get(STANDBY) for measured in shown_rows):
        sides.append(STANDBY)
    names = {"torchrun": "torchrun", "muster": "Muster", STANDBY: "Muster `--standby on`, once the spares are ready"}
    lines = [f"| | {' | '.join(names[side] for side in sides)} | better |", "|---" * (len(sides) + 2) + "|"]
    for measured in shown_rows:
        medians = [measure.median(measured["sides"].get(side)) for side in sides]
        cells = ["" if median is None else shown(measured, median) for median in medians]
        better = filter(None, [times(measured, side) for side in sides[1:]])
        lines.append(f"| {measured['name']} | {' | '.join(cells)} | {'; '.join(better)} |")
    return lines


def machine_lines(result):
    machine = result["machine"]
    gpu = f", {machine['gpu']}" if "gpu" in machine else ""
    peer = f"; PyTorch {result['peer']}" if result["peer"] else ""
    return [
        f"Measured {result['date']} on {machine['cpus']} × {machine['processor']}{gpu}, {machine['memory_mib']} MiB,"
        f" Linux {machine['kernel']}, {machine['compiler']}{peer}."
    ]


def full_table(result):
    columns = ("", "who", "median", "p90", "smallest", "largest", "runs", "against torchrun", "wanted")
    lines = [*machine_lines(result), "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for measured in result["rows"]:
        name, wanted = measured["name"], measured["wanted"]
        for side, figures in measured["sides"].items():
            if not figures:
                continue
            reached = [math.inf if value is None else value for value in figures]
            values = (measure.median(figures), measure.ninth_tenth(measured, side), min(reached), max(reached))
            cells = [name, side, *(shown(measured, value) for value in values), str(len(figures))]
            cells += [times(measured, side) if side != "torchrun" else "", wanted]
            lines.append(f"| {' | '.join(cells)} |")
            name = wanted = ""
        if measured.get("note"):
            lines.append(f"| | {measured['note']} " + "| " * (len(columns) - 2) + "|")
    return lines


def picture_lines(root, results):
    """Draws the picture and shows it, where there are figures for it."""
    drawn = picture.draw(results["recovery"]) if "recovery" in results else None
    if drawn is None:
        return []
    (root / "docs/standby.svg").write_text(drawn, encoding="utf-8")
    told = "The phases between the death of a worker and the next training step: torchrun, Muster, Muster with standby workers"
    return [f"![{told}](docs/standby.svg)"]


def render(kind, root, results):
    if kind == "short":
        return short_table(results)
    if kind == "picture":
        return picture_lines(root, results)
    if kind == "scale" and kind in results:
        return scale_table.lines(root, results[kind], full_table)
    if kind in results:
        return full_table(results[kind])
    return ["Not measured yet."]


def write_all(root):
    root, results = pathlib.Path(root), load(pathlib.Path(root))
    for name in ("README.md", "docs/performance.md"):
        path = root / name
        if not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        replaced = MARKER.sub(
            lambda match: match[1] + "".join(line + "\n" for line in render(match[2], root, results)) + match[3], text
        )
        path.write_text(replaced, encoding="utf-8")


if __name__ == "__main__":
    write_all(pathlib.Path(__file__).resolve().parent.parent)

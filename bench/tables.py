#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Puts the figures of bench/results/ into docs/performance.md and README.md, between their markers."""

import json
import pathlib
import re

import measure

MARKER = re.compile(r"(<!-- figures:(\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


# The rows of the README's table; docs/performance.md has them all.
HEADLINES = (
    "no-op job, 2 workers, wall time",
    "agent peak RSS, 8 workers, store included",
    "worker exit to first instruction of the new group, 4 shell workers",
    "worker exit to first instruction of the last worker of the new group, 4 shell workers",
    "store set, 64 connections",
    "store get, 64 connections",
    "store add, 1 connection, 5000 idle ones",
    "store add, 64 connections, 5000 idle ones",
    "1000 clients wait for a key: last one released",
    "store memory, 1000 connections",
)


def figure(value, unit):
    """A figure as people read it: three digits that mean something, with its unit."""
    if value is None:
        return "not measured"
    if value >= 10000:
        text = f"{value:,.0f}"
    elif value >= 100:
        text = f"{value:.0f}"
    elif value >= 10:
        text = f"{value:.1f}"
    else:
        text = f"{value:.2f}"
    return f"{text} {unit}"


def times(value):
    if value is None:
        return ""
    return f"{value:,.0f} times" if value >= 10 else f"{value:.1f} times"


def load(root):
    results = {}
    for path in sorted((root / "bench/results").glob("*.json")):
        results[path.stem] = json.loads(path.read_text(encoding="utf-8"))
    return results


def short_table(results):
    lines = ["| | torchrun | Muster | better |", "|---|---|---|---|"]
    rows = {measured["name"]: measured for result in results.values() for measured in result["rows"]}
    for name in HEADLINES:
        measured = rows.get(name)
        if measured is None or measure.ratio(measured) is None:
            continue
        sides = [figure(measure.median(measured["sides"][side]), measured["unit"]) for side in ("torchrun", "muster")]
        lines.append(f"| {name} | {sides[0]} | {sides[1]} | {times(measure.ratio(measured))} |")
    return lines


def machine_lines(result):
    machine = result["machine"]
    return [
        f"Measured {result['date']} on {machine['cpus']} × {machine['processor']}, {machine['memory_mib']} MiB,"
        f" Linux {machine['kernel']}, {machine['compiler']}; PyTorch {result['peer']}."
    ]


def full_table(result):
    lines = [*machine_lines(result), "", "| | who | median | smallest | largest | runs | against torchrun | wanted |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for measured in result["rows"]:
        name, wanted = measured["name"], measured["wanted"]
        for side, figures in measured["sides"].items():
            if not figures:
                continue
            against = times(measure.ratio(measured, side=side)) if side != "torchrun" else ""
            cells = [figure(value, measured["unit"]) for value in (measure.median(figures), min(figures), max(figures))]
            lines.append(f"| {name} | {side} | {' | '.join(cells)} | {len(figures)} | {against} | {wanted} |")
            name = wanted = ""
        if measured.get("note"):
            lines.append(f"| | {measured['note']} | | | | | | |")
    return lines


def render(kind, results):
    if kind == "short":
        return short_table(results)
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
            lambda match: match[1] + "\n".join(render(match[2], results)) + "\n" + match[3], text
        )
        path.write_text(replaced, encoding="utf-8")


if __name__ == "__main__":
    write_all(pathlib.Path(__file__).resolve().parent.parent)

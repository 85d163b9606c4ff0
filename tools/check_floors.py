#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails when an #include goes up a floor, sideways between wire and options, between two rooms of a
floor that have no arrow in ROOM_ARROWS, or in a circle.

    tools/check_floors.py [SOURCE_ROOT]

The floors are those of docs/architecture.md. The pure floors (1-3) may include only the standard C
headers named here, so a stray <unistd.h> is found where it is written, before the linker sees it.
"""

import pathlib
import re
import sys

FLOORS = {"base": 1, "core": 2, "wire": 3, "options": 3, "host": 4, "agent": 5, "library": 6, "main": 7}
PURE = {"base", "core", "wire", "options"}
BLIND = {("wire", "options"), ("options", "wire")}
# Which rooms of one floor a room may include. A new line here is a decision about the structure. The files
# beside the rooms put the rooms together and may include each. docs/architecture.md says what a room is about.
ROOM_ARROWS = {
    "core/agent": {"core/workers"},
    "core/failure": {"core/workers"},
    "core/machine": {"core/launch"},
    "core/node": {"core/agent", "core/failure", "core/rendezvous", "core/round", "core/standby", "core/succession",
                  "core/workers"},
    "core/rendezvous": {"core/launch", "core/telling", "core/workers"},
    "core/round": {"core/rendezvous", "core/workers"},
    "core/standby": {"core/launch", "core/workers"},
    "core/succession": {"core/rendezvous"},
    "core/telling": {"core/agent", "core/failure", "core/launch", "core/workers"},
    "core/workers": {"core/launch"},
    "wire/failure": {"wire/json"},
    "wire/register": {"wire/json", "wire/rendezvous"},
    "wire/rendezvous": {"wire/json", "wire/pickle", "wire/store"},
    "wire/round": {"wire/json", "wire/store"},
    "wire/telling": {"wire/failure", "wire/json", "wire/rendezvous"},
    "wire/watchdog": {"wire/json"},
    "options/launch": {"options/argparse", "options/slurm"},
    "host/failure": {"host/loop", "host/process"},
    "host/log": {"host/loop"},
    "host/machine": {"host/loop"},
    "host/network": {"host/loop"},
    "host/process": {"host/loop"},
    "host/register": {"host/loop"},
    "host/rendezvous": {"host/loop", "host/store"},
    "host/scratch": {"host/loop"},
    "host/standby": {"host/loop"},
    "host/store": {"host/loop", "host/network"},
    "host/telling": {"host/loop", "host/process", "host/store"},
    "host/watchdog": {"host/loop"},
    "agent/failure": {"agent/standby", "agent/workers"},
    "agent/rendezvous": {"agent/workers"},
    "agent/telling": {"agent/failure", "agent/standby", "agent/watchdog", "agent/workers"},
    "agent/watchdog": {"agent/failure", "agent/workers"},
    "agent/workers": {"agent/scratch", "agent/standby"},
    "main/rendezvous": {"main", "main/store"},
    "main/store": {"main"},
    "main/telling": {"main"},
    "main/timer": {"main"},
}
STANDARD_HEADERS = {
    "assert.h", "ctype.h", "errno.h", "float.h", "inttypes.h", "limits.h", "math.h", "stdalign.h",
    "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h",
}
# Third-party headers, and the only files that may see them.
FOREIGN_HEADERS = {"uthash.h": re.compile(r"base/table\.c"), "jansson.h": re.compile(r"wire/.*\.c")}
# The commands that stand on the headers of libmuster, as any program does, so that these cannot rot. Of the house they
# include `base`, `options` and what is named here: it is about the machine, and none of libmuster's classes.
ON_HEADERS = {"main/rendezvous", "main/store", "main/timer"}
BESIDE_HEADERS = {"core/workers/signal_name.h", "host/loop/clock.h", "host/telling/job_directory.h"}
# What stands behind the headers, for the files of the command beside these rooms.
BEHIND_HEADERS = {"agent/rendezvous", "agent/watchdog", "core/rendezvous", "core/store", "core/watchdog", "host/network",
                  "host/rendezvous", "host/store", "host/watchdog", "library", "wire/rendezvous", "wire/store",
                  "wire/watchdog"}  # fmt: skip
# … and what is included all the same: the page has headers, a key and several paths, which muster/health.h has not.
FOR_THE_PAGE = ("main/telling", "host/network/health_endpoint.h")
# Headers that the build makes from a file beside them in the source. Only sources of their room may see them.
MADE_HEADERS = {".pb-c.h": ".proto"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def includes_of(path):
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


def room_of(name):
    return name.rpartition("/")[0]


def is_open(room, other):
    """Whether files of ROOM may include those of OTHER, as far as rooms of one floor go."""
    floor = room.split("/")[0]
    return room in (floor, other) or floor != other.split("/")[0] or other in ROOM_ARROWS.get(room, ())


def made_from(name):
    """What the build makes this header from, or None."""
    return next((name[: -len(end)] + source for end, source in MADE_HEADERS.items() if name.endswith(end)), None)


def goes_behind_headers(name, included):
    """Whether a file of the command includes what libmuster has a header for."""
    if room_of(name) in ON_HEADERS:
        return included.split("/")[0] not in {"base", "options", "main"} and included not in BESIDE_HEADERS
    is_for_the_page = (room_of(name), included) == FOR_THE_PAGE
    return name.split("/")[0] == "main" and room_of(included) in BEHIND_HEADERS and not is_for_the_page


def complaints_about(source, name, includes):
    floor = name.split("/")[0]
    for bracket, included in includes:
        if bracket == "<":
            if floor not in PURE or included in STANDARD_HEADERS:
                continue
            allowed = FOREIGN_HEADERS.get(included)
            if allowed is None or not allowed.fullmatch(name):
                yield f"src/{name}: <{included}> does not belong on a pure floor"
            continue
        other = included.split("/")[0]
        if other not in FLOORS:
            yield f'src/{name}: "{included}" names no floor; write "floor/header.h"'
        elif made_from(included) and (not name.endswith(".c") or room_of(name) != room_of(included)):
            yield f'src/{name}: "{included}" is for the sources of {room_of(included)}'
        elif not (source / (made_from(included) or included)).is_file():
            yield f'src/{name}: "{included}" does not exist'
        elif FLOORS[other] > FLOORS[floor]:
            yield f'src/{name}: "{included}" is on a higher floor'
        elif (floor, other) in BLIND:
            yield f'src/{name}: {floor} and {other} do not see each other ("{included}")'
        elif goes_behind_headers(name, included):
            yield f'src/{name}: "{included}" is behind a header of libmuster; include <muster/...>'
        elif not is_open(room_of(name), room_of(included)):
            yield (
                f'src/{name}: "{included}" is in a room that {room_of(name)} does not include; '
                "see ROOM_ARROWS in tools/check_floors.py"
            )


def circle_in(graph):
    """The first circle of includes found, as a list of names, or None."""
    finished, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node in finished:
            return None
        path.append(node)
        for following in graph.get(node, ()):
            circle = visit(following)
            if circle:
                return circle
        finished.add(path.pop())
        return None

    for start in sorted(graph):
        circle = visit(start)
        if circle:
            return circle
    return None


def module_of(name):
    """A source and its header are one."""
    return name.rpartition(".")[0]


def arrows_of(graph):
    """{module: the other modules that its source or its header includes}"""
    arrows = {module_of(name): set() for name in graph}
    for name, includes in graph.items():
        arrows[module_of(name)] |= {module_of(included) for included in includes} & arrows.keys() - {module_of(name)}
    return arrows


def circles_in(arrows):
    """Sets of modules each of which leads to all others of its set, by headers or by sources."""
    reached = {}
    for start in arrows:
        seen, waiting = set(), list(arrows[start])
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting += arrows[module]
        reached[start] = seen
    circles = {frozenset(other for other in seen if start in reached[other]) for start, seen in reached.items() if start in seen}
    return sorted(sorted(circle) for circle in circles)


def graph_of(source):
    """{file: the quoted includes in it}, by paths below src."""
    paths = sorted(source.rglob("*.[ch]"))
    return {
        path.relative_to(source).as_posix(): [included for bracket, included in includes_of(path) if bracket == '"']
        for path in paths
    }


def say_arrows(graph):
    arrows = arrows_of(graph)
    pairs = [(module, other) for module, others in arrows.items() for other in others]
    within = sum(room_of(module) == room_of(other) for module, other in pairs)
    rooms = {(room_of(module), room_of(other)) for module, other in pairs if room_of(module) != room_of(other)}
    print(f"arrows: {len(pairs)} between files ({within} of them within a room), {len(rooms)} between rooms")
    for circle in circles_in(arrows):
        print("circle: " + ", ".join(circle))


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    source = root / "src"
    complaints, graph, count = [], {}, 0
    for path in sorted(source.rglob("*.[ch]")):
        count += 1
        name = path.relative_to(source).as_posix()
        includes = includes_of(path)
        complaints += complaints_about(source, name, includes)
        graph[name] = [included for bracket, included in includes if bracket == '"']
    circle = circle_in(graph)
    if circle:
        complaints.append("circle of includes: " + " -> ".join(circle))
    if count == 0:
        complaints.append(f"no sources under {source}")
    for complaint in complaints:
        print(complaint)
    say_arrows(graph)
    print(f"floors: {count} files, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

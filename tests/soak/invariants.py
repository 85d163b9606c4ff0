# SPDX-License-Identifier: BSD-3-Clause
"""What must hold in every storm, asked of what its workers and agents left behind. Nothing here starts or ends
anything; each check returns sentences, one for each violation."""

import collections
import re

SECOND = 10**9

Note = collections.namedtuple("Note", "node pid rank size restart store start end")

# What no agent ever says.
NEVER_SAID = re.compile(r"AddressSanitizer|runtime error:|Assertion .* failed|core dumped\)? *$|Traceback|uv_.*failed")
LARGEST_AGENT_KIB = 96 * 1024
MOST_DESCRIPTORS = 400
SHORTEST_QUARTER = 30  # samples, one a second: a short job tells nothing


def read_notes(folder):
    """The workers' files (soak_worker.c); one that was killed before its first line is none."""
    notes = []
    for path in folder.iterdir():
        if path.name[0].isdigit():
            lines = path.read_text(encoding="ascii").split("\n")
            facts = dict(word.split("=", 1) for word in lines[0].split())
            if "from" in facts:
                start = int(facts["from"])
                end = int(lines[1]) if len(lines) > 1 and lines[1].isdigit() else start
                numbers = (int(facts[name]) for name in ("rank", "size", "restart"))
                notes.append(Note(facts["node"], int(facts["pid"]), *numbers, facts["store"], start, end))
    return sorted(notes, key=lambda note: note.start)


def worlds_of(notes):
    """{(store, restart, size): its workers}. A world that starts anew has another store or another restart."""
    worlds = collections.defaultdict(list)
    for note in notes:
        worlds[note.store, note.restart, note.size].append(note)
    return worlds


def overlap(one, other):
    """For how many seconds both ran; 0 or less: not at once."""
    return (min(one.end, other.end) - max(one.start, other.start)) / SECOND


def check_ranks(notes):
    """In one world there is one worker for each rank, and no rank is beyond its size."""
    found = []
    for (store, restart, size), members in worlds_of(notes).items():
        for number, one in enumerate(members):
            if not 0 <= one.rank < size:
                found.append(f"rank {one.rank} in a world of {size} at {store}")
            for other in members[number + 1 :]:
                if one.rank == other.rank and overlap(one, other) > 0:
                    found.append(f"two workers with rank {one.rank} at once at {store}, restart {restart}: {one}, {other}")
    return found


def longest_overlap(notes):
    """(seconds, worker, worker): the longest time that workers of different worlds ran at once; None: never."""
    longest, running = None, []
    for note in notes:
        running = [other for other in running if other.end > note.start]
        for other in running:
            if (other.store, other.restart, other.size) != (note.store, note.restart, note.size):
                seconds = overlap(note, other)
                if longest is None or seconds > longest[0]:
                    longest = (seconds, other, note)
        running.append(note)
    return longest


def check_worlds(notes, bound):
    """No two worlds at once for longer than the bound, and never on one node."""
    found = []
    longest = longest_overlap(notes)
    if longest is not None and longest[0] > bound:
        found.append(f"two worlds at once for {longest[0]:.2f} s (bound {bound:.2f} s): {longest[1]}, {longest[2]}")
    for node in {note.node for note in notes}:
        longest = longest_overlap([note for note in notes if note.node == node])
        if longest is not None and longest[0] > 0:
            found.append(f"{node} ran workers of two worlds at once for {longest[0]:.2f} s: {longest[1]}, {longest[2]}")
    return found


def check_end(name, status, allowed, said):
    """An agent ended with a status that the manual knows, and with a sentence where it is no success."""
    if status is None:
        return [f"{name} did not end in time"]
    found = []
    if status not in allowed:
        found.append(f"{name} ended with {status}; the documented ones here are {sorted(allowed)}")
    if status > 0 and not said.strip():
        found.append(f"{name} ended with {status} without a word")
    shocking = NEVER_SAID.search(said)
    if shocking:
        found.append(f"{name} said {shocking.group(0)!r}")
    return found


def check_size(name, kib, descriptors):
    found = []
    if kib > LARGEST_AGENT_KIB:
        found.append(f"{name} took {kib} KiB")
    if descriptors > MOST_DESCRIPTORS:
        found.append(f"{name} held {descriptors} descriptors")
    return found


def check_flatness(name, samples):
    """`samples`: (KiB, descriptors) of one agent over a long time. The last quarter is as the second."""
    quarter = len(samples) // 4
    if quarter < SHORTEST_QUARTER:
        return []
    found = []
    for what, index, slack in (("KiB", 0, 1024), ("descriptors", 1, 3)):
        early = sorted(sample[index] for sample in samples[quarter : 2 * quarter])[quarter // 2]
        late = sorted(sample[index] for sample in samples[-quarter:])[quarter // 2]
        if late > early + slack:
            found.append(f"{name} grew from {early} to {late} {what}")
    return found

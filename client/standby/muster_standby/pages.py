# SPDX-License-Identifier: BSD-3-Clause
"""Pages that a worker needs at once. All children of a warm parent have their memory at the same addresses. So what one of
them had to copy, or to map from a file, until its first steps is what the next one will need. It does so while it waits.

The kernel's table of pages says which these are: a page of a child that nobody else has is a copy. The kernel also makes the
copy (MADV_POPULATE_WRITE, Linux 5.14), so nothing is written, and an address that is not there any more does no harm."""
import os
import sys

from muster_standby import borrow, move_up
from muster_standby.pace import Pace

HUGE = 2 << 20
POPULATE_READ, POPULATE_WRITE = 22, 23
# In the last byte of the kernel's entry for a page: it is in memory, of a file, and nobody else has it.
PRESENT, OF_FILE, OWN = 0x80, 0x20, 0x01
COPIED = bytes(byte & (PRESENT | OF_FILE | OWN) == PRESENT | OWN for byte in range(256))
MAPPED = bytes(byte & PRESENT == PRESENT for byte in range(256))
AROUND = 16  # pages of a file that the kernel maps for one that is needed
# So much memory a standby worker may take for it, and so much the list of it has.
PAGES_MAXIMUM = 4096
RUNS_MAXIMUM = 1 << 14
ENTRY = 16
BURST = 1_000_000  # of CPU time, in ns
REST = 4  # after a burst that others had to wait for: all of them together take some ten bursts
PIECE = 32  # runs, between two looks at the gate


def read_maps():
    """(start, end, access, name) of each part of the memory of this process"""
    with open("/proc/self/maps") as file:
        for line in file:
            place, access, _, _, _, *name = line.split(None, 5)
            start, end = (int(number, 16) for number in place.split("-"))
            yield start, end, access, name[0].rstrip("\n") if name else ""


def runs(flags, start=0):
    """(from, to) of each row of ones."""
    while (start := flags.find(1, start)) >= 0:
        end = flags.find(0, start)
        end = len(flags) if end < 0 else end
        yield start, end
        start = end


class Pages:
    """A list of runs of pages in a file in memory, which a parent writes and its children read."""

    def __init__(self, library):
        self.library, self.size = library, os.sysconf("SC_PAGE_SIZE")
        self.number = borrow("ctypes").c_size_t
        self.file = move_up(os.memfd_create("muster-standby-pages"))
        self.known, self.copied, self.done = set(), 0, 0  # `done`: bytes of the list

    def close(self):
        os.close(self.file)

    def look(self, pid):
        """Adds what this child of ours has needed so far. Where the kernel does not tell nothing is added."""
        tables = []
        try:
            tables += [os.open("/proc/%s/pagemap" % each, os.O_RDONLY | os.O_CLOEXEC) for each in ("self", pid)]
            for start, end, access, name in list(read_maps()):
                if access == "rw-p":
                    self.add_copied(start, self.flags(tables[1], start, end, COPIED), self.flags(tables[0], start, end, MAPPED))
                elif access in ("r-xp", "r--p") and name.startswith("/"):
                    self.add_mapped(start, self.flags(tables[1], start, end, MAPPED))
        except OSError:
            pass
        for fd in tables:
            os.close(fd)

    def flags(self, table, start, end, kind):
        """One byte for each page: whether it is of this kind."""
        count = (end - start) // self.size
        return os.pread(table, count * 8, start // self.size * 8)[7::8].translate(kind)

    def add_copied(self, start, theirs, mine):
        for first, last in runs(theirs):
            for begin, end in runs(mine[:last], first):
                for at in range(begin, end):
                    if self.copied < PAGES_MAXIMUM and self.add(start + at * self.size, 1, POPULATE_WRITE):
                        self.copied += 1

    def add_mapped(self, start, theirs):
        for first, last in runs(theirs):
            for at in range(first // AROUND * AROUND, last, AROUND):
                self.add(start + max(at, first) * self.size, min(at + AROUND, last) - max(at, first), POPULATE_READ)

    def add(self, place, count, advice):
        if place in self.known or len(self.known) >= RUNS_MAXIMUM:
            return False
        self.known.add(place)
        entry = place.to_bytes(8, sys.byteorder) + count.to_bytes(4, sys.byteorder) + advice.to_bytes(4, sys.byteorder)
        os.write(self.file, entry)
        return True

    def make_own(self, gate):
        """In a child: has the kernel do what is listed, until something comes through the gate."""
        poll = borrow("select").poll()
        poll.register(gate, 1)
        pace = Pace(REST, BURST, lambda seconds: poll.poll(1000 * seconds))
        entries = os.pread(self.file, RUNS_MAXIMUM * ENTRY, self.done)
        for at in range(0, len(entries), ENTRY):
            if at // ENTRY % PIECE == 0:
                pace.step()
                if poll.poll(0):
                    return
            place, count, advice = (int.from_bytes(entries[at + a : at + b], sys.byteorder) for a, b in ((0, 8), (8, 12), (12, 16)))
            self.library.madvise(self.number(place), self.number(count * self.size), advice)
            self.done += ENTRY

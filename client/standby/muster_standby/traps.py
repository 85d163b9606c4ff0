# SPDX-License-Identifier: BSD-3-Clause
"""Names in the environment as C sees it that tell whether they were read. The last letter of each, and its value, lie in a
page of their own, which is in memory only when it was needed: the kernel's table of pages says so. Nothing is in the way of
who reads, so no library notices, and none is changed."""
import os
import sys

from muster_standby import borrow, move_up

NOBODY = "MUSTER_STANDBY_NOBODY"  # Nobody asks for it by name: who has read it has read everything.


def open_table():
    return move_up(os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC))


class Traps:
    """Names in the environment as C sees it."""

    PRESENT_OR_SWAPPED = 0xC0  # in the last byte of the kernel's entry for a page

    def __init__(self, names):
        places = set(sys.path_importer_cache)
        ctypes, self.page, self.names = borrow("ctypes"), os.sysconf("SC_PAGESIZE"), names
        for place in set(sys.path_importer_cache) - places:
            del sys.path_importer_cache[place]
        self.c = c = ctypes.CDLL(None)
        self.number, c.mmap.restype = ctypes.c_size_t, ctypes.c_void_p
        c.getenv.restype = ctypes.c_void_p
        file = os.memfd_create("muster-standby-names")
        for name in names:
            os.write(file, (name[-1] + ("=1" if name.endswith("SIZE") else "=0")).encode().ljust(self.page, b"\0"))
        self.start = self.map(None, 2 * len(names), 3, 0x22, -1, 0)
        for at, name in enumerate(names):
            end = self.start + (2 * at + 1) * self.page
            self.map(end, 1, 1, 0x12, file, at)
            ctypes.memmove(end - len(name) + 1, name[:-1].encode(), len(name) - 1)
            c.putenv(self.number(end - len(name) + 1))
        os.close(file)
        self.file = open_table()
        self.prove()

    def begin_again(self):
        """In a child of the process that has begun it: the pages are where they were, but the table is another one."""
        os.close(self.file)
        self.file = open_table()

    def map(self, address, pages, *how):
        """Private memory, without a file (0x22) or of one, at this address (0x12)."""
        *how, offset = how
        length, offset = self.number(pages * self.page), self.number(offset * self.page)
        address = self.c.mmap(address and self.number(address), length, *how, offset)
        if address in (None, self.number(-1).value):
            raise OSError("no memory")
        return address

    def prove(self):
        """What finds other names must not touch a page, and what finds one of these must."""
        self.touched()
        os.putenv("MUSTER_STANDBY", "")
        os.unsetenv("MUSTER_STANDBY")
        for name in b"RA", b"WORLD", b"MASTER", b"TORCHELASTIC", b"MUSTER":
            self.c.getenv(name)
        is_quiet = not self.touched()
        for name in self.names:
            self.c.getenv(name.encode())
        if not is_quiet or self.touched() != self.names:
            self.stop()
            raise OSError("the kernel or the C library does it in another way")

    def touched(self):
        """The names that were read since the last time."""
        entries = os.pread(self.file, 16 * len(self.names), self.start // self.page * 8)
        found = [at for at, byte in enumerate(entries[15::16]) if byte & self.PRESENT_OR_SWAPPED]
        for at in found:  # Forgets them (MADV_DONTNEED).
            self.c.madvise(self.number(self.start + (2 * at + 1) * self.page), self.number(self.page), 4)
        return [self.names[at] for at in found]

    def stop(self):
        for name in self.names:
            os.unsetenv(name)
        os.close(self.file)

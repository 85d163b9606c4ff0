# SPDX-License-Identifier: BSD-3-Clause
"""Whether the files of which modules were imported are still what they were: else a worker that is started cold would have
others. To look at each of two thousand files at the gate takes longer than all the rest, so the kernel is asked to tell of
changes (inotify). Of what other machines do it tells nothing: files that they may write are looked at all the same."""
import os
import sys

from muster_standby import borrow, move_up

# Numbers of file systems that only this machine writes: ext4, xfs, btrfs, zfs, f2fs, tmpfs, ramfs, overlay, squashfs, erofs.
LOCAL = {0xEF53, 0x58465342, 0x9123683E, 0x2FC12FC1, 0xF2F52010, 0x01021994, 0x858458F6, 0x794C7630, 0x73717368, 0xE0F5E1E2}
# Modified, its attributes, moved from or to here, made, deleted, and all of that of the directory itself.
CHANGES = 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
LONG = 8 if sys.maxsize > 1 << 32 else 4
NOT_WAITING = os.O_NONBLOCK | os.O_CLOEXEC


def stamp(path):
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


def is_local(library, directory):
    """statfs tells the kind of a file system in its first word."""
    state = bytearray(256)
    address = (borrow("ctypes").c_char * 256).from_buffer(state)
    return library.statfs(os.fsencode(directory), address) == 0 and int.from_bytes(state[:LONG], sys.byteorder) & 0xFFFFFFFF in LOCAL


class Files:
    def __init__(self):
        self.stamps, self.fd, self.watched, self.roots = {}, None, {}, {}  # Stamps are {directory: {path: stamp}}.
        self.library, self.unwatched = None, set()  # directories of which the kernel tells nothing

    def add(self, path):
        """Before the module is made of it."""
        if os.path.isabs(path):
            self.stamps.setdefault(os.path.dirname(path), {}).setdefault(path, stamp(path))

    def watch(self, library):
        """To be called when what was added is imported. `library` is C's, if it can be called."""
        self.library = library or self.library
        known = set(self.watched.values()) | self.unwatched
        new = set(self.stamps) - known
        self.have_told(new)
        self.roots.update((root, self.inode(root)) for root in sys.path if os.path.isabs(root) and root not in self.roots)
        self.unwatched.update(os.path.dirname(path) for path in self.different(new))  # while they were imported

    def have_told(self, directories):
        library = self.library
        if library and self.fd is None:
            number = library.inotify_init1(NOT_WAITING)
            self.fd = move_up(number) if number >= 0 else None
        for directory in directories:
            number = -1
            if library and self.fd is not None and is_local(library, directory):
                number = library.inotify_add_watch(self.fd, os.fsencode(directory), CHANGES)
            if number < 0 or number in self.watched:
                self.unwatched.add(directory)
            else:
                self.watched[number] = directory

    def begin_again(self):
        """In a child of the process that has begun it, which hears of changes until then: a watch is heard once."""
        old, directories = self.fd, set(self.watched.values())
        self.fd, self.watched = None, {}
        self.have_told(directories)
        if old is not None:
            poll = borrow("select").poll()
            poll.register(old, 1)
            self.unwatched.update(directories if poll.poll(0) else ())  # Something has changed meanwhile.
            os.close(old)

    @staticmethod
    def inode(path):
        return (stamp(path) or (None,))[-1]

    def different(self, directories):
        return (path for each in directories for path, old in self.stamps[each].items() if stamp(path) != old)

    def told(self):
        """Directories in which something has changed."""
        found, data = set(), b""
        try:
            while self.fd is not None:
                data = os.read(self.fd, 1 << 16)
                at = 0
                while at < len(data):
                    number, length = (int.from_bytes(data[at + i : at + i + 4], sys.byteorder, signed=True) for i in (0, 12))
                    found.update([self.watched[number]] if number in self.watched else self.watched.values())
                    at += 16 + length
        except BlockingIOError:
            pass
        return found

    def changed_now(self):
        """The same as below, as often as it is wanted."""
        return next(self.different(self.directories() | self.unwatched), None)

    def directories(self):
        """Those in which something may have changed."""
        moved = any(self.inode(root) != old for root, old in self.roots.items())
        return set(self.watched.values()) if moved else self.told()

    def changed(self):
        """A file that is not what it was; None where all are. At the gate, once."""
        directories = self.directories()
        for number in self.watched:
            self.library.inotify_rm_watch(self.fd, number)
        # To close it now would wait for the kernel to forget them, for 25 ms. Later, and at the end, it is quick.
        return next(self.different(directories | self.unwatched), None)

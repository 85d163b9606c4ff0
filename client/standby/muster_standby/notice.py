# SPDX-License-Identifier: BSD-3-Clause
"""Lets the agent know that this process is ending while the kernel still takes its memory down. The main thread takes a
robust mutex at the front of the record, which the agent waits for and nobody gives back (src/host/process/death_notice.h).
That needs ctypes, which is not imported for it: somebody else's import is waited for."""
import os
import sys

from muster_standby import borrow, pass_for_importlib

PAGE = 4096


def prepare(fd):
    """A function that takes the mutex as soon as that is possible. It is to be called often, in this process alone and
    while the descriptor is good. Where it fails, the agent hears of the end when it is over."""
    pid, native_id = os.getpid(), borrow("_thread").get_native_id
    is_due = os.fstat(fd).st_size >= PAGE  # Otherwise there is no room for it, and nobody waits.

    @pass_for_importlib
    def attempt():
        nonlocal is_due
        if is_due and "ctypes" in sys.modules and native_id() == pid:
            try:
                ctypes = sys.modules["ctypes"]
                if not ctypes.__spec__._initializing:
                    is_due = False
                    take_mutex(ctypes, fd)
            except Exception:
                is_due = False

    return attempt


@pass_for_importlib
def take_mutex(ctypes, fd):
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    page = library.mmap(None, ctypes.c_size_t(PAGE), 3, 1, fd, ctypes.c_long(0))  # To read and write, shared.
    if page not in (None, ctypes.c_void_p(-1).value):
        attributes, mutex = ctypes.create_string_buffer(64), ctypes.c_void_p(page)
        library.pthread_mutexattr_init(attributes)
        library.pthread_mutexattr_setpshared(attributes, 1)
        library.pthread_mutexattr_setrobust(attributes, 1)
        if library.pthread_mutex_init(mutex, attributes) == 0:
            library.pthread_mutex_lock(mutex)

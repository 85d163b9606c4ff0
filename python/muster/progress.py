# SPDX-License-Identifier: BSD-3-Clause
"""How far a worker is (`muster run --progress auto`, which is the default with --standby): `muster status` shows the step and
the rate, and how many steps were taken once more after a restart.

    import muster.progress
    for step in range(first, last):
        train()
        muster.progress.step(step)
        if step % 1000 == 0:
            save()
            muster.progress.checkpoint(step)

A call is a few stores to memory that the agent shares, and no system call. Under other launchers, with --progress off and
in children of a worker nothing happens. This file needs nothing else of the package, and Python 3.8. What it writes is
described in include/muster/progress.h."""

import os
import time

_PAGE, _OFFSET, _WORDS, _MAGIC = 4096, 2048, 14, 0x3153534552474F52
_MARK, _AGENT, _WORKER, _COUNT, _STEP, _STEPPED, _FIRST_STEP, _FIRST, _SOURCE = range(9)
_SAVES, _SAVED_STEP, _SAVED, _WAITED, _WAITS = range(9, 14)
_PROGRAM = 2
_LOOKS_MAXIMUM = 1000  # for a page that the agent has not marked yet, since it has just started us

_now = time.monotonic_ns
_page = None  # there is none, or it has not been looked for
_page_of_steps = None  # the same, as soon as a step has been told
_looks_left = _LOOKS_MAXIMUM


def step(n):
    """This worker has taken step `n`, which is its number in the whole training, and is not counted from the last start
    on."""
    page = _page_of_steps or _begin_steps(n)
    if page is not None:
        try:
            page[4] = n  # _STEP; this may be called often, and each look for a name takes its time
        except (TypeError, ValueError):
            raise _complaint("step", n) from None
        page[5] = _now()
        page[3] += 1


def _begin_steps(n):
    """The page, which has the first step by now."""
    global _page_of_steps
    page = _page or _find_page()
    if page is not None:
        if page[_COUNT] == 0:
            try:
                page[_FIRST_STEP] = n
            except (TypeError, ValueError):
                raise _complaint("step", n) from None
            page[_FIRST] = _now()
        page[_SOURCE] = _PROGRAM
        _page_of_steps = page
    return page


def checkpoint(n):
    """What a restart would go on from has step `n`: it has been saved."""
    page = _page or _find_page()
    if page is not None:
        try:
            page[_SAVED_STEP] = n
        except (TypeError, ValueError):
            raise _complaint("checkpoint", n) from None
        page[_SAVED] = _now()
        page[_SAVES] += 1


class waiting:
    """with muster.progress.waiting(): ...  In there this thread waits for other ranks, or for data. A wait in a wait counts
    once."""

    def __enter__(self):
        page = _page or _find_page()
        self._page = page if page is not None and page[_WAITS] == 0 else None
        if self._page is not None:
            self._page[_WAITS] = _now()

    def __exit__(self, *error):
        page = self._page
        if page is not None and page[_WAITS] != 0:
            page[_WAITED] = (page[_WAITED] + _now() - page[_WAITS]) & 0xFFFFFFFFFFFFFFFF
            page[_WAITS] = 0


def _complaint(name, n):
    return ValueError("muster.progress.%s(%r): give a whole number from 0 on, which is the step's in the whole training" % (name, n))


def _go_off():
    global _page, _page_of_steps, _looks_left
    _page, _page_of_steps, _looks_left = None, None, 0


def _find_page():
    global _page, _looks_left
    if not _looks_left:
        return None
    told = os.environ.get("MUSTER_PROGRESS", "")
    if not told.isdigit():
        _looks_left = 0
        return None
    _looks_left -= 1
    page = _search(int(told))
    if page is None:
        _looks_left = 0
    elif page[_MARK] == _MAGIC:
        _looks_left = 0
        if page[_WORKER] == os.getpid() or (page[_WORKER] == 0 and page[_AGENT] == os.getppid()):
            _page = page
            os.register_at_fork(after_in_child=_go_off)
    return _page


def _search(told):
    """The page is under another number where the agent's hook has moved it."""
    try:
        import mmap

        numbers = [told] + [int(number) for number in os.listdir("/proc/self/fd")]
        for number in numbers:
            try:
                if os.readlink("/proc/self/fd/%d" % number).startswith("/memfd:muster-"):
                    memory = mmap.mmap(number, _PAGE)
                    return memoryview(memory)[_OFFSET : _OFFSET + 8 * _WORDS].cast("Q")
            except (OSError, ValueError):
                pass  # It has been closed, or is another file.
    except (ImportError, OSError):
        pass
    return None

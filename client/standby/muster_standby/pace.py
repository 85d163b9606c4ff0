# SPDX-License-Identifier: BSD-3-Clause
"""How a standby worker makes way for the workers while it imports: it works in short bursts, and rests for a long time
after each of which it sees that somebody else wanted its CPU. A low priority does less: a process that has got a CPU in a
short pause of a worker keeps it for a while, and workers that wait for each other all wait for that one then."""
import os

from muster_standby import borrow

BURST = 20_000_000  # of CPU time, in ns
BUSY = 0.1  # waiting for a CPU, as a part of a burst, from which on there is no CPU to spare


class Pace:
    """Can only rest between two imports: what one library does in its initialisation is one burst."""

    def __init__(self, rest, burst=BURST, sleep=None):
        self.rest, self.burst, self.sleep = rest, burst, sleep or borrow("time").sleep
        self.last = self.look()

    def look(self):
        """[CPU time, time of waiting for a CPU] of this process so far, in ns"""
        try:
            fd = os.open("/proc/self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return [0, 0]  # The kernel does not tell.
        text = os.read(fd, 100)
        os.close(fd)
        return list(map(int, text.split()[:2]))

    def step(self):
        """To be called often. Returns after the rest, if there is one."""
        worked, waited = (now - last for now, last in zip(self.look(), self.last))
        if worked >= self.burst:
            if waited > BUSY * worked:
                self.sleep(worked * self.rest / 1e9)
            self.last = self.look()

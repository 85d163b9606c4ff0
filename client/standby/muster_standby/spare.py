# SPDX-License-Identifier: BSD-3-Clause
"""A standby worker, from its hello to the gate and through it."""
import os

from muster_standby import borrow, is_of_round, program
from muster_standby.gate import Dirty, Gate, change_streams
from muster_standby.pace import Pace
from muster_standby.recorder import record
from muster_standby.warming import CAPTURED_MAXIMUM, Warming


class Spare:
    """Whatever goes wrong, this process ends rather than run the program."""

    def __init__(self, told):
        self.told, self.gate = told, None

    def before(self):
        self.do(self.begin)

    def after(self):
        self.do(self.become_worker)

    def do(self, step):
        try:
            step()
        except BaseException as failure:
            try:
                self.gate.refuse(str(failure) if isinstance(failure, Dirty) else repr(failure))
            finally:
                os._exit(77)

    def begin(self):
        self.gate = Gate(int(self.told["fd"]))
        self.gc, self.warming = borrow("gc"), Warming()
        self.gate.say(b"H", 1, os.getpid())

    def become_worker(self):
        self.collects, self.rest = self.gc.isenabled(), float(self.told.get("rest", "0"))
        self.warm(self.gate.hear_list(), 0 if self.told.get("alone") == "1" else self.rest)
        self.pass_gate(*self.gate.hear_go(lambda listed: self.warm(listed, self.rest)))
        self.gate.say(b"R")
        self.gate.socket.close()

    def say_ready(self):
        with open("/proc/self/statm", "rb") as file:
            memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 10
        cpu = int(sum(os.times()[:2]) * 1000)
        self.gate.say(b"P", len(self.warming.loaded), self.warming.skipped, cpu, memory)

    def warm(self, listed, rest):
        """Up to saying that it is ready; once more for what workers have imported later."""
        pace = Pace(rest)
        self.gc.disable()
        self.warming.preload(listed, pace)
        pace.end()
        if self.collects:
            self.gc.enable()
        self.gc.collect()  # What is due now would delay the program's first lines.
        for complaint in self.warming.complaints():
            raise Dirty(complaint)
        self.say_ready()

    def pass_gate(self, directory, names, fds):
        if directory and directory != os.getcwdb():
            os.chdir(directory)
        # Other names are as they were when this process was started. What a wrapper around the interpreter or an
        # imported module has made of them stays.
        for name, value in names:
            if is_of_round(name) and name not in os.environ:
                os.environ[name] = value
        if program()[0] != self.warming.place or any(self.warming.shadows()):
            raise Dirty("the program's directory has changed")
        change_streams(fds, CAPTURED_MAXIMUM)
        record(fds[3], self.told)

# SPDX-License-Identifier: BSD-3-Clause
"""A standby worker, from its hello to the gate and through it. Whatever goes wrong, it ends rather than run the program.
Only where workers of this program have come to its line it runs the program, up to there (line.py)."""
import os

from muster_standby import borrow, is_of_round
from muster_standby.gate import Dirty, Gate, Unsuited, change_streams, put_in_order, read_list
from muster_standby.line import Line, line_of
from muster_standby.pace import Pace
from muster_standby.parent import Parent, show_environment
from muster_standby.record import record
from muster_standby.warming import Warming


def begin(told):
    gate = warming = parent = None
    gc = borrow("gc")

    def start():
        nonlocal gate, warming
        gate, warming = Gate(int(told["fd"])), Warming()
        gate.say(b"H", 1, os.getpid())

    def become_worker():
        nonlocal gate, parent
        collects, is_alone = gc.isenabled(), told.get("alone") == "1"

        def learn(listed):
            """Up to saying that it is ready; once more for what workers have imported later."""
            nonlocal is_alone
            if parent and parent.is_child and not listed:  # It has all that its parent has.
                say_ready(gate, warming, True)
                return
            gc.disable()
            warming.preload(listed, Pace(0 if is_alone else float(told.get("rest", "0"))))
            is_alone = False
            if collects:
                gc.enable()
            gc.collect()  # What is due now would delay the program's first lines.
            for complaint in warming.complaints():
                raise Dirty(complaint)
            if parent and not parent.is_child:
                parent.settle()
            say_ready(gate, warming, parent and parent.is_child)

        if "parent" in told:
            parent = Parent(gate, warming, int(told["parent"]))
            gate = parent.serve(learn, lambda: say_ready(gate, warming, False))  # which returns in a child
        else:
            listed = read_list(*gate.hear()[2])
            file, name = line_of(listed)
            if name is not None:
                warming.stop_watching()
                Line(gate, told, file, name, guarded)
                return  # to the interpreter, which runs the program
            learn(listed)
        directory, names, fds = gate.hear_go(learn, lambda: parent and parent.pages.make_own(gate.socket.fileno()))
        pass_gate(warming, directory, names, fds)
        if parent:
            parent.pages.close()
            show_environment(names, told)
        record(fds[3], told)
        # It lives as long as what is borrowed: to free what it knows of each module would copy the pages that hold it.
        borrow.__defaults__[0][""] = warming
        gate.say(b"R")
        gate.socket.close()

    def guarded(step):
        try:
            return step()
        except Unsuited as failure:
            try:
                gate.leave_out(*failure.args)
            finally:
                os._exit(77)
        except BaseException as failure:
            try:
                gate.refuse(str(failure) if isinstance(failure, Dirty) else repr(failure))
            finally:
                os._exit(77)

    guarded(start)
    return lambda: guarded(become_worker)


def say_ready(gate, warming, shares):
    """Of the memory only what it does not share, where most of it is its parent's: at most what it had to copy. To ask for
    that itself (smaps_rollup) would take the kernel as long as the fork."""
    memory = None
    if shares:
        with open("/proc/self/stat", "rb") as file:
            memory = int(file.read().rpartition(b")")[2].split()[7]) * os.sysconf("SC_PAGE_SIZE") >> 10
    gate.say_ready(b"P", len(warming.loaded), warming.skipped, memory)


def change_directory(directory):
    """To the agent's own one, which may be gone, or closed to this user."""
    try:
        here = os.getcwdb()
    except OSError:
        here = None
    if directory and directory != here:
        try:
            os.chdir(directory)
        except OSError as failure:
            raise Dirty("cannot change to the working directory %s: %s" % (os.fsdecode(directory), failure.strerror)) from None


def pass_gate(warming, directory, names, fds):
    changed = warming.files.changed()
    if changed:
        raise Unsuited("%s has changed since it was imported" % changed)
    warming.stop_watching()
    change_directory(directory)
    # Other names are as they were when this process was started. What a wrapper around the interpreter or an imported
    # module has made of them stays.
    for name, value in names:
        if is_of_round(name) and name not in os.environ:
            os.environ[name] = value
    put_in_order(os.environ._data, [os.fsencode(name) for name, _ in names])
    if warming.stand_in.has_moved() or any(warming.shadows()):
        raise Dirty("the program's directory has changed")
    change_streams(fds)

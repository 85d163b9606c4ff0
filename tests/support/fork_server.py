# SPDX-License-Identifier: BSD-3-Clause
"""Run by the peer's Python: `fork_server.py DESCRIPTOR DESCRIPTOR` imports torch once, and then starts Python programs that have it
already (support.forked_python asks, and support/forked_worker). The import takes seconds, and is most of what a short program of
PyTorch's costs.

On the first descriptor each message is JSON. {"arguments": [PROGRAM, ...], "environment": {...}, "directory": ...} comes with
descriptors 0, 1 and 2 of the program, and is answered with its process id. {"poll": PID} is answered with its status, which is null
while it runs.

The second one listens. Who connects is a process whose work a program is to do: it sends such a message, with its own pid as "for" and
a path as "root", and is answered with the program's pid, and with its status as soon as it has ended. When the process has gone, the
program is killed. The program's network, host name and files are those of that process, below `root`."""

import atexit
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import threading
import traceback

before = dict(os.environ)
import torch  # noqa: E402, F401

ADDED = {name: value for name, value in os.environ.items() if before.get(name) != value}
REQUEST_MAXIMUM = 1 << 20
# What training imports besides.
OF_TRAINING = ["torch.distributed", "torch.nn.parallel", "torch.optim", "torch._dynamo"]


def become(request, descriptors):
    """This process is the program from here on."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number, inheritable=True)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update({**ADDED, **request["environment"]})
    tempfile.tempdir = None  # It is looked for again in this environment.
    has_directory = os.path.isdir(request["directory"])  # the peer has another root
    os.chdir(request["directory"] if has_directory else "/")
    sys.argv = request["arguments"]
    sys.path[0] = os.path.dirname(sys.argv[0])


def go_where(process, root):
    """Into the namespaces of a process, if they are others."""
    if os.stat(f"/proc/{process}/ns/mnt").st_ino != os.stat("/proc/self/ns/mnt").st_ino:
        os.setns(os.pidfd_open(process), os.CLONE_NEWNS | os.CLONE_NEWNET | os.CLONE_NEWUTS)
        os.chroot(root)


def status_of(pid):
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


class Server:
    def __init__(self, channel, listener):
        self.channel, self.listener = channel, listener
        self.selector = selectors.DefaultSelector()
        self.selector.register(channel, selectors.EVENT_READ, self.answer)
        self.selector.register(listener, selectors.EVENT_READ, self.accept)

    def serve(self):
        """Returns in a new program; ends where nobody asks any more."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj.fileno() >= 0 and key.data():
                    return

    def fork(self, request, descriptors):
        """The new program's pid; 0 in it."""
        pid = os.fork()
        if pid == 0:
            for key in list(self.selector.get_map().values()):
                key.fileobj.close()
            self.selector.close()
            if "for" in request:
                os.setsid()
                go_where(request["for"], request["root"])
            become(request, descriptors)
        else:
            for descriptor in descriptors:
                os.close(descriptor)
        return pid

    def answer(self):
        """True in a new program."""
        message, descriptors, _, _ = socket.recv_fds(self.channel, REQUEST_MAXIMUM, 3)
        if not message:
            os._exit(0)
        request = json.loads(message)
        if "poll" in request:
            self.channel.send(json.dumps(status_of(request["poll"])).encode())
            return False
        pid = self.fork(request, descriptors)
        if pid:
            self.channel.send(json.dumps(pid).encode())
        return pid == 0

    def accept(self):
        asking, _ = self.listener.accept()
        self.selector.register(asking, selectors.EVENT_READ, lambda: self.take(asking))

    def take(self, asking):
        """True in a new program."""
        self.selector.unregister(asking)
        message, descriptors, _, _ = socket.recv_fds(asking, REQUEST_MAXIMUM, 3)
        if not message:
            asking.close()
            return False
        if OF_TRAINING:
            for module in OF_TRAINING:
                importlib.import_module(module)
            OF_TRAINING.clear()
            gc.freeze()
        self.selector.register(asking, selectors.EVENT_READ)  # so that the new program closes it
        pid = self.fork(json.loads(message), descriptors)
        if pid == 0:
            return True
        end = Descriptor(os.pidfd_open(pid))
        self.selector.modify(asking, selectors.EVENT_READ, lambda: self.kill(pid, asking))
        self.selector.register(end, selectors.EVENT_READ, lambda: self.tell_end(pid, end, asking))
        say(asking, pid)
        return False

    def kill(self, pid, asking):
        """Who asked for it has gone."""
        os.kill(pid, signal.SIGKILL)
        self.selector.unregister(asking)

    def tell_end(self, pid, end, asking):
        self.selector.unregister(end)
        end.close()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if asking in (key.fileobj for key in self.selector.get_map().values()):
            self.selector.unregister(asking)
            say(asking, status)
        asking.close()


class Descriptor:
    """One that is no socket's."""

    def __init__(self, number):
        self.number = number

    def fileno(self):
        return self.number

    def close(self):
        os.close(self.number)
        self.number = -1


def say(asking, what):
    try:
        asking.send(json.dumps(what).encode())
    except OSError:
        pass  # it has gone


def status_of_end(end):
    """As an interpreter ends with it."""
    if isinstance(end, SystemExit) and (end.code is None or isinstance(end.code, int)):
        return (end.code or 0) & 0xFF
    if isinstance(end, SystemExit):
        print(end.code, file=sys.stderr)
    else:
        traceback.print_exception(end)
    if isinstance(end, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return 1


def play():
    """Runs the program that this process has become. It ends without taking the interpreter to pieces: that would write to
    each page of all that was imported, which the server has, too."""
    status = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except BaseException as end:
        status = status_of_end(end)
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


gc.freeze()
Server(*(socket.socket(fileno=int(word)) for word in sys.argv[1:3])).serve()
play()

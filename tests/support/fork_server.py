# SPDX-License-Identifier: BSD-3-Clause
"""Run by the peer's Python: `fork_server.py DESCRIPTOR` imports torch once, and then starts Python programs that have it already
(support.forked_python asks). The import takes seconds, and is most of what a short program of PyTorch's costs.

Each message is JSON. {"arguments": [PROGRAM, ...], "environment": {...}, "directory": ...} comes with descriptors 0, 1 and 2 of
the program, and is answered with its process id. {"poll": PID} is answered with its status, which is null while it runs."""

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import sys
import threading
import traceback

before = dict(os.environ)
import torch  # noqa: E402, F401

ADDED = {name: value for name, value in os.environ.items() if before.get(name) != value}
REQUEST_MAXIMUM = 1 << 20


def become(request, descriptors):
    """This process is the program from here on."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number, inheritable=True)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update({**ADDED, **request["environment"]})
    has_directory = os.path.isdir(request["directory"])  # the peer has another root
    os.chdir(request["directory"] if has_directory else "/")
    sys.argv = request["arguments"]
    sys.path[0] = os.path.dirname(sys.argv[0])


def status_of(pid):
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def serve(channel):
    """Returns in a new program; ends where nobody asks any more."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, REQUEST_MAXIMUM, 3)
        if not message:
            os._exit(0)
        request = json.loads(message)
        if "poll" in request:
            channel.send(json.dumps(status_of(request["poll"])).encode())
            continue
        pid = os.fork()
        if pid == 0:
            channel.close()
            become(request, descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(json.dumps(pid).encode())


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
serve(socket.socket(fileno=int(sys.argv[1])))
play()

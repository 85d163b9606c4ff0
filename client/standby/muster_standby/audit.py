# SPDX-License-Identifier: BSD-3-Clause
"""What modules ask of the system while a standby worker imports them, and may not have: a running worker has the same
files, locks and connections. It is refused before it happens, and the module is left out. Python tells of it by its audit
events (PEP 578). A hook of those stays for good, so it becomes a function of C that does nothing."""
import os
import sys

from muster_standby import borrow

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
HARMLESS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


class Refused(BaseException):
    """No Exception: a module that has a way out for those would go another way than in a worker."""


def is_path(path, *paths):
    try:
        return os.fsdecode(path) in paths
    except TypeError:
        return False


def opens(path, _mode, flags):
    if isinstance(path, int):
        return "opens descriptor %d for writing" % path if (flags or 0) & WRITING and path < 3 else None
    if (flags or 0) & WRITING:
        # A directory cannot be; a file without a name is made in one.
        return None if is_path(path, *HARMLESS) or os.path.isdir(path) else "opens %s for writing" % show(path)
    text = show(path)
    return "reads %s" % text if text.startswith("/proc/") and text.endswith("/environ") else None


def show(path):
    try:
        return os.fsdecode(path)
    except TypeError:
        return repr(path)


def makes_directory(path, _mode=0, directory=-1):
    """One that is there already, as the worker has made it, is as good as none."""
    return None if directory == -1 and os.path.isdir(path) else "makes the directory " + show(path)


def kills(_pid, number):
    return None if number == 0 else "sends a signal"


def binds(_socket, address):
    """To any port is what asks for what the machine can do."""
    is_any = isinstance(address, tuple) and len(address) > 1 and address[1] == 0
    return None if is_any else "binds a socket to %r" % (address,)


def opens_database(path):
    return None if show(path) in ("", ":memory:") else "opens the database " + show(path)


def controls(_fd, command, *_):
    """Locks, and copies of descriptors."""
    fcntl = sys.modules.get("fcntl")
    names = ("F_SETLK", "F_SETLKW", "F_OFD_SETLK", "F_OFD_SETLKW", "F_DUPFD", "F_DUPFD_CLOEXEC", "F_SETLEASE", "F_NOTIFY")
    return "calls fcntl.fcntl" if command in {getattr(fcntl, name, None) for name in names} else None


def always(effect):
    return lambda *_: effect


CHANGES = (
    "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.chflags",
    "os.utime", "os.setxattr", "os.removexattr", "os.lockf", "os.chdir", "os.killpg", "fcntl.flock", "fcntl.lockf",
    "resource.setrlimit", "signal.pthread_kill", "socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
    "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo", "socket.sethostname", "syslog.openlog",
    "syslog.syslog", "syslog.setlogmask",
)
JUDGES = {event: always("calls " + event) for event in CHANGES}
JUDGES.update(dict.fromkeys((
    "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "pty.spawn",
), always("starts a process")))
JUDGES.update({
    "open": opens, "os.mkdir": makes_directory, "os.kill": kills, "socket.bind": binds,
    "sqlite3.connect": opens_database, "fcntl.fcntl": controls,
})


def is_usual(frame):
    """Python itself writes what it has compiled, and looks for a directory for temporary files. A warm parent forks."""
    name = frame.f_globals.get("__name__")
    if name == "muster_standby.parent":
        return True
    if name == "tempfile":
        return frame.f_code.co_name == "_get_default_tempdir"
    return frame.f_code.co_filename == "<frozen importlib._bootstrap_external>"


# Where the descriptors are to which the paths of an event are relative; those of others have only one path, or descriptor.
RELATIVE = {"os.rename": (2, 3), "os.link": (2, 3), "os.symlink": (None, 2), "os.remove": (1,), "os.rmdir": (1,), "os.mkdir": (2,)}
OF_FILES = {"open", "os.truncate", "os.chmod", "os.utime", "os.lockf", "fcntl.flock", "fcntl.lockf", "fcntl.fcntl", *RELATIVE}


def place_of(path, directory=-1):
    if isinstance(path, int):
        return os.readlink("/proc/self/fd/%d" % path)
    base = os.getcwd() if directory == -1 else os.readlink("/proc/self/fd/%d" % directory)
    path = os.path.join(base, os.fsdecode(path))
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


class Temporary:
    """Files and directories with a name that nobody else has: a module may make them, and must take them away."""

    def __init__(self):
        self.made = {}

    def holds(self, event, arguments):
        if not self.made or event not in OF_FILES:
            return False
        try:
            at = RELATIVE.get(event, (None,))
            paths = [place_of(arguments[i], -1 if at[i] is None else arguments[at[i]]) for i in range(len(at))]
        except (OSError, TypeError, IndexError):
            return False
        if event == "os.symlink":
            paths = paths[1:]
        return all(any(path == own or path.startswith(own + "/") for own in self.made) for path in paths)

    def left_by(self, module):
        left = [path for path, maker in self.made.items() if maker == module and os.path.lexists(path)]
        self.made = {path: maker for path, maker in self.made.items() if maker != module}
        return ["leaves %s behind" % path for path in left]


def watch_requests(note, running, temporary):
    """Calls note(module, what it does) before it refuses something. Returns a function that ends this."""
    judge_of, getframe = JUDGES.get, sys._getframe

    def hear(event, arguments):
        if event in ("tempfile.mkdtemp", "tempfile.mkstemp"):
            temporary.made[place_of(arguments[0])] = running()
        judge = judge_of(event)
        effect = judge and judge(*arguments)
        if effect and not is_usual(getframe(1)) and not temporary.holds(event, arguments):
            note(getframe(1).f_globals.get("__name__"), effect + " while it is imported")
            raise Refused(effect)

    hook, nothing = borrow("_functools").partial(hear), borrow("_operator").is_
    sys.addaudithook(hook)
    return lambda: hook.__setstate__((nothing, (), {}, None))


def watch_terminals(note):
    """Calls note(module, what it does) when one asks whether a stream is a terminal, which none is here, but where the
    agent has one the worker's may be. Returns a function that ends this."""
    paths = ["/proc/%d/fd/%d" % (os.getppid(), fd) for fd in range(3)]
    links = [os.readlink(path) for path in paths if os.access(path, os.F_OK)]
    if not any(link.startswith(("/dev/pts/", "/dev/tty", "/dev/console")) for link in links):
        return lambda: None
    places = [(stream, "isatty") for stream in (sys.stdin, sys.stdout, sys.stderr)]
    places += [(module, name) for module in (os, sys.modules["posix"]) for name in ("isatty", "get_terminal_size")]
    old = [getattr(*place) for place in places]

    def asks(function):
        def ask(*arguments):
            if note and (not arguments or arguments[0] in range(3)):
                note(sys._getframe(1).f_globals.get("__name__"), "asks whether a stream is a terminal while it is imported")
            return function(*arguments)

        return ask

    def stop():
        nonlocal note
        note = None
        for (holder, name), function in zip(places, old):
            if holder in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
                delattr(holder, name)
            else:
                setattr(holder, name, function)

    for (holder, name), function in zip(places, old):
        setattr(holder, name, asks(function))
    return stop

# SPDX-License-Identifier: BSD-3-Clause
"""The hook of standby workers. CPython's `site` imports it before a worker's program, because Muster put its directory
in front of PYTHONPATH. It first undoes that, so that neither the program nor its children see it. In a worker that was
started cold it then writes down what is imported. In a standby worker it imports what others wrote down, waits at the
gate, and returns to the interpreter, which runs the program by itself: nothing of that is imitated here.

MUSTER_STANDBY is fd=3;role=record|spare;pythonpath=0|1 and for hang evidence also signal=N. A standby
worker in which anything fails or is not understood ends with status 77, and the agent starts its worker cold."""
import os
import sys

HERE = os.path.dirname(__file__)
DEVICES = ("socket:", "/dev/nvidia", "/dev/kfd", "/dev/dri", "/dev/infiniband")
ROUND = ("MASTER_", "LOCAL_", "GROUP_", "ROLE_", "TORCHELASTIC_")  # and RANK and WORLD_SIZE
RECORD_MAXIMUM, CAPTURED_MAXIMUM, BODY_MAXIMUM = 1 << 20, 64 * 1024, 1 << 26


class Dirty(Exception):
    """Why this process would not become the worker that a cold start makes."""


def is_of_round(name):
    return name in ("RANK", "WORLD_SIZE") or name.startswith(ROUND)


def read_told(text):
    return dict(part.partition("=")[::2] for part in text.split(";"))


def undo_traces():
    """Takes the hook out of the environment, sys.path and sys.modules. Returns what MUSTER_STANDBY said."""
    told = read_told(os.environ.pop("MUSTER_STANDBY", ""))
    paths = os.environ.get("PYTHONPATH", "").split(":")
    if HERE in paths:
        paths.remove(HERE)
        os.environ["PYTHONPATH"] = ":".join(paths)
        if not any(paths) and told.get("pythonpath") != "1":
            del os.environ["PYTHONPATH"]
    if HERE in sys.path:
        at = sys.path.index(HERE)
        # An empty PYTHONPATH means nothing, but one with a colon means the current directory, too.
        del sys.path[at : at + (2 if paths == [""] and told.get("pythonpath") == "1" else 1)]
    sys.path_importer_cache.pop(HERE, None)
    del sys.modules[__name__]
    return told


def move_up(fd):
    """Moves a descriptor to a high number, closed by exec, so that those of the program get the usual numbers."""
    limit = os.sysconf("SC_OPEN_MAX")
    for number in range(min(limit if limit > 0 else 1024, 1024) - 1, 2, -1):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(fd, number, False)
            os.close(fd)
            return number
    raise OSError("no descriptor left")


def borrow(name):
    """A module of the interpreter's own for the hook alone: sys.modules stays as it was."""
    known, module = name in sys.modules, __import__(name)
    if not known:
        del sys.modules[name]
    return module


def watch_imports(found):
    """Calls found(name, origin) before each import. sys.meta_path, which programs may look at, stays as it is, and no
    frame of the hook is on the stack while the module runs. Returns a function that ends this."""
    machinery, frame = sys.modules["_frozen_importlib"], sys._getframe
    find = machinery._find_spec

    def _find_spec(name, path, target=None):
        spec = find(name, path, target)
        if spec is not None and frame(1).f_code.co_name == "_find_and_load_unlocked":
            found(name, spec.origin or "")
        return spec

    for function in (_find_spec, found):  # Tracebacks and debuggers leave out importlib, known by this file name.
        function.__code__ = function.__code__.replace(co_filename=find.__code__.co_filename)
    machinery._find_spec = _find_spec
    return lambda: setattr(machinery, "_find_spec", find)


def program():
    """(directory that sys.path will begin with or None, module that is run with -m or None)"""
    argument, place, module = sys.argv[0], os.getcwd(), None
    if argument == "-m":
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read().split(b"\0")[:-1]
        module = os.fsdecode(words[len(words) - len(sys.argv)])
        module = module.partition("m")[2] if module.startswith("-") else module
    elif argument not in ("", "-", "-c"):
        script = os.path.realpath(argument)
        place = script if os.path.isdir(script) else os.path.dirname(script)
    return None if getattr(sys.flags, "safe_path", False) else place, module


def own_code(place):
    """A test for files of the user's: below the program's directory or the current one, but not in a library there."""
    libraries = [os.path.dirname(os.__file__)]
    libraries += [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    own = [path for path in (place, os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0]))) if path]

    def longest(paths, file):
        return max((len(path) for path in paths if file.startswith(path.rstrip("/") + "/")), default=0)

    return lambda file: longest(own, file) > longest(libraries, file)


def record(fd, told):
    """Says hello, and from then on writes a line for each import, before the module runs: modules that import each
    other can only be imported again in the order in which they began. When the program has changed its environment
    nothing more is written, since what it imports then may depend on that."""
    pid, getpid, write, fstat, getframe = os.getpid(), os.getpid, os.write, os.fstat, sys._getframe
    fd, left, environ = move_up(fd), [RECORD_MAXIMUM], os.environ._data
    file, known, is_own = fstat(fd)[1:3], dict(environ), own_code(program()[0])

    def is_library(frame):
        """Whether this is the code of a library's module that is being imported."""
        path = frame.f_code.co_filename
        if frame.f_code.co_name != "<module>" or not path.startswith(("/", "<frozen")) or is_own(path):
            return False
        return frame.f_globals.get("__name__") != "__main__"

    def found(name, origin):
        try:
            if environ != known:
                frame = getframe(1)
                while frame is not None and not is_library(frame):
                    frame = frame.f_back
                names = {os.fsdecode(pair[0]) for pair in environ.items() ^ known.items()}
                if frame is None and not all(map(is_of_round, names)):
                    left[0] = 0
                known.clear()
                known.update(environ)
            line = ("%s\t%s\n" % (name, origin)).encode("utf-8", "surrogateescape")
            # Not in a child, and not into what the program opens after it has closed all descriptors.
            if len(line) <= left[0] and getpid() == pid and fstat(fd)[1:3] == file:
                left[0] -= write(fd, line)
        except (OSError, ValueError, RuntimeError):
            left[0] = 0

    if "signal" in told:  # The stacks of all threads go to the end of the record when the agent sends this signal.
        borrow("faulthandler").register(int(told["signal"]), file=fd, all_threads=True, chain=False)
    write(fd, b"hello 1 %d\n" % pid)
    watch_imports(found)


def set_autogroup(nice):
    """Makes way for the workers that train, if this session is ours alone. Returns whether it could."""
    for _ in range(50 if os.getsid(0) == os.getpid() else 0):
        try:
            fd = os.open("/proc/self/autogroup", os.O_WRONLY)
            try:
                return os.write(fd, b"%d" % nice) > 0
            finally:
                os.close(fd)
        except BlockingIOError:  # The kernel allows ten changes a second, whoever makes them.
            borrow("time").sleep(0.1)
        except OSError:
            return False
    return False


class Warming:
    """What a standby worker does before the gate, and what it sees of itself meanwhile."""

    def __init__(self):
        self.path, self.loaded, self.reads, self.skipped = sys.path[:], {}, [], 0
        (self.place, self.module), self.files = program(), self.open_files()
        self.is_own = own_code(self.place)
        for name in ("TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_RESTART_COUNT"):
            os.environ.pop(name, None)  # There for the guardian of the agent, but not as they will be.
        read, there = os._Environ.__getitem__, set(os.environ)
        self.read = read

        def __getitem__(environ, key):
            name = os.fsdecode(key) if isinstance(key, (str, bytes)) else ""
            if is_of_round(name) and name not in there:
                frame = sys._getframe(1)
                while frame.f_globals.get("__name__") in ("os", "_collections_abc", "collections.abc"):
                    frame = frame.f_back
                self.reads.append("%s reads %s while it is imported" % (frame.f_globals.get("__name__"), name))
            return read(environ, key)

        os._Environ.__getitem__ = __getitem__

    @staticmethod
    def open_files():
        files = set()
        for fd in os.listdir("/proc/self/fd"):
            try:
                files.add(os.readlink("/proc/self/fd/" + fd))
            except OSError:
                pass  # The listing's own.
        return files

    def preload(self, lines):
        self.listed = dict(line.split("\t", 1) for line in lines if "\t" in line)
        end = watch_imports(lambda name, origin: self.loaded.setdefault(name, origin))
        for name, origin in self.listed.items():
            if name in self.loaded or name in sys.modules:
                continue  # Tried already: what fails is not tried twice.
            try:
                if name == self.module or name.rpartition(".")[2] == "__main__" or self.is_own(origin):
                    raise ImportError
                __import__(name)
            except BaseException:
                self.skipped += 1
        end()
        os._Environ.__getitem__ = self.read

    def complaints(self):
        """Each reason why this process may not become a worker."""
        yield from self.reads
        for name, origin in self.loaded.items():
            if origin != self.listed.get(name, origin):
                yield "%s was imported from %s instead of %s" % (name, origin, self.listed[name])
            if self.is_own(origin):
                yield "%s is the user's own code, and was imported by a library" % name
        if self.module in sys.modules and "." in self.module:
            yield "%s was imported before it is run" % self.module
        if sys.path[: len(self.path)] != self.path:
            yield "an imported module put something in front of sys.path"
        if len(os.listdir("/proc/self/task")) != 1:
            yield "an imported module started a thread"
        with open("/proc/self/task/%d/children" % os.getpid()) as file:
            if file.read():
                yield "an imported module started a process"
        for file in sorted(self.open_files() - self.files):
            if file.startswith(DEVICES):
                yield "an imported module opened %s" % file
        if any(os.fstat(fd).st_size > CAPTURED_MAXIMUM for fd in (1, 2)):
            yield "imported modules printed more than %d bytes" % CAPTURED_MAXIMUM
        for name in self.shadows():
            yield "%s in %s hides a module that was imported from elsewhere" % (name, self.place)

    def shadows(self):
        """Top-level modules that the program would find in its own directory. Looked for again at the gate."""
        finder = sys.modules["_frozen_importlib_external"].PathFinder
        known = {name for name, origin in self.loaded.items() if "." not in name and os.path.isabs(origin)}
        files = os.listdir(self.place) if self.place else []
        for name in sorted(known.intersection(file.partition(".")[0] for file in files)):
            spec = finder.find_spec(name, [self.place])
            if spec is not None and spec.loader is not None:
                yield name
        sys.path_importer_cache.pop(self.place, None)


class Gate:
    """The agent's socket. One message is one byte for its kind, and a body."""

    def __init__(self, fd):
        self.kinds = borrow("_socket")
        self.socket = self.kinds.socket(fileno=move_up(fd))
        self.socket.setblocking(True)

    def say(self, kind, *numbers):
        self.socket.send(kind + b"".join(number.to_bytes(4, "little") for number in numbers))

    def hear(self, kind):
        """(body, descriptors) of the next message, which must be of this kind. The end of the agent is ours."""
        space, flags = self.kinds.CMSG_SPACE(8 * 4), self.kinds.MSG_CMSG_CLOEXEC
        message, passed, flags, _ = self.socket.recvmsg(1 << 18, space, flags)
        if not message:
            os._exit(0)
        if message[:1] != kind or flags & (self.kinds.MSG_TRUNC | self.kinds.MSG_CTRUNC):
            raise Dirty("the agent says %r, and not %r" % (message[:1], kind))
        data = b"".join(data for level, what, data in passed if what == self.kinds.SCM_RIGHTS)
        return message[1:], [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), 4)]


def read_whole(fd, maximum):
    """What a file in memory holds."""
    size = os.fstat(fd).st_size
    if size > maximum:
        raise Dirty("%d bytes where at most %d are read" % (size, maximum))
    data = os.pread(fd, size, 0)
    if len(data) != size:
        raise Dirty("a file became shorter")
    return data


def reopen(stream, fd, new, printed):
    """Puts another file under a standard stream, and first of all into it what was printed while warming. The stream
    remains the object that modules know, and learns of the new file what the interpreter would have learned."""
    os.dup2(new, fd)
    os.close(new)
    while printed:
        printed = printed[os.write(fd, printed) :]
    old, lines = getattr(stream.buffer, "raw", stream.buffer), stream.line_buffering
    buffer = raw = type(old)(fd, old.mode, closefd=False)
    raw.name = old.name
    if old is not stream.buffer:
        size = raw._blksize if sys.version_info < (3, 14) else max(min(raw._blksize, 1 << 23), 1 << 17)
        buffer = type(stream.buffer)(raw, size)
        lines = lines or (raw.isatty() and not stream.write_through)
    stream.__init__(buffer, stream.encoding, stream.errors, "\n", lines, stream.write_through)


def pass_gate(message, fds, warming, told):
    """Becomes the worker that the agent would start now."""
    flags, body = int.from_bytes(message[:4], "little"), message[4:]
    if flags & 1:
        body = read_whole(fds[0], BODY_MAXIMUM)
        os.close(fds.pop(0))
    length = int.from_bytes(body[:4], "little")
    cwd, names = body[4 : 4 + length], body[4 + length :]
    if len(body) < 4 + length or not body.endswith(b"\0") or len(fds) != 4:
        raise Dirty("the agent's message is cut off")
    if cwd and cwd != os.getcwdb():
        os.chdir(cwd)
    # Other names are as they were when this process was started. What a wrapper around the interpreter or an imported
    # module has made of them stays.
    for name, _, value in (pair.partition("=") for pair in os.fsdecode(names).split("\0")):
        if name == "MUSTER_STANDBY":
            told.update(read_told(value))
        elif is_of_round(name) and name not in os.environ:
            os.environ[name] = value
    if program()[0] != warming.place or any(warming.shadows()):
        raise Dirty("the program's directory has changed")
    streams = sys.__stdin__, sys.__stdout__, sys.__stderr__
    for stream in streams[1:]:
        stream.flush()
    printed = [b""] + [read_whole(fd, CAPTURED_MAXIMUM) for fd in (1, 2)]
    if os.fstat(1)[1:3] == os.fstat(2)[1:3]:
        printed[2] = b""
    for fd, stream in enumerate(streams):
        reopen(stream, fd, fds[fd], printed[fd])
    record(fds[3], told)


def chain():
    """Imports the sitecustomize that would have been found without the hook. Returns why it failed, for `site`."""
    try:
        import sitecustomize  # noqa: F401
    except BaseException as error:
        return error


def stand_by(told):
    gate = None
    try:
        gate = Gate(int(told["fd"]))
        gc, warming = borrow("gc"), Warming()
        gate.say(b"H", 1, os.getpid())
        makes_way = set_autogroup(19)
        error = chain()
        _, (listed,) = gate.hear(b"L")
        lines = read_whole(listed, BODY_MAXIMUM).decode("utf-8", "surrogateescape").split("\n")
        os.close(listed)
        collects = gc.isenabled()
        gc.disable()
        warming.preload(lines)
        if collects:
            gc.enable()
        gc.collect()  # What is due now would delay the program's first lines.
        if makes_way and not set_autogroup(0):
            raise Dirty("/proc/self/autogroup cannot be set back")
        for complaint in warming.complaints():
            raise Dirty(complaint)
        with open("/proc/self/statm") as file:
            memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 10
        gate.say(b"P", len(warming.loaded), warming.skipped, int(sum(os.times()[:2]) * 1000), memory)
        pass_gate(*gate.hear(b"G"), warming, told)
        gate.say(b"R")
        gate.socket.close()
        return error
    except BaseException as failure:
        try:
            reason = str(failure) if isinstance(failure, Dirty) else repr(failure)
            gate.socket.send(b"D" + reason.encode("utf-8", "replace")[:1000])
        finally:
            os._exit(77)


def main():
    told = undo_traces()
    if told.get("role") == "spare":
        return stand_by(told)
    error = chain()
    try:
        fd = int(told["fd"])
        if told["role"] == "record" and os.readlink("/proc/self/fd/%d" % fd).startswith("/memfd:"):
            record(fd, told)
    except Exception:
        pass  # A wrapper did not pass the descriptors on, for example. The agent hears no hello.
    return error


failure = main()
if failure is not None:
    raise failure

# SPDX-License-Identifier: BSD-3-Clause
"""The hook of standby workers. CPython's `site` imports it before a worker's program, because Muster put its directory
in front of PYTHONPATH. It first undoes that, so that neither the program nor its children see it, and hands on to the
user's own sitecustomize. In a worker that was started cold it then writes down what is imported (record.py). In a
standby worker it imports what others wrote down, waits at the gate, and returns to the interpreter, which runs the
program by itself (spare.py): nothing of that is imitated here. Without standby workers it only counts steps (alone.py).

MUSTER_STANDBY is fd=3;role=record|spare|alone;pythonpath=0|1 and for hang evidence also signal=N. A standby
worker in which anything fails or is not understood ends with status 77, and the agent starts its worker cold."""
import os
import sys

HERE = os.path.dirname(__file__)


def import_role(role):
    """What begins the role. It returns what comes after the user's sitecustomize. It is imported as anything else is, as
    long as sys.path leads here."""
    # What is in a directory for all that is compiled nobody would clear away.
    never_writes, sys.dont_write_bytecode = sys.dont_write_bytecode, sys.dont_write_bytecode or bool(sys.pycache_prefix)
    try:
        if role in ("record", "spare", "alone"):
            return getattr(__import__("muster_standby." + role), role).begin
    except Exception:
        if role == "spare":
            os._exit(77)
    finally:
        sys.dont_write_bytecode = never_writes
    return lambda told: lambda: None  # Nothing is to be done, or can be: the agent hears no hello.


def clear_cache():
    """Where all that is compiled is kept in one place, the place for a hook that goes with its job goes, too."""
    path = __spec__.cached or ""
    try:
        if sys.pycache_prefix and path.startswith(sys.pycache_prefix + "/"):
            os.unlink(path)
            while os.path.dirname(path) != sys.pycache_prefix:
                path = os.path.dirname(path)
                os.rmdir(path)
    except OSError:
        pass  # Another worker is faster, or something else lies there.


def undo_traces(told):
    """Takes the hook out of the environment, sys.path and sys.modules."""
    os.environ.pop("MUSTER_STANDBY", None)
    paths, had_path = os.environ.get("PYTHONPATH", "").split(":"), told.get("pythonpath") == "1"
    if HERE in paths:
        paths.remove(HERE)
        os.environ["PYTHONPATH"] = ":".join(paths)
        if not any(paths) and not had_path:
            del os.environ["PYTHONPATH"]
    if HERE in sys.path:
        at = sys.path.index(HERE)
        # An empty PYTHONPATH means nothing, but one with a colon means the current directory, too.
        del sys.path[at : at + (2 if paths == [""] and had_path else 1)]
    for directory in HERE, os.path.join(HERE, "muster_standby"):
        sys.path_importer_cache.pop(directory, None)
    for name in [name for name in sys.modules if name.partition(".")[0] in (__name__, "muster_standby")]:
        del sys.modules[name]
    clear_cache()


def hand_on(after):
    """Has the user's own sitecustomize imported when this module is done: importlib then asks the module's spec for its
    name. So no frame of this file is below the user's code, in whatever way that fails. The one frame that is there
    passes for importlib's, which Python leaves out of tracebacks, by the names of file and function."""
    plain = type(__spec__)

    def _call_with_frames_removed(spec):
        spec.__class__, error = plain, None
        try:
            import sitecustomize  # noqa: F401
        except BaseException as failure:
            error = failure
        after()
        try:
            if error is not None:
                raise error
            return spec.name
        finally:
            error = None

    code = _call_with_frames_removed.__code__
    _call_with_frames_removed.__code__ = code.replace(co_filename="<frozen importlib._bootstrap>")
    __spec__.__class__ = type(plain.__name__, (plain,), {"name": property(_call_with_frames_removed)})


told = dict(part.partition("=")[::2] for part in os.environ.get("MUSTER_STANDBY", "").split(";"))
begin = import_role(told.get("role"))
undo_traces(told)
hand_on(begin(told))

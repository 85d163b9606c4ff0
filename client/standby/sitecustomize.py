# SPDX-License-Identifier: BSD-3-Clause
"""The hook of standby workers. CPython's `site` imports it before a worker's program, because Muster put its directory
in front of PYTHONPATH. It first undoes that, so that neither the program nor its children see it, and hands on to the
user's own sitecustomize. In a worker that was started cold it then writes down what is imported (recorder.py). In a
standby worker it imports what others wrote down, waits at the gate, and returns to the interpreter, which runs the
program by itself (spare.py): nothing of that is imitated here.

MUSTER_STANDBY is fd=3;role=record|spare;pythonpath=0|1 and for hang evidence also signal=N. A standby
worker in which anything fails or is not understood ends with status 77, and the agent starts its worker cold."""
import os
import sys

HERE = os.path.dirname(__file__)


class NoPart:
    """Where the hook has nothing to do, or cannot do it: the agent hears no hello."""

    def before(self):
        pass

    after = before


def read_told(text):
    return dict(part.partition("=")[::2] for part in text.split(";"))


def import_part(told):
    """What has something to do here, before and after the user's sitecustomize. It is imported as anything else is, as
    long as sys.path leads here."""
    role, never_writes = told.get("role"), sys.dont_write_bytecode
    sys.dont_write_bytecode = never_writes or bool(sys.pycache_prefix)  # What is in there nobody would clear away.
    try:
        if role == "spare":
            from muster_standby.spare import Spare

            return Spare(told)
        if role == "record":
            from muster_standby.recorder import Recorder

            return Recorder(told)
    except Exception:
        if role == "spare":
            os._exit(77)
    finally:
        sys.dont_write_bytecode = never_writes
    return NoPart()


def clear_cache():
    """Where all that is compiled is kept in one place, the place for a hook that goes with its job goes, too."""
    path = __spec__.cached
    if sys.pycache_prefix and path and path.startswith(sys.pycache_prefix + "/"):
        try:
            os.unlink(path)
            while os.path.dirname(path) != sys.pycache_prefix:
                path = os.path.dirname(path)
                os.rmdir(path)
        except OSError:
            pass  # Another worker is faster, or something else lies there.


def undo_environment(told):
    """Takes the hook out of PYTHONPATH. Returns how many entries of sys.path come from that."""
    os.environ.pop("MUSTER_STANDBY", None)
    paths = os.environ.get("PYTHONPATH", "").split(":")
    if HERE in paths:
        paths.remove(HERE)
        os.environ["PYTHONPATH"] = ":".join(paths)
        if not any(paths) and told.get("pythonpath") != "1":
            del os.environ["PYTHONPATH"]
    # An empty PYTHONPATH means nothing, but one with a colon means the current directory, too.
    return 2 if paths == [""] and told.get("pythonpath") == "1" else 1


def undo_traces(told):
    """Takes the hook out of the environment, sys.path and sys.modules."""
    entries = undo_environment(told)
    if HERE in sys.path:
        at = sys.path.index(HERE)
        del sys.path[at : at + entries]
    for directory in HERE, os.path.join(HERE, "muster_standby"):
        sys.path_importer_cache.pop(directory, None)
    for name in [__name__, *(name for name in sys.modules if name.partition(".")[0] == "muster_standby")]:
        del sys.modules[name]
    clear_cache()


def hand_on(part):
    """Has the user's own sitecustomize imported when this module is done: importlib then asks the module's spec for its
    name. So no frame of this file is below the user's code, in whatever way that fails. The one frame that is there
    passes for importlib's, which Python leaves out of tracebacks, by the names of file and function."""
    plain = type(__spec__)

    def _call_with_frames_removed(spec):
        spec.__class__, error = plain, None
        part.before()
        try:
            import sitecustomize  # noqa: F401
        except BaseException as failure:
            error = failure
        part.after()
        try:
            if error is not None:
                raise error
            return spec.name
        finally:
            error = None

    code = _call_with_frames_removed.__code__
    importlib_file = sys.modules["_frozen_importlib"]._find_spec.__code__.co_filename
    _call_with_frames_removed.__code__ = code.replace(co_filename=importlib_file)
    __spec__.__class__ = type(plain.__name__, (plain,), {"name": property(_call_with_frames_removed)})


told = read_told(os.environ.get("MUSTER_STANDBY", ""))
part = import_part(told)
undo_traces(told)
hand_on(part)

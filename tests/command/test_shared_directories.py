# SPDX-License-Identifier: BSD-3-Clause
"""Directories in which every user may make files, such as /tmp: what another user has put there is not used,
and what Muster makes there is its user's alone."""

import os
import stat
import subprocess

import pytest

NOBODY = 65534
LOCALLY = ["run", "--standalone", "--no-python"]


@pytest.fixture
def shared(scratch):
    (scratch / "shared").mkdir()
    (scratch / "shared").chmod(0o1777)
    return scratch / "shared"


@pytest.fixture
def link(shared, scratch):
    """Another user's link in the shared directory, to a directory of this user's."""
    if os.geteuid() != 0:
        pytest.skip("only root can make another user's link")
    (scratch / "mine").mkdir()
    (shared / "link").symlink_to(scratch / "mine")
    os.chown(shared / "link", NOBODY, NOBODY, follow_symlinks=False)
    return shared / "link"


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_log_directory_that_is_another_users_link_is_refused(muster, scratch, link):
    for path in (link, link / "below"):
        end = muster.run([*LOCALLY, "--log-dir", path, "-r", 3, "true"])
        assert end.status == 1, end
        assert f"cannot make the directory {link}: it belongs to another user" in end.err
    assert list((scratch / "mine").iterdir()) == []


def test_an_event_log_that_is_another_users_link_is_refused(muster, shared, scratch, link):
    (shared / "events").symlink_to(scratch / "mine" / "events")
    os.chown(shared / "events", NOBODY, NOBODY, follow_symlinks=False)
    end = muster.run([*LOCALLY, "--event-log-handler", f"file:{shared}/events", "touch", scratch / "started"])
    assert end.status == 1, end
    assert f"cannot write events to '{shared}/events': it belongs to another user" in end.err
    assert list((scratch / "mine").iterdir()) == [] and not (scratch / "started").exists()


def test_an_error_file_that_is_another_users_link_is_left_alone(muster, shared, scratch, link):
    (scratch / "mine" / "profile").write_text("mine")
    (shared / "error").symlink_to(scratch / "mine" / "profile")
    os.chown(shared / "error", NOBODY, NOBODY, follow_symlinks=False)
    script = 'echo \'{"message": "boom"}\' >"$TORCHELASTIC_ERROR_FILE"; exit 9'
    end = muster.run([*LOCALLY, "sh", "-c", script], env={"TORCHELASTIC_ERROR_FILE": shared / "error"})
    assert end.status == 1 and "exitcode  : 9" in end.err, end
    assert f"cannot write the error file {shared}/error: it belongs to another user" in end.err
    assert (scratch / "mine" / "profile").read_text() == "mine"


def test_what_is_made_in_a_shared_directory_is_private(muster, shared):
    end = muster.run(
        [*LOCALLY, "--log-dir", shared / "logs", "-r", 3, "--event-log-handler", f"file:{shared}/events", "true"]
    )
    assert end.status == 0, end
    assert mode_of(shared / "events") == 0o600
    (run,) = (shared / "logs").iterdir()
    assert mode_of(run) == 0o700


def test_a_default_log_directory_is_private(muster, shared):
    end = muster.run([*LOCALLY, "-r", 3, "echo", "hello"], env={"TMPDIR": shared})
    assert end.status == 0, end
    (base,) = shared.iterdir()
    assert mode_of(base) == 0o700


# Reaches for everything below the directories that it is given, and says what it got.
REACHER = """\\
import os, socket, stat, sys
def reach(path):
    kind = os.lstat(path).st_mode
    if stat.S_ISDIR(kind):
        os.listdir(path)
    elif stat.S_ISSOCK(kind):
        socket.socket(socket.AF_UNIX).connect(path)
    elif not stat.S_ISLNK(kind):
        for way in (os.O_RDONLY, os.O_WRONLY):
            try:
                os.close(os.open(path, way | os.O_NONBLOCK))
                return
            except PermissionError:
                pass
        raise PermissionError
for path in sys.stdin.read().splitlines():
    try:
        reach(path)
        print(path)
    except (PermissionError, FileNotFoundError):
        pass
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_another_user_opens_nothing_of_a_running_job(muster, shared, scratch):
    """Neither logs nor register, FIFO, socket or memory file, however open the user's mask is."""
    muster.share()
    (scratch / "register").mkdir(mode=0o700)
    ready = scratch / "ready"
    options = ["--nnodes", "1:2", "--rdzv-backend", "dir", "--rdzv-endpoint", scratch / "register", "--rdzv-id", "job",
               "--rdzv-conf", "last_call_timeout=1", "--tee", 3, "--event-log-handler", f"file:{shared}/events"]  # fmt: skip
    words = ["run", *options, "--no-python", "sh", "-c", f": >{ready}; while [ -e {ready} ]; do sleep 0.02; done"]
    env = {"TMPDIR": shared, "MUSTER_RUNTIME_DIR": shared / "runtime", "TORCHELASTIC_ENABLE_FILE_TIMER": "1"}
    job = muster.start(words, env=env, umask=0)
    job.wait_until(ready.exists, "the worker")
    places = (scratch / "register", shared)
    found = [path for place in places for path in (place, *place.rglob("*"))]
    kinds = {stat.S_IFMT(path.lstat().st_mode) for path in found}
    assert {stat.S_IFDIR, stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK} <= kinds, found
    reacher = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "/usr/bin/python3", "-c", REACHER]
    paths = "\n".join(map(str, found))
    reached = subprocess.run(reacher, input=paths, capture_output=True, text=True, check=True, timeout=30).stdout
    assert reached == f"{shared}\n"  # every user's
    ready.unlink()
    assert job.finish().status == 0

# SPDX-License-Identifier: BSD-3-Clause
"""`torchrun --rdzv-backend muster`: real torchrun agents with Muster's rendezvous, alone and beside nodes of `muster run`."""

import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from support.binary import ROOT
from support.mixed_nodes import MixedJob
from support.own_library import LIBRARY

pytestmark = pytest.mark.timeout(120)


def entry_points():
    """As the wheel has them."""
    found = re.search(r'ENTRY_POINTS = """\\\n(.*?)"""', (ROOT / "tools/make-wheel").read_text(), re.DOTALL)
    return found[1]


def install(directory):
    """The package with its library and what that needs, where the peer sees it. Returns the variables for its programs."""
    package, libraries = directory / "site/muster", directory / "site/libraries"
    information = directory / "site/muster_launch-0.dist-info"
    for made in (package, libraries, information):
        made.mkdir(parents=True)
    for module in (ROOT / "python/muster").glob("*.py"):
        shutil.copy(module, package)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: muster-launch\nVersion: 0\n")
    (information / "entry_points.txt").write_text(entry_points())
    needed = subprocess.run(["ldd", LIBRARY], check=True, capture_output=True, text=True).stdout
    for name, path in re.findall(r"(lib(?:uv|jansson)\.so\.\d+) => (\S+)", needed):
        shutil.copy(pathlib.Path(path).resolve(), libraries / name)
    shutil.copy(pathlib.Path(LIBRARY).resolve(), libraries / "libmuster.so.0")
    return {"PYTHONPATH": directory / "site", "MUSTER_LIBRARY": libraries / "libmuster.so.0", "LD_LIBRARY_PATH": libraries}


class Job(MixedJob):
    """A node of the kind "handler" is torchrun with Muster's rendezvous."""

    def start(self, kind, number, *options, **settings):
        if kind != "handler":
            return super().start(kind, number, *options, **settings)
        env = {**self.installed, **settings.pop("env", {})}
        return super().start("torchrun", number, "--rdzv-backend", "muster", *options, env=env, **settings)


@pytest.fixture
def make_job(muster, peer, scratch):
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built (-Dlibrary=false)")
    installed = install(scratch / "package")

    def make(**settings):
        job = Job(muster, peer, **settings)
        job.installed = installed
        return job

    return make


def test_nodes_of_torchrun_meet_by_musters_rendezvous_and_restart(make_job):
    job = make_job(options=["--max-restarts", 1])
    job.start("handler", 1)
    job.start("handler", 2, workers=2)
    world = job.wait_for_world({1: 1, 2: 2})
    world.assert_has_met()
    job.fail(2)
    world = job.wait_for_world({1: 1, 2: 2}, after=world)
    world.assert_has_met()
    job.let_go()
    job.finish()


@pytest.mark.parametrize("other", ["torchrun", "muster"])
@pytest.mark.parametrize("host", [1, 2])
def test_it_is_one_job_with_nodes_of_other_kinds(make_job, other, host):
    job = make_job()
    job.start("handler", 1, is_host=host == 1)
    job.start(other, 2, is_host=host == 2)
    world = job.wait_for_world({1: 1, 2: 1})
    world.assert_has_met()
    job.let_go()
    job.finish()


def test_the_others_restart_when_a_node_is_gone_or_comes(make_job):
    """With c10d, torchrun does not notice before a worker fails."""
    job = make_job(nodes="1:2")
    job.start("handler", 1)
    leaver = job.start("handler", 2, is_host=False)
    both = job.wait_for_world({1: 1, 2: 1})
    leaver.running.signal(signal.SIGTERM)
    alone = job.wait_for_world({1: 1}, after=both)
    alone.assert_has_met()
    job.start("handler", 3, is_host=False)
    job.wait_for_world({1: 1, 3: 1}, after=alone).assert_has_met()
    job.let_go()
    job.finish({1: 0, 2: 1, 3: 0})

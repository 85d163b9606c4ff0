# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of real PyTorch workers whose places standby workers take: they train as they would without."""

import os
import re
import shutil
import signal

import pytest

from support.binary import ROOT
from support.standby_jobs import WORKER, kill, read_story, ready_job
from support.standby_programs import write

pytestmark = pytest.mark.timeout(600)

# Each attempt trains a few steps from its own seed, tells the losses bit for bit, and waits.
TRAINING = """
import json, os, time
{imports}
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

environ = os.environ
rank, attempt = int(environ["RANK"]), int(environ["TORCHELASTIC_RESTART_COUNT"])
torch.manual_seed(100 * attempt + rank)
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
trained = {trained}
losses = []
for _ in range(6):
    loss = trained(torch.randn(16, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item().hex())
with open("story", "a") as file:
    with open("/proc/self/environ") as own:
        was_spare = "role=spare" in own.read()
    told = {{"attempt": attempt, "rank": rank, "pid": os.getpid(), "warm": was_spare, "losses": losses, "text": "{text}"}}
    file.write(json.dumps(told) + "\\n")
while not os.path.exists("end"):
    time.sleep(0.02)
dist.destroy_process_group()
"""


# The same, but what it trains and what it trains on is made above its line.
LINED = TRAINING.replace("""rank, attempt = int(environ["RANK"]), int(environ["TORCHELASTIC_RESTART_COUNT"])
torch.manual_seed(100 * attempt + rank)
dist""", """torch.manual_seed(int(environ["LOCAL_RANK"]))
data, model = torch.randn(6, 16, 8), torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
with open("built", "a") as file:
    file.write(str(os.getpid()) + "\\n")
print("built", flush=True)
import muster.standby
came = muster.standby.wait()
rank, attempt = int(environ["RANK"]), int(environ["TORCHELASTIC_RESTART_COUNT"])
dist""").replace("DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))",
                 "DistributedDataParallel(model)").replace("for _ in range(6)", "for share in data").replace(
    "trained(torch.randn(16, 8))", "trained(share + torch.randn(16, 8))").replace('"role=spare" in own.read()', "came")


class Training:
    """A job of two workers; each node is started with options of its own."""

    def __init__(self, muster, peer, folder, imports="", nodes=([],), trained="model", script=TRAINING, python=None, **environment):
        self.directory = muster.scratch / folder
        self.directory.mkdir()
        self.imports, self.trained, self.script = imports, trained, script
        self.write_script("as started")
        self.environment = {"PYTHON_EXEC": python or peer.python, "OMP_NUM_THREADS": 1, "LOGLEVEL": "INFO"}
        self.environment.update(PET_STANDBY_REST=0, **environment)  # A machine that tests keep busy is no reason to wait.
        self.agents = [self.start(muster, len(nodes), options) for options in nodes]

    def start(self, muster, nodes, options):
        words = ["run", "--nproc-per-node", 2 // nodes, "--nnodes", nodes, "--max-restarts", 3]
        words += ["--rdzv-backend", "c10d", "--rdzv-endpoint", self.directory / "record", "--rdzv-conf", "store_type=file"]
        words += ["--rdzv-id", "job", "--local-addr", "127.0.0.1", *options, "worker.py"]
        return muster.start(words, env=self.environment, cwd=self.directory)

    def write_script(self, text):
        (self.directory / "worker.py").write_text(self.script.format(imports=self.imports, trained=self.trained, text=text))

    def attempt(self, number):
        """What the two workers of an attempt have told, by rank."""
        told = lambda: read_story(self.directory, number)  # noqa: E731
        self.agents[0].wait_until(lambda: len(told()) >= 2, f"attempt {number} to train", timeout=120)
        assert [one["rank"] for one in told()] == [0, 1]
        return told()

    def await_spares(self, times, agents=None):
        words = "2 at the line of their program" if self.script is LINED else "standby workers ready"
        for agent in agents or self.agents:
            said = lambda: agent.err().count(words)  # noqa: B023, E731
            agent.wait_until(lambda: said() >= times, "the standby workers", timeout=240)  # noqa: B023

    def kill(self, attempt, rank):
        os.kill(self.attempt(attempt)[rank]["pid"], signal.SIGKILL)

    def finish(self):
        (self.directory / "end").touch()
        ends = [agent.finish() for agent in self.agents]
        assert [end.status for end in ends] == [0] * len(ends), ends
        return "".join(end.err for end in ends)


def losses(stories):
    return [(one["attempt"], one["rank"], one["losses"]) for one in stories]


def train_the_same(muster, peer, victims, **settings):
    """Kills these ranks one after the other, without standby workers and with them, and finds the same losses.
    Returns what the workers have told and what the agent has said, of both."""
    stories, said = {}, {}
    # Without them a worker may be forked with torch imported, unless its imports are what is told.
    forked = None if settings.get("imports") else peer.forks.worker_python()
    for standby, python in (("off", forked), ("on", None)):
        job = Training(muster, peer, standby, nodes=[["--standby", standby]], python=python, **settings)
        for attempt, victim in enumerate(victims):
            job.attempt(attempt)
            if standby == "on":
                job.await_spares(attempt + 1)
            job.kill(attempt, victim)
        stories[standby] = [one for attempt in range(len(victims) + 1) for one in job.attempt(attempt)]
        said[standby] = job.finish()
    assert losses(stories["on"]) == losses(stories["off"])
    return stories, said


def test_losses_are_the_same_bit_for_bit_whether_spares_take_the_places_or_not(muster, peer):
    stories, _ = train_the_same(muster, peer, (0, 1))
    assert [one["warm"] for one in stories["off"]] == [False] * 6
    assert [one["warm"] for one in stories["on"]] == [False] * 2 + [True] * 4
    assert len({one["pid"] for one in stories["on"]}) == 6


def test_a_killed_worker_is_known_to_fail_before_it_is_gone(muster, peer):
    job = Training(muster, peer, "job", nodes=[["--standby", "on"]], LOGLEVEL="DEBUG")
    for attempt in range(3):
        job.attempt(attempt)
        job.await_spares(attempt + 1)
        job.kill(attempt, attempt % 2)
    assert [one["warm"] for one in job.attempt(3)] == [True] * 2
    said = job.finish()
    assert re.findall(r"failed \(exitcode: (-?\d+)\) local_rank: (\d)", said) == [("-9", "0"), ("-9", "1"), ("-9", "0")]
    assert re.findall(r"restarting the workers: restart (\d)", said) == ["1", "2", "3"]
    # Others may keep the agent from its CPU for as long as the kernel needs, but not each time.
    early = re.findall(r"running <- worker_ending rank=(\d) signal=9\n(?:.*\n)*?.*stopping <- worker_exited rank=\1 signal=9\n", said)
    assert early


def test_a_node_without_spares_trains_with_one_that_has_them(muster, peer):
    job = Training(muster, peer, "job", nodes=[["--standby", "on"], ["--standby", "off"]])
    job.attempt(0)
    job.await_spares(1, job.agents[:1])
    job.kill(0, 1)
    assert sorted(one["warm"] for one in job.attempt(1)) == [False, True]
    job.finish()


def test_a_script_that_was_edited_meanwhile_runs_as_it_is_then(muster, peer):
    job = Training(muster, peer, "job", nodes=[["--standby", "on"]])
    job.attempt(0)
    job.await_spares(1)
    job.write_script("edited")
    job.kill(0, 0)
    assert [(one["warm"], one["text"]) for one in job.attempt(1)] == [(True, "edited")] * 2
    job.finish()


def test_a_package_that_reads_the_rank_at_import_waits_for_the_program_alone(muster, peer):
    """With what imports it, and with what changes the environment behind it, as torch._dynamo does."""
    packages = muster.scratch / "packages"
    packages.mkdir()
    (packages / "reads_rank.py").write_text('import os\nimport torch\nRANK = os.environ["RANK"]\n')
    (packages / "needs_it.py").write_text("import reads_rank\n")
    job = Training(muster, peer, "job", "import needs_it", [["--standby", "on"]], PYTHONPATH=packages)
    job.attempt(0)
    job.await_spares(1)
    said = job.agents[0].err()
    assert float(re.search(r"standby workers ready: 2 of 2, ([0-9.]+) MiB", said)[1]) > 300, said  # PyTorch is in them
    job.kill(0, 0)
    assert [one["warm"] for one in job.attempt(1)] == [True, True]
    said = job.finish()
    assert re.search(r"reads_rank reads RANK while it is imported; \d+ module\(s\) wait for the program", said), said
    assert said.count("reads_rank") == 1, said


def test_a_compiled_model_trains_the_same_from_standby(muster, peer):
    """What its compiler imports, which is when it traces the first step, a standby worker has imported before."""
    looks = 'import sys; sys.stderr.write("imported early: %s\\n" % ("torch._functorch.aot_autograd" in sys.modules))'
    compiled = 'torch.compile(model, backend="aot_eager")'
    stories, said = train_the_same(muster, peer, (1,), imports=looks, trained=compiled)
    assert [one["warm"] for one in stories["on"]] == [False, False, True, True]
    early = {standby: re.findall("imported early: (True|False)", text) for standby, text in said.items()}
    assert early == {"off": ["False"] * 4, "on": ["False", "False", "True", "True"]}, said


# The first number that each generator gives to a worker, and names that nobody else may have.
DRAWS = """
import random, secrets, sys, tempfile, uuid
import numpy, torch
drawn = [torch.initial_seed(), torch.rand(1).item(), numpy.random.rand(), numpy.random.default_rng().random(), random.random()]
drawn += [uuid.uuid1(), uuid.uuid4(), secrets.token_hex(), tempfile.mktemp(), random.SystemRandom().random()]
sys.stdout.write(" ".join(map(str, ["drawn", *drawn])) + "\\n")
"""


def forked_job(muster, peer, scratch, library, script, **environment):
    """A job that has been restarted twice from standby, and what it wrote."""
    write(scratch / "lib/site-packages", library)
    job, workers, _ = ready_job(muster, scratch, script=script + WORKER, PYTHON_EXEC=peer.python, PET_STANDBY_REST=0,
                                PYTHONPATH=scratch / "lib/site-packages", **environment)
    for attempt in 1, 2:
        job.wait_until_ready(attempt)
        kill(workers[0]["pid"])
        workers = job.attempt(attempt)
        job.wait_for(lambda: job.said("started from standby: 2 of 2 workers") == attempt)  # noqa: B023
    ended = job.end(2)
    assert ended.status == 0, ended
    return job, ended.out


def test_no_two_workers_draw_the_same_numbers(muster, peer, scratch):
    job, out = forked_job(muster, peer, scratch, {}, DRAWS, OMP_NUM_THREADS=1)
    assert job.said("each standby worker imports by itself") == 0
    drawn = [line.split()[1:] for line in out.splitlines() if line.startswith("drawn ")]
    assert len(drawn) == 6
    assert [len(set(values)) for values in zip(*drawn)] == [6] * 10, drawn


def test_a_pool_of_openmp_in_the_parent_is_refused(muster, peer, scratch):
    """A child would wait for its threads for ever."""
    pool = "import torch\ntorch.set_num_threads(2)\nones = torch.ones(500, 500)\nproduct = ones @ ones\n"
    script = "import pool\nassert (pool.ones @ pool.ones).sum() == 500**3\n"
    job, _ = forked_job(muster, peer, scratch, {"pool.py": pool}, script, OMP_NUM_THREADS=2)
    assert job.said("each standby worker imports by itself, since one parent cannot fork them: ") == 1
    assert "of its threads do not end before a fork" in job.running.err()


def test_threads_of_openblas_do_not_hang_who_was_forked(muster, peer, scratch):
    multiplies = "import numpy\nones = numpy.ones((600, 600))\nproduct = ones @ ones\n"
    script = "import multiplies\nassert (multiplies.ones @ multiplies.ones).sum() == 600**3\n"
    forked_job(muster, peer, scratch, {"multiplies.py": multiplies}, script, OPENBLAS_NUM_THREADS=8, OMP_NUM_THREADS=8)


def test_what_is_above_the_line_is_not_done_again(muster, peer, scratch):
    """Workers that are started again from their line have the model that was built before, and draw what cold ones draw."""
    (scratch / "site/muster").mkdir(parents=True)
    for name in "__init__.py", "standby.py":
        shutil.copy(ROOT / "python/muster" / name, scratch / "site/muster")
    stories, _ = train_the_same(
        muster, peer, [0, 1], imports="import torch._dynamo", script=LINED, PYTHONPATH=scratch / "site")
    built = {folder: [int(line) for line in (scratch / folder / "built").read_text().split()] for folder in stories}
    assert [len({one["pid"] for one in stories[folder]} & set(built[folder])) for folder in ("off", "on")] == [6, 6]
    assert all(len(pids) == len(set(pids)) for pids in built.values()), "no process has built twice"
    assert [one["warm"] for one in stories["on"]] == 2 * [False] + 4 * [True]

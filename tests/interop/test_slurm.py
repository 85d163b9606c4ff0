# SPDX-License-Identifier: BSD-3-Clause
"""Jobs under a real Slurm of several nodes (support.slurm): what the user writes, and what becomes of it."""

import pytest

from support.binary import ROOT
from support.slurm import require_freezer

pytestmark = pytest.mark.timeout(900)  # a machine under load, and seconds that Slurm itself waits

PAGE = ROOT / "docs/slurm.md"  # shows what is said here

# Says who it is; the first time, rank $FAILING fails.
WORKER = """\
#!/bin/sh
echo "$SLURMD_NODENAME rank=$RANK/$WORLD_SIZE local=$LOCAL_RANK/$LOCAL_WORLD_SIZE restarts=$TORCHELASTIC_RESTART_COUNT"
[ "$RANK.$TORCHELASTIC_RESTART_COUNT" != "$FAILING.0" ] || exit 7
"""


def said(end):
    return sorted(line for line in end.out.splitlines() if "rank=" in line)


def srun(cluster, muster, *words, env=None):
    """Runs `srun WORDS muster run …` to its end; the words are divided by "run"."""
    place = words.index("run")
    script = muster.script("worker.sh", WORKER)
    command = ["srun", *words[:place], muster.binary, *words[place:], "--no-python", script]
    return cluster.start(muster, command, env=env).finish(180)


def test_the_nodes_of_a_step_are_one_job(make_slurm, muster):
    end = srun(make_slurm(2), muster, "-N2", "run", "--nproc-per-node", 2)
    assert end.status == 0, end
    ranks = {line.split("rank=")[1].split("/")[0]: line for line in said(end)}
    assert sorted(ranks) == ["0", "1", "2", "3"], end
    assert all("/4 " in line for line in ranks.values()), end
    assert {line.split()[0] for line in ranks.values()} == {"node1", "node2"}
    told = [line for line in end.err.splitlines() if line.startswith("muster run: Slurm's step")]
    assert len(told) == 1 and f"    {told[0]}\n" in PAGE.read_text(encoding="utf-8"), end


def test_the_steps_of_a_job_are_jobs_of_their_own(make_slurm, muster):
    """Two at once, on nodes that are not the job's first ones."""
    cluster = make_slurm(3)
    script = muster.script("worker.sh", WORKER)
    step = f"--exact --nodes=1-2 --ntasks-per-node=1 --cpus-per-task=1 {muster.binary} run --nproc-per-node 1"
    job = cluster.submit(
        muster,
        f"#!/bin/sh\nsrun -N2 --nodelist=node[2-3] {step} --no-python {script} &\n"
        f"srun -N2 --nodelist=node[1-2] {step} --no-python {script} &\nwait\n",
        "--nodes=3", "--cpus-per-task=2",
    )  # fmt: skip
    cluster.wait_for_state(job, "COMPLETED")
    lines = sorted(line for line in cluster.output(muster, job).splitlines() if "rank=" in line)
    assert len(lines) == 4 and all("/2 " in line for line in lines), lines
    assert {line.split()[0] for line in lines} == {"node1", "node2", "node3"}, lines


def test_a_worker_that_fails_is_restarted_on_all_nodes(make_slurm, muster):
    end = srun(make_slurm(3), muster, "-N3", "run", "--nproc-per-node", 1, "--max-restarts", 1, env={"FAILING": 2})
    assert end.status == 0, end
    again = [line for line in said(end) if "restarts=1" in line]
    assert len(again) == 3 and all("/3 " in line for line in again), end


def test_a_job_that_fails_has_a_status_that_says_so(make_slurm, muster):
    end = srun(make_slurm(2), muster, "-N2", "run", "--nproc-per-node", 1, env={"FAILING": 1})
    assert end.status == 1, end
    assert "exitcode  : 7" in end.err, end


def test_several_tasks_on_a_node_are_refused(make_slurm, muster):
    end = srun(make_slurm(2), muster, "-N2", "--ntasks-per-node=2", "run")
    assert end.status == 2 and said(end) == [], end
    assert "error: Slurm starts 2 tasks on a node (step 1.0)" in end.err, end
    assert "write srun --ntasks-per-node=1, and --nproc-per-node 2" in end.err, end


@pytest.mark.parametrize("is_torchrun", [False, True], ids=["off", "torchrun"])
def test_nothing_is_taken_where_it_is_not_wanted(make_slurm, muster, is_torchrun):
    cluster = make_slurm(2)
    script = muster.script("worker.sh", WORKER)
    torchrun = muster.scratch / "torchrun"
    torchrun.symlink_to(muster.binary)
    words = [torchrun] if is_torchrun else [muster.binary, "run", "--slurm", "off"]
    end = cluster.start(muster, ["srun", "-N2", *words, "--no-python", script]).finish(180)
    assert end.status == 0, end
    assert sorted(line.split(" local")[0] for line in said(end)) == ["node1 rank=0/1", "node2 rank=0/1"], end
    advice = "torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint node1:20097 --rdzv-id 1.0"
    assert end.err.count(advice) == (2 if is_torchrun else 0), end


# Says who it is and which signals come, until the file `done` is there.
LASTING_WORKER = """\
#!/bin/sh
me="$SLURMD_NODENAME rank=$RANK/$WORLD_SIZE starts=${SLURM_RESTART_COUNT:-0}"
trap 'echo "$me USR1" >>signals; exit 0' USR1
trap 'echo "$me TERM" >>signals; exit 0' TERM
echo "$me" >>worlds
while [ ! -e done ]; do sleep 0.1 & wait $!; done
"""


class Lasting:
    """A batch job whose workers run on until finish()."""

    def __init__(self, cluster, muster, *options, nodes=3, sbatch=(), srun="", worker=LASTING_WORKER, env=None):
        self.cluster, self.muster, self.scratch = cluster, muster, muster.scratch
        script = muster.script("worker.sh", worker)
        words = ["run", "--nproc-per-node", 1, *options, "--no-python", script]
        self.command = f"{muster.binary} {' '.join(map(str, words))}"
        text = f"#!/bin/sh\nsrun {srun} {self.command}\necho srun of start ${{SLURM_RESTART_COUNT:-0}} ended with $?\n"
        self.job = cluster.submit(muster, text, f"--nodes={nodes}", "--ntasks-per-node=1", *sbatch, env=env)

    def lines(self, name):
        path = self.scratch / name
        return path.read_text(encoding="ascii").splitlines() if path.exists() else []

    def wait_for_world(self, *nodes, starts=0):
        """Until each of these nodes has said that it is one of a world of just these."""
        wanted = [f"{node} rank=" for node in nodes]

        def is_there():
            world = [line for line in self.lines("worlds") if f"/{len(nodes)} starts={starts}" in line]
            return all(any(line.startswith(start) for line in world) for start in wanted)

        self.wait_for(is_there, f"a world of {nodes}", "worlds")

    def wait_for(self, condition, what, notes):
        def tell():
            return f"{what}, not {self.lines(notes)}\n{self.cluster.output(self.muster, self.job)}"

        self.cluster.wait_for(condition, tell)

    def wait_for_signal(self, name, *nodes):
        def is_there():
            return {line.split()[0] for line in self.lines("signals") if line.endswith(name)} >= set(nodes)

        self.wait_for(is_there, f"{name} at {nodes}", "signals")

    def finish(self, starts=0):
        """The status of srun. A batch script whose job is requeued may have said the same before."""
        words = f"srun of start {starts} ended with "
        (self.scratch / "done").touch()
        self.cluster.wait_for_output(self.muster, self.job, words)
        return int(self.cluster.output(self.muster, self.job).split(words)[1].split()[0])


ALL = ("node1", "node2", "node3")


def test_scancel_ends_every_worker_with_sigterm(make_slurm, muster):
    cluster = make_slurm(3)
    job = Lasting(cluster, muster)
    job.wait_for_world(*ALL)
    assert cluster.ask("scancel", job.job).returncode == 0
    cluster.wait_for_state(job.job, "CANCELLED")
    job.wait_for_signal("TERM", *ALL)
    cluster.wait_until_idle()


def test_the_signal_before_the_end_of_the_time_reaches_every_worker(make_slurm, muster):
    """Slurm sends it up to half a minute early, so not before 15 s of the minute are over; --signals-to-handle has to name it."""
    cluster = make_slurm(3)
    job = Lasting(cluster, muster, "--signals-to-handle", "SIGTERM,SIGUSR1", sbatch=["--time=1", "--signal=USR1@15"])
    job.wait_for_world(*ALL)
    job.wait_for_signal("USR1", *ALL)
    assert job.finish() == 1  # the agents were told to end
    assert len(job.lines("worlds")) == 3  # nobody started anew


# Notes every signal, and runs on until the file `done` is there. It is no longer new when it says who it is: to new
# workers signals are sent in any case.
NOTING_WORKER = """\
#!/bin/sh
me="$SLURMD_NODENAME rank=$RANK/$WORLD_SIZE starts=0"
trap 'echo "$me USR1" >>signals' USR1
sleep 2
echo "$me" >>worlds
while [ ! -e done ]; do sleep 0.1 & wait $!; done
"""


@pytest.mark.parametrize(
    "proctrack, words",
    [
        ("linuxproc", "the workers have got SIGUSR1 beside this agent"),
        ("pgid", "closing signal SIGUSR1"),
        ("cgroup", "closing signal SIGUSR1"),
    ],
    ids=["linuxproc", "pgid", "cgroup"],
)
def test_a_worker_handles_a_signal_once_whoever_slurm_signals(make_slurm, muster, proctrack, words):
    if proctrack == "cgroup":
        require_freezer()
    cluster = make_slurm(3, proctrack=proctrack)
    job = Lasting(cluster, muster, "--signals-to-handle", "SIGTERM,SIGUSR1", worker=NOTING_WORKER, env={"LOGLEVEL": "INFO"})
    job.wait_for_world(*ALL)
    assert cluster.ask("scancel", "--signal=USR1", job.job).returncode == 0
    cluster.wait_for_output(muster, job.job, words, count=3)  # each agent has decided
    job.wait_for_signal("USR1", *ALL)
    assert job.finish() == 1
    cluster.wait_until_idle()
    assert len(job.lines("signals")) == 3, job.lines("signals")


@pytest.mark.parametrize("why", ["requeue", "preemption"])
def test_a_job_that_is_requeued_starts_anew(make_slurm, muster, why):
    cluster = make_slurm(3, credential_seconds=15)
    job = Lasting(cluster, muster, sbatch=["--requeue"])
    job.wait_for_world(*ALL)
    if why == "requeue":
        assert cluster.ask("scontrol", "requeue", job.job).returncode == 0
    else:
        urgent = cluster.submit(muster, "#!/bin/sh\necho urgent\n", "--nodes=3", "--exclusive", "--partition=high")
        cluster.wait_for_output(muster, urgent, "urgent")
    job.wait_for_world(*ALL, starts=1)
    job.wait_for_signal("starts=0 TERM", *ALL)
    assert job.finish(starts=1) == 0
    cluster.wait_for_state(job.job, "COMPLETED")


def test_the_others_go_on_without_a_lost_node_where_neither_job_nor_step_is_killed(make_slurm, muster):
    cluster = make_slurm(3)
    job = Lasting(cluster, muster, "--nnodes", "2:3", sbatch=["--no-kill"], srun="--no-kill --kill-on-bad-exit=0")
    job.wait_for_world(*ALL)
    cluster.lose(cluster.nodes[2])
    job.wait_for_world("node1", "node2")
    assert cluster.job(job.job)["JobState"] == "RUNNING"
    job.finish()
    assert not [line for line in job.lines("worlds") if "/2 " in line and line.startswith("node3")]


@pytest.mark.parametrize("sbatch, state", [([], "NODE_FAIL"), (["--no-kill"], "COMPLETED")], ids=["job", "step"])
def test_slurm_ends_all_with_a_lost_node_by_default(make_slurm, muster, sbatch, state):
    """--no-kill of sbatch alone keeps the allocation, but not the step."""
    cluster = make_slurm(3)
    job = Lasting(cluster, muster, "--nnodes", "2:3", sbatch=["--no-requeue", *sbatch])
    job.wait_for_world(*ALL)
    cluster.lose(cluster.nodes[2])
    cluster.wait_for_state(job.job, state)


def test_a_node_whose_slurmd_is_gone_works_on(make_slurm, muster):
    cluster = make_slurm(3)
    job = Lasting(cluster, muster)
    job.wait_for_world(*ALL)
    cluster.kill_daemon(cluster.nodes[1])
    assert job.finish() == 0
    assert len(job.lines("worlds")) == 3 and job.lines("signals") == []


@pytest.mark.parametrize(
    "record",
    [["--rdzv-backend", "c10d", "--rdzv-conf", "store_type=file"], ["--rdzv-backend", "dir"]],
    ids=["file", "directory"],
)
def test_a_job_outlives_its_first_node_where_srun_and_the_record_are_elsewhere(make_slurm, muster, record):
    cluster = make_slurm(3)
    script = muster.script("worker.sh", LASTING_WORKER)
    keep = ["--no-kill", "--ntasks-per-node=1"]
    if "dir" in record:
        (muster.scratch / "record").mkdir()
    words = [muster.binary, "run", "--nnodes", "2:3", "--nproc-per-node", 1, *record, "--rdzv-id", "job", "--rdzv-endpoint"]
    run = cluster.start(
        muster,
        ["salloc", "-N3", *keep, "srun", *keep, "--kill-on-bad-exit=0", *words, muster.scratch / "record",
         "--no-python", script],
    )  # fmt: skip
    job = Lasting.__new__(Lasting)
    job.cluster, job.muster, job.scratch, job.job = cluster, muster, muster.scratch, "1"
    job.wait_for_world(*ALL)
    cluster.lose(cluster.nodes[0])
    job.wait_for_world("node2", "node3")
    (muster.scratch / "done").touch()
    end = run.finish(180)
    assert "Node failure on node1" in end.err, end
    cluster.wait_for_state("1", "COMPLETED")


def test_a_batch_job_goes_on_without_its_first_node_where_a_directory_is_the_register(make_slurm, muster):
    """Where the batch script and its srun were. Slurm learns from nobody then that the job is over."""
    cluster = make_slurm(3)
    (muster.scratch / "rendezvous").mkdir()
    record = ["--rdzv-backend", "dir", "--rdzv-endpoint", muster.scratch / "rendezvous"]
    job = Lasting(
        cluster, muster, "--nnodes", "2:3", *record, sbatch=["--no-kill"], srun="--no-kill --kill-on-bad-exit=0"
    )
    job.wait_for_world(*ALL)
    cluster.lose(cluster.nodes[0])
    job.wait_for_world("node2", "node3")
    assert cluster.job(job.job)["JobState"] == "RUNNING"
    assert cluster.ask("scancel", job.job).returncode == 0
    cluster.wait_for_state(job.job, "CANCELLED")


def test_status_finds_the_host_of_a_step_by_the_number_of_the_job(make_slurm, muster):
    """From the controller, where no agent is, and by `srun --overlap` from a node of the job."""
    cluster = make_slurm(3)
    job = Lasting(cluster, muster, "--nnodes", "3")
    job.wait_for_world(*ALL)

    def ask(*words):
        return cluster.start_muster(muster, words).finish()

    def is_told():
        told = ask("status", "--slurm-job", job.job)
        return told if told.status == 0 and "3 of 3 nodes" in told.out and "not all" not in told.out else None

    told = cluster.wait_for(is_told, "the status of the whole job")
    assert told.out.startswith(f"{job.job}.0  running  "), told
    assert ask("status", "--slurm-job", f"{job.job}.0").status == 0
    events = ask("events", "--slurm-job", job.job, "--kind", "started")
    assert events.status == 0 and events.out.count("started") == 3, events
    nobody = ask("status", "--slurm-job", f"{job.job}.7")
    assert nobody.status == 1 and "has no step that runs" in nobody.err, nobody
    mistake = ask("status", "--slurm-job", "4711;reboot")
    assert mistake.status == 2 and "4711.0" in mistake.err, mistake
    overlap = cluster.start(muster, ["srun", "--overlap", "--jobid", job.job, "-N1", "-n1", muster.binary, "status"]).finish()
    assert overlap.status == 0 and "3 of 3 nodes" in overlap.out, overlap
    assert job.finish() == 0

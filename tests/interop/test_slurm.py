# SPDX-License-Identifier: BSD-3-Clause
"""Jobs under a real Slurm of several nodes (support.slurm): what the user writes, and what becomes of it."""

import pytest

from support.binary import ROOT

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

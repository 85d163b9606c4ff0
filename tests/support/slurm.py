# SPDX-License-Identifier: BSD-3-Clause
"""A real Slurm on this machine: slurmctld and one slurmd for each node, on hosts of support.network, and munged.

    cluster = Slurm(scratch, network)           # the last host has slurmctld, the others are its nodes
    run = cluster.start(muster, ["srun", "-N2", muster.binary, "run", "train.py"])
    cluster.kill_daemon(cluster.nodes[1])       # the slurmd of node2
    cluster.end()

Nothing of a Slurm that this machine may be part of is touched: its configuration, spool, sockets and keys are below
`scratch`, and its ports are those of the hosts.
"""

import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from support.binary import clean_environment
from support.network import find_obstacle as find_network_obstacle
from support.peers import give_up

PROGRAMS = ("slurmctld", "slurmd", "srun", "salloc", "sbatch", "scancel", "scontrol", "squeue", "munged")
PACKAGES = "slurmctld slurmd slurm-client munge"
# Where Debian keeps daemons, which is not on every user's PATH.
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])

# Where proctrack/cgroup keeps each node's processes apart from others, in directories named after the nodes.
FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")
CGROUPS = "CgroupAutomount=no\nCgroupMountpoint=/sys/fs/cgroup\nCgroupPlugin=cgroup/v1\n"

# For all daemons together, after SIGKILL: seconds.
END_TIMEOUT = 60

CONFIGURATION = """\
ClusterName=tests
SlurmctldHost={controller}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge/socket,cred_expire={credential_seconds}
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd-%n.log
PlugStackConfig=/dev/null
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SlurmctldParameters=node_reg_mem_percent=0
ReturnToService=2
InactiveLimit=0
KillWait=10
MinJobAge=300
SlurmdTimeout=300
BatchStartTimeout=60
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,requeue_delay=0
NodeName={nodes} CPUs=4 State=UNKNOWN
PartitionName=low Nodes={nodes} Default=YES MaxTime=INFINITE State=UP PriorityTier=1 OverSubscribe=NO
PartitionName=high Nodes={nodes} MaxTime=INFINITE State=UP PriorityTier=10 OverSubscribe=NO
"""


@contextlib.contextmanager
def freezer_of(nodes):
    """Nodes of these names for one cluster at a time. No directory stays behind but one that is still in use."""
    with open(pathlib.Path(tempfile.gettempdir()) / "muster-tests-slurm-freezer", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            for node in nodes:
                for place, _, _ in os.walk(FREEZER / f"slurm_{node.name}", topdown=False):
                    with contextlib.suppress(OSError):
                        os.rmdir(place)


def ends_until(process, deadline):
    try:
        process.wait(max(0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def find_program(name):
    return shutil.which(name, path=SEARCH_PATH)


def find_obstacle():
    """Why there can be no Slurm here, or None."""
    missing = [name for name in PROGRAMS if find_program(name) is None]
    if missing:
        return f"{', '.join(missing)} not found (Debian: apt install {PACKAGES})"
    return find_network_obstacle()


def require_slurm():
    obstacle = find_obstacle()
    if obstacle is not None:
        give_up(obstacle)


def require_freezer():
    """For proctrack/cgroup. (Slurm's plugin for cgroups of version 2 needs systemd.)"""
    if not (FREEZER / "release_agent").exists():
        pytest.skip(f"no freezer of cgroups of version 1 in {FREEZER}")


class Slurm:
    """A cluster of the network's hosts. End it with end(), also when making it failed."""

    def __init__(self, scratch, network, credential_seconds=120, proctrack="linuxproc"):
        """`credential_seconds`: for as long a job that was requeued waits until it starts again. `proctrack`: which
        processes of a step get its signals; linuxproc: all of them, pgid: those of the agent's process group, cgroup:
        the agent."""
        self.directory = pathlib.Path(scratch) / "slurm"
        self.controller = network.hosts[-1]
        self.nodes = network.hosts[:-1]
        self.daemons = {}
        self.at_end = contextlib.ExitStack()
        if proctrack == "cgroup":
            self.at_end.enter_context(freezer_of(self.nodes))
        for name in ("", "state", "munge"):
            (self.directory / name).mkdir(mode=0o755)
        self.path = self.directory / "slurm.conf"
        text = CONFIGURATION.format(
            controller=self.controller.name,
            address=self.controller.address,
            directory=self.directory,
            credential_seconds=credential_seconds,
            proctrack=proctrack,
            nodes=f"node[1-{len(self.nodes)}]",
        )
        self.path.write_text(text, encoding="ascii")
        (self.directory / "cgroup.conf").write_text(CGROUPS, encoding="ascii")
        self.environment = {**clean_environment(SCRATCH_OF_TEST=scratch), "SLURM_CONF": str(self.path), "PATH": SEARCH_PATH}
        try:
            self.start_munge()
            self.start_daemon(self.controller, "slurmctld", "-D")
            for node in self.nodes:
                self.start_daemon(node, "slurmd", "-D")
            self.wait_until_idle()
        except BaseException:
            self.end()
            raise

    def start_munge(self):
        place = self.directory / "munge"
        key = place / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        words = [find_program("munged"), "--foreground", "--force", f"--key-file={key}", f"--socket={place}/socket"]
        words += [f"--pid-file={place}/pid", f"--log-file={place}/log", f"--seed-file={place}/seed"]
        self.daemons["munged"] = self.launch("munged", words)
        self.wait_for(lambda: (place / "socket").exists(), "munged")

    def start_daemon(self, host, program, *options):
        self.daemons[host.name] = self.launch(host.name, host.command([find_program(program), *options]))

    def launch(self, name, words):
        with open(self.directory / f"{name}.out", "ab") as out:
            return subprocess.Popen(
                words, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.directory,
                start_new_session=True,
            )  # fmt: skip

    def logs(self):
        """The ends of all logs, for a test that fails."""
        texts = []
        for path in sorted([*self.directory.glob("*.log"), *self.directory.glob("*.out")]):
            text = path.read_text(encoding="utf-8", errors="replace")
            texts.append(f"-- {path.name}\n{text[-3000:]}")
        return "\n".join(texts)

    def wait_for(self, condition, what, timeout=240):
        """`what`: words, or what returns them when the time is up."""
        deadline = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                told = what() if callable(what) else what
                raise AssertionError(f"waited {timeout} s for {told}\n{self.logs()}")
            time.sleep(0.05)

    def wait_until_idle(self):
        """Until every node is known to the controller and has nothing to do."""

        def is_idle():
            end = self.ask("sinfo", "--noheader", "--Node", "--partition=low", "--format=%N %t")
            states = [line.split() for line in end.stdout.splitlines()]
            return len(states) == len(self.nodes) and all(state == "idle" for name, state in states)

        self.wait_for(is_idle, "idle nodes")

    def ask(self, *words):
        """A command of Slurm, on the controller."""
        command = self.controller.command([find_program(words[0]), *words[1:]])
        return subprocess.run(command, capture_output=True, text=True, env=self.environment, timeout=120)

    def start(self, muster, words, env=None):
        """Starts a command of Slurm on the controller; its output is kept as that of muster is."""
        changes = {"SLURM_CONF": self.path, "PATH": SEARCH_PATH, **(env or {})}
        return muster.start(words[1:], program=find_program(words[0]), env=changes, on=self.controller)

    def start_muster(self, muster, words):
        """Starts muster on the controller, as on a login node."""
        return muster.start(words, env={"SLURM_CONF": self.path, "PATH": SEARCH_PATH}, on=self.controller)

    def submit(self, muster, text, *options, env=None):
        """Submits a batch script; returns the number of its job. Its output is in job-NUMBER.out."""
        script = muster.script("batch.sh", text)
        words = ["sbatch", "--parsable", f"--output={muster.scratch}/job-%j.out", "--open-mode=append", *options, script]
        end = self.start(muster, words, env).finish()
        assert end.status == 0, end
        return end.out.split()[0]

    def output(self, muster, job):
        path = muster.scratch / f"job-{job}.out"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def job(self, job):
        """{"JobState": "RUNNING", …} of a job."""
        return dict(re.findall(r"(\w+)=(\S*)", self.ask("scontrol", "--oneliner", "show", "job", job).stdout))

    def wait_for_state(self, job, *states):
        return self.wait_for(lambda: self.job(job).get("JobState") in states and self.job(job), f"{job}: {states}")

    def wait_for_output(self, muster, job, words, count=1):
        self.wait_for(
            lambda: self.output(muster, job).count(words) >= count, lambda: f"{words!r} in {self.output(muster, job)}"
        )

    def lose(self, node):
        """The machine is gone with everything on it, and Slurm has noticed (which else takes SlurmdTimeout)."""
        node.unplug()
        for pid in node.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        end = self.ask("scontrol", "update", f"nodename={node.name}", "state=down", "reason=lost")
        assert end.returncode == 0, end

    def kill_daemon(self, node):
        """Kills the slurmd of a node; its jobs' processes run on."""
        for pid in node.processes():
            try:
                name = pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
            except OSError:
                continue
            if name == "slurmd":
                os.kill(pid, signal.SIGKILL)
        self.daemons[node.name].wait(60)

    def end(self):
        """Kills all daemons. One that the kernel does not let go of is named, and the others end all the same."""
        for daemon in self.daemons.values():
            daemon.kill()
        deadline = time.monotonic() + END_TIMEOUT
        left = [name for name, daemon in self.daemons.items() if not ends_until(daemon, deadline)]
        self.at_end.close()
        assert not left, f"of Slurm's daemons are left {END_TIMEOUT} s after SIGKILL: {', '.join(left)}"

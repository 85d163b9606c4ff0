# SPDX-License-Identifier: BSD-3-Clause
"""Jobs whose workers compute on a real GPU and tell, each in a line of a file, what came of it."""

from support.leaks import environment_of
from support.standby_jobs import PARENT, name_of, pids_below, read_story

# Begins a worker's program: tell(what=…) adds a line to the story, stay() waits until the test has seen enough.
TELL = """
import json, os, time

rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])

def tell(**what):
    with open("/proc/self/environ") as own:
        warm = "role=spare" in own.read()
    with open("story", "a") as file:
        file.write(json.dumps({"attempt": attempt, "rank": rank, "pid": os.getpid(), "warm": warm, **what}) + "\\n")

def stay():
    while not os.path.exists("end"):
        time.sleep(0.02)
"""


class Job:
    """Workers on the first device, and what they tell."""

    def __init__(self, muster, gpu, workers, standby, text, restarts=3, **environment):
        self.muster, self.gpu, self.workers = muster, gpu, workers
        self.directory = muster.scratch / f"job{len(muster.started)}"
        self.directory.mkdir()
        (self.directory / "worker.py").write_text(text)
        words = ["run", "--standalone", "--nproc-per-node", workers, "--max-restarts", restarts, "--standby", standby]
        settings = {"PYTHON_EXEC": gpu.python, "OMP_NUM_THREADS": 1, "LOGLEVEL": "INFO", "PET_STANDBY_REST": 0, **environment}
        self.agent = muster.start([*words, "worker.py"], env=settings, cwd=self.directory)

    def told(self, attempt):
        return read_story(self.directory, attempt)

    def attempt(self, number):
        """What the workers of an attempt have told, by rank."""
        self.agent.wait_until(lambda: len(self.told(number)) >= self.workers, f"attempt {number}", timeout=200)
        return self.told(number)

    def await_spares(self, times):
        self.agent.wait_until(lambda: self.agent.err().count("standby workers ready") >= times, "spares", timeout=200)

    def spares(self):
        """Pids of the agent's children that were started as standby workers and are still ones, without their parent."""
        workers = {one["pid"] for number in range(10) for one in self.told(number)}
        children = pids_below(self.agent.pid)
        return [pid for pid in children if pid not in workers and name_of(pid) != PARENT and b"role=spare" in environment_of(pid)]

    def finish(self):
        (self.directory / "end").touch()
        end = self.agent.finish()
        assert end.status == 0, end
        return end

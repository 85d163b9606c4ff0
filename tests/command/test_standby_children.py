# SPDX-License-Identifier: BSD-3-Clause
"""What the workers of a job with standby workers start themselves is nothing to the agent: it runs once, records
nothing, and looks the same whether the worker was a standby worker or not."""

import json

import pytest

from support.standby_jobs import WORKER, exists, kill, ready_job

pytestmark = pytest.mark.timeout(300)

# Beside the worker: what each process it starts tells of itself, in one write. Only children import `colorsys`.
CHILDREN = """
import json, multiprocessing, os, subprocess, sys, time

def told_by(name):
    import colorsys
    environment = os.environ
    return {
        "name": name, "pid": os.getpid(), "rank": environment["RANK"], "path": sys.path, "main": __name__,
        "attempt": int(environment["TORCHELASTIC_RESTART_COUNT"]), "flags": repr(sys.flags),
        "hook": [name for name in environment if "STANDBY" in name or name == "PYTHONPATH"],
        "modules": [name for name in sys.modules if name.startswith("muster")],
    }

def tell(name):
    line = json.dumps(told_by(name)) + "\\n"
    descriptor = os.open("children", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, line.encode())
    os.close(descriptor)

def nest(method, told):
    tell("child")
    inner = multiprocessing.get_context(method).Process(target=tell, args=("grandchild",))
    inner.start()
    inner.join()

def stay(method, told):
    tell("staying")
    told.put(True)
    time.sleep(600)

if __name__ == "__main__":
    method = os.environ["METHOD"]
    context = multiprocessing.get_context(method)
    told = context.SimpleQueue()
    child = context.Process(target=nest, args=(method, told))
    child.start()
    child.join()
    context.Process(target=stay, args=(method, told), daemon=True).start()
    with context.Pool(2) as pool:
        pool.map(tell, ["pool"] * 2, chunksize=1)
    subprocess.run([sys.executable, "-c", "import worker; worker.tell('program')"], check=True)
    told.get()
    learned_of_children = "colorsys" in sys.modules
"""
NAMES = ["child", "grandchild", "pool", "pool", "program", "staying"]


def children(scratch, attempt):
    lines = [json.loads(line) for line in (scratch / "children").read_text().splitlines()]
    return sorted((line for line in lines if line["attempt"] == attempt), key=lambda line: (line["rank"], line["name"]))


def without(line, *names):
    return {name: value for name, value in line.items() if name not in names}


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_a_worker_are_the_same_below_a_standby_worker(muster, scratch, method):
    main = WORKER.replace('"attempt":', '"learned": learned_of_children, "attempt":')
    script = CHILDREN + "".join(f"    {line}\n" for line in main.strip().splitlines())
    job, first, spares = ready_job(muster, scratch, script=script, METHOD=method)
    kill(first[0]["pid"])
    second = job.attempt(1)
    assert sorted(line["pid"] for line in second) == spares
    before, after = children(scratch, 0), children(scratch, 1)
    for ones, workers in (before, first), (after, second):
        assert [(one["rank"], one["name"]) for one in ones] == [(rank, name) for rank in "01" for name in NAMES]
        assert not {one["pid"] for one in ones} & {worker["pid"] for worker in workers}
        assert not any(one["hook"] or one["modules"] for one in ones)
    assert [without(one, "pid", "attempt") for one in before] == [without(one, "pid", "attempt") for one in after]
    # What only children have imported was not learned from them: fork shares the worker's record.
    assert [worker["learned"] for worker in first + second] == [False] * 4
    job.wait_for(lambda: not any(exists(one["pid"]) for one in before))
    end = job.end(1)
    assert end.status == 0, end
    assert not any(exists(one["pid"]) for one in after)

# SPDX-License-Identifier: BSD-3-Clause
"""A worker that says which world it is in, and does what it is told: `meeting_worker.py NODE`.

It writes its facts into facts/, leaves its name in the workers' store, and stays until there is a file
`go` or `go.NODE` (it succeeds), `fail.NODE.LOCAL_RANK` (it takes that file away and fails), or until its
agent is gone. Needs no PyTorch, so that a test may start many.
"""

import json
import os
import pathlib
import sys
import time

from store import RawClient

VARIABLES = """RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE
ROLE_NAME MASTER_ADDR MASTER_PORT TORCHELASTIC_RESTART_COUNT TORCHELASTIC_RUN_ID""".split()
NODE = sys.argv[1]
AGENT = os.getppid()


def meet(name):
    """Leaves the name where the whole world can see it; whether there is such a place."""
    try:
        with RawClient(int(os.environ["MASTER_PORT"]), os.environ["MASTER_ADDR"], timeout=5) as store:
            store.set(b"member." + name.encode(), b"here")
            store.ping()
    except OSError:
        return False
    return True


def write(name, facts):
    folder = pathlib.Path("facts")
    folder.mkdir(exist_ok=True)
    temporary = folder / f".{name}"
    temporary.write_text(json.dumps(facts))
    temporary.rename(folder / name)


def main():
    name = f"{NODE}.{os.environ['LOCAL_RANK']}.{os.getpid()}"
    facts = {variable: os.environ.get(variable) for variable in VARIABLES}
    write(name, {**facts, "name": name, "node": int(NODE), "pid": os.getpid(), "has_met": meet(name)})
    while os.getppid() == AGENT:
        if os.path.exists("go") or os.path.exists(f"go.{NODE}"):
            sys.exit(0)
        try:
            os.remove(f"fail.{NODE}.{os.environ['LOCAL_RANK']}")
            sys.exit(7)
        except FileNotFoundError:
            time.sleep(0.02)
    sys.exit(1)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own rendezvous handler in an agent of muster.agent, in one job with PyTorch's own agent."""

import pytest

from support.installed_package import install
from support.own_library import LIBRARY
from support.ports import free_port

pytestmark = [pytest.mark.timeout(120), pytest.mark.plain_build]

# Two workers each. Those of node 1 fail once; those of node 0 are stopped then, and all end in the round that follows.
NODE = """\
import sys
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler
kind, number, port, folder = sys.argv[1:]
if __name__ == "__main__":
    handler = get_rendezvous_handler(RendezvousParameters("c10d", f"localhost:{port}", "job", 2, 2, is_host=number == "0"))
    work = '''
echo $WORLD_SIZE $MASTER_ADDR:$MASTER_PORT $TORCHELASTIC_RUN_ID > $0/new.$RANK; mv $0/new.$RANK $0/told.$RANK
if test $1$TORCHELASTIC_RESTART_COUNT = 10; then until test -e $0/told.0 -a -e $0/told.3; do sleep 0.1; done; exit 3; fi
if test $1 = 1; then : > $0/again; fi
until test -e $0/again; do sleep 0.1; done'''
    if kind == "torch":
        from torch.distributed.elastic.agent.server.api import WorkerSpec
        from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
        from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
        options = {"logs_specs": DefaultLogsSpecs()}
    else:
        from muster.agent import LocalElasticAgent, WorkerSpec
        options = {}
    spec = WorkerSpec(role="trainer", local_world_size=2, entrypoint="/bin/sh", args=("-c", work, folder, number), rdzv_handler=handler,
                      max_restarts=1, monitor_interval=0.1)
    print(LocalElasticAgent(spec, **options).run().state.name, flush=True)
"""


@pytest.mark.parametrize("kinds", [("torch", "muster"), ("muster", "torch"), ("muster", "muster")], ids="-".join)
def test_an_agent_takes_pytorchs_handler(muster, peer, scratch, kinds):
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built (-Dlibrary=false)")
    package, port = install(scratch / "package"), free_port()
    script = muster.script("node.py", NODE)
    nodes = [muster.start([script, kind, number, port, scratch], program=peer.python, env=package) for number, kind in enumerate(kinds)]
    for node in nodes:
        node.finish(timeout=100)
        assert node.out().endswith("SUCCEEDED\n"), (node.out(), node.err())
    told = [(scratch / f"told.{rank}").read_text().split() for rank in range(4)]
    assert {(size, run_id) for size, _, run_id in told} == {("4", "job")} and len({place for _, place, _ in told}) == 1, told

# SPDX-License-Identifier: BSD-3-Clause
"""An agent on a rendezvous of the program's own: a RendezvousHandler with a name, RendezvousParameters and get_rendezvous_handler.
Node NODE of NODES is known from the start; the nodes share a directory.    python3 own_handler.py DIRECTORY NODE NODES"""

import os
import sys

from muster.agent import LocalElasticAgent, WorkerSpec
from muster.rendezvous import (
    RendezvousHandler, RendezvousInfo, RendezvousParameters, get_rendezvous_handler, rendezvous_handler_registry,
)  # fmt: skip
from muster.store import FileStore, PrefixStore


class Numbered(RendezvousHandler):
    """A round begins when each node has come to it; when one comes back, the others do, too."""

    def __init__(self, params):
        self._params, self._round = params, 0
        self._store = FileStore(os.path.join(params.endpoint, "store"))

    def next_rendezvous(self):
        self._round += 1
        store = PrefixStore(f"round{self._round}", self._store)
        if store.add("nodes", 1) == self._params.max_nodes:
            store.set("begin", b"")
        store.wait(["begin"])
        return RendezvousInfo(self._round, self._params.get_as_int("node"), self._params.max_nodes, None, None, None, None, None, None, store)

    def num_nodes_waiting(self):
        return self._store.add(f"round{self._round + 1}/nodes", 0)

    def get_backend(self):
        return "numbered"

    def get_run_id(self):
        return self._params.run_id

    def is_closed(self):
        return False

    def set_closed(self):
        pass

    def shutdown(self):
        return True


def work():
    return f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}"


def main(directory, node, nodes):
    rendezvous_handler_registry.register("numbered", Numbered)
    handler = get_rendezvous_handler(RendezvousParameters("numbered", directory, "job", nodes, nodes, node=node))
    result = LocalElasticAgent(WorkerSpec("trainer", 1, handler, entrypoint=work)).run()
    print(result.state.value, *result.return_values.values())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

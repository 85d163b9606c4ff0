# SPDX-License-Identifier: BSD-3-Clause
"""What a node of a rendezvous does, step by step: RdzvEvent and NodeState.    python3 rendezvous_events.py FILE"""

import sys

from muster.rendezvous import C10dRendezvousBackend, DynamicRendezvousHandler
from muster.store import FileStore


def show(event):
    print(event.node_state.value, event.message.replace(event.hostname, "HOST").replace(str(event.pid), "PID"))


if __name__ == "__main__":
    store = FileStore(sys.argv[1])
    handler = DynamicRendezvousHandler.from_backend("job", store, C10dRendezvousBackend(store, "job"), 1, 1, on_event=show)
    info = handler.next_rendezvous()
    handler.shutdown()
    print("rank", info.rank, "of", info.world_size)

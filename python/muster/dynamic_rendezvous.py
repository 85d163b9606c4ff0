# SPDX-License-Identifier: BSD-3-Clause
"""A rendezvous with a backend of the program's own, in TorchElastic's words:
torch/distributed/elastic/rendezvous/dynamic_rendezvous.py, without PyTorch.

    handler = DynamicRendezvousHandler.from_backend("job", store, backend, min_nodes=2, max_nodes=4)
    info = handler.next_rendezvous()
    print(info.rank, info.world_size, info.store.get("key"))

It differs where muster/rendezvous.h does. is_closed and num_nodes_waiting are as this node has heard last; before its first
round they ask the backend once. The time of a heartbeat has no limit of its own: the backend's calls have."""

import dataclasses
import os
from datetime import timedelta

from muster import store as muster_store
from muster.rendezvous_api import RendezvousHandler, RendezvousStoreInfo
from muster.rendezvous_node import Rendezvous

SAID_WITHIN = timedelta(seconds=5)


class RendezvousTimeout:
    """How long a join, the last call, a close and a heartbeat may take: timedelta, or None for the default."""

    DEFAULTS = {"join": 600, "last_call": 30, "close": 30, "heartbeat": 5}

    def __init__(self, join=None, last_call=None, close=None, heartbeat=None):
        self._timeouts = {}
        for name, timeout in (("join", join), ("last_call", last_call), ("close", close), ("heartbeat", heartbeat)):
            timeout = timedelta(seconds=self.DEFAULTS[name]) if timeout is None else timeout
            if timeout <= timedelta(0):
                raise ValueError(f"The {name} timeout ({timeout}) must be positive.")
            self._timeouts[name] = timeout

    @property
    def join(self):
        return self._timeouts["join"]

    @property
    def last_call(self):
        return self._timeouts["last_call"]

    @property
    def close(self):
        return self._timeouts["close"]

    @property
    def heartbeat(self):
        return self._timeouts["heartbeat"]


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class RendezvousSettings:
    run_id: str
    min_nodes: int
    max_nodes: int
    timeout: RendezvousTimeout
    keep_alive_interval: timedelta
    keep_alive_max_attempt: int

    def __post_init__(self):
        if not self.run_id:
            raise ValueError("The run id must be a non-empty string.")
        if self.min_nodes < 1:
            raise ValueError(f"The minimum number of nodes ({self.min_nodes}) must be greater than zero.")
        if self.max_nodes < self.min_nodes:
            raise ValueError(f"The maximum number of nodes ({self.max_nodes}) must be greater than or equal to the minimum "
                             f"number of nodes ({self.min_nodes}).")


def _prefixed(prefix, store):
    if isinstance(store, muster_store.Store):
        return muster_store.PrefixStore(prefix, store)
    import torch.distributed as dist  # whose store it is

    return dist.PrefixStore(prefix, store)


def _is_said(store):
    try:
        store.wait([RendezvousStoreInfo.MASTER_PORT_KEY], SAID_WITHIN)
        return True
    except RuntimeError:  # of which the errors of Muster's and PyTorch's stores are kinds
        return False


class DynamicRendezvousHandler(RendezvousHandler):
    """One node. `store` is the program's, Muster's or PyTorch's; None: the rounds have none. `on_event` is called with an
    RdzvEvent for each step of the node, which TorchElastic's handler records (events.record_rdzv_event)."""

    def __init__(self, settings, backend, store, local_addr=None, on_event=None):
        self._settings, self._backend, self._store, self._local_addr = settings, backend, store, local_addr
        self._server = self._bootstrap = None
        timeout = settings.timeout
        self._node = Rendezvous(
            settings.run_id, None, settings.min_nodes, settings.max_nodes, local_addr=local_addr, backend=backend, on_event=on_event,
            join_timeout=timeout.join.total_seconds(), last_call_timeout=timeout.last_call.total_seconds(),
            close_timeout=timeout.close.total_seconds(),
            keep_alive_interval=settings.keep_alive_interval.total_seconds(),
            keep_alive_max_attempt=settings.keep_alive_max_attempt)

    @classmethod
    def from_backend(cls, run_id, store, backend, min_nodes, max_nodes, local_addr=None, timeout=None, keep_alive_interval=5,
                     keep_alive_max_attempt=3, on_event=None):
        settings = RendezvousSettings(run_id, min_nodes, max_nodes, timeout or RendezvousTimeout(),
                                      timedelta(seconds=keep_alive_interval), keep_alive_max_attempt)
        return cls(settings, backend, store, local_addr, on_event)

    @property
    def settings(self):
        return self._settings

    @property
    def use_agent_store(self):
        """The node of rank 0 serves the workers' store, at the place of `bootstrap_store_info`; else its first worker does."""
        return os.getenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") != "1"

    def get_backend(self):
        return self._backend.name

    def get_run_id(self):
        return self._settings.run_id

    def next_rendezvous(self):
        """A RendezvousInfo with a store whose keys are the round's, and where rank 0 is to serve the workers' store."""
        info = self._node.next()
        if self._store is None:
            return info
        store = _prefixed(info.store_prefix, self._store)
        self._bootstrap = self._meet(info, store)
        return info._replace(store=store, bootstrap_store_info=self._bootstrap)

    def _meet(self, info, store):
        """Where the workers' store is. The first node says so in each round. PyTorch's nodes may say it once, and then it stays
        where it was."""
        address = self._local_addr or info.node.rsplit("_", 2)[0]
        if not self.use_agent_store:
            return RendezvousStoreInfo.build(info.rank, store, address)
        if info.rank == 0 and self._server is None:
            self._server = muster_store.TCPStore(address, 0, is_master=True, wait_for_workers=False)
        if info.rank > 0 and self._bootstrap is not None and not _is_said(store):
            return self._bootstrap
        return RendezvousStoreInfo.build(info.rank, store, address, self._server.port if info.rank == 0 else None)

    def is_closed(self):
        return self._node.is_closed()

    def set_closed(self):
        self._node.set_closed()

    def num_nodes_waiting(self):
        return self._node.num_nodes_waiting()

    def shutdown(self):
        """Closes the rendezvous, and leaves. Whether it could be closed. A further call does nothing."""
        return self._node.shutdown()

    def close(self):
        """This node is gone, without closing the rendezvous for the others."""
        self._node.close()


def create_handler(store, backend, params):
    """A handler from RendezvousParameters, with the options join_timeout, last_call_timeout, close_timeout, heartbeat_timeout,
    keep_alive_interval and keep_alive_max_attempt."""
    def timeout(name):
        seconds = params.get_as_int(name + "_timeout")
        return None if seconds is None else timedelta(seconds=seconds)

    return DynamicRendezvousHandler.from_backend(
        params.run_id, store, backend, params.min_nodes, params.max_nodes, params.local_addr,
        RendezvousTimeout(*(timeout(name) for name in RendezvousTimeout.DEFAULTS)),
        keep_alive_interval=params.get_as_int("keep_alive_interval", 5),
        keep_alive_max_attempt=params.get_as_int("keep_alive_max_attempt", 3))

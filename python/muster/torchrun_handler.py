# SPDX-License-Identifier: BSD-3-Clause
"""`torchrun --rdzv-backend muster`: torchrun's agent with Muster's rendezvous. The entry point `muster` of the group
torchrun.handlers is handler_creator. Endpoint, run id and --rdzv-conf are those of the backend c10d, and torchrun's own
nodes and those of `muster run` may be in the same job.

What is better: where a node with this handler or `muster run` hosts the store, the others learn at once that one of them is gone
or has come, and restart their workers at the agent's next look (--monitor-interval)."""

import os
from datetime import timedelta

from muster import rendezvous

BACKEND = "muster"
TIMEOUTS = ("join_timeout", "last_call_timeout", "close_timeout", "keep_alive_interval")
SAID_WITHIN = timedelta(seconds=5)


def handler_creator():
    """What torchrun registers: a function from RendezvousParameters to a handler."""
    return create_handler


def create_handler(parameters):
    """c10d_rendezvous_backend.create_backend and dynamic_rendezvous.create_handler in one."""
    from torch.distributed.elastic.rendezvous import api

    class MusterRendezvousHandler(_Handler, api.RendezvousHandler):
        pass

    return MusterRendezvousHandler(parameters, api)


class _Handler:
    """See torch.distributed.elastic.rendezvous.api.RendezvousHandler for its methods."""

    def __init__(self, parameters, api):
        settings = {name: parameters.get_as_int(name) for name in TIMEOUTS if parameters.get(name) is not None}
        attempts = parameters.get_as_int("keep_alive_max_attempt")
        if attempts is not None:
            settings["keep_alive_max_attempt"] = attempts
        self._api, self._local_addr = api, parameters.local_addr
        self._timeout = timedelta(seconds=parameters.get_as_int("read_timeout", 60))
        self._node = rendezvous.Rendezvous(
            parameters.run_id, parameters.endpoint, parameters.min_nodes, parameters.max_nodes,
            local_addr=parameters.local_addr, is_host=parameters.get_as_bool("is_host"),
            token_file=parameters.get("token_file"), is_torchrun=True, linger_timeout=-1.0, **settings)
        self._store = self._server = self._bootstrap = None

    def get_backend(self):
        return BACKEND

    @property
    def use_agent_store(self):
        return os.getenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") != "1"

    def _told(self, function, *arguments):
        """PyTorch's exceptions instead of those that need no PyTorch."""
        try:
            return function(*arguments)
        except rendezvous.RendezvousError as wrong:
            raise getattr(self._api, type(wrong).__name__)(str(wrong)) from wrong

    def next_rendezvous(self):
        import torch.distributed as dist

        info = self._told(self._node.next)
        if self._store is None:
            self._store = dist.TCPStore(info.store_host, info.store_port, is_master=False, timeout=self._timeout,
                                        use_libuv=False)  # of which not every PyTorch has one
        store = dist.PrefixStore(info.store_prefix, self._store)
        self._bootstrap = self._meet(dist, info, store)
        return self._api.RendezvousInfo(store, info.rank, info.world_size, self._bootstrap)

    def _meet(self, dist, info, store):
        """Where the workers' store is: with the first node, which says so in every round. Torchrun's own nodes may say it only
        once, and then it is where it was."""
        address = self._local_addr or info.node.rsplit("_", 2)[0]
        if self.use_agent_store and info.rank == 0 and self._server is None:
            self._server = dist.TCPStore(address, 0, is_master=True, multi_tenant=True, use_libuv=False)
        if info.rank > 0 and self._bootstrap is not None and not self._is_said(store):
            return self._bootstrap
        port = self._server.port if self.use_agent_store and info.rank == 0 else None
        return self._api.RendezvousStoreInfo.build(info.rank, store, local_addr=address, server_port=port)

    def _is_said(self, store):
        try:
            store.wait([self._api.RendezvousStoreInfo.MASTER_PORT_KEY], SAID_WITHIN)
            return True
        except RuntimeError:  # of which the errors of PyTorch's stores are kinds
            return False

    def is_closed(self):
        return self._told(self._node.is_closed)

    def set_closed(self):
        self._told(self._node.set_closed)

    def num_nodes_waiting(self):
        return self._told(self._node.num_nodes_waiting)

    def get_run_id(self):
        return self._node.run_id

    def shutdown(self):
        return self._node.shutdown()

# SPDX-License-Identifier: BSD-3-Clause
"""Handlers by the names of their backends: torch/distributed/elastic/rendezvous/registry.py and static_tcp_rendezvous.py, without
PyTorch. The names are c10d, static, those that only an agent knows (AgentRendezvous), what packages have registered as the entry points `torchrun.handlers`, and what the program
has.

    rendezvous_handler_registry.register("mine", create_mine)
    handler = get_rendezvous_handler(RendezvousParameters("mine", "host:29400", "job", 1, 4))"""

import logging
from datetime import timedelta
from importlib import metadata

from muster import store as muster_store
from muster.c10d_rendezvous_backend import create_backend
from muster.dynamic_rendezvous import create_handler
from muster.rendezvous_api import RendezvousHandler, RendezvousStateError, RendezvousStoreInfo, rendezvous_handler_registry
from muster.rendezvous_node import RendezvousInfo

GROUP = "torchrun.handlers"
DEFAULT_TIMEOUT = 600

logger = logging.getLogger(__name__)


class StaticTCPRendezvous(RendezvousHandler):
    """The nodes have their ranks, and the one of rank 0 hosts the store. There is one world."""

    def __init__(self, master_addr, master_port, rank, world_size, run_id, timeout):
        self.master_addr, self.master_port, self.rank, self.world_size = master_addr, master_port, rank, world_size
        self.run_id, self.timeout, self._store = run_id, timedelta(seconds=timeout), None

    def get_backend(self):
        return "static"

    @property
    def use_agent_store(self):
        return True

    def next_rendezvous(self):
        if self._store is None:
            self._store = muster_store.TCPStore(self.master_addr, self.master_port, self.world_size, self.rank == 0, self.timeout,
                                                multi_tenant=True)
        prefix = self.run_id
        return RendezvousInfo(0, self.rank, self.world_size, f"{self.master_addr}_{self.rank}", prefix, self.master_addr,
                              self.master_port, self.master_addr, self.master_port,
                              muster_store.PrefixStore(prefix, self._store),
                              RendezvousStoreInfo(self.master_addr, self.master_port))

    def is_closed(self):
        return False

    def set_closed(self):
        pass

    def num_nodes_waiting(self):
        return 0

    def get_run_id(self):
        return self.run_id

    def shutdown(self):
        return True


def create_static_handler(params):
    """The node's rank is the option `rank`; the endpoint has a port."""
    rank = params.get_as_int("rank")
    if rank is None:
        raise ValueError("rank is absent in RendezvousParameters. Try add --node-rank to the cmd request")
    host, colon, port = params.endpoint.strip().rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"The endpoint '{params.endpoint}' of the static rendezvous needs a port, as in HOST:29500")
    return StaticTCPRendezvous(host.strip("[]"), int(port), rank, params.max_nodes, params.run_id,
                               params.get_as_int("timeout", DEFAULT_TIMEOUT))


class AgentRendezvous(RendezvousHandler):
    """A rendezvous at etcd, Kubernetes or in a directory, which Muster's agent takes part in: that of muster.agent and
    muster.launcher. A program cannot meet there by itself."""

    BACKENDS = ("dir", "etcd", "etcd-v3", "k8s")

    def __init__(self, params):
        self.params = params

    def get_backend(self):
        return self.params.backend

    def get_run_id(self):
        return self.params.run_id

    def next_rendezvous(self):
        raise RendezvousStateError(f"the rendezvous '{self.params.backend}' is for an agent: give it to muster.agent's LocalElasticAgent")

    def is_closed(self):
        return False

    def set_closed(self):
        pass

    def num_nodes_waiting(self):
        return 0

    def shutdown(self):
        return True


def create_c10d_handler(params):
    backend, store = create_backend(params)
    return create_handler(store, backend, params)


def _registered_by_packages():
    """Before Python 3.10 they are asked for by group."""
    found = metadata.entry_points()
    return found.select(group=GROUP) if hasattr(found, "select") else found.get(GROUP, ())


def is_registered(backend):
    """By the program or a package."""
    return backend in rendezvous_handler_registry._registry or any(point.name == backend for point in _registered_by_packages())


def get_rendezvous_handler(params):
    """A handler for these RendezvousParameters, by the name of their backend."""
    own = {"c10d": create_c10d_handler, "static": create_static_handler, **dict.fromkeys(AgentRendezvous.BACKENDS, AgentRendezvous)}
    for name, creator in own.items():
        if name not in rendezvous_handler_registry._registry:
            rendezvous_handler_registry.register(name, creator)
    if params.backend not in rendezvous_handler_registry._registry:
        for point in _registered_by_packages():
            if point.name == params.backend:
                try:
                    rendezvous_handler_registry.register(point.name, point.load()())
                except Exception:
                    logger.warning("the rendezvous handler %s of a package cannot be had", point.name, exc_info=True)
    return rendezvous_handler_registry.create_handler(params)

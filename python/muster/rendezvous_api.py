# SPDX-License-Identifier: BSD-3-Clause
"""What all that takes part in a rendezvous shares: torch/distributed/elastic/rendezvous/api.py, without PyTorch."""

import abc
import collections
import socket


class RendezvousError(Exception):
    """What the others have in common."""


class RendezvousClosedError(RendezvousError):
    pass


class RendezvousTimeoutError(RendezvousError):
    pass


class RendezvousConnectionError(RendezvousError):
    pass


class RendezvousStateError(RendezvousError):
    """The record is damaged."""


class RendezvousGracefulExitError(RendezvousError):
    pass


class RendezvousStoreInfo(collections.namedtuple("RendezvousStoreInfo", "master_addr master_port")):
    """Where the process of rank 0 serves the store of the workers."""

    MASTER_ADDR_KEY, MASTER_PORT_KEY = "MASTER_ADDR", "MASTER_PORT"

    @classmethod
    def build(cls, rank, store, local_addr=None, server_port=None):
        """Rank 0 says it in the store, under the same keys as PyTorch's, and each rank reads it there. `server_port`: of a
        server that rank 0 has; else it says a port that is free."""
        if rank == 0:
            store.set(cls.MASTER_ADDR_KEY, (local_addr or socket.getfqdn()).encode())
            store.set(cls.MASTER_PORT_KEY, str(server_port or _free_port()).encode())
        return cls(store.get(cls.MASTER_ADDR_KEY).decode(), int(store.get(cls.MASTER_PORT_KEY).decode()))


def _free_port():
    with socket.socket() as free:
        free.bind(("", 0))
        return free.getsockname()[1]


class RendezvousParameters:
    """What a backend is made of. `config` has the options of the backend, as --rdzv-conf gives them."""

    TRUE, FALSE = ("1", "true", "t", "yes", "y"), ("0", "false", "f", "no", "n")

    def __init__(self, backend, endpoint, run_id, min_nodes, max_nodes, local_addr=None, **kwargs):
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if min_nodes < 1:
            raise ValueError(f"The minimum number of rendezvous nodes ({min_nodes}) must be greater than zero.")
        if max_nodes < min_nodes:
            raise ValueError(f"The maximum number of rendezvous nodes ({max_nodes}) must be greater than or equal to the "
                             f"minimum number of rendezvous nodes ({min_nodes}).")
        self.backend, self.endpoint, self.run_id, self.local_addr = backend, endpoint, run_id, local_addr
        self.min_nodes, self.max_nodes, self.config = min_nodes, max_nodes, kwargs

    def get(self, key, default=None):
        return self.config.get(key, default)

    def get_as_bool(self, key, default=None):
        value = self.get(key, default)
        if value is None or isinstance(value, bool):
            return value
        word = str(value).lower() if isinstance(value, (int, str)) else ""
        if word not in self.TRUE + self.FALSE:
            raise ValueError(f"The rendezvous configuration option '{key}' does not represent a valid boolean value.")
        return word in self.TRUE

    def get_as_int(self, key, default=None):
        value = self.get(key, default)
        try:
            return None if value is None else int(value)
        except ValueError as wrong:
            raise ValueError(
                f"The rendezvous configuration option '{key}' does not represent a valid integer value.") from wrong


class RendezvousHandler(abc.ABC):
    """A node's part in a rendezvous. What takes part may be of any class that has these."""

    @abc.abstractmethod
    def get_backend(self):
        """The name of the backend."""

    @property
    def use_agent_store(self):
        """Whether there is a store for the workers at the place of `bootstrap_store_info`, as long as the handler lives."""
        return False

    @abc.abstractmethod
    def next_rendezvous(self):
        """Waits for a round with this node, and returns its RendezvousInfo. Raises a RendezvousError."""

    @abc.abstractmethod
    def is_closed(self):
        """Whether no round will follow, as far as is known."""

    @abc.abstractmethod
    def set_closed(self):
        """No round is to follow."""

    @abc.abstractmethod
    def num_nodes_waiting(self):
        """How many nodes wait for the next round."""

    @abc.abstractmethod
    def get_run_id(self):
        """The name of the job."""

    @abc.abstractmethod
    def shutdown(self):
        """Lets go of all that the rendezvous has. Whether that went well."""


class RendezvousHandlerRegistry:
    """How a handler is made for the name of a backend."""

    def __init__(self):
        self._registry = {}

    def register(self, backend, creator):
        """`creator` makes a handler of RendezvousParameters."""
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        known = self._registry.setdefault(backend, creator)
        if known != creator:
            raise ValueError(f"The rendezvous backend '{backend}' cannot be registered with '{creator}' as it is already registered "
                             f"with '{known}'.")

    def create_handler(self, params):
        if params.backend not in self._registry:
            raise ValueError(f"The rendezvous backend '{params.backend}' is not registered. Did you forget to call `register`?")
        handler = self._registry[params.backend](params)
        if handler.get_backend() != params.backend:
            raise RuntimeError(f"The rendezvous backend '{handler.get_backend()}' does not match the requested backend "
                               f"'{params.backend}'.")
        return handler


# That of muster.rendezvous_registry.get_rendezvous_handler.
rendezvous_handler_registry = RendezvousHandlerRegistry()

# SPDX-License-Identifier: BSD-3-Clause
"""The classes of torch/distributed/elastic/rendezvous, on libmuster and without PyTorch."""

from muster.c10d_rendezvous_backend import C10dRendezvousBackend, create_backend
from muster.dynamic_rendezvous import DynamicRendezvousHandler, RendezvousSettings, RendezvousTimeout, create_handler
from muster.rendezvous_api import (
    RendezvousClosedError, RendezvousConnectionError, RendezvousError, RendezvousGracefulExitError, RendezvousHandler,
    RendezvousHandlerRegistry, RendezvousParameters, RendezvousStateError, RendezvousStoreInfo, RendezvousTimeoutError,
    rendezvous_handler_registry,
)  # fmt: skip
from muster.rendezvous_backend import RendezvousBackend
from muster.rendezvous_node import NodeState, RdzvEvent, Rendezvous, RendezvousInfo
from muster.rendezvous_registry import AgentRendezvous, StaticTCPRendezvous, get_rendezvous_handler

__all__ = [
    "AgentRendezvous", "C10dRendezvousBackend", "DynamicRendezvousHandler", "NodeState", "RdzvEvent", "Rendezvous", "RendezvousBackend",
    "RendezvousClosedError",
    "RendezvousConnectionError", "RendezvousError", "RendezvousGracefulExitError", "RendezvousHandler",
    "RendezvousHandlerRegistry", "RendezvousInfo", "RendezvousParameters",
    "RendezvousSettings", "RendezvousStateError", "RendezvousStoreInfo", "RendezvousTimeout", "RendezvousTimeoutError",
    "StaticTCPRendezvous", "create_backend", "create_handler", "get_rendezvous_handler", "rendezvous_handler_registry",
]  # fmt: skip

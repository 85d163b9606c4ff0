# SPDX-License-Identifier: BSD-3-Clause
"""The rounds of an agent whose rendezvous is a RendezvousHandler of any class: _rendezvous, _assign_worker_ranks, _invoke_run and
_exit_barrier of SimpleElasticAgent (torch/distributed/elastic/agent/server/api.py), without PyTorch.

The handler is called in the program's process, which may have threads for it, and not in the agent's. What nodes tell each other is
in the store that the handler gives, under PyTorch's keys: so agents of PyTorch's may be in the same job."""

import collections
import json
import logging
import os

from muster.rendezvous_api import RendezvousGracefulExitError, RendezvousStoreInfo
from muster.store_utils import barrier

METHODS = ("next_rendezvous", "set_closed", "is_closed", "num_nodes_waiting", "get_run_id", "shutdown", "get_backend")
ROLE_INFO, ASSIGNED_RANKS, TERMINAL_STATE = "torchelastic/role_info/", "torchelastic/assigned_ranks/", "torchelastic/agent/terminal_state"
MOST_NODES, MOST_WORKERS = 65536, 1 << 28
REASON_BYTES = 1000

Ranks = collections.namedtuple("Ranks", "global_rank world_size role_rank role_world_size")

logger = logging.getLogger(__name__)


def check_handler(handler):
    missing = [name for name in METHODS if not callable(getattr(handler, name, None))]
    if missing:
        raise TypeError(f"{handler!r} is no RendezvousHandler: it has no {', '.join(missing)}. Give an object with the methods "
                        f"{', '.join(METHODS)}")


def use_agent_store(handler):
    return bool(getattr(handler, "use_agent_store", False))


class HandlerRounds:
    """Answers what an agent asks (next_rendezvous, exit_barrier and muster_agent_set_round of muster/agent.h)."""

    def __init__(self, handler, config):
        self._handler, self._config, self._asked, self._is_over = handler, config, None, False
        self.store, self._group_world_size = None, 0

    def ask_for_round(self, _restarts):
        self._asked = self._begin

    def ask_for_barrier(self):
        self._asked = self._wait_for_others

    def run(self, agent):
        """The agent's result. What the handler raises ends the agent and is raised."""
        while True:
            result = agent.wait(self._config.monitor_interval, lambda: self._asked is not None)
            if result is not None:
                return result
            answer, self._asked = self._asked or self._look, None
            try:
                answer(agent)
            except Exception as wrong:
                agent.end_round(_reason(wrong))
                if not _is_graceful(wrong):
                    raise
                logger.info("the rendezvous has ended without this node: %s", wrong)

    def _begin(self, agent):
        config, self._is_over = self._config, False
        info = self._handler.next_rendezvous()
        count = _number("world_size", info.world_size, MOST_NODES, 1)
        rank = _number("rank", info.rank, count - 1)
        self.store, self._group_world_size = info.store, count
        meeting = getattr(info, "bootstrap_store_info", None) or RendezvousStoreInfo.build(rank, info.store, config.local_addr)
        ranks = assign_ranks(info.store, rank, count, config.role, config.nproc_per_node)
        agent.set_round(group_rank=rank, group_world_size=count, master_addr=os.fsencode(meeting.master_addr),
                        master_port=int(meeting.master_port), **ranks._asdict())

    def _look(self, agent):
        """While its workers run: those of a round that is over are about to be stopped."""
        if not self._is_over and agent.is_healthy():
            waiting = self._handler.num_nodes_waiting()
            if waiting > 0:
                self._is_over = True
                agent.end_round(f"{waiting} nodes wait for the next round")

    def _wait_for_others(self, agent):
        timeout = self._config.exit_barrier_timeout
        try:
            barrier(self.store, self._group_world_size, TERMINAL_STATE, 300 if timeout is None else timeout)
        except Exception:
            logger.exception("the exit barrier has failed, and this node does not wait for the others any longer")
        agent.end_round("the exit barrier is over")


def _is_graceful(wrong):
    """PyTorch's exception of that name, too."""
    return any(kind.__name__ == RendezvousGracefulExitError.__name__ for kind in type(wrong).__mro__)


def _reason(wrong):
    return f"{type(wrong).__name__}: {wrong}".encode("utf-8", "replace")[:REASON_BYTES].replace(b"\0", b"?").decode("utf-8", "ignore")


def _number(what, value, maximum, minimum=0):
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise ValueError(f"{what} of a round is {value!r}, and not a number of {minimum} to {maximum}")
    return value


def _read(store, key, members):
    """What another node has said under that key."""
    text = store.get(key)
    text = text.encode() if isinstance(text, str) else bytes(text)
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, type(members)) or (isinstance(found, list) and len(found) != len(members)):
        raise ValueError(f"the key {key} of the rendezvous's store holds {text[:100]!r}, and not {json.dumps(members)}")
    return found


def assign_ranks(store, group_rank, group_world_size, role, local_world_size):
    """The Ranks of this node's first worker. The node of rank 0 computes them for all, in the order of their ranks."""
    if os.getenv("TORCH_ELASTIC_WORKER_IDENTICAL", "0") == "1":
        first, total = group_rank * local_world_size, group_world_size * local_world_size
        return Ranks(first, total, first, total)
    store.set(f"{ROLE_INFO}{group_rank}",
              json.dumps({"role": role, "rank": group_rank, "local_world_size": local_world_size}).encode())
    if group_rank == 0:
        nodes, before, roles = [], 0, collections.Counter()
        for rank in range(group_world_size):
            found = _read(store, f"{ROLE_INFO}{rank}", {"role": "", "rank": rank, "local_world_size": 1})
            name, count = str(found.get("role")), _number("local_world_size", found.get("local_world_size"), MOST_WORKERS, 1)
            nodes.append((before, name, roles[name]))
            before, roles[name] = before + count, roles[name] + count
        for rank, (first, name, role_first) in enumerate(nodes):
            store.set(f"{ASSIGNED_RANKS}{rank}", json.dumps([first, before, role_first, roles[name]]).encode())
    key = f"{ASSIGNED_RANKS}{group_rank}"
    return Ranks(*(_number(key, value, MOST_WORKERS) for value in _read(store, key, [0, 1, 0, 1])))

# SPDX-License-Identifier: BSD-3-Clause
"""Plays made-up histories of a rendezvous with PyTorch's own code: `play_rendezvous.py SEED HISTORIES KIND`.

Prints each history in the words of tests/probes/rendezvous_probe.c, and behind every turn what PyTorch's node
did: "turn 0 1008 => read expelled=0 ADD_TO_PARTICIPANTS round=0 …". A turn is one pass of the loop in
_DistributedRendezvousOpExecutor. Clocks are made up and tick eight times a second; KIND "muster" gives the
nodes local ids by which Muster knows its own.
"""

import random
import sys
from datetime import datetime, timedelta, timezone

from torch.distributed.elastic.rendezvous import api, dynamic_rendezvous as dynamic

TICK = timedelta(seconds=1) / 8
EPOCH = datetime(2026, 1, 1, tzinfo=timezone.utc)
FIRST_TICK = 10000
ROLLBACK_TICKS = 5 * 8
MUSTER_MARK = 0x40000000
NODES = {
    "torchrun": [("node2", 7, 0), ("node10", 7, 0), ("node10", 7, 1), ("node10", 30, 0)],
    "muster": [
        ("node1", 7, MUSTER_MARK),
        ("node1", 30, MUSTER_MARK + 5),
        ("node2", 7, MUSTER_MARK),
        ("rack", 1, MUSTER_MARK),
    ],
}
OPERATIONS = {
    "exit": dynamic._RendezvousExitOp(),
    "join": dynamic._RendezvousJoinOp(),
    "close": dynamic._RendezvousCloseOp(),
    "keep_alive": dynamic._RendezvousKeepAliveOp(),
}


class Clock:
    """This machine's monotonic clock, and the wall clock of the node whose turn it is."""

    def __init__(self):
        self.tick, self.skew = 0, 0

    def monotonic(self):
        return self.tick / 8

    def now(self, zone):
        return (EPOCH + (self.tick + self.skew) * TICK).astimezone(zone)


clock = Clock()
dynamic.time = clock
dynamic.datetime = clock
dynamic._delay = lambda seconds: None
dynamic.construct_and_record_rdzv_event = lambda **event: None
dynamic.get_method_name = lambda depth=2: "turn"  # looks at the stack, which takes longer than a turn


class Backend(dynamic.RendezvousBackend):
    """A record in memory; its token counts the writes."""

    def __init__(self):
        self.record, self.token, self.requests = None, 0, 0

    @property
    def name(self):
        return "memory"

    def get_state(self):
        self.requests += 1
        return None if self.record is None else (self.record, self.token)

    def set_state(self, state, token=None):
        self.requests += 1
        has_won = (token or 0) == self.token
        if has_won:
            self.record, self.token = state, self.token + 1
        return self.record, self.token, has_won


class TurnIsOver(Exception):
    pass


class Holder(dynamic._BackendRendezvousStateHolder):
    """Lets one sync through and remembers how it went; the next begins another turn."""

    def begin_turn(self):
        self.outcome, self.expelled = None, 0

    def sync(self):
        if self.outcome is not None:
            raise TurnIsOver
        requests = self._backend.requests
        has_set = super().sync()
        if has_set is not None:
            self.outcome = "won" if has_set else "lost"
        else:
            self.outcome = "read" if self._backend.requests > requests else "cached"
        if self.outcome != "cached":
            self.expelled = len(self._dead_nodes)
        return has_set


class Node:
    def __init__(self, identity, skew, settings, backend):
        self.identity, self.skew, self.settings = dynamic._NodeDesc(*identity), skew, settings
        self.holder = Holder(backend, settings)
        self.executor = dynamic._DistributedRendezvousOpExecutor(self.identity, self.holder, settings)
        self.operation, self.deadline, self.action = None, 0, None
        self.silent_until = 0

    def begin(self, operation, deadline):
        self.operation, self.deadline, self.action = operation, deadline, None

    def update_deadline(self, timeout):
        self.deadline = clock.tick + timeout // TICK
        return self.deadline / 8

    def choose(self, context, deadline):
        self.action = "GRACEFUL_EXIT"  # an exception there
        self.action = OPERATIONS[self.operation](context, deadline).name
        return dynamic._Action[self.action]

    def take_turn(self):
        clock.skew = self.skew
        self.holder.begin_turn()
        update = self.update_deadline if self.operation == "join" else None
        try:
            self.executor.run(self.choose, self.deadline / 8, update)
        except (TurnIsOver, api.RendezvousClosedError, api.RendezvousTimeoutError, api.RendezvousGracefulExitError):
            pass
        record = describe(self.holder.state)
        return f"{self.holder.outcome} expelled={self.holder.expelled} {self.action} {record}"


    def leaves_a_round_without_room(self):
        """The turn in which both differ on purpose: PyTorch's spare of a round with more nodes than its own maximum
        leaves the list, and comes back in its next turn, and so on. Muster's stays."""
        has_room = len(self.holder.state.participants) <= self.settings.max_nodes
        return self.action == "REMOVE_FROM_REDUNDANCY_LIST" and not has_room


def describe(state):
    words = [f"round={state.round} complete={state.complete:d} closed={state.closed:d}"]
    if state.deadline is not None:
        words.append(f"deadline={(state.deadline - EPOCH) // TICK}")
    for node in sorted({*state.participants, *state.wait_list, *state.redundancy_list, *state.last_heartbeats}):
        words.append(str(node))
        words += [f"rank={state.participants[node]}"] if node in state.participants else []
        words += ["waits"] if node in state.wait_list else []
        words += ["spare"] if node in state.redundancy_list else []
        words += [f"beat={(state.last_heartbeats[node] - EPOCH) // TICK}"] if node in state.last_heartbeats else []
    return " ".join(words)


class History:
    """Nodes that behave as DynamicRendezvousHandler does, most of the time."""

    def __init__(self, dice, kind):
        self.dice = dice
        self.join, self.last_call, self.interval = dice.choice([120, 240]), dice.choice([16, 80]), dice.choice([24, 40])
        self.attempts = dice.choice([1, 3, 3, 3])
        print(f"settings {self.join} {self.last_call} {self.interval} {self.attempts}")
        identities = dice.sample(NODES[kind], dice.choice([2, 2, 3, 3, 3, 4]))
        skews = dice.choice([[0], [0, 3, -3], [0, 3, -3], [0, dice.randint(-200, 200)]])
        sizes = [self.roll_size(len(identities)) for _ in range(dice.choice([1, 1, 1, 2]))]
        backend = Backend()
        self.nodes = []
        for identity in identities:
            skew, size = dice.choice(skews), dice.choice(sizes)
            self.nodes.append(Node(identity, skew, self.make_settings(*size), backend))
            print("node", *identity, skew, *size)

    def roll_size(self, count):
        minimum = self.dice.randint(1, count)
        return minimum, self.dice.randint(minimum, count)

    def make_settings(self, minimum, maximum):
        timeout = dynamic.RendezvousTimeout(self.join * TICK, self.last_call * TICK)
        return dynamic.RendezvousSettings("played", minimum, maximum, timeout, self.interval * TICK, self.attempts)

    def play(self):
        clock.tick = FIRST_TICK
        for _ in range(self.dice.randint(60, 200)):
            ready = [index for index, node in enumerate(self.nodes) if node.silent_until <= clock.tick]
            index = self.dice.choice(ready or range(len(self.nodes)))
            self.pass_time(self.nodes[index])
            self.begin_operation(index)
            turn = self.nodes[index].take_turn()
            if self.nodes[index].leaves_a_round_without_room():
                break
            print(f"turn {index} {clock.tick} => {turn}")
            if all(node.action in ("ERROR_CLOSED", "GRACEFUL_EXIT") for node in self.nodes):
                break
            if self.dice.random() < 0.02:
                self.nodes[index].silent_until = clock.tick + self.dice.choice([20, 130, 400])

    def pass_time(self, node):
        """Mostly a little; sometimes to the very edge of what may have passed by then."""
        moment = clock.tick + self.dice.choice([0, 0, 0, 1, 1, 1, 2, 2, 4, 8, 9])
        if self.dice.random() < 0.04:
            moment = self.dice.choice(self.edges_of(node)) + self.dice.choice([0, 1])
        clock.tick = max(clock.tick, moment)

    def edges_of(self, node):
        edges = [clock.tick + 40]
        state = node.holder.state
        if node.operation in ("join", "exit"):
            edges += [node.deadline, node.deadline + ROLLBACK_TICKS]
        if state.deadline is not None:
            edges += 2 * [(state.deadline - EPOCH) // TICK - node.skew]
        for heartbeat in state.last_heartbeats.values():
            beat = (heartbeat - EPOCH) // TICK - node.skew
            edges += [beat + self.interval, beat + self.interval * self.attempts]
        return edges

    def begin_operation(self, index):
        node = self.nodes[index]
        operation, deadline = self.next_operation(node)
        if operation is not None:
            node.begin(operation, deadline)
            print(f"begin {index} {operation} {deadline}")

    def next_operation(self, node):
        """What the handler does next; None to go on with what is under way."""
        is_over = node.action in ("FINISH", "ERROR_CLOSED", "ERROR_TIMEOUT", "GRACEFUL_EXIT")
        if node.operation is None or self.dice.random() < 0.01:
            return "exit", clock.tick + self.join
        if self.dice.random() < 0.01:
            return self.dice.choice([*OPERATIONS]), clock.tick + self.dice.choice([-1, 0, 8])
        if not is_over:
            return None, None
        if node.operation == "exit" and node.action == "FINISH":
            return "join", node.deadline
        if node.operation == "join" and node.action != "FINISH":
            return "exit", clock.tick + self.join
        if self.dice.random() < 0.03:
            return "close", clock.tick + self.dice.choice([4, 240])
        if self.dice.random() < 0.15:
            return "exit", clock.tick + self.join
        return "keep_alive", clock.tick + self.dice.choice([0, 40])


def main():
    seed, histories, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    for number in range(histories):
        History(random.Random(f"{seed} {number}"), kind).play()


if __name__ == "__main__":
    main()

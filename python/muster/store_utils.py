# SPDX-License-Identifier: BSD-3-Clause
"""What the processes of a job do together with a store: torch/distributed/elastic/utils/store.py without PyTorch. The stores are
Muster's or PyTorch's, and so are the other processes: the keys are the same. Each prefix is of use once.

    values = synchronize(store, b"mine", rank, world_size, "addresses")"""

import contextlib
from datetime import timedelta

MEMBERS, LAST_MEMBER, TRACE, TRACING_GATE = "/num_members", "/last_member", "/TRACE", "/TRACING_GATE"
SOME_VALUE = b"<val_ignored>"
MOST_MISSING = 16
# Who is looked for after the first one that is missing has had its time.
AT_ONCE = timedelta(milliseconds=1)


@contextlib.contextmanager
def store_timeout(store, timeout):
    """The store's time limit is so many seconds meanwhile."""
    before = store.timeout
    store.set_timeout(timedelta(seconds=timeout))
    try:
        yield
    finally:
        store.set_timeout(before)


def get_all(store, rank, prefix, world_size):
    """The values of PREFIX0, PREFIX1 and so on, when all are there. Rank 0, which may be the one that serves, also waits until the
    others have read them."""
    values = store.multi_get([f"{prefix}{other}" for other in range(world_size)])
    last = _come(store, world_size, f"{prefix}/finished")
    if rank == 0:
        store.wait([last])
    return values


def synchronize(store, data, rank, world_size, key_prefix, timeout=300):
    """What each process has handed in, by rank."""
    with store_timeout(store, timeout):
        store.set(f"{key_prefix}{rank}", data)
        return get_all(store, rank, key_prefix, world_size)


def barrier(store, world_size, key_prefix, barrier_timeout=300, rank=None, rank_tracing_decoder=None, trace_timeout=10):
    """Waits until that many processes have called it. With a rank, the error of one that waited in vain says whom it has missed:
    `rank_tracing_decoder` has a name for each rank."""
    if rank is None and rank_tracing_decoder is not None:
        raise AssertionError("Tracing requires rank information")
    with store_timeout(store, barrier_timeout):
        last = _come(store, world_size, key_prefix)
        try:
            store.wait([last])
        except RuntimeError as late:  # of which the errors of Muster's and PyTorch's stores are kinds
            missing = None
            if rank is not None:
                missing = _missing(store, world_size, key_prefix, rank, rank_tracing_decoder or str, trace_timeout)
            if missing is None:
                raise
            raise type(late)("Timed out waiting on barrier on rank "
                             f"{rank}, for key prefix: {key_prefix} (world_size={world_size}, missing_ranks="
                             f"[{', '.join(missing)}], timeout={barrier_timeout})") from None


def _come(store, world_size, prefix):
    """The key that is set when all have come."""
    if store.add(prefix + MEMBERS, 1) == world_size:
        store.set(prefix + LAST_MEMBER, SOME_VALUE)
    return prefix + LAST_MEMBER


def _missing(store, world_size, prefix, rank, name_of, timeout):
    """Rank 0 waits for the others, who say that they are there; they only learn that it has looked."""
    store.set(f"{prefix}{rank}{TRACE}", SOME_VALUE)
    if rank > 0:
        try:
            store.wait([prefix + TRACING_GATE])
            return [f"<check rank 0 ({name_of(0)}) for missing rank info>"]
        except RuntimeError:  # it may be the one that is missing
            return None
    missing, patience = [], timedelta(seconds=timeout)
    for other in range(1, world_size):
        if len(missing) == MOST_MISSING:
            break
        try:
            store.wait([f"{prefix}{other}{TRACE}"], patience)
        except RuntimeError:
            missing.append(name_of(other))
            patience = AT_ONCE
    store.set(prefix + TRACING_GATE, SOME_VALUE)
    return missing

/* SPDX-License-Identifier: BSD-3-Clause */
/* A node that delegates: it reads and writes no record. The host of the store has offered to write
 * it for this node (rendezvous_serving). This node says what it wishes, and is told how it stands,
 * as a record in which it alone is listed. It decides by the same rules as any other node; but
 * where another node writes the record, this one wishes. The struct is one part of a rendezvous
 * machine. Only this module changes it; others read it. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_DELEGATING_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_DELEGATING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/rendezvous/rendezvous_wish.h"
#include "core/workers/rank_assignment.h"

/* A zeroed struct is valid: the node does not delegate. */
struct rendezvous_delegating {
    bool is_on;
    struct rendezvous_wish wish; /* as it was said last; its sequence is 0 before the first */
    int64_t answered; /* the sequence number of the wish that the host had heard when it told */
    bool says_role;   /* the host may tell this node its ranks */
    bool is_new;      /* it had no world when the connection began */
    int64_t ranked_round;
    bool is_held;                      /* the host will tell the ranks in that round */
    struct rank_assignment ranks;      /* in that round, as the host has told; world size 0: none */
    struct rendezvous_meeting meeting; /* told with them */
};

/* A connection begins, with an offer that this node takes, or without. */
void rendezvous_delegating_begin(
    struct rendezvous_delegating *delegating, bool is_on, bool says_role, bool is_new);
/* The host has told how this node stands, and had heard this wish. */
void rendezvous_delegating_take_answer(struct rendezvous_delegating *delegating, int64_t answered);
/* With it, the host has told of this node's ranks in the round told. Their world size is 0 where it
 * has told none; `is_held`: it will, when all nodes of the round are ready. */
void rendezvous_delegating_take_ranks(struct rendezvous_delegating *delegating, int64_t round,
    bool is_held, const struct rank_assignment *ranks, const struct rendezvous_meeting *meeting);
/* Whether the host holds this round until all its nodes are ready. */
bool rendezvous_delegating_is_held(const struct rendezvous_delegating *delegating, int64_t round);
/* The node writes the record itself from now on. */
void rendezvous_delegating_end(struct rendezvous_delegating *delegating);

/* Takes note of what the node wishes now. Returns whether that is to be said. */
bool rendezvous_delegating_wish(
    struct rendezvous_delegating *delegating, const struct rendezvous_wish *wish);
/* Whether a node that leaves, and is in no list as far as it knows, may end: the host knows that it
 * leaves. True where the node does not delegate. */
bool rendezvous_delegating_may_settle(const struct rendezvous_delegating *delegating);

#endif

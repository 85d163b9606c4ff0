/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a node waits for a world, at the last call of a round, and for its own end. The struct
 * is one part of a rendezvous machine. Only this module changes it; others read it. Compare
 * RendezvousTimeout in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py, and its
 * _RendezvousOpExecutor's deadlines. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_PATIENCE_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_PATIENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rendezvous/moment.h"
#include "core/rendezvous/rendezvous_state.h"

/* A zeroed struct is valid: the node waits for nothing. */
struct rendezvous_patience {
    struct moment join_deadline;
    struct moment rollback_deadline; /* ROLLBACK_SECONDS after the join deadline */
    size_t size_when_late;           /* participants at the join deadline, with this node */
    struct moment settle_deadline;
    struct moment last_call;
    int64_t last_call_round;
    struct wall_time last_call_deadline; /* as written in the record; tells two last calls apart */
};

/* Begins the wait for a world, unless it has begun already. */
void rendezvous_patience_begin(
    struct rendezvous_patience *patience, struct instant now, struct duration join_timeout);
/* Begins the wait for a world anew. */
void rendezvous_patience_prolong(
    struct rendezvous_patience *patience, struct instant now, struct duration join_timeout);
/* Ends the wait: the node has a world. */
void rendezvous_patience_end(struct rendezvous_patience *patience);

/* Whether the join deadline has passed. The first time it notes how many participants the round
 * has. */
bool rendezvous_patience_is_late(
    struct rendezvous_patience *patience, size_t participants, struct instant now);
/* The node has learned more of the round: if it is late, the participants are counted again. */
void rendezvous_patience_count_again(struct rendezvous_patience *patience);
/* Whether the time after the join deadline, in which torchrun's rules still take a node out of the
 * record, has passed too. */
bool rendezvous_patience_is_too_late(
    const struct rendezvous_patience *patience, struct instant now);

/* Whether the last call of the round seen is over. It lasts `last_call_timeout` on this node's
 * clock, from the time when this node first saw it. */
bool rendezvous_patience_is_last_call_over(struct rendezvous_patience *patience,
    const struct rendezvous_state *seen, struct instant now, struct duration last_call_timeout);

/* This node's part is to end within `close_timeout`. */
void rendezvous_patience_begin_end(
    struct rendezvous_patience *patience, struct instant now, struct duration close_timeout);
bool rendezvous_patience_has_ended(const struct rendezvous_patience *patience, struct instant now);

void rendezvous_patience_wake(
    const struct rendezvous_patience *patience, struct instant now, struct moment *next);

#endif

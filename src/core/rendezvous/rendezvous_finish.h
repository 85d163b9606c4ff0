/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rendezvous knows of finished workers: whether the workers of this node are done, and how
 * many nodes are in the exit barrier of the round seen. The barrier itself is core/round_barrier.
 * The struct is one part of a rendezvous machine. Only this module changes it; others read it. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_FINISH_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_FINISH_H

#include <stdbool.h>
#include <stdint.h>

/* A zeroed struct is valid: no node is known to be done. */
struct rendezvous_finish {
    bool is_here;        /* this node's workers are done in the world in which it is */
    bool is_count_known; /* known, or asked for, since the last sign of life */
    int64_t round;       /* the round to which the count belongs */
    int64_t count;       /* of nodes in that round's exit barrier */
};

/* `enter`: this node's workers are done. `leave`: they are to run again. */
void rendezvous_finish_enter(struct rendezvous_finish *finish);
void rendezvous_finish_leave(struct rendezvous_finish *finish);

/* Whether the store is to be asked how many nodes are in the exit barrier of that round. It is
 * asked once between two signs of life. Until it answers, the count is 1. */
bool rendezvous_finish_ask(struct rendezvous_finish *finish, int64_t round);
void rendezvous_finish_take_count(struct rendezvous_finish *finish, int64_t count);
void rendezvous_finish_forget_count(struct rendezvous_finish *finish);
bool rendezvous_finish_is_anywhere(const struct rendezvous_finish *finish);

#endif

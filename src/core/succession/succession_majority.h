/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a host has lost the greater part of the committed world to silence. Perhaps those nodes
 * are dead. Perhaps it is the host that is cut off, and they are together: then they should have
 * another host, and the register would never give them one while this one renews its term. So such
 * a host does not renew it, and commits nothing, for a time in which they can claim. Nodes whose
 * processes have ended claim nothing, and do not count; nor do nodes whose workers are done.
 *
 * One cut is found out node by node, and between two of them a smaller world may be committed. So
 * those who fell silent within a while are counted together: with the committed world, and with the
 * nodes that it has lost to silence in that while.
 *
 * Of a host that is not in the committed world itself this is not asked: the world's nodes are
 * those of an earlier start of the job. */
#ifndef MUSTER_CORE_SUCCESSION_SUCCESSION_MAJORITY_H
#define MUSTER_CORE_SUCCESSION_SUCCESSION_MAJORITY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/duration.h"
#include "core/rendezvous/rendezvous_state.h"

struct succession_missing {
    struct node_identity identity;
    struct instant missed_at;
    bool was_in_world; /* the committed one has had it since */
    bool is_back;      /* the record that was seen last has this process */
};

/* A zeroed struct is valid: nobody is missing. */
struct succession_majority {
    struct succession_missing *missing;
    size_t count;
    size_t capacity;
    struct node_table places; /* of their processes: a record may list any number of nodes */
};

void succession_majority_clear(struct succession_majority *majority);

/* The machine of this node is silent. */
void succession_majority_miss(
    struct succession_majority *majority, const struct node_identity *identity, struct instant now);
/* The host's store has this record now. */
void succession_majority_see(
    struct succession_majority *majority, const struct rendezvous_state *record);
/* Nodes that fell silent at `until` or earlier count no more, unless the committed world has them.
 */
void succession_majority_forget(struct succession_majority *majority,
    const struct rendezvous_state *committed, struct instant until);

/* Whether more than half are missing of the committed world's nodes and of those that it has lost
 * to silence, `self` being in that world. */
bool succession_majority_is_missing(struct succession_majority *majority,
    const struct rendezvous_state *committed, const struct node_identity *self);

#endif

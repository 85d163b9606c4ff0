/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of one round's exchange in the store, and the groups of them that are asked for at once:
 * torchrun's own, by which agents of both kinds find each other, and Muster's, in a folder of their
 * own. docs/dynamic-rendezvous.md says who writes which when. */
#ifndef MUSTER_CORE_ROUND_KEY_H
#define MUSTER_CORE_ROUND_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum round_key_kind {
    /* torchrun's */
    ROUND_KEY_MASTER_ADDR,    /* where the workers' store is */
    ROUND_KEY_MASTER_PORT,    /* decimal */
    ROUND_KEY_ROLE_INFO,      /* by node */
    ROUND_KEY_ASSIGNED_RANKS, /* by node */
    ROUND_KEY_NUM_MEMBERS,    /* exit barrier: counts finished nodes */
    ROUND_KEY_LAST_MEMBER,    /* exit barrier: set by the last */
    /* Muster's */
    ROUND_KEY_PUBLISHER, /* whose the workers' store is: the text form of an identity */
    /* groups */
    ROUND_KEY_ADDRESS,     /* MASTER_ADDR, MASTER_PORT */
    ROUND_KEY_PUBLICATION, /* PUBLISHER, MASTER_ADDR, MASTER_PORT: who sees an address sees whose */
    ROUND_KEY_WORLD,       /* MASTER_ADDR, MASTER_PORT, ASSIGNED_RANKS of the node */
    ROUND_KEY_ALL_ROLE_INFOS, /* ROLE_INFO of nodes 0 … node - 1 */
    ROUND_KEY_COUNT,
};

struct round_key {
    enum round_key_kind kind;
    int64_t round;
    int node; /* where the kind is by node; of ALL_ROLE_INFOS: their number */
};

/* Adds the key, or those of the group in the order named above, as on the wire, with upstream's
 * leading '/'. */
void round_key_list(const struct round_key *key, const char *run_id, struct text_list *out);

/* Adds every key that may lie in the folder of a round of so many nodes. */
void round_key_list_all(int64_t round, int node_count, const char *run_id, struct text_list *out);

/* Appends a short form for transcripts: "3/role_info/0", "3/world/1". */
void round_key_describe(const struct round_key *key, struct text *out);

#endif

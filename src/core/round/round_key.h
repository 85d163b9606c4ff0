/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of one round's exchange in the store, and groups of keys for which one request asks. By
 * torchrun's keys agents of both kinds find each other. Muster's own keys are in a folder of their
 * own. docs/dynamic-rendezvous.md says which node writes which key, and when, and
 * docs/static-rendezvous.md says it for fixed nodes. Their one round has no folder of its own: its
 * keys are in the folder of the run. */
#ifndef MUSTER_CORE_ROUND_ROUND_KEY_H
#define MUSTER_CORE_ROUND_ROUND_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "core/rendezvous/rendezvous_state.h"

/* Enough for any decision and its NUL: "failed 2147483647 signal 64". */
#define ROUND_DECISION_SIZE 32

/* The number of the one round of fixed nodes. No round of a record has it. */
#define ROUND_OF_FIXED_NODES (-1)

enum round_key_kind {
    /* torchrun's */
    ROUND_KEY_INIT,           /* fixed nodes: counts clients */
    ROUND_KEY_MASTER_ADDR,    /* the address of the workers' store */
    ROUND_KEY_MASTER_PORT,    /* its port, decimal */
    ROUND_KEY_ROLE_INFO,      /* by node */
    ROUND_KEY_ASSIGNED_RANKS, /* by node */
    ROUND_KEY_NUM_MEMBERS,    /* exit barrier: counts finished nodes */
    ROUND_KEY_LAST_MEMBER,    /* exit barrier: exists when all nodes have finished */
    /* Muster's */
    ROUND_KEY_PUBLISHER, /* the owner of the workers' store: the text form of an identity */
    /* Muster's, where another node may come to host the store. */
    ROUND_KEY_COMMITTED, /* exists when the register has the round */
    ROUND_KEY_DONE,      /* by node: it is in the exit barrier */
    /* Muster's, of fixed nodes, by attempt. The first node that writes one of the last three
     * decides. */
    ROUND_KEY_COORDINATED, /* not by attempt: exists when every agent is Muster's */
    ROUND_KEY_READY,       /* counts nodes that are ready to start it */
    ROUND_KEY_FINISHED,    /* counts nodes whose workers all succeeded */
    ROUND_KEY_GATHERED,    /* "all", or "failed <node>" */
    ROUND_KEY_START,       /* "go", or "failed <node>" */
    ROUND_KEY_END,         /* "restart", "done" or "failed <node>" */
    /* Muster's, of fixed nodes: below the prefix of round_key_write_claims, see
     * core/round/round_fixed. */
    ROUND_KEY_CLAIM_SERVED, /* exists where the store serves claims */
    ROUND_KEY_CLAIM,        /* by node: the node that has the rank */
    ROUND_KEY_RIVAL,        /* by node: another one that would have it */
    /* groups */
    ROUND_KEY_ADDRESS, /* MASTER_ADDR, MASTER_PORT */
    /* PUBLISHER, MASTER_ADDR, MASTER_PORT. A node that reads an address so learns its owner too. */
    ROUND_KEY_PUBLICATION,
    ROUND_KEY_WORLD,          /* MASTER_ADDR, MASTER_PORT, ASSIGNED_RANKS of the node */
    ROUND_KEY_ALL_ROLE_INFOS, /* ROLE_INFO of nodes 0 … node - 1 */
    ROUND_KEY_ALL_DONE,       /* DONE of nodes 0 … node - 1 */
    ROUND_KEY_COUNT,
};

struct round_key {
    enum round_key_kind kind;
    int64_t round; /* the round, or the attempt where the kind is by attempt */
    int node; /* the node, where the kind is by node; the last two groups: the number of nodes */
};

bool round_key_is_decision(enum round_key_kind kind);

/* Adds the key, or the keys of the group in the order given above. They are as on the wire, with
 * torchrun's leading '/'. */
void round_key_list(const struct round_key *key, const char *run_id, struct text_list *out);

/* Adds every key that may exist in the folder of a round with that many nodes; and those that there
 * are besides where another node may come to host the store. */
void round_key_list_all(int64_t round, int node_count, const char *run_id, struct text_list *out);
void round_key_list_of_succession(
    int64_t round, int node_count, const char *run_id, struct text_list *out);

/* Adds DONE of each participant that the record says is done: to the next host of the store it may
 * be gone, and can then not say so again. */
void round_key_list_noted(
    const struct rendezvous_state *record, const char *run_id, struct text_list *out);

/* Appends the beginning of all keys of fixed nodes but INIT. All other keys in their store are the
 * workers', and are deleted when the workers' store is renewed. */
void round_key_write_prefix(const char *run_id, struct text *out);

/* Of fixed nodes: appends the key of what rendezvous_key_write_said says. */
void round_key_write_said(const char *run_id, struct text *out);
/* Appends the beginning of the keys by which fixed nodes claim their ranks: presence keys in the
 * store of Muster's agents. */
void round_key_write_claims(const char *run_id, struct text *out);

/* Appends a short form for transcripts: "3/role_info/0", "3/world/1"; of fixed nodes "role_info/0",
 * "end/1". */
void round_key_describe(const struct round_key *key, struct text *out);

#endif

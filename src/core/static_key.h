/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of the static rendezvous in the store: torchrun's own, by which agents of both kinds
 * find each other, and Muster's, by which its agents coordinate. docs/static-rendezvous.md says
 * who writes which when. */
#ifndef MUSTER_CORE_STATIC_KEY_H
#define MUSTER_CORE_STATIC_KEY_H

#include <stdbool.h>

#include "base/text.h"

enum static_key_kind {
    /* torchrun's */
    STATIC_KEY_INIT,           /* counts clients */
    STATIC_KEY_ROLE_INFO,      /* by node */
    STATIC_KEY_ALL_ROLE_INFOS, /* the role infos of all nodes */
    STATIC_KEY_ASSIGNED_RANKS, /* by node */
    STATIC_KEY_NUM_MEMBERS,    /* exit barrier: counts finished nodes */
    STATIC_KEY_LAST_MEMBER,    /* exit barrier: set by the last */
    /* Muster's; the last three are decided once, by the first who writes */
    STATIC_KEY_COORDINATED, /* exists when every agent is Muster */
    STATIC_KEY_READY,       /* by attempt: counts nodes that want to start it */
    STATIC_KEY_FINISHED,    /* by attempt: counts nodes whose workers all succeeded */
    STATIC_KEY_GATHERED,    /* by attempt: "all", or "failed <node>" */
    STATIC_KEY_START,       /* by attempt: "go", or "failed <node>" */
    STATIC_KEY_END,         /* by attempt: "restart", "done" or "failed <node>" */
    STATIC_KEY_COUNT,
};

struct static_key {
    enum static_key_kind kind;
    int attempt; /* where the kind is by attempt */
    int node;    /* where the kind is by node */
};

bool static_key_equals(const struct static_key *left, const struct static_key *right);

/* Appends the key as it is on the wire, with upstream's leading '/'. Not for
 * STATIC_KEY_ALL_ROLE_INFOS. */
void static_key_write(const struct static_key *key, const char *run_id, struct text *out);

/* Appends what the agents' keys begin with on the wire: all other keys are the workers', and go
 * when the workers' store is renewed. */
void static_key_write_prefix(const char *run_id, struct text *out);

/* Appends a short form for transcripts: "end/1", "role_info/0", "ready/2". */
void static_key_describe(const struct static_key *key, struct text *out);

#endif

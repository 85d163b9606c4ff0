/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node that delegates wants of the record. It does not write the record. It says its wish to
 * the host of the store, as the value of its presence key, and the host writes the record for it
 * (rendezvous_serving). A wish says how things should be and not what to do once: the host may hear
 * it twice, or only the last of several. What it says of a round holds for that round alone, so it
 * is fulfilled once. PyTorch has nothing like it: its nodes write the record themselves. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_WISH_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_WISH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/rendezvous/rendezvous_state.h"

#define RENDEZVOUS_WISH_NO_ROUND (-1)
/* Of a node that is ready for whichever round: it had no world yet. */
#define RENDEZVOUS_WISH_ANY_ROUND (-2)
/* Of the role that is said with a wish. */
#define RENDEZVOUS_WISH_ROLE_SIZE 64
#define RENDEZVOUS_MEETING_ADDRESS_SIZE 64

enum rendezvous_wish_kind {
    RENDEZVOUS_WISH_NONE,  /* the node does not delegate */
    RENDEZVOUS_WISH_OWN,   /* it wants to write the record itself from now on */
    RENDEZVOUS_WISH_LOOK,  /* it wants to know how the job stands, and to be in no list yet */
    RENDEZVOUS_WISH_JOIN,  /* it wants to be in the newest round, or on a list for the next one */
    RENDEZVOUS_WISH_LEAVE, /* it wants to be in no list any more */
    RENDEZVOUS_WISH_CLOSE, /* it wants the record to be closed */
    RENDEZVOUS_WISH_KIND_COUNT,
};

/* Where the workers of a round meet: at a store that the node of rank 0 has opened. */
struct rendezvous_meeting {
    int64_t round; /* RENDEZVOUS_WISH_NO_ROUND: nothing is said */
    int port;      /* 0: the address has to be read from the job's store */
    char address[RENDEZVOUS_MEETING_ADDRESS_SIZE];
};

/* A zeroed struct is no wish. Rounds are RENDEZVOUS_WISH_NO_ROUND where there is none. */
struct rendezvous_wish {
    enum rendezvous_wish_kind kind;
    int64_t sequence;       /* counts the wishes of this node on this connection, from 1 */
    int64_t finished_round; /* its workers are done in this round */
    int64_t ended_round;    /* JOIN: the round after this one is to begin, for `reason` … */
    bool is_charged;        /* … which costs a restart: workers failed */
    int64_t doubted_round;  /* JOIN: it doubts a failure in this round */
    int signal;             /* LEAVE, CLOSE: told this node to end; 0: none */
    /* Where the host may tell the node its ranks: how many workers it has, and their role. 0: it
     * says neither. */
    int local_world_size;
    char role[RENDEZVOUS_WISH_ROLE_SIZE];
    /* Its round: no worker of an earlier one runs on this node, and it waits in this one for the
     * others. Or RENDEZVOUS_WISH_ANY_ROUND: it had no world when it connected. Where this node has
     * rank 0 in a round that the host has ranked, it says where the workers meet. */
    struct rendezvous_meeting meeting;
    char reason[RENDEZVOUS_REASON_SIZE]; /* ended_round, CLOSE; empty: the job has succeeded */
};

/* Of an address that is too long for it, or NULL, only the round is said. */
struct rendezvous_meeting rendezvous_meeting_at(int64_t round, const char *address, int port);
bool rendezvous_meeting_equals(
    const struct rendezvous_meeting *left, const struct rendezvous_meeting *right);

/* A wish of this kind that says nothing of a round. */
struct rendezvous_wish rendezvous_wish_of(enum rendezvous_wish_kind kind);
/* Whether both say the same, whatever their sequence numbers. */
bool rendezvous_wish_equals(
    const struct rendezvous_wish *left, const struct rendezvous_wish *right);
/* Whether both want the same of the record. They may say something else of who is ready for which
 * round, and of where its workers meet. */
bool rendezvous_wish_wants_the_same(
    const struct rendezvous_wish *left, const struct rendezvous_wish *right);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of the round exchange: its state, and what its parts do alike in one step. For
 * round_exchange and its parts alone: round_address agrees on the workers' store, round_barrier is
 * the way out, round_diagnosis says what a join that came to nothing was missing. */
#ifndef MUSTER_CORE_ROUND_STEP_H
#define MUSTER_CORE_ROUND_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"
#include "core/node_identity.h"
#include "core/rank_assignment.h"
#include "core/round_exchange.h"
#include "core/round_key.h"

enum round_phase {
    ROUND_IDLE,
    ROUND_JOINING,
    ROUND_DIAGNOSING, /* too late: finding out who is missing */
    ROUND_JOINED,
    ROUND_LEAVING,  /* in the exit barrier */
    ROUND_COUNTING, /* too late: finding out how many had come */
    ROUND_ENDED,    /* told how; nothing more until the next round */
};

enum round_address_stage {
    ROUND_ADDRESS_UNKNOWN,
    ROUND_ADDRESS_OPENING,   /* this node's store is being opened */
    ROUND_ADDRESS_SEEKING,   /* in earlier rounds */
    ROUND_ADDRESS_LISTENING, /* whether a torchrun node goes on without an address of this round */
    ROUND_ADDRESS_SUMMONED,  /* rank 0 has named another node to publish */
    ROUND_ADDRESS_EXPECTED,  /* somebody will publish, or has */
    ROUND_ADDRESS_KNOWN,
};

struct round_address {
    enum round_address_stage stage;
    struct text text; /* with `port`: the workers' store, as soon as it is found or published */
    int port;
    char port_text[12];
    int owner;              /* rank of the node whose store it is, or shall be */
    struct text owner_text; /* its identity */
    int64_t sought;         /* the round that is looked into */
    bool is_open;           /* this node's store, for this round … */
    struct text own_text;   /* … is here */
    int own_port;
    bool has_opened; /* in any round */
};

struct round_exchange {
    struct round_settings settings;
    enum round_phase phase;
    int64_t round;
    int group_rank;
    int node_count;
    int64_t restarts;
    int largest_count;           /* of nodes in any round this one was in */
    int64_t cleared;             /* rounds before this one are, by this node, in the whole run */
    bool has_foreign;            /* a node of torchrun's kind takes part */
    struct node_identity *nodes; /* by rank */
    struct instant deadline;     /* of the join */
    bool is_timer_armed;
    struct instant timer;
    bool is_waiting; /* a WAIT is under way … */
    struct round_key waiting;
    bool has_wanted; /* … and another is to follow it */
    struct round_key wanted;
    struct round_address address;
    bool is_gathering; /* rank 0 waits for the role infos, or has them */
    bool has_ranks;
    struct rank_assignment ranks;
    struct rank_assignment *assignments; /* rank 0: of all nodes, once computed */
    int64_t come;                        /* how many were in it when last seen */
    int examined;                        /* diagnosis: the node that is looked for */
    int missing;
    struct text reason;
};

struct round_step {
    struct round_exchange *exchange;
    const struct round_event *event;
    struct round_effects *effects;
};

/* Adds the effect, with the exchange's round. */
void round_step_push(struct round_step *step, struct round_effect effect);
void round_step_push_key(
    struct round_step *step, enum round_effect_kind kind, struct round_key key);
/* SET; `text` is good until the next step. */
void round_step_set(struct round_step *step, enum round_key_kind key, const char *text);
void round_step_add(struct round_step *step, int64_t amount);

/* A key of the present round that is by nothing, and one that is by node. */
struct round_key round_step_key(const struct round_step *step, enum round_key_kind kind);
struct round_key round_step_node_key(
    const struct round_step *step, enum round_key_kind kind, int node);

/* Waits for the key as soon as the waiting connection is free. */
void round_step_want(struct round_step *step, struct round_key key);

void round_step_arm_timer(struct round_step *step, struct instant deadline);
void round_step_disarm_timer(struct round_step *step);

/* Ends the join or the barrier with the reason in `exchange->reason`. */
void round_step_end(struct round_step *step, enum round_effect_kind kind);
/* Ends the join: this node can do without the others' reasons. */
__attribute__((format(printf, 2, 3))) void round_step_fail(
    struct round_step *step, const char *format, ...);

/* Appends "node 1 (b_2_0)". */
void round_step_describe_node(const struct round_step *step, int node, struct text *out);

/* Whether this node is the one of rank 0. */
bool round_step_is_first(const struct round_step *step);
bool round_step_is_foreign(const struct round_step *step, int node);

/* JOINED, as soon as the workers' store and the ranks are known. */
void round_step_join(struct round_step *step);
/* Rank 0: waits for the role infos, unless it does already. */
void round_step_gather(struct round_step *step);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The record all nodes of a job share: who is in which round, who waits, who is spare. A value and
 * the ways to change it; when to change it is decided by rendezvous_decision (as torchrun's nodes
 * do) and rendezvous_regroup (as Muster's nodes do among themselves), and it is spelled by
 * wire/rendezvous_state_pickle. Matches _RendezvousState and the actions of
 * _DistributedRendezvousOpExecutor in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py;
 * its four maps are one list of nodes here. */
#ifndef MUSTER_CORE_RENDEZVOUS_STATE_H
#define MUSTER_CORE_RENDEZVOUS_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/node_identity.h"
#include "core/rendezvous_settings.h"

/* Ceiling of nodes in a record that comes from outside. */
#define RENDEZVOUS_NODES_MAXIMUM 65536
#define RENDEZVOUS_REASON_SIZE 256

struct rendezvous_node {
    struct node_identity identity;
    bool is_participant;
    bool is_waiting;    /* on the wait list: asks for a new round */
    bool is_redundant;  /* on the redundancy list: a spare, asks for nothing */
    bool has_heartbeat; /* a flag too: torchrun keeps heartbeats in a map of their own */
    int64_t rank;       /* of a participant of a complete round; else 0 */
    struct wall_time heartbeat;
};

struct rendezvous_state {
    int64_t round;
    bool is_complete; /* the round has its participants and ranks */
    bool has_deadline;
    bool is_closed;                /* for ever */
    struct wall_time deadline;     /* last call of a round that is not complete */
    struct rendezvous_node *nodes; /* in the order in which they came; each has a flag set */
    size_t count;
    size_t capacity;
    /* What only Muster's nodes look at; torchrun's keep it as it is. */
    int64_t restarts; /* how many restarts the job has paid for */
    int64_t wanted; /* a round that is not complete becomes so with this many; 0: torchrun's rule */
    int64_t size;   /* of the largest world there was */
    bool is_draining; /* a participant's workers are done: nobody new is admitted */
    bool is_charged;  /* the last restart has cost one, which was not given back */
    bool is_doubted;  /* a failure here would end the job: are all participants still there? */
    bool has_failed;  /* closed because of a failure, which `reason` tells */
    char reason[RENDEZVOUS_REASON_SIZE]; /* why this round was begun or the record closed; UTF-8 */
};

/* A zeroed struct is the empty record, and valid. */
void rendezvous_state_clear(struct rendezvous_state *state);
/* `out_copy` is cleared first. */
void rendezvous_state_copy(const struct rendezvous_state *state, struct rendezvous_state *out_copy);
/* Whether they say the same; in which order their nodes came does not matter. */
bool rendezvous_state_equals(
    const struct rendezvous_state *left, const struct rendezvous_state *right);

/* The node, or NULL. The pointer is good until a node comes or goes. */
struct rendezvous_node *rendezvous_state_find(
    const struct rendezvous_state *state, const struct node_identity *identity);
/* The node, made with no flag set when it is not there: set one. */
struct rendezvous_node *rendezvous_state_obtain(
    struct rendezvous_state *state, const struct node_identity *identity);
/* Drops nodes without any flag. */
void rendezvous_state_prune(struct rendezvous_state *state);

size_t rendezvous_state_participants(const struct rendezvous_state *state);
size_t rendezvous_state_waiting(const struct rendezvous_state *state);
size_t rendezvous_state_redundant(const struct rendezvous_state *state);
bool rendezvous_state_is_participant(
    const struct rendezvous_state *state, const struct node_identity *identity);

/* Whether a node of another kind than Muster's is a participant, or in the record at all. */
bool rendezvous_state_has_foreign_participant(const struct rendezvous_state *state);
bool rendezvous_state_has_foreign_node(const struct rendezvous_state *state);

/* What follows when participants have left (_remove_participant_epilogue): a complete round without
 * any gives way to the next, and a round that is not complete and has too few forgets its deadline.
 * What Muster notes of a round (wanted, is_draining, is_doubted, reason) ends with it. */
void rendezvous_state_settle(
    struct rendezvous_state *state, const struct rendezvous_settings *settings);

/* Takes a node out of every list as torchrun does with a dead one (_sanitize), and settles the
 * record if it was a participant. `identity` may be the record's own memory. */
void rendezvous_state_expel(struct rendezvous_state *state,
    const struct rendezvous_settings *settings, const struct node_identity *identity);

/* Whether the participants' ranks are those of a whole round, 0 to n - 1: a participant that leaves
 * a complete round leaves a gap, unless it was the last. */
bool rendezvous_state_is_whole(const struct rendezvous_state *state);

/* The round has all its participants: gives them their ranks. */
void rendezvous_state_complete(struct rendezvous_state *state);

/* Gives participants their ranks: torchrun's order when a node of its kind takes part, else the
 * natural one. */
void rendezvous_state_rank(struct rendezvous_state *state);

/* Appends one line for transcripts: "round 3 complete [a_1_0:0 b_2_0:1] wait [] spare [c_3_0]". A
 * round that is not complete is "open", or at its "last_call"; what else is not as usual follows:
 * "closed", "closed failed", "draining", "doubted", "restarts 2", "charged", "wanted 4",
 * "because REASON". */
void rendezvous_state_describe(const struct rendezvous_state *state, struct text *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* One round's nodes on a real store table: Muster's are the real machine, torchrun's do line by
 * line what next_rendezvous and _assign_worker_ranks do, cache included. A step's requests arrive
 * together; connections break in between, with what was on its way. Who takes part, in which order
 * things happen and what must hold is the simulation's business. */
#ifndef MUSTER_TESTS_SIMULATION_VIRTUAL_ROUND_H
#define MUSTER_TESTS_SIMULATION_VIRTUAL_ROUND_H

#include "unit.h"

#include "base/random.h"
#include "core/round/round_step.h"
#include "core/store/store_table.h"
#include "wire/round/round_exchange_store.h"

#define NODES_MAXIMUM 20
#define RUN_ID "job"
#define QUEUE 64

enum stage { STAGE_OUT, STAGE_JOINING, STAGE_JOINED, STAGE_LEAVING, STAGE_LEFT };

/* What one step of a machine asked for on one connection; requests are given to the store when it
 * is taken from the queue. */
struct batch {
    struct owned_request requests[ROUND_EFFECTS_MAXIMUM];
    struct round_question questions[ROUND_EFFECTS_MAXIMUM];
    size_t count;
};

struct connection {
    struct store_connection stored;
    struct batch batches[QUEUE]; /* on their way to the store */
    size_t first, last;
    struct round_question asked[QUEUE]; /* by the store, and not answered */
    size_t asked_first, asked_last;
    struct round_answer answers[QUEUE]; /* on their way back */
    size_t answers_first, answers_last;
};

struct place {
    char address[NODE_ADDRESS_SIZE];
    int port;
};

struct node {
    struct node_identity identity;
    bool is_muster;
    int rank;
    enum stage stage;
    struct place master;
    struct rank_assignment ranks;
    int workers;
    /* Muster's */
    struct round_exchange *exchange;
    struct connection asker, waiter;
    bool is_opening;
    int64_t opening_round;
    bool has_met_torchrun; /* in this round or an earlier one */
    bool is_fresh;
    struct place server;
    int64_t server_round; /* in which it was opened or wiped */
    bool has_timer;
    struct instant timer;
    /* torchrun's */
    int line; /* of what it does in a round */
    bool has_cache, has_server;
    struct place cache;
};

struct job {
    struct random random;
    struct store_table *table;
    struct store_effects effects;
    struct store_connection torchrun;
    struct node *nodes[NODES_MAXIMUM]; /* of the round, by rank */
    int count;
    int next_name, next_port;
    int64_t round;
    struct instant now;
    bool is_sharing;
    bool is_uniform;
    struct rendezvous_state state;
};

/* Muster's nodes. */

/* Hands the machine an event, at the job's time, and performs what follows. */
void virtual_round_step(struct job *job, struct node *node, struct round_event event);
/* Does one thing that is due at the node; false when there is none. */
bool virtual_round_move(struct job *job, struct node *node);
/* Before it goes. */
void virtual_round_disconnect(struct job *job, struct node *node);

/* torchrun's nodes. */

/* Does the next line; false when it has to wait. */
bool virtual_torchrun_move(struct job *job, struct node *node);
void virtual_torchrun_enter_barrier(struct job *job);

/* Has the store carry out a request, and answers whoever is released by it. */
void virtual_round_apply(
    struct job *job, struct store_connection *from, const struct store_request *request);
bool virtual_round_chance(struct job *job, uint64_t percent);
void virtual_place_set(struct place *place, const char *address, int port);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* How one node meets the others, carried out: the shells behind the membership, the rendezvous and
 * the round of the node machine. Hosts the job's store where that is this node's. What the shells
 * learn goes to the node's queue; nothing is decided here. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_RENDEZVOUS_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_RENDEZVOUS_H

#include "agent/workers/agent_preparation.h"
#include "base/failure.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "core/node/node_event.h"
#include "core/node/node_machine.h"
#include "core/telling/event_record.h"
#include "host/loop/event_loop.h"
#include "host/loop/tally.h"
#include "host/process/guardian.h"
#include "host/store/store_admission.h"
#include "wire/store/store_proof.h"

/* Where the shells put what they learn: on the queue of the node machine. */

struct agent_mailbox {
    /* Copies all that the event points to, and fills in the time. May be called at any time. */
    void (*post)(void *context, const struct node_event *event);
    void *context;
};

static inline void agent_mailbox_post(
    const struct agent_mailbox *mailbox, const struct node_event *event) {
    mailbox->post(mailbox->context, event);
}

struct agent_said;

/* A record that a program keeps, in the place of the job's store. The store still has all else that
 * nodes tell each other. */
struct agent_kept_record {
    /* `told` gets what the machine is to be told, perhaps from inside `perform`. The loop, the log
     * and what `told` needs outlive the result. */
    enum failure_code (*open)(void *context, struct event_loop *loop, const struct log *log,
        void (*told)(void *context, const struct rendezvous_event *event), void *told_context,
        void **out_kept, struct failure *failure);
    /* CONNECT, FETCH, WRITE or PRESENT. */
    void (*perform)(void *kept, const struct rendezvous_effect *effect);
    void (*close)(void *kept); /* this node is gone; accepts NULL */
    void *context;
};

struct agent_rendezvous_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct text_list *environment;
    const struct agent_preparation *preparation;
    const struct node_settings *node;
    const char *name_leads_to; /* the addresses of this node's own name, each with a blank */
    const struct node_machine *machine; /* for what the rendezvous records of itself */
    const struct log *log;
    struct guardian *guardian;   /* which holds the connection to the record's store; or NULL */
    const struct store_key *key; /* of the job's token; NULL: there is none */
    /* What the stores that this agent serves carry out: the workers', which the agents of fixed
     * nodes use too, and the record's. NULL: nobody counts. */
    struct tally *worker_store_operations;
    struct tally *record_store_operations;
    /* Which other machines the workers' store serves; NULL: all. agent_rendezvous_new makes it
     * where the configuration asks for it; the caller leaves it NULL. */
    struct store_admission *admission;
    struct agent_mailbox mailbox; /* copied */
    /* What the rendezvous records of itself, see core/rendezvous/rendezvous_transcript; NULL:
     * nobody wants it. Fixed nodes record nothing, as in torchrun. */
    void (*recorded)(void *context, const struct event_rendezvous *record);
    void *recorded_context;
    /* This node would join a running world, whose workers have imported what `text` lists;
     * borrowed. Makes standby workers ready, and RENDEZVOUS_EVENT_WARMED follows. False: there will
     * be none. NULL: the same. */
    bool (*warm)(void *context, struct slice text);
    void *warm_context;
    struct agent_said *said;                     /* NULL: nothing */
    const struct agent_kept_record *kept_record; /* NULL: the job's store has it */
};

struct agent_rendezvous;

/* Opens the store's port if this node hosts it; nothing is agreed yet. FAILURE_SYSTEM when the port
 * is taken. */
__attribute__((warn_unused_result)) enum failure_code agent_rendezvous_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct agent_rendezvous **out_rendezvous,
    struct failure *failure);

/* Closes the store and all connections. NULL is fine. */
void agent_rendezvous_free(struct agent_rendezvous *rendezvous);

/* For what is recorded: the machine is about to take the event; the effect, internal or not,
 * follows from it. */
void agent_rendezvous_note_event(
    struct agent_rendezvous *rendezvous, const struct node_event *event);
void agent_rendezvous_note_effect(
    struct agent_rendezvous *rendezvous, const struct node_effect *effect);

/* The machine has taken the event. */
void agent_rendezvous_note_step(
    struct agent_rendezvous *rendezvous, const struct node_event *event);

/* Carries out an effect that is not internal, of any machine but the agent's; NOTE is written to
 * the log, SETTLED does nothing. */
void agent_rendezvous_perform(
    struct agent_rendezvous *rendezvous, const struct node_effect *effect);

/* What the workers of this job have imported, for nodes that join later. Where nodes do not come
 * and go, nobody wants it. */
void agent_rendezvous_publish_learned_list(struct agent_rendezvous *rendezvous, struct slice text);

/* Appends why the store where nodes meet is not reached, while this node tries to reach it. */
void agent_rendezvous_write_obstacle(const struct agent_rendezvous *rendezvous, struct text *out);

/* Where nodes come and go: this node has waited for a while. Says in the log which other jobs wait
 * at the same store. */
void agent_rendezvous_look_for_neighbours(struct agent_rendezvous *rendezvous);
/* This node waits no longer. */
void agent_rendezvous_stop_looking_for_neighbours(struct agent_rendezvous *rendezvous);

/* Where nodes come and go: whether this node is in a round that has all its nodes. Adds the
 * addresses of those that are not ready, as far as it is known. */
bool agent_rendezvous_is_in_round(
    const struct agent_rendezvous *rendezvous, struct text_list *out_unready);
/* Appends when this node is let into the world beside which it waits, if that is known. */
void agent_rendezvous_describe_admission(
    const struct agent_rendezvous *rendezvous, struct text *out);
/* A moment before either is asked: asks the store, if it may know more. Returns whether it does. */
bool agent_rendezvous_look_for_unready(struct agent_rendezvous *rendezvous);

/* This node stood still, and its workers were ended: where nodes come and go, it gives up its
 * connection to the job's store and joins anew. */
void agent_rendezvous_give_up(struct agent_rendezvous *rendezvous, const char *reason);

#endif

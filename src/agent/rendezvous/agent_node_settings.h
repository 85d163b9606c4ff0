/* SPDX-License-Identifier: BSD-3-Clause */
/* What the node machine is to know, from what the user asked for and what this machine is, and what
 * the shells are made with that carry out how it meets the others. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_NODE_SETTINGS_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_NODE_SETTINGS_H

#include <stdbool.h>

#include "agent/workers/agent_preparation.h"
#include "base/bytes.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/node/node_machine.h"
#include "core/standby/standby_plan.h"
#include "core/telling/event_record.h"
#include "host/loop/event_loop.h"
#include "host/loop/tally.h"
#include "host/process/guardian.h"
#include "host/store/store_admission.h"
#include "wire/store/store_proof.h"

/* Owns the address, the name of the store and the claim; the rest is borrowed from what it was made
 * of. */
struct agent_node_settings {
    struct node_settings node;
    char *address;
    char *address_leads_to; /* the addresses of that name, each with a blank after it */
    char *where;
    char *claim; /* of a fixed node, see core/round/round_step; else NULL */
    enum standby_choice standby;
    int cpu_count; /* of those on which this process may run */
};

/* Fails where this node's address for other nodes cannot be found; then there is nothing to clear.
 */
__attribute__((warn_unused_result)) enum failure_code agent_node_settings_make(
    const struct launch_config *config, const struct agent_preparation *preparation,
    const struct text_list *environment, struct agent_node_settings *out_settings,
    struct failure *failure);
void agent_node_settings_clear(struct agent_node_settings *settings);

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
    /* This node is connected to a store, perhaps to another one; or it waits for the others to
     * leave its store. NULL: nobody wants to know. */
    void (*reached)(void *context);
    void (*leaving)(void *context);
    void *reached_context;
    struct agent_said *said;                     /* NULL: nothing */
    const struct agent_kept_record *kept_record; /* NULL: the job's store has it */
};

#endif

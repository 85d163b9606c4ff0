/* SPDX-License-Identifier: BSD-3-Clause */
/* What the node machine is to know, from what the user asked for and what this machine is, and what
 * the shells are made with that carry out how it meets the others. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_NODE_SETTINGS_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_NODE_SETTINGS_H

#include <stdbool.h>

#include "agent/workers/agent_preparation.h"
#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "core/agent/agent_machine.h"
#include "core/launch/launch_config.h"
#include "core/node/node_machine.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_regroup.h"
#include "core/rendezvous/rendezvous_state.h"
#include "core/standby/standby_plan.h"
#include "core/telling/event_record.h"
#include "host/log/log_sink.h"
#include "host/loop/event_loop.h"
#include "host/loop/tally.h"
#include "host/process/guardian.h"
#include "host/rendezvous/rendezvous_backend.h"
#include "host/store/store_admission.h"
#include "wire/store/store_proof.h"

/* How this node proves itself to the job's store, and the store to it: by the job's token, by
 * munge, or not at all. */

/* A daemon that starts anew, or has many clients, serves again before that. */
#define AGENT_PROOF_MUNGE_PERSISTENCE_SECONDS 5

struct agent_proof;

struct agent_proof_settings {
    const struct launch_config *config;
    const char *run_id;
    struct event_loop *loop; /* runs while munge is waited for; whoever stops it ends the wait */
    const struct log *log;
    const char *munge_library;         /* a file for tests; NULL: the installed one */
    struct duration munge_persistence; /* how long a daemon that does not serve is asked again */
};

/* NULL where nodes do not prove themselves. As job_token_open and munge_identity_open. */
__attribute__((warn_unused_result)) enum failure_code agent_proof_open(
    const struct agent_proof_settings *settings, struct agent_proof **out_proof,
    struct failure *failure);
/* Accepts NULL. */
void agent_proof_free(struct agent_proof *proof);

/* NULL: nobody has to prove anything. */
const struct store_key *agent_proof_key(const struct agent_proof *proof);

/* Says in the log what a node of a job of several waits for while it joins: after 5, 15 and 60 s,
 * and then each minute (core/rendezvous/rendezvous_transcript). On a terminal it is one line from
 * the first of these moments on, which is renewed each second. In a log the first node says it; the
 * others name that node once. */

/* Tells nodes that wait beside a running world when they are let in, where that takes long. The
 * node that is to admit them says it in its log and in a key of the store; who waits reads that key
 * before it says that it waits. */

struct agent_admission;

struct agent_admission_settings {
    const char *run_id; /* borrowed, as all of this */
    const struct log *log;
    struct duration answer_timeout;
};

/* Copies the settings; the backend is borrowed. */
struct agent_admission *agent_admission_new(struct event_loop *loop,
    struct rendezvous_backend *backend, const struct agent_admission_settings *settings);
/* NULL is fine. */
void agent_admission_free(struct agent_admission *admission);

/* What this node, which may be the one that admits others, has to wait for. */
void agent_admission_note(
    struct agent_admission *admission, const struct rendezvous_admission *planned);

/* Asks when this node is let in. Returns whether there will be an answer. */
bool agent_admission_look(struct agent_admission *admission);
/* Appends what was answered last, if that is still to come. */
void agent_admission_describe(const struct agent_admission *admission, struct text *out);

/* Tells the other nodes what this one runs, and finds out whether a node that waits beside a job is
 * of that job at all (core/rendezvous/rendezvous_transcript has the rules). The store holds what
 * the job runs: the first node says it, and later the one of rank 0. Nothing is asked twice, and
 * nothing waits for an answer.
 *
 * In the same way the store holds what the first node that had any warnings says for all. */

/* What this node would say for all. The store keeps the text of the first node that comes with one,
 * and `heard` gets it once; empty: it cannot be known. Both are borrowed. */
struct agent_said {
    const char *text;
    void (*heard)(void *context, struct slice first);
    void *context;
};

/* To be asked of the store where nodes meet. Borrows both until it is answered. */
struct store_client_call agent_said_call(
    struct agent_said *said, const struct text *key, struct duration timeout);

struct agent_program;

struct agent_program_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const char *run_id;
    const char *where;   /* the store of the job, for messages */
    const char *address; /* of this node, as the record has it */
    const struct log *log;
    struct duration answer_timeout;
    /* Whether this node, which waits beside a job, seems to be of that job: NULL, or why not. */
    void (*judged)(void *context, const char *misplaced);
    void *context;
    struct agent_said *said; /* NULL: this node has nothing to say for all */
};

/* Copies the settings; the backend is borrowed. */
struct agent_program *agent_program_new(
    struct rendezvous_backend *backend, const struct agent_program_settings *settings);
/* NULL is fine. */
void agent_program_free(struct agent_program *program);

/* The backend has connected: says what this node runs, where nobody has yet. */
void agent_program_take_connected(struct agent_program *program);
/* This node is in a world now: WORLD. */
void agent_program_take_world(struct agent_program *program, const struct rendezvous_effect *told);
/* Where this node stands now; it may be as before. */
void agent_program_take_parking(struct agent_program *program, enum rendezvous_parking parking);

struct agent_joining;

struct agent_joining_settings {
    const struct launch_config *fixed;            /* of fixed nodes; NULL: nodes come and go */
    const struct rendezvous_settings *rendezvous; /* borrowed, as all of this */
    const struct text_list *expected;             /* names of the nodes, where they are known */
    const struct log *log;
    struct log_sink *sink; /* whose log that is, for the line on a terminal; NULL: there is none */
    /* The record as this node has seen it last. */
    const struct rendezvous_state *(*state)(void *context);
    /* This node in the record, and whether it is the host to which the others delegate. NULL: it
     * speaks for itself. */
    const struct node_identity *(*me)(void *context, bool *out_is_host_of_delegates);
    /* Whether the node is in a round that has all its nodes; adds the names of those that are not
     * ready. NULL: never. */
    bool (*in_round)(void *context, struct text_list *out_unready);
    void *context;
    /* Appends why the store is not reached; nothing when it is, or need not be. NULL: nobody knows.
     */
    void (*obstacle)(void *context, struct text *out);
    /* Appends when this node is let into the world beside which it waits. NULL: nobody knows. */
    void (*admission)(void *context, struct text *out);
    /* Called before something is said, so that what it says can be asked for. Returns whether it
     * is; then it is said a moment later. NULL: nothing is to be asked. */
    bool (*ask_before)(void *context);
    /* Called at each of these moments. NULL: nobody wants to know. */
    void (*waited)(void *context);
    /* Called when the node joins no longer. NULL, too. */
    void (*ended)(void *context);
    /* NULL: rendezvous_waiting_moment; or what a test has instead */
    struct duration (*moment)(int count);
};

/* The nodes that are known to come: those of Slurm's step, if they are as many as this job has, and
 * meet at the first. Else none is added. */
void agent_joining_expect(const struct launch_config *config, const struct text_list *environment,
    struct text_list *out_expected);

struct agent_joining *agent_joining_new(
    struct event_loop *loop, const struct agent_joining_settings *settings);
/* This and the following accept NULL. */
void agent_joining_free(struct agent_joining *joining);

/* The agent machine went from one phase to another, or stayed. */
void agent_joining_follow(
    struct agent_joining *joining, enum agent_phase before, enum agent_phase after);

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

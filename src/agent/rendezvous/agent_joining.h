/* SPDX-License-Identifier: BSD-3-Clause */
/* Says in the log what a node of a job of several waits for while it joins: after 5, 15 and 60 s,
 * and then each minute (core/rendezvous/rendezvous_waiting). On a terminal it is one line from the
 * first of these moments on, which is renewed each second. In a log the first node says it; the
 * others name that node once. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_JOINING_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_JOINING_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "core/agent/agent_machine.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_regroup.h"
#include "core/rendezvous/rendezvous_state.h"
#include "host/log/log_sink.h"
#include "host/loop/event_loop.h"
#include "host/rendezvous/rendezvous_backend.h"

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
 * of that job at all (core/rendezvous/rendezvous_waiting has the rules). The store holds what the
 * job runs: the first node says it, and later the one of rank 0. Nothing is asked twice, and
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

#endif

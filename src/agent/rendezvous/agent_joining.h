/* SPDX-License-Identifier: BSD-3-Clause */
/* Says in the log what a node of a job of several waits for while it joins: after 5, 15 and 60 s,
 * and then each minute (core/rendezvous/rendezvous_waiting). On a terminal it is one line from the
 * first of these moments on, which is renewed each second. In a log the first node says it; the
 * others name that node once. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_JOINING_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_JOINING_H

#include <stdbool.h>

#include "base/log.h"
#include "base/text.h"
#include "core/agent/agent_machine.h"
#include "core/launch/rendezvous_settings.h"
#include "core/rendezvous/rendezvous_state.h"
#include "host/log/log_sink.h"
#include "host/loop/event_loop.h"

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

/* SPDX-License-Identifier: BSD-3-Clause */
/* The program that an agent is part of: one that has called for it, or one that has forked it. It
 * is told everything that the event records know, metrics, and how the job has ended, as lines of
 * wire/telling/agent_line. The command has none. */
#ifndef MUSTER_AGENT_TELLING_AGENT_AUDIENCE_H
#define MUSTER_AGENT_TELLING_AGENT_AUDIENCE_H

#include "base/duration.h"
#include "base/failure.h"
#include "core/agent/agent_machine.h"
#include "core/launch/launch_config.h"
#include "core/node/node_membership.h"
#include "core/telling/event_record.h"
#include "host/loop/event_loop.h"

/* Where lines go: a function, or where that is NULL a channel. */
struct agent_audience_settings {
    void (*tell)(void *context, const char *line); /* a line with its newline; borrowed */
    void *tell_context;
    int channel; /* host/telling/program_channel.h */
    int program;
    void (*asked)(void *context, int signal); /* the program wants the agent to end so */
    void (*told)(
        void *context, enum membership_event_kind kind, const struct membership_told *told);
    void *context;
};

struct agent_audience;

__attribute__((warn_unused_result)) enum failure_code agent_audience_new(struct event_loop *loop,
    const struct agent_audience_settings *settings, const struct launch_config *config,
    struct agent_audience **out_audience, struct failure *failure);
/* The functions below accept NULL. This one waits until the program has taken everything. */
void agent_audience_free(struct agent_audience *audience);

/* A record of wire/telling/event_json, with its newline. */
void agent_audience_event(struct agent_audience *audience, const char *record);

/* The worker group of this node has come into another state. */
void agent_audience_group(struct agent_audience *audience, const struct run_group *group);

/* This node asks where it is to be. The answer is told. */
void agent_audience_ask(struct agent_audience *audience, enum membership_ask what, int attempt);

/* What a program that places its node tells the agent by: host/telling/program_channel's message.
 * Both ends are one program. */
struct agent_audience_order {
    enum membership_event_kind kind;
    struct membership_told told;
};

/* The machine has taken an event; see metric_stream_step. */
void agent_audience_step(struct agent_audience *audience, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event);

/* The agent machine has come to its end, … */
void agent_audience_end(struct agent_audience *audience, const struct agent_machine *machine,
    const struct agent_outcome *outcome);
/* … and this is the last that is said. */
void agent_audience_result(struct agent_audience *audience, const struct run_result *result);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells who asks what the workers of this node do now: the stack of each one's first thread. They
 * are looked at as hang evidence looks (host/failure/hang_evidence_collector): they are neither
 * stopped nor ended. One question after the other, and one a second at most: a look wants the
 * attention of Pythons that are asked by a signal. */
#ifndef MUSTER_AGENT_FAILURE_AGENT_STACKS_H
#define MUSTER_AGENT_FAILURE_AGENT_STACKS_H

#include "agent/workers/agent_workers.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/rendezvous/rendezvous_state.h"
#include "host/loop/event_loop.h"
#include "host/loop/snapshot_socket.h"

struct agent_standby;
struct agent_stacks;

struct agent_stacks_settings {
    const struct agent_workers *workers; /* borrowed, as all of this */
    const struct node_placement *placement;
    const struct agent_standby *standby; /* or NULL */
    int worker_count;
    /* To who has asked (snapshot_socket_answer). */
    void (*answer)(void *context, uint64_t ticket, struct text *text_taken);
    void *context;
};

struct agent_stacks *agent_stacks_new(
    struct event_loop *loop, const struct agent_stacks_settings *settings);
/* Nobody is answered any more. Accepts NULL. */
void agent_stacks_free(struct agent_stacks *stacks);

/* Whether the path is one of /v1/stacks, for all, or /v1/stacks?ranks=0-3,7. */
bool agent_stacks_are_meant(const char *path);
/* Accepts NULL, where nobody is answered. */
enum snapshot_answer agent_stacks_answer(
    struct agent_stacks *stacks, const struct snapshot_question *question, struct text *out);

#endif

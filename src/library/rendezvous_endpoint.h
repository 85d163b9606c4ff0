/* SPDX-License-Identifier: BSD-3-Clause */
/* Performs a node's rendezvous at an endpoint with the agent's own shells: hosts or joins the store
 * as the command does. After each round begins, the nodes tell each other through the store where
 * their first one serves the others. */
#ifndef MUSTER_LIBRARY_RENDEZVOUS_ENDPOINT_H
#define MUSTER_LIBRARY_RENDEZVOUS_ENDPOINT_H

#include "base/failure.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "host/loop/event_loop.h"
#include "host/store/job_token.h"
#include "library/rendezvous_member.h"

struct rendezvous_endpoint;

struct rendezvous_endpoint_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct store_key *key;
    const struct log *log;
    struct rendezvous_member *node;
    /* What the first node of this round has said, or why nobody will know. */
    void (*met)(void *context, const char *master, int port);
    void (*not_met)(void *context, const char *reason);
    void *context;
};

/* FAILURE_SYSTEM when this node is told to host the store and cannot open its port. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_endpoint_new(
    struct event_loop *loop, const struct rendezvous_endpoint_settings *settings,
    struct rendezvous_endpoint **out_endpoint, struct failure *failure);
/* Accepts NULL. */
void rendezvous_endpoint_free(struct rendezvous_endpoint *endpoint);

void rendezvous_endpoint_perform(
    struct rendezvous_endpoint *endpoint, const struct rendezvous_effect *effect);

/* Says where this node serves the others of the round, or waits until its first node has said it;
 * `met` follows, perhaps never if the round is over. Replaces an earlier one. */
void rendezvous_endpoint_say(
    struct rendezvous_endpoint *endpoint, int64_t round, const char *master, int port);
void rendezvous_endpoint_ask(struct rendezvous_endpoint *endpoint, int64_t round);

/* Leaves, and waits until the other nodes have left the store that this one hosts; the node's
 * `left` follows. */
void rendezvous_endpoint_linger(struct rendezvous_endpoint *endpoint, struct duration patience);

#endif

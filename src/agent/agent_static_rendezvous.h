/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries out core/static_rendezvous: two connections to the master's store, a timer, and the
 * renewal of the workers' store on the node that hosts it. Decides nothing. */
#ifndef MUSTER_AGENT_AGENT_STATIC_RENDEZVOUS_H
#define MUSTER_AGENT_AGENT_STATIC_RENDEZVOUS_H

#include <stdint.h>

#include "host/event_loop.h"
#include "host/store_thread.h"

struct agent_rendezvous_settings;
struct agent_static_rendezvous;

/* `store` is this node's own server, or NULL; settings and store are borrowed and outlive the
 * object. */
struct agent_static_rendezvous *agent_static_rendezvous_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct store_thread *store);
/* Accepts NULL. */
void agent_static_rendezvous_free(struct agent_static_rendezvous *rendezvous);

void agent_static_rendezvous_join(
    struct agent_static_rendezvous *rendezvous, int64_t ticket, int attempt);
void agent_static_rendezvous_enter_barrier(struct agent_static_rendezvous *rendezvous);
void agent_static_rendezvous_announce_restart(struct agent_static_rendezvous *rendezvous);
void agent_static_rendezvous_announce_failure(struct agent_static_rendezvous *rendezvous);

/* Calls `settled` once everything announced has reached the store, or cannot reach it any more. */
void agent_static_rendezvous_settle(
    struct agent_static_rendezvous *rendezvous, void (*settled)(void *context), void *context);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries out core/rendezvous_machine (who is in which round) and core/round_exchange (what a
 * round's nodes tell each other): the record's backend, the store's host where it is this node, the
 * workers' store, timers. Decides nothing but how the machines' news read to the agent. */
#ifndef MUSTER_AGENT_AGENT_DYNAMIC_RENDEZVOUS_H
#define MUSTER_AGENT_AGENT_DYNAMIC_RENDEZVOUS_H

#include <stdint.h>

#include "base/failure.h"
#include "core/failure_account.h"
#include "host/event_loop.h"

struct agent_rendezvous_settings;
struct agent_dynamic_rendezvous;

/* Opens the store's port if this node hosts it. Settings are borrowed and outlive the object.
 * FAILURE_SYSTEM when the port cannot be opened. */
__attribute__((warn_unused_result)) enum failure_code agent_dynamic_rendezvous_new(
    struct event_loop *loop, const struct agent_rendezvous_settings *settings,
    struct agent_dynamic_rendezvous **out_rendezvous, struct failure *failure);
/* Accepts NULL. */
void agent_dynamic_rendezvous_free(struct agent_dynamic_rendezvous *rendezvous);

void agent_dynamic_rendezvous_join(struct agent_dynamic_rendezvous *rendezvous, int64_t ticket);
void agent_dynamic_rendezvous_enter_barrier(struct agent_dynamic_rendezvous *rendezvous);
void agent_dynamic_rendezvous_announce_restart(
    struct agent_dynamic_rendezvous *rendezvous, const struct failure_account *account);
void agent_dynamic_rendezvous_doubt_failure(
    struct agent_dynamic_rendezvous *rendezvous, const struct failure_account *account);
void agent_dynamic_rendezvous_announce_failure(
    struct agent_dynamic_rendezvous *rendezvous, const struct failure_account *account);
void agent_dynamic_rendezvous_announce_leave(struct agent_dynamic_rendezvous *rendezvous);
void agent_dynamic_rendezvous_announce_success(struct agent_dynamic_rendezvous *rendezvous);

/* Calls `settled` once the record says what was announced, or can no longer; a host stays for the
 * others, for a bounded time. */
void agent_dynamic_rendezvous_settle(
    struct agent_dynamic_rendezvous *rendezvous, void (*settled)(void *context), void *context);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Which worker failed first in a round, over all nodes: the first account that reaches the store is
 * the root cause, and every node reads the same one. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_ROOT_CAUSE_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_ROOT_CAUSE_H

#include <stdint.h>

#include "base/log.h"
#include "core/failure/failure_report.h"
#include "host/rendezvous/rendezvous_backend.h"

struct agent_root_cause;

struct agent_root_cause_settings {
    const char *run_id; /* borrowed */
    const struct log *log;
    struct duration answer_timeout;
    /* Another node's failure came first; borrowed for the call. */
    void (*learnt)(void *context, const struct failure_account *account);
    /* The look asked for last is over: what there was has been learnt. Perhaps from inside. */
    void (*looked)(void *context);
    void *context;
};

/* `backend` is borrowed. Never NULL. */
struct agent_root_cause *agent_root_cause_new(
    struct rendezvous_backend *backend, const struct agent_root_cause_settings *settings);
/* Only after the backend has been freed, so that nothing is under way. NULL is fine. */
void agent_root_cause_free(struct agent_root_cause *root_cause);

/* Writes the account down unless another one is there, which is learnt then. */
void agent_root_cause_publish(
    struct agent_root_cause *root_cause, int64_t round, const struct failure_account *account);

/* Looks whether the round has one; answered by looked. Takes the place of a look under way. */
void agent_root_cause_look(struct agent_root_cause *root_cause, int64_t round);

#endif

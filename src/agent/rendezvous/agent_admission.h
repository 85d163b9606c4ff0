/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells nodes that wait beside a running world when they are let in, where that takes long. The
 * node that is to admit them says it in its log and in a key of the store; who waits reads that key
 * before it says that it waits. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_ADMISSION_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_ADMISSION_H

#include "base/log.h"
#include "base/text.h"
#include "core/rendezvous/rendezvous_regroup.h"
#include "host/loop/event_loop.h"
#include "host/rendezvous/rendezvous_backend.h"

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

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The static rendezvous' effects as store requests, and the store's replies as its events. Spelling
 * alone: what is asked and what follows is core/static_rendezvous's business. */
#ifndef MUSTER_WIRE_STATIC_RENDEZVOUS_STORE_H
#define MUSTER_WIRE_STATIC_RENDEZVOUS_STORE_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/static_rendezvous.h"
#include "core/store_request.h"
#include "wire/owned_request.h"

/* Whether the effect is a store request at all; the others are the performer's own business. */
bool static_effect_is_request(const struct static_effect *effect);

/* Fills `out_request` for such an effect. owned_request_clear when it has been sent. */
void static_request_build(const struct static_effect *effect,
    const struct static_settings *settings, const char *run_id, struct owned_request *out_request);

/* An event and what it borrows. */
struct static_answer {
    struct static_event event; /* without its time */
    struct role_info *role_infos;
    size_t role_info_count;
    char *text;
};

/* Whether the reply to this effect's request is an event; else only its failure is news. */
bool static_effect_wants_answer(const struct static_effect *effect);

/* Reads the reply. FAILURE_PROTOCOL for one that makes no sense: then the performer reports
 * STATIC_EVENT_CONNECTION_LOST. static_answer_clear after the step. */
__attribute__((warn_unused_result)) enum failure_code static_answer_read(
    const struct static_effect *effect, const struct store_reply *reply,
    struct static_answer *out_answer);
void static_answer_clear(struct static_answer *answer);

#endif

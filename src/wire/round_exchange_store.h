/* SPDX-License-Identifier: BSD-3-Clause */
/* The round exchange's effects as store requests, and the store's replies as its events. Spelling
 * alone: what is asked and what follows is core/round_exchange's business. */
#ifndef MUSTER_WIRE_ROUND_EXCHANGE_STORE_H
#define MUSTER_WIRE_ROUND_EXCHANGE_STORE_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/round_exchange.h"
#include "core/store_request.h"
#include "wire/owned_request.h"

/* Whether the effect is a store request at all; the others are the performer's own business. */
bool round_effect_is_request(const struct round_effect *effect);

/* Fills `out_request` for such an effect. owned_request_clear when it has been sent. */
void round_request_build(
    const struct round_effect *effect, const char *run_id, struct owned_request *out_request);

/* What a reply is to be read against, when the effect itself is gone. */
struct round_question {
    enum round_effect_kind kind;
    int64_t round;
    struct round_key key;
};

struct round_question round_question_of(const struct round_effect *effect);

/* An event and what it borrows. */
struct round_answer {
    struct round_event event; /* without its time */
    struct role_info *role_infos;
    size_t role_info_count;
    struct text_list texts;
};

/* Whether the reply to this effect's request is an event; else only its failure is news. */
bool round_effect_wants_answer(enum round_effect_kind kind);

/* Reads the reply. What another node wrote and makes no sense is in the event as such.
 * FAILURE_PROTOCOL for a reply that no store gives to this request: then the performer gives up the
 * connection. round_answer_clear after the step. */
__attribute__((warn_unused_result)) enum failure_code round_answer_read(
    const struct round_question *question, const struct store_reply *reply,
    struct round_answer *out_answer);
void round_answer_clear(struct round_answer *answer);

#endif

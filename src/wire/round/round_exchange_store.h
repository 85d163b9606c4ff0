/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts the round exchange's effects to store requests, and the store's replies to its events.
 * This module only spells; core/round_exchange decides what is asked and what follows. */
#ifndef MUSTER_WIRE_ROUND_ROUND_EXCHANGE_STORE_H
#define MUSTER_WIRE_ROUND_ROUND_EXCHANGE_STORE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/round/round_exchange.h"
#include "core/store/store_request.h"
#include "core/workers/worker_group.h"
#include "wire/store/store_codec.h"

/* Of one node: so many addresses are more than any machine has. */
#define RANK_JSON_ADDRESSES_MAXIMUM_SIZE 4096u

/* Builds the request of an effect from SET_ROLE_INFO to WAIT. The performer carries out all other
 * effects itself. The caller clears it with owned_request_clear after it has
 * been sent. */
void round_request_build(
    const struct round_effect *effect, const char *run_id, struct owned_request *out_request);

/* What is needed to read a reply after the effect itself has been freed. */
struct round_question {
    enum round_effect_kind kind;
    int64_t round;
    struct round_key key;
};

struct round_question round_question_of(const struct round_effect *effect);

/* An event and the memory it borrows from. */
struct round_answer {
    struct round_event event; /* its time is not filled in */
    struct role_info *role_infos;
    size_t role_info_count;
    struct text_list texts;
};

/* Whether the reply to this effect's request becomes an event. If not, only its failure matters. */
bool round_effect_wants_answer(enum round_effect_kind kind);

/* Reads the reply. Text of another node that makes no sense is passed on in the event.
 * FAILURE_PROTOCOL for a reply that no store gives to this request; the performer then gives up the
 * connection. The caller calls round_answer_clear after the step. */
__attribute__((warn_unused_result)) enum failure_code round_answer_read(
    const struct round_question *question, const struct store_reply *reply,
    struct round_answer *out_answer);
void round_answer_clear(struct round_answer *answer);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* What follows from the store's replies: the next question, an event for the machine, or the end
 * when the content of the store cannot be used. This is a part of rendezvous_record_store and is
 * not used elsewhere. Other programs may have written what a reply contains, so it is not
 * trusted. */
#ifndef MUSTER_WIRE_RENDEZVOUS_RECORD_ANSWER_H
#define MUSTER_WIRE_RENDEZVOUS_RECORD_ANSWER_H

#include "core/store/store_request.h"
#include "wire/rendezvous/record_effects.h"
#include "wire/rendezvous/record_request.h"

struct rendezvous_record_store;

/* The lanes are open: asks what must be known before the record is read. */
void record_answer_greet(struct rendezvous_record_store *store, struct record_effects *effects);
void record_answer_take(struct rendezvous_record_store *store, enum record_question_kind kind,
    const struct store_reply *reply, struct record_effects *effects);
/* The reply was longer than the longest possible record; `message` says so. */
void record_answer_take_excess(struct rendezvous_record_store *store,
    enum record_question_kind kind, const char *message, struct record_effects *effects);

#endif

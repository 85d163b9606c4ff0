/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared record as torchrun's nodes store it: base64 of a pickled _RendezvousState. Matches
 * that class and _NodeDesc in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py, and
 * C10dRendezvousBackend in c10d_rendezvous_backend.py. Muster adds attributes of its own, muster_*,
 * which torchrun's nodes preserve; an attribute is left out where it would say nothing. Attributes
 * with other names are ignored, and are lost when the record is written again.
 *
 * Reading calls nothing and constructs nothing (wire/pickle_reader). Each reason is one line that
 * is made to follow "the record in the store: ". */
#ifndef MUSTER_WIRE_RENDEZVOUS_RENDEZVOUS_STATE_PICKLE_H
#define MUSTER_WIRE_RENDEZVOUS_RENDEZVOUS_STATE_PICKLE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/rendezvous/rendezvous_state.h"

/* The value in the store while there is no record yet (C10dRendezvousBackend._NULL_SENTINEL). */
#define RENDEZVOUS_STATE_ABSENT "Y2FuaW1hZGFt"

/* The maximum size of the base64 text. RENDEZVOUS_NODES_MAXIMUM nodes with the longest addresses
 * fit. */
#define RENDEZVOUS_STATE_TEXT_MAXIMUM ((size_t)64 << 20)

/* The ages of restarts, as a text: numbers with a blank between them. Writes those that fit into so
 * many bytes. Returns false, and leaves `out_ages` as it is, for another text. */
#define RESTART_AGES_TEXT_MAXIMUM ((size_t)RESTART_HISTORY_MAXIMUM * 9)
void restart_ages_write(const struct restart_ages *ages, size_t bytes, struct text *out);
bool restart_ages_read(struct slice text, struct restart_ages *out_ages);

/* Reads the store's value. `*out_is_absent` says whether it is RENDEZVOUS_STATE_ABSENT; the state
 * is then empty. On success `out_state` is cleared before it is filled. On failure only
 * `out_reason` changes: one line is appended. FAILURE_MALFORMED: the value is not base64, not a
 * pickle or not a state (an attribute is missing or has another type). FAILURE_UNSUPPORTED: the
 * pickle has another protocol, or classes that no record contains. FAILURE_LIMIT: too long, too
 * many nodes, or a number or date out of range. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_state_read_text(struct slice input,
    bool *out_is_absent, struct rendezvous_state *out_state, struct text *out_reason);

/* The same for the bare pickle. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_state_read_pickle(
    struct slice input, struct rendezvous_state *out_state, struct text *out_reason);

/* Appends the store's value, in base64. Dates are rounded down to microseconds. Bytes of a `reason`
 * that are not UTF-8 are replaced. FAILURE_INVALID for an address that is not UTF-8, because Python
 * could then not read the record any more. FAILURE_LIMIT at the buffer's ceiling or beyond
 * RENDEZVOUS_STATE_TEXT_MAXIMUM. On failure the buffer is as it was. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_state_write_text(
    const struct rendezvous_state *state, struct bytes *out);

/* Appends the bare pickle, protocol 4. Fails as above. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_state_write_pickle(
    const struct rendezvous_state *state, struct bytes *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared record as torchrun's nodes store it: base64 of a pickled _RendezvousState. Matches
 * that class and _NodeDesc in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py, and
 * C10dRendezvousBackend in c10d_rendezvous_backend.py. Muster's own part of the record are further
 * attributes, muster_*, which torchrun's nodes carry along; they are left out where they would say
 * nothing. Attributes of other names are ignored, and gone once the record is written again.
 *
 * Reading calls nothing and constructs nothing (wire/pickle_reader). Reasons are one line, meant to
 * follow "the record in the store: ". */
#ifndef MUSTER_WIRE_RENDEZVOUS_STATE_PICKLE_H
#define MUSTER_WIRE_RENDEZVOUS_STATE_PICKLE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/rendezvous_state.h"

/* What stands in the store before there is a record (C10dRendezvousBackend._NULL_SENTINEL). */
#define RENDEZVOUS_STATE_ABSENT "Y2FuaW1hZGFt"

/* Ceiling of the base64 text; RENDEZVOUS_NODES_MAXIMUM nodes with the longest addresses fit. */
#define RENDEZVOUS_STATE_TEXT_MAXIMUM ((size_t)64 << 20)

/* Reads the store's value. `*out_is_absent` says whether it is RENDEZVOUS_STATE_ABSENT; the state
 * is then the empty one. On success `out_state` is cleared before it is filled; on failure nothing
 * has changed but `out_reason`, to which a line was appended. FAILURE_MALFORMED: no base64, no
 * pickle, or no state: an attribute is missing or of another type. FAILURE_UNSUPPORTED: a pickle,
 * but of another protocol or with classes no record holds. FAILURE_LIMIT: too long, too many nodes,
 * a number or date out of range. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_state_read_text(struct slice input,
    bool *out_is_absent, struct rendezvous_state *out_state, struct text *out_reason);

/* The same for the bare pickle. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_state_read_pickle(
    struct slice input, struct rendezvous_state *out_state, struct text *out_reason);

/* Appends the store's value, base64. Dates are rounded down to microseconds; a `reason` that is no
 * UTF-8 is made so. FAILURE_INVALID for an address that is no UTF-8 (Python could not read the
 * record any more), FAILURE_LIMIT at the buffer's ceiling or beyond RENDEZVOUS_STATE_TEXT_MAXIMUM;
 * the buffer is then as it was. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_state_write_text(
    const struct rendezvous_state *state, struct bytes *out);

/* Appends the bare pickle, protocol 4. Failures as above. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_state_write_pickle(
    const struct rendezvous_state *state, struct bytes *out);

#endif

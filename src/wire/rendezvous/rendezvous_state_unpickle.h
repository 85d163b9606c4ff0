/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts the values of a pickle to the shared record. This is the reading half of
 * rendezvous_state_pickle, whose header says what is read and what is refused. */
#ifndef MUSTER_WIRE_RENDEZVOUS_RENDEZVOUS_STATE_UNPICKLE_H
#define MUSTER_WIRE_RENDEZVOUS_RENDEZVOUS_STATE_UNPICKLE_H

#include "base/failure.h"
#include "base/text.h"
#include "core/rendezvous/rendezvous_state.h"
#include "wire/pickle/pickle_document.h"

/* Larger round numbers, ranks and counters of Muster are refused. */
#define RENDEZVOUS_STATE_LARGEST_NUMBER INT32_MAX

/* Reads the document's root. `out_state` must be empty. On failure it is untouched, and one line is
 * appended to `out_reason`. FAILURE_MALFORMED: it is not a state, an attribute is missing or has
 * another type. FAILURE_LIMIT: too many nodes, or a number, date or address out of range. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_state_unpickle(
    const struct pickle_document *document, struct rendezvous_state *out_state,
    struct text *out_reason);

#endif

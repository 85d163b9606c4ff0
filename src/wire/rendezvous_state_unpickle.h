/* SPDX-License-Identifier: BSD-3-Clause */
/* From a pickle's values to the shared record: the reading half of rendezvous_state_pickle, which
 * says what is read and refused. */
#ifndef MUSTER_WIRE_RENDEZVOUS_STATE_UNPICKLE_H
#define MUSTER_WIRE_RENDEZVOUS_STATE_UNPICKLE_H

#include "base/failure.h"
#include "base/text.h"
#include "core/rendezvous_state.h"
#include "wire/pickle_document.h"

/* Round numbers, ranks and Muster's counters that are larger are refused. */
#define RENDEZVOUS_STATE_LARGEST_NUMBER INT32_MAX

/* Reads the document's root. `out_state` must be empty; on failure it is untouched, and one line is
 * appended to `out_reason`. FAILURE_MALFORMED: no state, an attribute is missing or of another
 * type; FAILURE_LIMIT: too many nodes, a number, date or address out of range. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_state_unpickle(
    const struct pickle_document *document, struct rendezvous_state *out_state,
    struct text *out_reason);

#endif

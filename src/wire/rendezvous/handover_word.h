/* SPDX-License-Identifier: BSD-3-Clause */
/* What a host of the store that leaves tells its nodes, in the queue in which it tells those that
 * delegate how they stand (delegation_text.h). One word each. Where the store is from then on, a
 * node reads in the job's register. */
#ifndef MUSTER_WIRE_RENDEZVOUS_HANDOVER_WORD_H
#define MUSTER_WIRE_RENDEZVOUS_HANDOVER_WORD_H

#include <stdbool.h>

#include "base/bytes.h"

enum handover_word {
    HANDOVER_NAMED, /* "named": this node is to claim the place of its host */
    HANDOVER_MOVED, /* "moved": another node has claimed it */
    HANDOVER_WORD_COUNT,
};

const char *handover_word_text(enum handover_word word);
/* Returns false, and leaves `out_word` as it is, for every other text. */
bool handover_word_read(struct slice text, enum handover_word *out_word);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node that hosts the job's store no more answers to "who is host?": the term that it knows
 * of, and where the host of that term listens. The text is the value of the key
 * rendezvous_key_write_host, the only one that a node serves that stands by:
 *
 *     {"muster_host": 1, "term": 3, "place": "29400 node7.local 10.0.0.7"}
 *
 * A node that knows of no host leaves the place out. No node asks it: the register says who is
 * host. It is for somebody who looks for the reason why a node serves nobody. */
#ifndef MUSTER_WIRE_RENDEZVOUS_HOST_ANSWER_H
#define MUSTER_WIRE_RENDEZVOUS_HOST_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/text.h"
#include "core/rendezvous/endpoint_match.h"

struct host_answer {
    int64_t term;            /* 0: it knows of no term */
    struct host_place place; /* names are NULL: it knows of no host */
};

void host_answer_clear(struct host_answer *answer);

/* Appends the text. */
void host_answer_write(const struct host_answer *answer, struct text *out);

/* What a host of the store that leaves tells its nodes, in the queue in which it tells those that
 * delegate how they stand (delegation_text.h). One word each. Where the store is from then on, a
 * node reads in the job's register. */

enum handover_word {
    HANDOVER_NAMED, /* "named": this node is to claim the place of its host */
    HANDOVER_MOVED, /* "moved": another node has claimed it */
    HANDOVER_WORD_COUNT,
};

const char *handover_word_text(enum handover_word word);
/* Returns false, and leaves `out_word` as it is, for every other text. */
bool handover_word_read(struct slice text, enum handover_word *out_word);

#endif

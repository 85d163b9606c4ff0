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

#include <stdint.h>

#include "base/text.h"
#include "core/rendezvous/endpoint_match.h"

struct host_answer {
    int64_t term;            /* 0: it knows of no term */
    struct host_place place; /* names are NULL: it knows of no host */
};

void host_answer_clear(struct host_answer *answer);

/* Appends the text. */
void host_answer_write(const struct host_answer *answer, struct text *out);

#endif

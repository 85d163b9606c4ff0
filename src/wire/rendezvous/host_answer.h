/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node answers to "who is host?": the term that it knows of, and where the host of that term
 * listens. The text is the value of the key rendezvous_key_write_host, which every node of such a
 * job serves, whether it hosts the store or stands by:
 *
 *     {"muster_host": 1, "term": 3, "place": "29400 node7.local 10.0.0.7"}
 *
 * A node that knows of no host leaves the place out. */
#ifndef MUSTER_WIRE_RENDEZVOUS_HOST_ANSWER_H
#define MUSTER_WIRE_RENDEZVOUS_HOST_ANSWER_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/rendezvous/host_place.h"

/* The longest text that is read. */
#define HOST_ANSWER_MAXIMUM_SIZE ((size_t)8192)

struct host_answer {
    int64_t term;            /* 0: it knows of no term */
    struct host_place place; /* names are NULL: it knows of no host */
};

void host_answer_clear(struct host_answer *answer);

/* Appends the text. */
void host_answer_write(const struct host_answer *answer, struct text *out);

/* FAILURE_MALFORMED for another text, FAILURE_UNSUPPORTED for one of another version, FAILURE_LIMIT
 * for one that is too long. */
__attribute__((warn_unused_result)) enum failure_code host_answer_read(
    struct slice text, struct host_answer *out_answer);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a node listens that hosts the job's store, or may come to host it: a port, and the names
 * and addresses by which other machines find this one, the best first. As text it is
 * "29400 node7.local 10.0.0.7 fd00::7", which is what nodes announce of themselves. Values only. */
#ifndef MUSTER_CORE_RENDEZVOUS_HOST_PLACE_H
#define MUSTER_CORE_RENDEZVOUS_HOST_PLACE_H

#include <stddef.h>

#include "base/failure.h"
#include "base/text.h"

#define HOST_PLACE_TEXT_MAXIMUM ((size_t)4096)

struct host_place {
    int port;
    char *names; /* parted by single blanks; at least one */
};

void host_place_clear(struct host_place *place);

/* Appends the text. */
void host_place_write(int port, const char *names, struct text *out);

/* Reads the text, which another node has chosen. FAILURE_MALFORMED unless it is a port from 1 to
 * 65535 and names of letters, digits and ".-_:%", parted by single blanks; FAILURE_LIMIT for a text
 * that is too long. */
__attribute__((warn_unused_result)) enum failure_code host_place_parse(
    const char *text, struct host_place *out_place);

#endif

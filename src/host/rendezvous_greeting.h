/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node asks a store before it reads its job's record: whether presence is served there,
 * whether the job under its id is this one, and that there be a record at all. A part of
 * rendezvous_backend; not for others. */
#ifndef MUSTER_HOST_RENDEZVOUS_GREETING_H
#define MUSTER_HOST_RENDEZVOUS_GREETING_H

#include <stdbool.h>

#include "base/duration.h"
#include "host/rendezvous_lanes.h"

struct rendezvous_greeting {
    struct rendezvous_lanes *lanes; /* borrowed, as all of this */
    const char *run_id;
    int minimum_nodes;
    int maximum_nodes;
    struct duration answer_timeout;
    bool has_presence;
    void (*greeted)(void *context, bool has_presence);
    void (*refused)(void *context, const char *reason); /* another job has this id */
    /* No answer to be used, FAILURE_CANCELLED included. */
    void (*failed)(void *context, const struct store_client_result *result);
    void *context;
};

/* Once the lanes are connected; ends with one of the three callbacks. */
void rendezvous_greeting_begin(struct rendezvous_greeting *greeting);

#endif

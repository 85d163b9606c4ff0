/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether signs of life have to be sent over a connection. A network that loses packets needs them:
 * of the kernel's own probes the first ones that are lost count, while a sign is sent again and
 * again until it is acknowledged (core/store/connection_silence). Where no packet was lost for
 * long, the connection is calm: the probes of both kernels tell as much as signs would, and they
 * wake no process. A host with thousands of nodes does nothing then. The first packet that is lost
 * ends the calm.
 *
 * This module decides. Who has the connection measures, at each of its looks. TorchElastic has
 * nothing like it. */
#ifndef MUSTER_CORE_STORE_CONNECTION_CALM_H
#define MUSTER_CORE_STORE_CONNECTION_CALM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"

/* A zeroed struct is valid: nothing is known of the connection. */
struct connection_calm {
    struct instant since; /* no packet was lost after this */
    uint32_t resent;      /* packets that were sent again until then */
    bool has_begun;
};

/* What was heard of the connection: since when nothing, and how many packets were sent again. */
struct connection_hearing {
    struct duration silent_for;
    uint32_t resent;
};

/* One look. Whether the connection is calm: no packet was lost for `after`. */
bool connection_calm_look(struct connection_calm *calm, struct connection_hearing hearing,
    struct duration after, struct instant now);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the machine at the other end of a connection is gone, judged by how long its kernel has
 * not been heard: no new data came from it, and nothing sent was acknowledged. This is a matter of
 * evidence, because a network loses packets. So somebody has to send data over the connection all
 * the time (a sign of life, at each look), which TCP sends again and again until it is
 * acknowledged. A silence of more than the limit only raises doubt. The machine is gone when it is
 * still silent at a second look. So a process or a machine that itself was stopped for a while
 * doubts everybody when it goes on, and takes nobody for gone.
 *
 * From its last sign of life until it is taken for gone, it takes `limit` and half a second, and up
 * to a second more where the limit is below two seconds.
 *
 * This module decides. Who has the connection measures the silence, and looks again when
 * connection_silence_pause says. TorchElastic has nothing like it. */
#ifndef MUSTER_CORE_STORE_CONNECTION_SILENCE_H
#define MUSTER_CORE_STORE_CONNECTION_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"

/* The longest time between two looks at a connection. */
#define CONNECTION_SILENCE_LOOK_MILLISECONDS 1000
/* How long after the first look that raised doubt the second one follows. */
#define CONNECTION_SILENCE_DOUBT_MILLISECONDS 500

/* Whether a silence is longer than usual where something is heard in each second: a packet was
 * lost, at least. */
bool connection_silence_is_unusual(struct duration silent_for);

/* A zeroed struct is valid: there is no doubt. */
struct connection_silence {
    bool is_doubted;
    struct instant doubted_at;
    struct instant heard_until; /* before then it cannot have been silent for the limit */
};

/* Whether the silence need not be measured now: it cannot pass the limit before the next look. */
bool connection_silence_rests(const struct connection_silence *silence, struct instant now);

/* One look. `silent_for` is the measured silence. Whether the other machine is gone: it has been
 * silent for more than `limit`, now and at every look since the doubt began. */
bool connection_silence_look(struct connection_silence *silence, struct duration silent_for,
    struct duration limit, struct instant now);

/* After how long to look again; call it after a look, with the same values. */
struct duration connection_silence_pause(const struct connection_silence *silence,
    struct duration silent_for, struct duration limit, struct instant now);

/* How much earlier than after `pause` the look may come: not at all when it is at the moment at
 * which doubt begins or ends. */
struct duration connection_silence_earliest(struct duration pause);

/* Whether signs of life have to be sent over a connection. A network that loses packets needs them:
 * of the kernel's own probes the first ones that are lost count, while a sign is sent again and
 * again until it is acknowledged (core/store/connection_silence). Where no packet was lost for
 * long, the connection is calm: the probes of both kernels tell as much as signs would, and they
 * wake no process. A host with thousands of nodes does nothing then. The first packet that is lost
 * ends the calm.
 *
 * This module decides. Who has the connection measures, at each of its looks. TorchElastic has
 * nothing like it. */

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

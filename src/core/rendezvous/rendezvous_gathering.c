/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_gathering.h"

/* A record of fewer participants costs little. */
#define LISTED_LEAST 8
/* How long a node may wait to be in the record. */
#define GATHER_MILLISECONDS 100

void rendezvous_gathering_look(struct rendezvous_gathering *gathering, size_t participants) {
    gathering->listed = participants;
}

void rendezvous_gathering_hear(
    struct rendezvous_gathering *gathering, bool is_newcomer, struct instant now) {
    if (!is_newcomer) {
        gathering->is_urgent = true;
        return;
    }
    if (gathering->newcomers++ == 0) {
        moment_set_after(&gathering->end, now, duration_from_milliseconds(GATHER_MILLISECONDS));
    }
}

/* Whether the newcomers bring the round to this size. */
static bool would_reach(const struct rendezvous_gathering *gathering, int64_t size) {
    int64_t listed = (int64_t)gathering->listed;
    return listed < size && listed + (int64_t)gathering->newcomers >= size;
}

bool rendezvous_gathering_holds(const struct rendezvous_gathering *gathering,
    const struct rendezvous_state *seen, const struct rendezvous_settings *settings,
    struct instant now) {
    return gathering->newcomers > 0 && !gathering->is_urgent && !seen->is_complete &&
           !seen->is_closed && gathering->listed >= LISTED_LEAST &&
           gathering->newcomers < gathering->listed / 2 &&
           !would_reach(gathering, settings->minimum_nodes) &&
           !would_reach(gathering, settings->maximum_nodes) &&
           !would_reach(gathering, seen->wanted) && !moment_has_come(&gathering->end, now);
}

void rendezvous_gathering_end(struct rendezvous_gathering *gathering) {
    gathering->newcomers = 0;
    gathering->is_urgent = false;
    moment_clear(&gathering->end);
}

void rendezvous_gathering_wake(
    const struct rendezvous_gathering *gathering, struct instant now, struct moment *next) {
    moment_wake(&gathering->end, now, next);
}

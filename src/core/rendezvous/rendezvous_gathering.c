/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_gathering.h"

/* A record of fewer participants costs little. */
#define LISTED_LEAST 8
/* How long a node may wait to be in the record. Of a round that runs: as long as those who wait are
 * gathered before they are admitted. Of an open round: shortly while its last call is on, and else
 * long, since the round begins when it is whole. A job whose nodes start at once is written once.
 */
#define GATHER_RUNNING_MILLISECONDS 10
#define GATHER_LAST_CALL_MILLISECONDS 100
#define GATHER_SOON_MILLISECONDS 1000
#define GATHER_MILLISECONDS 5000

void rendezvous_gathering_look(struct rendezvous_gathering *gathering, size_t participants) {
    gathering->listed = participants;
}

static void begin(struct rendezvous_gathering *gathering, const struct rendezvous_state *seen,
    struct instant now) {
    int milliseconds = seen->is_complete    ? GATHER_RUNNING_MILLISECONDS
                       : seen->has_deadline ? GATHER_LAST_CALL_MILLISECONDS
                                            : GATHER_MILLISECONDS;
    moment_set_after(&gathering->end, now, duration_from_milliseconds(milliseconds));
    if (milliseconds == GATHER_MILLISECONDS) {
        moment_set_after(
            &gathering->soon, now, duration_from_milliseconds(GATHER_SOON_MILLISECONDS));
    }
}

void rendezvous_gathering_hear(struct rendezvous_gathering *gathering, bool is_newcomer,
    const struct rendezvous_state *seen, struct instant now) {
    if (!is_newcomer) {
        gathering->is_urgent = true;
        return;
    }
    if (gathering->newcomers++ == 0) {
        begin(gathering, seen, now);
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
    if (gathering->newcomers == 0 || gathering->is_urgent || seen->is_closed ||
        gathering->listed < LISTED_LEAST || moment_has_come(&gathering->end, now)) {
        return false;
    }
    bool are_few = gathering->newcomers < gathering->listed / 2 ||
                   (gathering->soon.is_set && !moment_has_come(&gathering->soon, now));
    return seen->is_complete || (are_few && !would_reach(gathering, settings->minimum_nodes) &&
                                    !would_reach(gathering, settings->maximum_nodes) &&
                                    !would_reach(gathering, seen->wanted));
}

bool rendezvous_gathering_end(struct rendezvous_gathering *gathering, struct instant now) {
    bool has_waited = moment_has_come(&gathering->end, now);
    gathering->newcomers = 0;
    gathering->is_urgent = false;
    moment_clear(&gathering->soon);
    moment_clear(&gathering->end);
    return has_waited;
}

void rendezvous_gathering_wake(
    const struct rendezvous_gathering *gathering, struct instant now, struct moment *next) {
    moment_wake(&gathering->soon, now, next);
    moment_wake(&gathering->end, now, next);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_patience.h"

/* How long after the join deadline torchrun's rules still take a node out of the record. */
#define ROLLBACK_SECONDS 5

void rendezvous_patience_begin(
    struct rendezvous_patience *patience, struct instant now, struct duration join_timeout) {
    if (!patience->join_deadline.is_set) {
        rendezvous_patience_prolong(patience, now, join_timeout);
    }
}

void rendezvous_patience_prolong(
    struct rendezvous_patience *patience, struct instant now, struct duration join_timeout) {
    moment_set_after(&patience->join_deadline, now, join_timeout);
    moment_clear(&patience->rollback_deadline);
}

void rendezvous_patience_end(struct rendezvous_patience *patience) {
    moment_clear(&patience->join_deadline);
}

bool rendezvous_patience_is_late(
    struct rendezvous_patience *patience, size_t participants, struct instant now) {
    bool is_late = moment_has_come(&patience->join_deadline, now);
    if (is_late && !patience->rollback_deadline.is_set) {
        patience->size_when_late = participants;
        moment_set_after(
            &patience->rollback_deadline, now, duration_from_seconds(ROLLBACK_SECONDS));
    }
    return is_late;
}

void rendezvous_patience_count_again(struct rendezvous_patience *patience) {
    moment_clear(&patience->rollback_deadline);
}

bool rendezvous_patience_is_too_late(
    const struct rendezvous_patience *patience, struct instant now) {
    return moment_has_come(&patience->join_deadline, now) &&
           moment_has_come(&patience->rollback_deadline, now);
}

bool rendezvous_patience_is_last_call_over(struct rendezvous_patience *patience,
    const struct rendezvous_state *seen, struct instant now, struct duration last_call_timeout) {
    if (seen->is_complete || !seen->has_deadline) {
        moment_clear(&patience->last_call);
        return false;
    }
    if (!patience->last_call.is_set || patience->last_call_round != seen->round ||
        patience->last_call_deadline.nanoseconds != seen->deadline.nanoseconds) {
        patience->last_call_round = seen->round;
        patience->last_call_deadline = seen->deadline;
        moment_set_after(&patience->last_call, now, last_call_timeout);
    }
    return moment_has_come(&patience->last_call, now);
}

void rendezvous_patience_begin_end(
    struct rendezvous_patience *patience, struct instant now, struct duration close_timeout) {
    moment_set_after(&patience->settle_deadline, now, close_timeout);
}

bool rendezvous_patience_has_ended(const struct rendezvous_patience *patience, struct instant now) {
    return moment_has_come(&patience->settle_deadline, now);
}

void rendezvous_patience_wake(
    const struct rendezvous_patience *patience, struct instant now, struct moment *next) {
    moment_wake(&patience->settle_deadline, now, next);
    moment_wake(&patience->last_call, now, next);
    moment_wake(&patience->join_deadline, now, next);
    moment_wake(&patience->rollback_deadline, now, next);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_growth.h"

#define NO_ROUND (-1)
/* Nodes that come within this time are admitted together. */
#define GATHER_MILLISECONDS 10
/* When the round loses nodes within this time after an admission, the next admission waits, longer
 * each time. */
#define SHORT_STAY_SECONDS 10
#define LONG_STAY_SECONDS 60
#define PENALTY_MAXIMUM_SECONDS 60

void rendezvous_growth_init(struct rendezvous_growth *growth) {
    *growth = (struct rendezvous_growth){.round = NO_ROUND};
}

/* A larger world is usual when it has stayed for a short time, a smaller one after a long time. */
static void look_at_usual_size(struct rendezvous_growth *growth, size_t size, double lived) {
    bool is_larger = growth->size > growth->usual_size;
    if (growth->round == NO_ROUND) {
        growth->usual_size = size;
    } else if (lived >= (is_larger ? SHORT_STAY_SECONDS : LONG_STAY_SECONDS)) {
        growth->usual_size = growth->size;
    }
}

void rendezvous_growth_look(
    struct rendezvous_growth *growth, const struct rendezvous_state *seen, struct instant now) {
    if (!seen->is_complete || seen->round == growth->round) {
        return;
    }
    size_t size = rendezvous_state_participants(seen);
    double lived = duration_seconds(instant_until(growth->began, now));
    double penalty = duration_seconds(growth->penalty);
    look_at_usual_size(growth, size, lived);
    bool was_larger = growth->size > growth->usual_size;
    if (growth->has_grown && was_larger && size < growth->size && lived < SHORT_STAY_SECONDS) {
        penalty = penalty < 1 ? 1 : penalty * 2;
        penalty = penalty > PENALTY_MAXIMUM_SECONDS ? PENALTY_MAXIMUM_SECONDS : penalty;
    } else if (lived >= LONG_STAY_SECONDS) {
        penalty = 0;
    }
    growth->penalty = duration_from_seconds(penalty);
    growth->has_grown = growth->round != NO_ROUND && size > growth->size;
    growth->began = now;
    growth->round = seen->round;
    growth->size = size;
}

void rendezvous_growth_note_gathered(struct rendezvous_growth *growth) {
    growth->are_gathered = true;
}

/* Who replaces a lost node makes the world what it was. */
static struct duration penalty_due(const struct rendezvous_growth *growth) {
    return growth->size < growth->usual_size ? (struct duration){0} : growth->penalty;
}

static struct instant admission_time(
    const struct rendezvous_growth *growth, struct instant now, struct duration scale_up_interval) {
    struct duration patience = duration_from_milliseconds(GATHER_MILLISECONDS);
    struct instant gathered = growth->are_gathered ? now : instant_after(now, patience);
    struct instant allowed =
        instant_after(instant_after(growth->began, scale_up_interval), penalty_due(growth));
    return instant_is_before(allowed, gathered) ? gathered : allowed;
}

bool rendezvous_growth_is_due(struct rendezvous_growth *growth, bool is_wanted, struct instant now,
    struct duration scale_up_interval) {
    if (is_wanted && !growth->admission_at.is_set) {
        moment_set(&growth->admission_at, admission_time(growth, now, scale_up_interval));
    }
    bool is_due = is_wanted && moment_has_come(&growth->admission_at, now);
    if (is_due || !is_wanted) {
        moment_clear(&growth->admission_at);
        growth->are_gathered = false;
    }
    return is_due;
}

struct rendezvous_admission rendezvous_growth_admission(
    const struct rendezvous_growth *growth, struct instant now, struct duration scale_up_interval) {
    struct rendezvous_admission admission = {
        .is_awaited = growth->admission_at.is_set, .at = growth->admission_at.at};
    struct instant without_pause = instant_after(growth->began, scale_up_interval);
    admission.is_paused =
        penalty_due(growth).nanoseconds > 0 && !instant_is_before(now, without_pause);
    return admission;
}

void rendezvous_growth_wake(
    const struct rendezvous_growth *growth, struct instant now, struct moment *next) {
    moment_wake(&growth->admission_at, now, next);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_failure.h"

#include <stdio.h>

#define NO_ROUND (-1)
/* How much longer than the silence timeout it takes until a machine is taken for gone
 * (core/store/connection_silence). */
#define SECOND_LOOK_SECONDS 2
/* The time that a busy machine may need to write the loss into the record and to read it. */
#define SLACK_SECONDS 2

void rendezvous_failure_init(struct rendezvous_failure *failure) {
    *failure = (struct rendezvous_failure){.answered_round = NO_ROUND};
}

void rendezvous_failure_want_restart(struct rendezvous_failure *failure, const char *reason) {
    rendezvous_failure_note(failure, reason);
    failure->stage = RENDEZVOUS_FAILURE_RESTART_WANTED;
}

void rendezvous_failure_note(struct rendezvous_failure *failure, const char *reason) {
    snprintf(failure->reason, sizeof failure->reason, "%s", reason);
}

void rendezvous_failure_doubt(
    struct rendezvous_failure *failure, struct instant now, struct duration patience) {
    failure->stage = RENDEZVOUS_FAILURE_DOUBTED;
    moment_set_after(&failure->doubt_deadline, now, patience);
}

void rendezvous_failure_end(struct rendezvous_failure *failure) {
    failure->stage = RENDEZVOUS_FAILURE_NONE;
    moment_clear(&failure->doubt_deadline);
}

bool rendezvous_failure_wants_restart(const struct rendezvous_failure *failure) {
    return failure->stage == RENDEZVOUS_FAILURE_RESTART_WANTED;
}

bool rendezvous_failure_is_doubted(const struct rendezvous_failure *failure) {
    return failure->stage >= RENDEZVOUS_FAILURE_DOUBTED;
}

bool rendezvous_failure_stands(const struct rendezvous_failure *failure, struct instant now) {
    return failure->stage == RENDEZVOUS_FAILURE_ROLL_ANSWERED ||
           moment_has_come(&failure->doubt_deadline, now);
}

bool rendezvous_failure_call_roll(struct rendezvous_failure *failure) {
    if (failure->stage != RENDEZVOUS_FAILURE_DOUBTED) {
        return false;
    }
    failure->stage = RENDEZVOUS_FAILURE_ROLL_CALLED;
    return true;
}

void rendezvous_failure_take_roll(struct rendezvous_failure *failure) {
    if (failure->stage == RENDEZVOUS_FAILURE_ROLL_CALLED) {
        failure->stage = RENDEZVOUS_FAILURE_ROLL_ANSWERED;
    }
}

void rendezvous_failure_forget_roll(
    struct rendezvous_failure *failure, struct instant now, struct duration patience) {
    failure->answered_round = NO_ROUND;
    if (rendezvous_failure_is_doubted(failure)) {
        rendezvous_failure_doubt(failure, now, patience);
    }
}

bool rendezvous_failure_answer_roll(
    struct rendezvous_failure *failure, const struct rendezvous_state *seen) {
    if (!seen->is_doubted || seen->round == failure->answered_round) {
        return false;
    }
    failure->answered_round = seen->round;
    failure->has_answered = true;
    return true;
}

struct duration rendezvous_failure_patience(
    const struct rendezvous_settings *settings, bool has_presence) {
    int64_t silence = has_presence ? settings->silence_timeout.nanoseconds +
                                         duration_from_seconds(SECOND_LOOK_SECONDS).nanoseconds
                                   : settings->keep_alive_interval.nanoseconds *
                                         (settings->keep_alive_max_attempt + 1);
    return (struct duration){silence + duration_from_seconds(SLACK_SECONDS).nanoseconds};
}

/* A record that was not begun anew has fewer restarts only if one was given back. */
static bool is_begun_anew(
    const struct rendezvous_failure *failure, const struct rendezvous_state *seen) {
    return failure->knows_restarts && seen->restarts < failure->restarts_seen &&
           seen->origin != failure->origin;
}

void rendezvous_failure_look(
    struct rendezvous_failure *failure, const struct rendezvous_state *seen, struct instant now) {
    if (is_begun_anew(failure, seen)) {
        return; /* until a node has corrected the record */
    }
    if (failure->knows_restarts && seen->restarts > failure->restarts_seen) {
        moment_set(&failure->charged_at, now);
    }
    failure->knows_restarts = true;
    failure->restarts_seen = seen->restarts;
    failure->origin = seen->origin;
}

int64_t rendezvous_failure_restarts(const struct rendezvous_failure *failure) {
    return failure->restarts_seen;
}

bool rendezvous_failure_may_be_consequence(const struct rendezvous_failure *failure,
    const struct rendezvous_state *seen, struct instant now, struct duration patience) {
    return seen->is_charged && failure->charged_at.is_set &&
           instant_until(failure->charged_at.at, now).nanoseconds <= patience.nanoseconds;
}

void rendezvous_failure_wake(
    const struct rendezvous_failure *failure, struct instant now, struct moment *next) {
    moment_wake(&failure->doubt_deadline, now, next);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/succession/succession_silence.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/succession/succession_machine.h"

#define RENEWALS_MISSED 2

static struct duration limit_of(struct duration silence_timeout) {
    int64_t least =
        duration_from_milliseconds(RENEWALS_MISSED * SUCCESSION_RENEWAL_MILLISECONDS).nanoseconds;
    int64_t limit = silence_timeout.nanoseconds -
                    duration_from_milliseconds(SUCCESSION_LOOK_MILLISECONDS).nanoseconds;
    return (struct duration){limit > least ? limit : least};
}

void succession_silence_begin(struct succession_silence *silence, struct instant now) {
    if (!silence->is_watched) {
        silence->is_watched = true;
        moment_set(&silence->look_at, now);
    }
}

void succession_silence_end(struct succession_silence *silence) {
    free(silence->renewal);
    *silence = (struct succession_silence){0};
}

bool succession_silence_is_due(const struct succession_silence *silence, struct instant now) {
    return silence->is_watched && !silence->is_looking && moment_has_come(&silence->look_at, now);
}

struct moment succession_silence_next(const struct succession_silence *silence) {
    return silence->is_watched && !silence->is_looking ? silence->look_at : (struct moment){0};
}

void succession_silence_ask(struct succession_silence *silence, struct instant now) {
    silence->is_looking = true;
    silence->asked_at = now;
    moment_set_after(
        &silence->look_at, now, duration_from_milliseconds(SUCCESSION_LOOK_MILLISECONDS));
}

/* What was seen is as old as its answer, and what is seen again is as new as its question. */
static void compare(struct succession_silence *silence, const char *renewal, struct instant now) {
    if (silence->renewal != NULL && text_equals(silence->renewal, renewal)) {
        silence->stood_for = instant_until(silence->seen_at, silence->asked_at);
        return;
    }
    free(silence->renewal);
    silence->renewal = memory_duplicate_string(renewal);
    silence->seen_at = now;
    silence->stood_for = (struct duration){0};
}

void succession_silence_take(struct succession_silence *silence, const char *renewal,
    struct duration silence_timeout, struct instant now) {
    if (!silence->is_looking) {
        return; /* of a doubt that is over */
    }
    silence->is_looking = false;
    if (renewal == NULL) {
        succession_silence_hear(silence);
        return;
    }
    compare(silence, renewal, now);
    struct instant end = instant_after(silence->seen_at, limit_of(silence_timeout));
    struct instant after_next = instant_after(
        silence->look_at.at, duration_from_milliseconds(SUCCESSION_LOOK_MILLISECONDS));
    if (instant_is_before(now, end) && instant_is_before(end, after_next)) {
        moment_set(&silence->look_at, end); /* the look that settles it comes when it can */
    }
}

void succession_silence_hear(struct succession_silence *silence) {
    free(silence->renewal);
    silence->renewal = NULL;
    silence->stood_for = (struct duration){0};
}

bool succession_silence_has_lasted(
    const struct succession_silence *silence, struct duration silence_timeout) {
    return silence->stood_for.nanoseconds >= limit_of(silence_timeout).nanoseconds;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/duration.h"

struct duration duration_from_milliseconds(int64_t milliseconds) {
    if (milliseconds > INT64_MAX / NANOSECONDS_PER_MILLISECOND) {
        return DURATION_FOREVER;
    }
    return (struct duration){milliseconds < 0 ? 0 : milliseconds * NANOSECONDS_PER_MILLISECOND};
}

struct duration duration_from_seconds(double seconds) {
    if (!(seconds > 0)) {
        return (struct duration){0};
    }
    double nanoseconds = seconds * NANOSECONDS_PER_SECOND;
    if (nanoseconds >= 9.2e18) {
        return DURATION_FOREVER;
    }
    return (struct duration){(int64_t)nanoseconds};
}

int64_t duration_milliseconds_ceiling(struct duration duration) {
    if (duration.nanoseconds == INT64_MAX) {
        return INT64_MAX;
    }
    int64_t whole = duration.nanoseconds / NANOSECONDS_PER_MILLISECOND;
    return whole + (duration.nanoseconds % NANOSECONDS_PER_MILLISECOND > 0 ? 1 : 0);
}

double duration_seconds(struct duration duration) {
    return (double)duration.nanoseconds / NANOSECONDS_PER_SECOND;
}

double duration_seconds_told(struct duration duration) {
    int64_t milliseconds = duration_milliseconds_ceiling(duration);
    return milliseconds > 100 ? (double)((milliseconds - 1) / 100 + 1) / 10
                              : (double)milliseconds / 1000;
}

struct instant instant_after(struct instant start, struct duration duration) {
    if (duration.nanoseconds > INT64_MAX - start.nanoseconds) {
        return (struct instant){INT64_MAX};
    }
    return (struct instant){start.nanoseconds + duration.nanoseconds};
}

struct duration instant_until(struct instant now, struct instant then) {
    if (then.nanoseconds <= now.nanoseconds) {
        return (struct duration){0};
    }
    return (struct duration){then.nanoseconds - now.nanoseconds};
}

bool instant_is_before(struct instant left, struct instant right) {
    return left.nanoseconds < right.nanoseconds;
}

struct instant instant_earlier(struct instant left, struct instant right) {
    return instant_is_before(right, left) ? right : left;
}

void moment_set(struct moment *moment, struct instant at) {
    *moment = (struct moment){.is_set = true, .at = at};
}

void moment_set_after(struct moment *moment, struct instant now, struct duration duration) {
    moment_set(moment, instant_after(now, duration));
}

void moment_clear(struct moment *moment) {
    moment->is_set = false;
}

bool moment_has_come(const struct moment *moment, struct instant now) {
    return moment->is_set && !instant_is_before(now, moment->at);
}

void moment_wake(const struct moment *moment, struct instant now, struct moment *next) {
    if (moment->is_set && instant_is_before(now, moment->at) &&
        (!next->is_set || instant_is_before(moment->at, next->at))) {
        *next = *moment;
    }
}

/* Backoff. */

#define BACKOFF_FIRST_MILLISECONDS 10

#define GROWTH 1.5

void backoff_init(struct backoff *backoff, uint64_t seed) {
    random_init(&backoff->random, seed);
    backoff->milliseconds = BACKOFF_FIRST_MILLISECONDS;
}

void backoff_init_within(struct backoff *backoff, uint64_t seed, struct duration patience) {
    double half = duration_seconds(patience) * 1000 / 2;
    backoff_init(backoff, seed);
    if (half > 0 && half < backoff->milliseconds) {
        backoff->milliseconds = half;
    }
}

struct duration backoff_next(struct backoff *backoff) {
    double delay = backoff->milliseconds * (0.5 + random_fraction(&backoff->random));
    backoff->milliseconds *= GROWTH;
    if (backoff->milliseconds > BACKOFF_CEILING_MILLISECONDS) {
        backoff->milliseconds = BACKOFF_CEILING_MILLISECONDS;
    }
    return duration_from_seconds(delay / 1000);
}

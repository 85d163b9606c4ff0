/* SPDX-License-Identifier: BSD-3-Clause */
/* Points and lengths of time as distinct types, so that seconds, milliseconds and clocks cannot be
 * mixed up. Nothing here reads a clock: the host floor does, and passes what it read inside events.
 */
#ifndef MUSTER_BASE_DURATION_H
#define MUSTER_BASE_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

#define NANOSECONDS_PER_MILLISECOND 1000000
#define NANOSECONDS_PER_SECOND 1000000000

/* A length of time in nanoseconds; DURATION_FOREVER never ends. */
struct duration {
    int64_t nanoseconds;
};

/* A point on this machine's monotonic clock. */
struct instant {
    int64_t nanoseconds;
};

/* A point of calendar time: nanoseconds since 1970-01-01 UTC. */
struct wall_time {
    int64_t nanoseconds;
};

#define DURATION_FOREVER ((struct duration){.nanoseconds = INT64_MAX})

struct duration duration_from_milliseconds(int64_t milliseconds);

/* Values that are too large become DURATION_FOREVER; negative values and NaN become zero. */
struct duration duration_from_seconds(double seconds);

/* Rounds up, so that a timer set to the result never fires early. DURATION_FOREVER gives
 * INT64_MAX. */
int64_t duration_milliseconds_ceiling(struct duration duration);

double duration_seconds(struct duration duration);

/* The same to be told, rounded up to tenths where it is more than one: of a timeout that somebody
 * chose a little may have passed, and in tenths the rest reads as it was chosen. */
double duration_seconds_told(struct duration duration);

/* Saturates instead of wrapping. */
struct instant instant_after(struct instant start, struct duration duration);

/* How long from `now` to `then`; zero when `then` has passed. */
struct duration instant_until(struct instant now, struct instant then);

bool instant_is_before(struct instant left, struct instant right);
struct instant instant_earlier(struct instant left, struct instant right);

/* A moment is a point in time that may be unset: a deadline, or the time of the next action. */

/* A zeroed struct is valid and unset. */
struct moment {
    bool is_set;
    struct instant at;
};

void moment_set(struct moment *moment, struct instant at);
void moment_set_after(struct moment *moment, struct instant now, struct duration duration);
void moment_clear(struct moment *moment);

bool moment_has_come(const struct moment *moment, struct instant now);

/* Sets `next`, the time of the next wake-up, to `moment` when `moment` is earlier. Ignores a moment
 * that has come already: the current step has acted on it if it could, so no timer is needed. */
void moment_wake(const struct moment *moment, struct instant now, struct moment *next);

/* How long to wait before trying again. The delay grows by half each time, up to a ceiling. A part
 * of it is random, so that many clients that lost the same server do not come back at the same
 * moment. PyTorch's Backoff.cpp starts at half a second. This one starts at ten milliseconds, so
 * that a server that is just coming up is found at once. It stays below two seconds, so that a
 * server that comes up late is found soon. */

#define BACKOFF_CEILING_MILLISECONDS 2000

struct backoff {
    struct random random;
    double milliseconds; /* the middle of the next delay */
};

void backoff_init(struct backoff *backoff, uint64_t seed);

/* For who gives up after `patience`, if that is not zero: where it is short, so is the first delay,
 * since only several attempts tell more than one. */
void backoff_init_within(struct backoff *backoff, uint64_t seed, struct duration patience);

/* The next delay: a random length between 0.5 and 1.5 times the current middle. The middle then
 * grows, up to the ceiling. */
struct duration backoff_next(struct backoff *backoff);

#endif

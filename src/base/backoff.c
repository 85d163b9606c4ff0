/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/backoff.h"

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

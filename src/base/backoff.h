/* SPDX-License-Identifier: BSD-3-Clause */
/* How long to wait before trying again. The delay grows by half each time, up to a ceiling. A part
 * of it is random, so that many clients that lost the same server do not come back at the same
 * moment. PyTorch's Backoff.cpp starts at half a second. This one starts at ten milliseconds, so
 * that a server that is just coming up is found at once. It stays below two seconds, so that a
 * server that comes up late is found soon. */
#ifndef MUSTER_BASE_BACKOFF_H
#define MUSTER_BASE_BACKOFF_H

#include "base/duration.h"
#include "base/random.h"

#define BACKOFF_FIRST_MILLISECONDS 10
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

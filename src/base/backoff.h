/* SPDX-License-Identifier: BSD-3-Clause */
/* How long to wait before trying again: grows by half each time up to a ceiling, and half of it is
 * random, so that many who lost the same server do not come back together. PyTorch's Backoff.cpp
 * starts at half a second; this starts at ten milliseconds, so that a server that is just coming up
 * is found at once, and stays below two seconds, so that a late one is found soon. */
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

/* The next delay: between half and one and a half of a length that grows to the ceiling. */
struct duration backoff_next(struct backoff *backoff);

#endif

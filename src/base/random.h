/* SPDX-License-Identifier: BSD-3-Clause */
/* A seeded generator (splitmix64) for jitter, names and simulated orders. The same seed gives the
 * same numbers. Do not use it for secrets. */
#ifndef MUSTER_BASE_RANDOM_H
#define MUSTER_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

void random_init(struct random *random, uint64_t seed);
uint64_t random_next(struct random *random);
/* Uniform in [0, bound); `bound` must not be 0. */
uint64_t random_below(struct random *random, uint64_t bound);
/* Uniform in [0, 1). */
double random_fraction(struct random *random);
/* Writes `length` characters of [a-z0-9_] and a NUL, as Python's tempfile names its files. */
void random_name(struct random *random, char *out, size_t length);

#endif

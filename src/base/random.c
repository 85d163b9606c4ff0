/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/random.h"

void random_init(struct random *random, uint64_t seed) {
    random->state = seed;
}

uint64_t random_next(struct random *random) {
    uint64_t mixed = random->state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

uint64_t random_below(struct random *random, uint64_t bound) {
    uint64_t unbiased = UINT64_MAX - UINT64_MAX % bound;
    uint64_t value;
    do {
        value = random_next(random);
    } while (value >= unbiased);
    return value % bound;
}

double random_fraction(struct random *random) {
    return (double)(random_next(random) >> 11) * 0x1.0p-53;
}

void random_name(struct random *random, char *out, size_t length) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    for (size_t i = 0; i < length; i++) {
        out[i] = letters[random_below(random, sizeof letters - 1)];
    }
    out[length] = '\0';
}

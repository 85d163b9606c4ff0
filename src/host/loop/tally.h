/* SPDX-License-Identifier: BSD-3-Clause */
/* A number that one thread counts up and another thread reads: how much the store thread and the
 * log thread have done, and since when. It orders nothing: nothing else that those threads do can
 * be concluded from it. */
#ifndef MUSTER_HOST_LOOP_TALLY_H
#define MUSTER_HOST_LOOP_TALLY_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/duration.h"
#include "host/loop/clock.h"

/* A zeroed struct is a valid tally. */
struct tally {
    _Atomic uint64_t count;
    _Atomic int64_t first; /* an instant */
};

/* Accepts NULL and then counts nothing. */
static inline void tally_add(struct tally *tally, uint64_t more) {
    if (tally != NULL &&
        atomic_fetch_add_explicit(&tally->count, more, memory_order_relaxed) == 0) {
        atomic_store_explicit(&tally->first, clock_now().nanoseconds, memory_order_relaxed);
    }
}

static inline uint64_t tally_read(struct tally *tally) {
    return atomic_load_explicit(&tally->count, memory_order_relaxed);
}

/* When it was counted for the first time; zero: not yet. */
static inline struct instant tally_first(struct tally *tally) {
    return (struct instant){atomic_load_explicit(&tally->first, memory_order_relaxed)};
}

#endif

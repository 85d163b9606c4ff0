/* SPDX-License-Identifier: BSD-3-Clause */
/* All memory that the system would give this process, taken in pieces: for tests of what goes on
 * without. */
#ifndef MUSTER_TESTS_TAKEN_MEMORY_H
#define MUSTER_TESTS_TAKEN_MEMORY_H

#include <stdlib.h>
#include <sys/resource.h>

#include "library/process_look.h"

struct taken_memory {
    struct taken_memory *next; /* of the smaller pieces first */
};

static inline size_t taken_memory_mapped_bytes(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* From now on the process has no more than now; what it gives back it can have again. Returns the
 * limit before. */
static inline struct rlimit taken_memory_begin(void) {
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    const struct rlimit none = {taken_memory_mapped_bytes(), before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    return before;
}

/* Takes what is left, in pieces of `largest` bytes and less, before those that are taken. */
static inline struct taken_memory *taken_memory_take(struct taken_memory *taken, size_t largest) {
    for (size_t size = largest; size >= sizeof *taken; size /= 2) {
        struct taken_memory *piece;
        while ((piece = malloc(size)) != NULL) {
            piece->next = taken;
            taken = piece;
        }
    }
    return taken;
}

/* Gives one piece back; returns the others. */
static inline struct taken_memory *taken_memory_give_one(struct taken_memory *taken) {
    struct taken_memory *next = taken->next;
    free(taken);
    return next;
}

static inline void taken_memory_end(struct taken_memory *taken, struct rlimit before) {
    (void)setrlimit(RLIMIT_AS, &before);
    while (taken != NULL) {
        taken = taken_memory_give_one(taken);
    }
}

#endif

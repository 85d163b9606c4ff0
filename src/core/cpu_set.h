/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of logical CPUs and the kernel's text for it ("0-3,8"). A value of fixed size, so that a
 * hostile or broken list of CPUs can name only what fits. Knows nothing of the machine. */
#ifndef MUSTER_CORE_CPU_SET_H
#define MUSTER_CORE_CPU_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

/* Linux' own ceiling (CONFIG_NR_CPUS). */
#define CPU_SET_CEILING 8192
#define CPU_SET_WORDS (CPU_SET_CEILING / 64)

/* Bit i % 64 of words[i / 64] is CPU i, which on 64-bit machines is the kernel's own form
 * (sched_setaffinity). A zeroed struct is the empty set. */
struct cpu_set_bits {
    uint64_t words[CPU_SET_WORDS];
};

/* `cpu` must be in 0..CPU_SET_CEILING-1. */
void cpu_set_add(struct cpu_set_bits *set, int cpu);
/* False for any number outside the ceiling. */
bool cpu_set_has(const struct cpu_set_bits *set, int cpu);
size_t cpu_set_count(const struct cpu_set_bits *set);
/* The lowest member that is `from` or higher, -1 when there is none: `for (int cpu =
 * cpu_set_next(set, 0); cpu >= 0; cpu = cpu_set_next(set, cpu + 1))`. */
int cpu_set_next(const struct cpu_set_bits *set, int from);
void cpu_set_unite(struct cpu_set_bits *set, const struct cpu_set_bits *other);
void cpu_set_intersect(struct cpu_set_bits *set, const struct cpu_set_bits *other);
bool cpu_set_equals(const struct cpu_set_bits *left, const struct cpu_set_bits *right);

/* Reads a list as the kernel writes it: numbers and ranges `a-b`, comma separated, blanks and a
 * newline around an item allowed, empty items ignored (an empty list is an empty set); as
 * torch/numa/binding.py _get_set_of_int_from_ranges_str reads it. FAILURE_MALFORMED for other text
 * and for a range that runs backwards, FAILURE_LIMIT for a CPU beyond the ceiling. */
__attribute__((warn_unused_result)) enum failure_code cpu_set_parse(
    struct slice list, struct cpu_set_bits *out_set);
/* Appends the shortest list, ascending ("0-2,4,6-7"); nothing for the empty set. */
void cpu_set_format(const struct cpu_set_bits *set, struct text *text);

#endif

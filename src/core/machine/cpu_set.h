/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of logical CPUs, and the kernel's text form of it ("0-3,8"). It is a value of fixed size,
 * so a hostile or broken list of CPUs cannot make it grow. It knows nothing of the machine. */
#ifndef MUSTER_CORE_MACHINE_CPU_SET_H
#define MUSTER_CORE_MACHINE_CPU_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

/* The limit of Linux (CONFIG_NR_CPUS). */
#define CPU_SET_CEILING 8192
#define CPU_SET_WORDS (CPU_SET_CEILING / 64)

/* Bit i % 64 of words[i / 64] is CPU i. On 64-bit machines this is the form of sched_setaffinity. A
 * zeroed struct is the empty set. */
struct cpu_set_bits {
    uint64_t words[CPU_SET_WORDS];
};

/* `cpu` must be in 0..CPU_SET_CEILING-1. */
void cpu_set_add(struct cpu_set_bits *set, int cpu);
/* False for every number that is not in 0..CPU_SET_CEILING-1. */
bool cpu_set_has(const struct cpu_set_bits *set, int cpu);
size_t cpu_set_count(const struct cpu_set_bits *set);
/* The lowest member that is `from` or higher, -1 when there is none: `for (int cpu =
 * cpu_set_next(set, 0); cpu >= 0; cpu = cpu_set_next(set, cpu + 1))`. */
int cpu_set_next(const struct cpu_set_bits *set, int from);
void cpu_set_unite(struct cpu_set_bits *set, const struct cpu_set_bits *other);
bool cpu_set_equals(const struct cpu_set_bits *left, const struct cpu_set_bits *right);

/* Reads a list as the kernel writes it: numbers and ranges `a-b`, separated by commas. Blanks and a
 * newline around an item are allowed. Empty items are ignored, so an empty list is the empty set.
 * Matches torch/numa/binding.py _get_set_of_int_from_ranges_str. FAILURE_MALFORMED for other text
 * and for a range whose end is below its start. FAILURE_LIMIT for a CPU beyond the ceiling. */
__attribute__((warn_unused_result)) enum failure_code cpu_set_parse(
    struct slice list, struct cpu_set_bits *out_set);
/* Appends the shortest list, ascending ("0-2,4,6-7"). Appends nothing for the empty set. */
void cpu_set_format(const struct cpu_set_bits *set, struct text *text);

#endif

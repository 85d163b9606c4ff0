/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as a kernel's list of CPUs. The members of an accepted list are walked. */
#include <stdlib.h>
#include <string.h>

#include "core/machine/cpu_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct cpu_set_bits set;
    if (cpu_set_parse((struct slice){data, size}, &set) != FAILURE_NONE) {
        return 0;
    }
    struct cpu_set_bits again = {{0}};
    size_t count = 0;
    for (int cpu = cpu_set_next(&set, 0); cpu >= 0; cpu = cpu_set_next(&set, cpu + 1)) {
        if (cpu >= CPU_SET_CEILING || !cpu_set_has(&set, cpu)) {
            abort();
        }
        cpu_set_add(&again, cpu);
        count++;
    }
    if (count != cpu_set_count(&set) || memcmp(&set, &again, sizeof set) != 0) {
        abort();
    }
    return 0;
}

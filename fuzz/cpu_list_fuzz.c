/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as a kernel's list of CPUs. An accepted list must survive being written and
 * read again. */
#include <stdlib.h>

#include "core/machine/cpu_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct cpu_set_bits set;
    if (cpu_set_parse((struct slice){data, size}, &set) != FAILURE_NONE) {
        return 0;
    }
    struct text text = {0};
    cpu_set_format(&set, &text);
    struct cpu_set_bits again;
    if (cpu_set_parse(slice_from_string(text_string(&text)), &again) != FAILURE_NONE ||
        !cpu_set_equals(&set, &again)) {
        abort();
    }
    text_clear(&text);
    return 0;
}

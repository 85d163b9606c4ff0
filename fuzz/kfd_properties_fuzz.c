/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as AMD's description of a device. */
#include "core/machine/cpu_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    (void)kfd_properties_parse((struct slice){data, size});
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* For harnesses that read decisions from their input: a cursor that gives zeros at the end, and the
 * assertion that reports a finding. */
#ifndef MUSTER_FUZZ_INPUT_H
#define MUSTER_FUZZ_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"

#define FUZZ_REQUIRE(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static inline uint8_t fuzz_take_byte(struct slice *input) {
    if (input->length == 0) {
        return 0;
    }
    uint8_t byte = *input->data;
    input->data++;
    input->length--;
    return byte;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

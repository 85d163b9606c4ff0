/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of the pickle modules: bytes from hexadecimal text. */
#ifndef MUSTER_TESTS_PICKLE_FIXTURE_H
#define MUSTER_TESTS_PICKLE_FIXTURE_H

#include "unit.h"

#include "base/bytes.h"

static inline uint8_t hexadecimal_value(char digit) {
    return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* Appends the bytes that the digits spell; blanks may stand between bytes. */
static inline void append_hexadecimal(struct bytes *bytes, const char *digits) {
    for (; *digits != '\0'; digits++) {
        if (*digits != ' ') {
            uint8_t byte =
                (uint8_t)(hexadecimal_value(digits[0]) << 4 | hexadecimal_value(digits[1]));
            assert_int_equal(bytes_append(bytes, &byte, 1), FAILURE_NONE);
            digits++;
        }
    }
}

static inline void assert_hexadecimal(const struct bytes *bytes, const char *digits) {
    CLEARED_BY(bytes_clear) struct bytes wanted = {0};
    append_hexadecimal(&wanted, digits);
    assert_int_equal(bytes->length, wanted.length);
    assert_memory_equal(bytes->data, wanted.data, wanted.length);
}

#endif

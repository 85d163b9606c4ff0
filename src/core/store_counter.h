/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters are kept as decimal text, so that GET of a counter gives what a client expects. Reading
 * follows C's strtoll, with which PyTorch's server reads them (std::stoll in addHandler of
 * c10d/store/TCPStoreBackend.cpp). */
#ifndef MUSTER_CORE_STORE_COUNTER_H
#define MUSTER_CORE_STORE_COUNTER_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"

#define STORE_COUNTER_SIZE 20 /* the longest counter: a sign and 19 digits */

/* Leading blanks, a sign, digits, and whatever follows them. FAILURE_MALFORMED without a digit,
 * FAILURE_LIMIT outside int64_t. */
__attribute__((warn_unused_result)) enum failure_code store_counter_parse(
    struct slice text, int64_t *out_value);

/* Writes the decimal text without a NUL and returns it; it lives in `buffer`. */
struct slice store_counter_format(int64_t value, uint8_t buffer[STORE_COUNTER_SIZE]);

#endif

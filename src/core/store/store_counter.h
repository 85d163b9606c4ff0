/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters are stored as decimal text, so that GET of a counter gives the text that a client
 * expects. Reading a counter follows C's strtoll, because PyTorch's server reads counters with
 * std::stoll (addHandler in c10d/store/TCPStoreBackend.cpp). */
#ifndef MUSTER_CORE_STORE_STORE_COUNTER_H
#define MUSTER_CORE_STORE_STORE_COUNTER_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"

#define STORE_COUNTER_SIZE 20 /* the longest counter: a sign and 19 digits */

/* Reads leading blanks, a sign and digits, and ignores what follows. FAILURE_MALFORMED without a
 * digit. FAILURE_LIMIT outside int64_t. */
__attribute__((warn_unused_result)) enum failure_code store_counter_parse(
    struct slice text, int64_t *out_value);

/* Writes the decimal text without a NUL to `buffer`, and returns it. */
struct slice store_counter_format(int64_t value, uint8_t buffer[STORE_COUNTER_SIZE]);

#endif

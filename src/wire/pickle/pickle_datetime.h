/* SPDX-License-Identifier: BSD-3-Clause */
/* Points of time as Python pickles a datetime.datetime: ten bytes (year, month, day, hour, minute,
 * second, microseconds, most significant first) and an optional time zone. Matches
 * Lib/_pydatetime.py datetime._getstate and __setstate. The calendar is the proleptic Gregorian
 * one, without leap seconds. */
#ifndef MUSTER_WIRE_PICKLE_PICKLE_DATETIME_H
#define MUSTER_WIRE_PICKLE_PICKLE_DATETIME_H

#include <stdint.h>

#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "wire/pickle/pickle_document.h"

#define PICKLE_DATETIME_BYTES 10

/* Reads a datetime object: the ten bytes (also in the spelling of protocol 2) and an optional
 * datetime.timezone. Without a time zone the time is UTC, because PyTorch up to 2.4 writes UTC
 * without one. On failure the reason is appended. FAILURE_MALFORMED for any other value and for a
 * date or time that does not exist; FAILURE_LIMIT for a time that struct wall_time cannot hold
 * (before 1678, after 2261). */
__attribute__((warn_unused_result)) enum failure_code pickle_datetime_read(
    const struct pickle_document *document, const struct pickle_value *value,
    struct wall_time *out_time, struct text *out_reason);

/* Writes the ten bytes of a time in UTC, rounded down to microseconds. */
void pickle_datetime_encode(struct wall_time time, uint8_t out_bytes[PICKLE_DATETIME_BYTES]);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Points of time as Python pickles its datetime.datetime: ten bytes (year, month, day, hour,
 * minute, second, microseconds, most significant first) and maybe a time zone. Matches
 * Lib/_pydatetime.py datetime._getstate and __setstate. The calendar is the proleptic Gregorian
 * one, without leap seconds. */
#ifndef MUSTER_WIRE_PICKLE_DATETIME_H
#define MUSTER_WIRE_PICKLE_DATETIME_H

#include <stdint.h>

#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "wire/pickle_document.h"

#define PICKLE_DATETIME_BYTES 10

/* Reads a datetime object with the ten bytes (as protocol 2 spells them too) and maybe a
 * datetime.timezone; without one the time counts as UTC, as PyTorch up to 2.4 means it. On failure
 * the reason is appended. FAILURE_MALFORMED for any other value and for a day or hour that does not
 * exist; FAILURE_LIMIT for a time that nanoseconds do not reach (before 1678, after 2261). */
__attribute__((warn_unused_result)) enum failure_code pickle_datetime_read(
    const struct pickle_document *document, const struct pickle_value *value,
    struct wall_time *out_time, struct text *out_reason);

/* The ten bytes of a time in UTC, rounded down to microseconds. */
void pickle_datetime_encode(struct wall_time time, uint8_t out_bytes[PICKLE_DATETIME_BYTES]);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pickle/pickle_datetime.h"

#include <string.h>

#include "base/utf8.h"

#define FIRST_YEAR 1678
#define LAST_YEAR 2261
#define SECONDS_PER_DAY 86400
#define MICROSECONDS_PER_SECOND 1000000
#define NANOSECONDS_PER_MICROSECOND 1000
#define DAYS_PER_ERA 146097     /* 400 years */
#define DAYS_BEFORE_1970 719468 /* days since the first of March of the year 0 */
#define MONTH_BITS 0x7f         /* without `fold`, which tells equal hours in autumn apart */

/* The calendar. Years begin in March here, so that a leap day is the last of its year. */

static int64_t days_since_1970(int64_t year, int64_t month, int64_t day) {
    int64_t years = month > 2 ? year : year - 1;
    int64_t months = month > 2 ? month - 3 : month + 9;
    int64_t era = years / 400;
    int64_t year_of_era = years % 400;
    int64_t day_of_year = (153 * months + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - DAYS_BEFORE_1970;
}

static void date_of(int64_t days, int64_t *out_year, int64_t *out_month, int64_t *out_day) {
    int64_t shifted = days + DAYS_BEFORE_1970;
    int64_t era = shifted / DAYS_PER_ERA;
    int64_t day_of_era = shifted % DAYS_PER_ERA;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t months = (5 * day_of_year + 2) / 153;
    *out_day = day_of_year - (153 * months + 2) / 5 + 1;
    *out_month = months < 10 ? months + 3 : months - 9;
    *out_year = era * 400 + year_of_era + (*out_month <= 2);
}

static int64_t days_in_month(int64_t year, int64_t month) {
    return month == 12 ? 31 : days_since_1970(year, month + 1, 1) - days_since_1970(year, month, 1);
}

/* Reading. */

static enum failure_code refuse(
    struct text *out_reason, enum failure_code code, const char *message) {
    text_append(out_reason, message);
    return code;
}

/* Decodes the argument of _codecs.encode(text, "latin1"): each character up to U+00FF is one
 * byte. */
static bool decode_latin1(struct slice text, uint8_t out_bytes[PICKLE_DATETIME_BYTES]) {
    size_t count = 0;
    for (size_t i = 0; i < text.length; count++) {
        size_t length = utf8_character_length(text.data + i, text.length - i);
        if (count == PICKLE_DATETIME_BYTES || length == 0 || length > 2 ||
            (length == 2 && text.data[i] > 0xc3)) {
            return false;
        }
        out_bytes[count] =
            length == 1 ? text.data[i] : (uint8_t)(text.data[i] << 6 | (text.data[i + 1] & 0x3f));
        i += length;
    }
    return count == PICKLE_DATETIME_BYTES;
}

static bool read_bytes(const struct pickle_document *document, const struct pickle_value *value,
    uint8_t out_bytes[PICKLE_DATETIME_BYTES]) {
    if (value->kind == PICKLE_VALUE_BYTES) {
        if (value->bytes.length != PICKLE_DATETIME_BYTES) {
            return false;
        }
        memcpy(out_bytes, value->bytes.data, PICKLE_DATETIME_BYTES);
        return true;
    }
    if (!pickle_value_is_object(value, PICKLE_CLASS_ENCODE)) {
        return false;
    }
    struct pickle_walk walk =
        pickle_walk_begin(document, pickle_document_arguments(document, value));
    const struct pickle_value *text = pickle_walk_next(&walk);
    const struct pickle_value *encoding = pickle_walk_next(&walk);
    return encoding != NULL && text->kind == PICKLE_VALUE_TEXT &&
           encoding->kind == PICKLE_VALUE_TEXT &&
           slice_equals(encoding->bytes, slice_from_string("latin1")) &&
           decode_latin1(text->bytes, out_bytes);
}

static enum failure_code decode(const uint8_t *bytes, int64_t *out_seconds,
    int64_t *out_microseconds, struct text *out_reason) {
    int64_t year = bytes[0] << 8 | bytes[1];
    int64_t month = bytes[2] & MONTH_BITS;
    int64_t day = bytes[3];
    int64_t microseconds = bytes[7] << 16 | bytes[8] << 8 | bytes[9];
    if (year < FIRST_YEAR || year > LAST_YEAR) {
        text_append_format(out_reason, "a date in the year %d, where %d to %d are read", (int)year,
            FIRST_YEAR, LAST_YEAR);
        return FAILURE_LIMIT;
    }
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || bytes[4] > 23 ||
        bytes[5] > 59 || bytes[6] > 59 || microseconds >= MICROSECONDS_PER_SECOND) {
        return refuse(out_reason, FAILURE_MALFORMED, "a date that does not exist");
    }
    *out_seconds = days_since_1970(year, month, day) * SECONDS_PER_DAY + bytes[4] * 3600 +
                   bytes[5] * 60 + bytes[6];
    *out_microseconds = microseconds;
    return FAILURE_NONE;
}

/* Reads the offset of timezone(timedelta(days, seconds, microseconds), …). False when it is not
 * less than a day. */
static bool read_offset(const struct pickle_document *document, const struct pickle_value *zone,
    int64_t *out_microseconds) {
    static const int64_t units[] = {
        (int64_t)SECONDS_PER_DAY * MICROSECONDS_PER_SECOND, MICROSECONDS_PER_SECOND, 1};
    static const int64_t largest[] = {1, SECONDS_PER_DAY, MICROSECONDS_PER_SECOND};
    struct pickle_walk zone_walk =
        pickle_walk_begin(document, pickle_document_arguments(document, zone));
    const struct pickle_value *delta = pickle_walk_next(&zone_walk);
    if (delta == NULL || !pickle_value_is_object(delta, PICKLE_CLASS_TIMEDELTA)) {
        return false;
    }
    int64_t offset = 0;
    struct pickle_walk walk =
        pickle_walk_begin(document, pickle_document_arguments(document, delta));
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const struct pickle_value *part = pickle_walk_next(&walk);
        if (part == NULL || part->kind != PICKLE_VALUE_INTEGER || part->integer > largest[i] ||
            part->integer < -largest[i]) {
            return false;
        }
        offset += part->integer * units[i];
    }
    *out_microseconds = offset;
    return offset < units[0] && offset > -units[0];
}

enum failure_code pickle_datetime_read(const struct pickle_document *document,
    const struct pickle_value *value, struct wall_time *out_time, struct text *out_reason) {
    uint8_t bytes[PICKLE_DATETIME_BYTES];
    if (!pickle_value_is_object(value, PICKLE_CLASS_DATETIME)) {
        return refuse(out_reason, FAILURE_MALFORMED, "no datetime");
    }
    struct pickle_walk walk =
        pickle_walk_begin(document, pickle_document_arguments(document, value));
    const struct pickle_value *moment = pickle_walk_next(&walk);
    const struct pickle_value *zone = pickle_walk_next(&walk);
    if (moment == NULL || !read_bytes(document, moment, bytes)) {
        return refuse(out_reason, FAILURE_MALFORMED, "a datetime without its ten bytes");
    }
    int64_t seconds;
    int64_t microseconds;
    enum failure_code code = decode(bytes, &seconds, &microseconds, out_reason);
    if (code != FAILURE_NONE) {
        return code;
    }
    int64_t offset = 0;
    if (zone != NULL && (!pickle_value_is_object(zone, PICKLE_CLASS_TIMEZONE) ||
                            !read_offset(document, zone, &offset))) {
        return refuse(out_reason, FAILURE_MALFORMED, "a datetime with an odd time zone");
    }
    out_time->nanoseconds =
        seconds * NANOSECONDS_PER_SECOND + (microseconds - offset) * NANOSECONDS_PER_MICROSECOND;
    return FAILURE_NONE;
}

/* Writing. */

static int64_t floor_divide(int64_t dividend, int64_t divisor, int64_t *out_rest) {
    int64_t rest = dividend % divisor;
    *out_rest = rest < 0 ? rest + divisor : rest;
    return dividend / divisor - (rest < 0);
}

void pickle_datetime_encode(struct wall_time time, uint8_t out_bytes[PICKLE_DATETIME_BYTES]) {
    int64_t nanoseconds;
    int64_t second;
    int64_t seconds = floor_divide(time.nanoseconds, NANOSECONDS_PER_SECOND, &nanoseconds);
    int64_t days = floor_divide(seconds, SECONDS_PER_DAY, &second);
    int64_t microseconds = nanoseconds / NANOSECONDS_PER_MICROSECOND;
    int64_t year;
    int64_t month;
    int64_t day;
    date_of(days, &year, &month, &day);
    const int64_t bytes[PICKLE_DATETIME_BYTES] = {year >> 8, year, month, day, second / 3600,
        second / 60 % 60, second % 60, microseconds >> 16, microseconds >> 8, microseconds};
    for (size_t i = 0; i < PICKLE_DATETIME_BYTES; i++) {
        out_bytes[i] = (uint8_t)bytes[i];
    }
}

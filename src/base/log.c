/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define COST ((int64_t)1000000000 / LOG_THROTTLE_PER_SECOND)
#define BUDGET (COST * LOG_THROTTLE_BURST)

bool log_throttle_admits(
    struct log_throttle *throttle, struct instant now, uint64_t *out_held_back) {
    int64_t regained = instant_until(throttle->last, now).nanoseconds;
    throttle->spent = regained >= throttle->spent ? 0 : throttle->spent - regained;
    throttle->last = now;
    if (throttle->spent + COST > BUDGET) {
        throttle->held_back++;
        return false;
    }
    throttle->spent += COST;
    *out_held_back = throttle->held_back;
    throttle->held_back = 0;
    return true;
}

/* Log. */

#define RECORD_SIZE 8192

void log_record(
    const struct log *log, enum log_level level, const char *origin, const char *format, ...) {
    if (log == NULL || level < log->threshold) {
        return;
    }
    char message[RECORD_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    utf8_make_string_printable(message);
    log->write(log->context, level, origin, message);
}

/* __FILE__ is as the compiler was called ("../src/host/x.c"); readers want "muster/host/x.c". */
static const char *short_origin(const char *origin) {
    const char *source = strstr(origin, "src/");
    return source == NULL ? origin : source + strlen("src/");
}

void log_format(struct text *out, enum log_level level, const struct log_time *time, int64_t pid,
    const char *origin, const char *message) {
    static const char letters[] = {'V', 'I', 'W', 'E', 'C'};
    const char *line = message;
    while (true) {
        size_t length = strcspn(line, "\n");
        text_append_format(out, "%c%02d%02d %02d:%02d:%02d.%06d %lld muster/%s] ", letters[level],
            time->month, time->day, time->hour, time->minute, time->second, time->microsecond,
            (long long)pid, short_origin(origin));
        text_append_bytes(out, line, length);
        text_append(out, "\n");
        if (line[length] == '\0') {
            return;
        }
        line += length + 1;
    }
}

static enum log_level level_from_number(int64_t number) {
    if (number <= 10) {
        return LOG_LEVEL_DEBUG;
    }
    if (number <= 20) {
        return LOG_LEVEL_INFO;
    }
    if (number <= 30) {
        return LOG_LEVEL_WARNING;
    }
    return number <= 40 ? LOG_LEVEL_ERROR : LOG_LEVEL_CRITICAL;
}

enum failure_code log_parse_level(const char *string, enum log_level *out_level) {
    static const struct {
        const char *name;
        enum log_level level;
    } names[] = {
        {"NOTSET",
            LOG_LEVEL_WARNING}, /* Python falls back to the root logger, whose level is WARNING */
        {"DEBUG", LOG_LEVEL_DEBUG},
        {"INFO", LOG_LEVEL_INFO},
        {"WARNING", LOG_LEVEL_WARNING},
        {"WARN", LOG_LEVEL_WARNING},
        {"ERROR", LOG_LEVEL_ERROR},
        {"CRITICAL", LOG_LEVEL_CRITICAL},
        {"FATAL", LOG_LEVEL_CRITICAL},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (text_equals(string, names[i].name)) {
            *out_level = names[i].level;
            return FAILURE_NONE;
        }
    }
    int64_t number;
    if (text_parse_integer(string, &number) != FAILURE_NONE) {
        return FAILURE_MALFORMED;
    }
    *out_level = level_from_number(number);
    return FAILURE_NONE;
}

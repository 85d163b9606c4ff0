/* SPDX-License-Identifier: BSD-3-Clause */
/* Log records in TorchElastic's line form. A `struct log` is a destination for records; main
 * creates it and passes it down. This module formats records and never prints them. What a record
 * says of others is made printable here. Floors 2 and 3 do not log. */
#ifndef MUSTER_BASE_LOG_H
#define MUSTER_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"

/* Limits how many records a remote client can cause. A burst of records passes, then a fixed number
 * per second. Records that are held back are counted, and the next record that passes can say how
 * many they were. */

#define LOG_THROTTLE_BURST 20
#define LOG_THROTTLE_PER_SECOND 2

/* A zeroed struct admits a full burst. */
struct log_throttle {
    struct instant last;
    int64_t spent; /* how much of the burst is used up, in nanoseconds of waiting */
    uint64_t held_back;
};

/* Whether a record may be written now. If so, `*out_held_back` is the number of records held back
 * since the last one that passed. */
bool log_throttle_admits(
    struct log_throttle *throttle, struct instant now, uint64_t *out_held_back);

enum log_level {
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_INFO,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_ERROR,
    LOG_LEVEL_CRITICAL,
};

/* The destination of records. `write` receives each record at or above `threshold`. Only the thread
 * that owns the struct may call it. A NULL `struct log *` discards records, so that tests need no
 * log. */
struct log {
    enum log_level threshold;
    void (*write)(void *context, enum log_level level, const char *origin, const char *message);
    void *context;
};

/* `origin` is the source file and line, "host/store_server.c:88"; use the macros below. */
__attribute__((format(printf, 4, 5))) void log_record(
    const struct log *log, enum log_level level, const char *origin, const char *format, ...);

#define LOG_STRING_OF(x) #x
#define LOG_STRING(x) LOG_STRING_OF(x)
#define LOG_ORIGIN (__FILE__ ":" LOG_STRING(__LINE__))
#define log_debug(log, ...) log_record(log, LOG_LEVEL_DEBUG, LOG_ORIGIN, __VA_ARGS__)
#define log_info(log, ...) log_record(log, LOG_LEVEL_INFO, LOG_ORIGIN, __VA_ARGS__)
#define log_warning(log, ...) log_record(log, LOG_LEVEL_WARNING, LOG_ORIGIN, __VA_ARGS__)
#define log_error(log, ...) log_record(log, LOG_LEVEL_ERROR, LOG_ORIGIN, __VA_ARGS__)

/* A local calendar time that the caller has already split into its parts. */
struct log_time {
    int month; /* 1-12 */
    int day;
    int hour;
    int minute;
    int second;
    int microsecond;
};

/* Appends `<L><MMDD> <HH:MM:SS>.<6 digits> <pid> <origin>] <text>` and a newline; the prefix is
 * repeated on every line of a multi-line message. Matches torch/_logging/_internal.py
 * TorchLogsFormatter. */
void log_format(struct text *out, enum log_level level, const struct log_time *time, int64_t pid,
    const char *origin, const char *message);

/* A LOGLEVEL value: a Python level name (DEBUG, INFO, WARNING or WARN, ERROR, CRITICAL or FATAL,
 * NOTSET) or a number. */
__attribute__((warn_unused_result)) enum failure_code log_parse_level(
    const char *string, enum log_level *out_level);

#endif

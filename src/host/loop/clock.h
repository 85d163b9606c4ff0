/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the two clocks, for code that has no event loop or runs between fork and exec. The first
 * two functions are async-signal-safe. */
#ifndef MUSTER_HOST_LOOP_CLOCK_H
#define MUSTER_HOST_LOOP_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/duration.h"
#include "base/log.h"

#define CLOCK_ZONE_CHANGES 16

struct instant clock_now(void);
struct wall_time clock_wall_time(void);

/* Local time. TorchElastic's records carry milliseconds, so the last three digits are 000. */
struct log_time clock_log_time(void);

/* The local time of a moment, as localtime_r. */
struct tm clock_local_time(int64_t seconds);

/* What local time is, now and after the changes of two years. */
struct clock_zone {
    struct clock_zone_change {
        int64_t since; /* the first has no beginning */
        long offset;   /* seconds east of Greenwich */
        bool is_daylight_saving;
    } changes[CLOCK_ZONE_CHANGES];
    size_t count;
};

/* Asks libc. It has one lock for this, which another thread may hold at any moment. */
void clock_zone_learn(struct clock_zone *out_zone);
/* From now on this process does not ask libc. It is for a copy of a program that had threads: what
 * one of them had locked stays locked there for ever. Before any thread is started. */
void clock_zone_keep(const struct clock_zone *zone);

/* Fresh random numbers from the kernel, for names that must not collide and for seeds of
 * base/random. Do not use them for secrets. */

/* 64 bits from getrandom(2). Where a kernel or sandbox refuses that call, they come from clock and
 * pid. */
uint64_t random_seed(void);

/* Writes `length` characters of [a-z0-9_] and a NUL. Each call gives a new name. */
void random_seed_name(char *out, size_t length);

/* A fresh RFC 4122 version 4 UUID in text form, as Python's uuid4() gives. The caller frees it. */
char *random_seed_uuid(void);

#endif

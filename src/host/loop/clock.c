/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/clock.h"

#include <sys/random.h>
#include <unistd.h>

#include "base/random.h"
#include "base/text.h"

#define SECONDS_PER_DAY 86400
/* A change of local time that is taken back within so many days is not seen. */
#define ZONE_STEP_DAYS 6
#define ZONE_DAYS 732
#define DAYS_PER_ERA 146097 /* 400 years */
#define DAYS_BEFORE_1970 719468
#define MARCH_DAYS 153 /* of five months from March or August on */

/* Of a copy of a program that had threads, else empty. */
static struct clock_zone kept;

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now); /* cannot fail for these clocks */
    return (int64_t)now.tv_sec * NANOSECONDS_PER_SECOND + now.tv_nsec;
}

struct instant clock_now(void) {
    return (struct instant){read_clock(CLOCK_MONOTONIC)};
}

struct wall_time clock_wall_time(void) {
    return (struct wall_time){read_clock(CLOCK_REALTIME)};
}

/* Local time without libc's lock. */

static struct clock_zone_change ask_libc(int64_t seconds) {
    const time_t moment = (time_t)seconds;
    struct tm local = {0};
    (void)localtime_r(&moment, &local);
    return (struct clock_zone_change){seconds, local.tm_gmtoff, local.tm_isdst > 0};
}

static bool is_same(const struct clock_zone_change *left, const struct clock_zone_change *right) {
    return left->offset == right->offset && left->is_daylight_saving == right->is_daylight_saving;
}

/* The first second of what holds at `after.since` and not at `before.since`. */
static struct clock_zone_change find_change(
    struct clock_zone_change before, struct clock_zone_change after) {
    while (before.since + 1 < after.since) {
        struct clock_zone_change between =
            ask_libc(before.since + (after.since - before.since) / 2);
        if (is_same(&before, &between)) {
            before = between;
        } else {
            after = between;
        }
    }
    return after;
}

void clock_zone_learn(struct clock_zone *out_zone) {
    struct clock_zone zone = {.count = 1};
    struct clock_zone_change last = ask_libc((int64_t)time(NULL) - SECONDS_PER_DAY);
    zone.changes[0] = last;
    for (int day = 0; day < ZONE_DAYS && zone.count < CLOCK_ZONE_CHANGES; day += ZONE_STEP_DAYS) {
        struct clock_zone_change next = ask_libc(last.since + ZONE_STEP_DAYS * SECONDS_PER_DAY);
        if (!is_same(&last, &next)) {
            zone.changes[zone.count++] = find_change(last, next);
        }
        last = next;
    }
    *out_zone = zone;
}

void clock_zone_keep(const struct clock_zone *zone) {
    kept = *zone;
}

/* Years that begin in March, so that the day that some years lack is a year's last. */
static void set_date(int64_t days, struct tm *out) {
    int64_t shifted = days + DAYS_BEFORE_1970;
    int64_t era = (shifted >= 0 ? shifted : shifted - (DAYS_PER_ERA - 1)) / DAYS_PER_ERA;
    int64_t of_era = shifted - era * DAYS_PER_ERA;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / (DAYS_PER_ERA - 1)) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / MARCH_DAYS; /* 0 is March */
    bool is_next_year = month >= 10;
    out->tm_mday = (int)(of_year - (MARCH_DAYS * month + 2) / 5 + 1);
    out->tm_mon = (int)(is_next_year ? month - 10 : month + 2);
    out->tm_year = (int)(year + era * 400 + (is_next_year ? 1 : 0) - 1900);
}

static struct tm local_time_of(const struct clock_zone *zone, int64_t seconds) {
    size_t i = zone->count - 1;
    while (i > 0 && seconds < zone->changes[i].since) {
        i--;
    }
    int64_t shown = seconds + zone->changes[i].offset;
    int64_t of_day = shown % SECONDS_PER_DAY;
    of_day += of_day < 0 ? SECONDS_PER_DAY : 0;
    struct tm local = {
        .tm_hour = (int)(of_day / 3600),
        .tm_min = (int)(of_day / 60 % 60),
        .tm_sec = (int)(of_day % 60),
        .tm_isdst = zone->changes[i].is_daylight_saving ? 1 : 0,
        .tm_gmtoff = zone->changes[i].offset,
    };
    set_date((shown - of_day) / SECONDS_PER_DAY, &local);
    return local;
}

struct tm clock_local_time(int64_t seconds) {
    const time_t moment = (time_t)seconds;
    struct tm local = {0};
    if (kept.count > 0) {
        return local_time_of(&kept, seconds);
    }
    (void)localtime_r(&moment, &local);
    return local;
}

struct log_time clock_log_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm local = clock_local_time((int64_t)now.tv_sec);
    return (struct log_time){
        .month = local.tm_mon + 1,
        .day = local.tm_mday,
        .hour = local.tm_hour,
        .minute = local.tm_min,
        .second = local.tm_sec,
        .microsecond = (int)(now.tv_nsec / 1000000) * 1000,
    };
}

/* Random seed. */

uint64_t random_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed) {
        return seed;
    }
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec << 16 ^ (uint64_t)getpid();
}

void random_seed_name(char *out, size_t length) {
    struct random random;
    random_init(&random, random_seed());
    random_name(&random, out, length);
}

char *random_seed_uuid(void) {
    uint64_t high = random_seed();
    uint64_t low = random_seed();
    high = (high & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
    low = (low & ~(UINT64_C(0xc) << 60)) | (UINT64_C(0x8) << 60);
    return text_format("%08llx-%04llx-%04llx-%04llx-%012llx", (unsigned long long)(high >> 32),
        (unsigned long long)(high >> 16 & 0xffff), (unsigned long long)(high & 0xffff),
        (unsigned long long)(low >> 48), (unsigned long long)(low & 0xffffffffffff));
}

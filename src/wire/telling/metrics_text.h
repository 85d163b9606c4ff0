/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes numbers in Prometheus' text exposition format, version 0.0.4: one family and one sample
 * per call. The caller decides which numbers there are. */
#ifndef MUSTER_WIRE_TELLING_METRICS_TEXT_H
#define MUSTER_WIRE_TELLING_METRICS_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"

#define METRICS_TEXT_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metrics_kind {
    METRICS_COUNTER,
    METRICS_GAUGE,
    METRICS_SUMMARY,   /* its samples are NAME_count and NAME_sum */
    METRICS_HISTOGRAM, /* NAME_bucket, too */
};

/* A label of a sample. The value may be any text: it is escaped, and bytes that are not UTF-8 are
 * replaced. */
struct metrics_label {
    const char *name; /* NULL: no label */
    const char *value;
};
#define METRICS_NO_LABEL ((struct metrics_label){0})

/* Where all is written, and what all samples there have in common. Borrowed. */
struct metrics_page {
    struct text *out;
    const char *labels; /* as metrics_text_append_label makes them; "": none */
};

/* Appends a label to others. */
void metrics_text_append_label(struct metrics_label label, struct text *out);

/* Begins a family; the caller adds its samples next. `help` is one line. */
void metrics_text_begin(
    const struct metrics_page *page, const char *name, enum metrics_kind kind, const char *help);

void metrics_text_number(
    const struct metrics_page *page, const char *name, struct metrics_label label, uint64_t value);
/* To the microsecond, where the value is seconds. */
void metrics_text_real(
    const struct metrics_page *page, const char *name, struct metrics_label label, double value);
/* Appends NAME_count and NAME_sum; the sum is in seconds. */
void metrics_text_summary(const struct metrics_page *page, const char *name,
    struct metrics_label label, uint64_t count, struct duration sum);

/* How many values were no larger than each bound, and larger than the one before it. */
struct metrics_buckets {
    const double *bounds; /* in seconds */
    const uint64_t *counts;
    size_t bucket_count;
};
/* The same with NAME_bucket. */
void metrics_text_histogram(const struct metrics_page *page, const char *name,
    struct metrics_label label, const struct metrics_buckets *buckets, uint64_t count,
    struct duration sum);

#endif

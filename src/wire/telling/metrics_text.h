/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes numbers in Prometheus' text exposition format, version 0.0.4: one family and one sample
 * per call. The caller decides which numbers there are. */
#ifndef MUSTER_WIRE_TELLING_METRICS_TEXT_H
#define MUSTER_WIRE_TELLING_METRICS_TEXT_H

#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"

#define METRICS_TEXT_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metrics_kind {
    METRICS_COUNTER,
    METRICS_GAUGE,
    METRICS_SUMMARY, /* its samples are NAME_count and NAME_sum */
};

/* Begins a family; the caller adds its samples next. `help` is one line. */
void metrics_text_begin(
    struct text *out, const char *name, enum metrics_kind kind, const char *help);

/* A label of a sample. The value may be any text: it is escaped, and bytes that are not UTF-8 are
 * replaced. */
struct metrics_label {
    const char *name; /* NULL: no label */
    const char *value;
};
#define METRICS_NO_LABEL ((struct metrics_label){0})

void metrics_text_number(
    struct text *out, const char *name, struct metrics_label label, uint64_t value);
/* Appends NAME_count and NAME_sum; the sum is in seconds. */
void metrics_text_summary(struct text *out, const char *name, struct metrics_label label,
    uint64_t count, struct duration sum);

#endif

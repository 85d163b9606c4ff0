/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers as Prometheus reads them: its text exposition format, version 0.0.4. Spells families and
 * samples one by one; what there is to tell is the caller's. */
#ifndef MUSTER_WIRE_METRICS_TEXT_H
#define MUSTER_WIRE_METRICS_TEXT_H

#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"

#define METRICS_TEXT_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metrics_kind {
    METRICS_COUNTER,
    METRICS_GAUGE,
    METRICS_SUMMARY, /* of samples NAME_count and NAME_sum */
};

/* Begins a family; its samples follow. `help` is one line. */
void metrics_text_begin(
    struct text *out, const char *name, enum metrics_kind kind, const char *help);

/* A label of a sample. The value may be any text: it is escaped, and repaired to UTF-8. */
struct metrics_label {
    const char *name; /* NULL: no label */
    const char *value;
};
#define METRICS_NO_LABEL ((struct metrics_label){0})

void metrics_text_number(
    struct text *out, const char *name, struct metrics_label label, uint64_t value);
/* NAME_count and NAME_sum, in seconds. */
void metrics_text_summary(struct text *out, const char *name, struct metrics_label label,
    uint64_t count, struct duration sum);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/metrics_text.h"

#include <inttypes.h>
#include <stdlib.h>

#include "wire/json/json_document.h"

void metrics_text_begin(
    const struct metrics_page *page, const char *name, enum metrics_kind kind, const char *help) {
    static const char *const kinds[] = {"counter", "gauge", "summary", "histogram"};
    text_append_format(page->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kinds[kind]);
}

static void append_escaped(const char *value, struct text *out) {
    struct text valid = {0};
    json_repair_text(slice_from_string(value), &valid);
    for (const char *at = text_string(&valid); *at != '\0'; at++) {
        if (*at == '\\' || *at == '"') {
            text_append_bytes(out, "\\", 1);
            text_append_bytes(out, at, 1);
        } else if (*at == '\n') {
            text_append(out, "\\n");
        } else {
            text_append_bytes(out, at, 1);
        }
    }
    text_clear(&valid);
}

void metrics_text_append_label(struct metrics_label label, struct text *out) {
    text_append_format(out, "%s%s=\"", out->length > 0 ? "," : "", label.name);
    append_escaped(label.value, out);
    text_append(out, "\"");
}

/* `bound`: of a bucket, as text; or NULL. */
static void begin_sample(const struct metrics_page *page, const char *name, const char *suffix,
    struct metrics_label label, const char *bound) {
    struct text labels = {0};
    text_append(&labels, page->labels);
    if (label.name != NULL) {
        metrics_text_append_label(label, &labels);
    }
    if (bound != NULL) {
        metrics_text_append_label((struct metrics_label){"le", bound}, &labels);
    }
    text_append_format(page->out, "%s%s", name, suffix);
    if (labels.length > 0) {
        text_append_format(page->out, "{%s}", text_string(&labels));
    }
    text_clear(&labels);
}

static void append_number(const struct metrics_page *page, const char *name, const char *suffix,
    struct metrics_label label, const char *bound, uint64_t value) {
    begin_sample(page, name, suffix, label, bound);
    text_append_format(page->out, " %" PRIu64 "\n", value);
}

void metrics_text_number(
    const struct metrics_page *page, const char *name, struct metrics_label label, uint64_t value) {
    append_number(page, name, "", label, NULL, value);
}

void metrics_text_real(
    const struct metrics_page *page, const char *name, struct metrics_label label, double value) {
    begin_sample(page, name, "", label, NULL);
    text_append_format(page->out, " %.6f\n", value);
}

void metrics_text_summary(const struct metrics_page *page, const char *name,
    struct metrics_label label, uint64_t count, struct duration sum) {
    append_number(page, name, "_count", label, NULL, count);
    begin_sample(page, name, "_sum", label, NULL);
    text_append_format(page->out, " %.9f\n", duration_seconds(sum));
}

void metrics_text_histogram(const struct metrics_page *page, const char *name,
    struct metrics_label label, const struct metrics_buckets *buckets, uint64_t count,
    struct duration sum) {
    uint64_t until = 0;
    for (size_t i = 0; i < buckets->bucket_count; i++) {
        char *bound = text_format("%g", buckets->bounds[i]);
        until += buckets->counts[i];
        append_number(page, name, "_bucket", label, bound, until);
        free(bound);
    }
    append_number(page, name, "_bucket", label, "+Inf", count);
    metrics_text_summary(page, name, label, count, sum);
}

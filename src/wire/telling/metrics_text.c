/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/metrics_text.h"

#include <inttypes.h>

#include "wire/json/json_document.h"

void metrics_text_begin(
    struct text *out, const char *name, enum metrics_kind kind, const char *help) {
    static const char *const kinds[] = {"counter", "gauge", "summary"};
    text_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kinds[kind]);
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

static void begin_sample(
    struct text *out, const char *name, const char *suffix, struct metrics_label label) {
    text_append_format(out, "%s%s", name, suffix);
    if (label.name != NULL) {
        text_append_format(out, "{%s=\"", label.name);
        append_escaped(label.value, out);
        text_append(out, "\"}");
    }
}

void metrics_text_number(
    struct text *out, const char *name, struct metrics_label label, uint64_t value) {
    begin_sample(out, name, "", label);
    text_append_format(out, " %" PRIu64 "\n", value);
}

void metrics_text_summary(struct text *out, const char *name, struct metrics_label label,
    uint64_t count, struct duration sum) {
    begin_sample(out, name, "_count", label);
    text_append_format(out, " %" PRIu64 "\n", count);
    begin_sample(out, name, "_sum", label);
    text_append_format(out, " %.9f\n", duration_seconds(sum));
}

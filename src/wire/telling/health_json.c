/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/health_json.h"

#include "wire/json/json_document.h"

int health_http_status(const struct health_verdict *verdict) {
    return verdict->is_alive ? 200 : 503;
}

static void write_reason(const struct health_verdict *verdict, struct text *out) {
    if (verdict->is_alive) {
        text_append(out, health_phase_meaning(verdict->phase));
    } else {
        text_append_format(out,
            "a timer is overdue: the watchdog has made no progress for %.1f s; %g s are allowed",
            duration_seconds(verdict->silence), duration_seconds(verdict->timeout));
    }
}

static void write_text(const char *name, const char *value, struct text *out) {
    struct text valid = {0};
    json_repair_text(slice_from_string(value), &valid);
    text_append_format(out, ", \"%s\": ", name);
    json_text_write(text_string(&valid), out);
    text_clear(&valid);
}

void health_json_write(const struct health_report *report, struct text *out) {
    const struct health_verdict *verdict = &report->verdict;
    struct text reason = {0};
    write_reason(verdict, &reason);
    text_append_format(out, "{\"status\": \"%s\"", verdict->is_alive ? "alive" : "stalled");
    write_text("phase", health_phase_name(verdict->phase), out);
    write_text("reason", text_string(&reason), out);
    write_text("run_id", report->run_id, out);
    text_append_format(out,
        ", \"restarts\": %d, \"max_restarts\": %d, \"workers\": %d, \"running_workers\": %d, "
        "\"seconds_since_progress\": %.3f, \"timeout_seconds\": %g}\n",
        report->restarts, report->max_restarts, report->workers, report->running_workers,
        duration_seconds(verdict->silence), duration_seconds(verdict->timeout));
    text_clear(&reason);
}

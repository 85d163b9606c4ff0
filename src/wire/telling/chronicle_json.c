/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/chronicle_json.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/telling/node_groups.h"
#include "wire/json/json_document.h"

#define MICROSECONDS_PER_SECOND 1000000
#define LATEST_SECONDS 253402300800.0 /* the year 10000 */
#define LARGEST_NUMBER (INT64_C(1) << 53)

/* Writing. A text of the chronicle is UTF-8 without control characters. */

static void write_string(const char *text, struct text *out) {
    text_append(out, "\"");
    while (*text != '\0') {
        size_t plain = strcspn(text, "\"\\");
        text_append_bytes(out, text, plain);
        text += plain;
        if (*text != '\0') {
            text_append_format(out, "\\%c", *text++);
        }
    }
    text_append(out, "\"");
}

/* At least so many digits. There are very many numbers in the columns of ten thousand nodes. */
static void write_digits(uint64_t number, int least, struct text *out) {
    char digits[24];
    size_t at = sizeof digits;
    for (; number > 0 || least > 0; number /= 10, least--) {
        digits[--at] = (char)('0' + number % 10);
    }
    text_append_bytes(out, digits + at, sizeof digits - at);
}

static void write_nanoseconds(int64_t nanoseconds, struct text *out) {
    uint64_t size = nanoseconds < 0 ? -(uint64_t)nanoseconds : (uint64_t)nanoseconds;
    uint64_t micros = size / CHRONICLE_GRAIN_NANOSECONDS;
    text_append(out, nanoseconds < 0 ? "-" : "");
    write_digits(micros / MICROSECONDS_PER_SECOND, 1, out);
    text_append(out, ".");
    write_digits(micros % MICROSECONDS_PER_SECOND, 6, out);
}

static void write_value(const struct chronicle_value *value, struct text *out) {
    text_append_format(out, ",\"%s\":", chronicle_field_name(value->field));
    switch (chronicle_field_type(value->field)) {
    case CHRONICLE_INTEGER:
        text_append_format(out, "%" PRId64, value->number);
        break;
    case CHRONICLE_FLAG:
        text_append(out, value->number != 0 ? "true" : "false");
        break;
    case CHRONICLE_SECONDS:
        write_nanoseconds(value->number, out);
        break;
    case CHRONICLE_RATE_TYPE:
        text_append_format(out, "%.6g", value->rate);
        break;
    case CHRONICLE_TEXT_TYPE:
        write_string(value->text, out);
        break;
    }
}

void chronicle_json_write_entry(const struct chronicle_entry *entry, struct text *out) {
    text_append_format(out,
        "{\"schema\":\"" CHRONICLE_EVENT_SCHEMA "\",\"seq\":%" PRId64 ",\"time\":", entry->seq);
    write_nanoseconds(entry->time.nanoseconds, out);
    text_append(out, ",\"node\":");
    write_string(entry->node, out);
    text_append_format(out, ",\"kind\":\"%s\",\"severity\":\"%s\"",
        chronicle_kind_name(entry->kind), chronicle_severity_name(entry->severity));
    if (entry->has_round) {
        text_append_format(out, ",\"round\":%" PRId64, entry->round);
    }
    for (int field = 0; field < CHRONICLE_FIELD_COUNT; field++) {
        for (int i = 0; i < entry->value_count; i++) {
            if ((int)entry->values[i].field == field) {
                write_value(&entry->values[i], out);
            }
        }
    }
    text_append(out, "}\n");
}

/* Reading. */

static bool read_nanoseconds(const struct json_value *value, int64_t *out_nanoseconds) {
    double seconds;
    if (!json_value_number(value, &seconds) || !(seconds >= 0) || seconds >= LATEST_SECONDS) {
        return false;
    }
    *out_nanoseconds =
        (int64_t)(seconds * MICROSECONDS_PER_SECOND + 0.5) * CHRONICLE_GRAIN_NANOSECONDS;
    return true;
}

static bool is_long(enum chronicle_field field) {
    return field == CHRONICLE_PID || field == CHRONICLE_STEP || field == CHRONICLE_TERM;
}

static bool read_integer(
    const struct json_value *value, enum chronicle_field field, int64_t *out_number) {
    int64_t most = is_long(field) ? LARGEST_NUMBER : INT_MAX;
    return json_value_integer(value, out_number) && *out_number <= most && *out_number >= -most;
}

static bool read_value(
    const struct json_value *value, enum chronicle_field field, struct chronicle_entry *entry) {
    int64_t number = json_value_is_true(value);
    double rate;
    const char *text = json_value_text(value);
    switch (chronicle_field_type(field)) {
    case CHRONICLE_INTEGER:
        if (!read_integer(value, field, &number)) {
            return false;
        }
        break;
    case CHRONICLE_FLAG:
        break;
    case CHRONICLE_SECONDS:
        if (!read_nanoseconds(value, &number)) {
            return false;
        }
        break;
    case CHRONICLE_RATE_TYPE:
        if (json_value_number(value, &rate) && isfinite(rate)) {
            chronicle_entry_add_rate(entry, field, rate);
            return true;
        }
        return false;
    case CHRONICLE_TEXT_TYPE:
        chronicle_entry_add_text(entry, field, text);
        return text != NULL;
    }
    chronicle_entry_add(entry, field, number);
    return true;
}

static enum failure_code read_members(
    const struct json_value *root, struct chronicle_entry *entry) {
    for (int i = 0; i < CHRONICLE_FIELD_COUNT; i++) {
        enum chronicle_field field = (enum chronicle_field)i;
        const struct json_value *value = chronicle_kind_has(entry->kind, field)
                                             ? json_value_member(root, chronicle_field_name(field))
                                             : NULL;
        if (value != NULL && !read_value(value, field, entry)) {
            return FAILURE_MALFORMED;
        }
    }
    return FAILURE_NONE;
}

static enum failure_code read_root(const struct json_value *root, struct chronicle_entry *entry) {
    const char *schema = json_value_text(json_value_member(root, "schema"));
    const char *kind = json_value_text(json_value_member(root, "kind"));
    const char *node = json_value_text(json_value_member(root, "node"));
    const char *severity = json_value_text(json_value_member(root, "severity"));
    const struct json_value *round = json_value_member(root, "round");
    if (schema == NULL || !text_equals(schema, CHRONICLE_EVENT_SCHEMA) || kind == NULL ||
        node == NULL || severity == NULL ||
        !json_value_integer(json_value_member(root, "seq"), &entry->seq) || entry->seq < 1 ||
        entry->seq > LARGEST_NUMBER ||
        !read_nanoseconds(json_value_member(root, "time"), &entry->time.nanoseconds) ||
        (round != NULL && (!json_value_integer(round, &entry->round) || entry->round < 0))) {
        return FAILURE_MALFORMED;
    }
    entry->has_round = round != NULL;
    entry->kind = chronicle_kind_from_name(kind);
    entry->severity = chronicle_severity_from_name(severity);
    if (entry->kind == CHRONICLE_KIND_COUNT) {
        return FAILURE_MISSING;
    }
    if (entry->severity == CHRONICLE_SEVERITY_COUNT) {
        return FAILURE_MALFORMED;
    }
    chronicle_entry_set_node(entry, node);
    return read_members(root, entry);
}

enum failure_code chronicle_json_read_entry(struct slice line, struct chronicle_entry *out_entry) {
    struct json_document *document;
    struct chronicle_entry entry = {0};
    enum failure_code code =
        json_document_parse(line, CHRONICLE_LINE_READ_MAXIMUM, &document, NULL);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = read_root(json_document_root(document), &entry);
    json_document_free(document);
    if (code != FAILURE_NONE) {
        chronicle_entry_clear(&entry);
        return code;
    }
    *out_entry = entry;
    return FAILURE_NONE;
}

/* Status. */

static void write_name(const char *name, struct text *out) {
    const char last = out->length > 0 ? out->data[out->length - 1] : '{';
    text_append_format(out, "%s\"%s\":", last == '{' || last == '[' ? "" : ",", name);
}

static void write_text(const char *name, const char *text_or_null, struct text *out) {
    write_name(name, out);
    if (text_or_null == NULL) {
        text_append(out, "null");
    } else {
        struct text valid = {0};
        json_repair_text(slice_from_string(text_or_null), &valid);
        json_text_write(text_string(&valid), out);
        text_clear(&valid);
    }
}

static void write_number(const char *name, int64_t number, bool is_known, struct text *out) {
    write_name(name, out);
    if (is_known) {
        text_append_format(out, "%" PRId64, number);
    } else {
        text_append(out, "null");
    }
}

static void write_seconds(const char *name, int64_t nanoseconds, bool is_known, struct text *out) {
    write_name(name, out);
    if (is_known) {
        write_nanoseconds(nanoseconds, out);
    } else {
        text_append(out, "null");
    }
}

static void write_flag(const char *name, bool flag, struct text *out) {
    write_name(name, out);
    text_append(out, flag ? "true" : "false");
}

/* The nodes of the world that have told of themselves. */
static int count_tellers(const struct chronicle_status *status) {
    int count = 0;
    for (size_t i = 0; i < status->known_nodes; i++) {
        enum chronicle_node_state state = status->nodes[i].state;
        count += status->nodes[i].rank >= 0 && state < CHRONICLE_NODE_FOREIGN ? 1 : 0;
    }
    return count;
}

static void write_seen(
    const struct chronicle_status *status, const struct chronicle_view *view, struct text *out) {
    const struct text_list *names = view->seen_from;
    write_name("seen", out);
    text_append(out, "{");
    write_text("from", view->host != NULL ? "host" : "nodes", out);
    if (view->host != NULL) {
        write_text("node", view->host, out);
    }
    write_name("nodes", out);
    text_append(out, "[");
    for (size_t i = 0; names != NULL && i < names->count; i++) {
        text_append(out, i > 0 ? "," : "");
        json_text_write(names->items[i], out);
    }
    text_append(out, "]");
    write_seconds("at", status->now.nanoseconds, status->has_begun, out);
    int answered = view->host != NULL ? count_tellers(status)
                   : names != NULL    ? (int)names->count
                                      : 0;
    write_flag("complete", status->node_count > 0 && answered >= status->node_count, out);
    write_number("asked", status->node_count, status->node_count > 0, out);
    write_number("answered", answered, true, out);
    text_append(out, "}");
}

static void write_job(
    const struct chronicle_status *status, const struct chronicle_view *view, struct text *out) {
    write_name("job", out);
    text_append(out, "{");
    write_text("id", view->run_id, out);
    write_text("state", job_state_name(status->state), out);
    write_text("result", job_result_name(status->result), out);
    write_seconds("since", status->since.nanoseconds, status->has_begun, out);
    write_seconds("began", status->began.nanoseconds, status->has_begun, out);
    write_number("round", status->round, status->has_round, out);
    write_name("nodes", out);
    text_append(out, "{");
    write_number("here", status->node_count > 0 ? status->node_count : status->here,
        status->node_count > 0 || status->here >= 0, out);
    write_number("min", status->minimum_nodes, status->minimum_nodes > 0, out);
    write_number("max", status->maximum_nodes, status->maximum_nodes > 0, out);
    text_append(out, "}");
    write_number("workers", status->worker_count, status->node_count > 0, out);
    write_name("restarts", out);
    text_append(out, "{");
    write_number("used", status->restarts, status->max_restarts >= 0, out);
    write_number("max", status->max_restarts, status->max_restarts >= 0, out);
    text_append(out, "}");
    write_number("hangs", status->hangs, true, out);
    write_name("host_changed", out);
    if (status->host_changed.nanoseconds > 0) {
        text_append(out, "{");
        write_seconds("at", status->host_changed.nanoseconds, true, out);
        write_flag("account_kept", status->has_past, out);
        text_append(out, "}");
    } else {
        text_append(out, "null");
    }
    write_text("log_dir", view->log_dir, out);
    write_text("slurm_job", view->slurm_job, out);
    if (status->kept.node != NULL) {
        write_name("kept", out);
        text_append(out, "{");
        write_text("node", status->kept.node, out);
        write_text("reason", status->kept.reason, out);
        write_seconds("at", status->kept.at.nanoseconds, true, out);
        text_append(out, "}");
    }
    if (status->excluded_count > 0) {
        write_name("excluded", out);
        text_append(out, "{");
        write_number("count", status->excluded_count, true, out);
        write_text("node", status->excluded.node, out);
        write_text("reason", status->excluded.reason, out);
        write_seconds("at", status->excluded.at.nanoseconds, true, out);
        text_append(out, "}");
    }
    text_append(out, "}");
}

/* While it hangs; else null. */
static void write_hang(const struct chronicle_status *status, struct text *out) {
    write_name("hang", out);
    if (status->state != JOB_HANGING) {
        text_append(out, "null");
        return;
    }
    text_append(out, "{");
    write_seconds("since", status->hung_since.nanoseconds, true, out);
    write_text("node", status->hung_node, out);
    write_number("rank", status->hung_rank, status->hung_rank >= 0, out);
    write_text("what", status->hung, out);
    text_append(out, "}");
}

static void write_account(const struct chronicle_status *status, struct text *out) {
    const struct chronicle_account *account = &status->account;
    write_name("account", out);
    text_append(out, "{");
    write_seconds("wall", chronicle_status_wall(status).nanoseconds, true, out);
    write_seconds("running", account->states[JOB_RUNNING].nanoseconds, true, out);
    write_seconds("training_kept",
        account->states[JOB_TRAINING].nanoseconds - account->redone.nanoseconds,
        status->source != PROGRESS_NONE, out);
    write_seconds("redone", account->redone.nanoseconds, account->knows_redone, out);
    write_name("recovering", out);
    text_append(out, "{");
    for (int cause = CHRONICLE_CAUSE_NONE + 1; cause < CHRONICLE_CAUSE_COUNT; cause++) {
        if (account->recovering[cause].nanoseconds > 0) {
            write_seconds(chronicle_cause_name((enum chronicle_cause)cause),
                account->recovering[cause].nanoseconds, true, out);
        }
    }
    text_append(out, "}");
    write_seconds("starting", account->states[JOB_STARTING].nanoseconds, true, out);
    write_seconds("waiting", account->states[JOB_WAITING].nanoseconds, true, out);
    write_seconds("hanging", account->states[JOB_HANGING].nanoseconds, true, out);
    write_seconds("ending", account->states[JOB_ENDING].nanoseconds, true, out);
    write_name("worker_hours", out);
    text_append_format(out, "%.6f", account->worker_seconds / 3600);
    write_name("missing_worker_hours", out);
    text_append_format(out, "%.6f", account->missing_worker_seconds / 3600);
    text_append(out, "}");
}

static void write_recovery(const struct chronicle_status *status, size_t index, struct text *out) {
    const struct chronicle_recovery *recovery = &status->recoveries[index];
    text_append(out, "{");
    write_number("seq", (int64_t)(status->recoveries_before + index + 1), true, out);
    write_seconds("at", recovery->moments[RECOVERY_FAILED].nanoseconds, true, out);
    write_number("round", recovery->round, true, out);
    write_text("cause", chronicle_cause_name(recovery->cause), out);
    write_text("what", recovery->what, out);
    write_text("node", recovery->node, out);
    write_number("rank", recovery->rank, recovery->rank >= 0, out);
    write_number("exit", recovery->exit, recovery->exit != INT_MIN, out);
    write_flag("charged", recovery->is_charged, out);
    write_flag("over", recovery->is_over, out);
    write_number("redone_steps", recovery->redone_steps, recovery->redone_steps >= 0, out);
    write_name("phases", out);
    text_append(out, "{");
    int64_t took = 0;
    for (int i = RECOVERY_NOTICED; i < RECOVERY_MOMENT_COUNT; i++) {
        enum recovery_moment moment = (enum recovery_moment)i;
        if (recovery->moments[moment].nanoseconds == 0) {
            continue;
        }
        int64_t phase = chronicle_recovery_phase(recovery, moment).nanoseconds;
        took += phase;
        write_name(recovery_moment_name(moment), out);
        text_append(out, "{");
        write_seconds("took", phase, true, out);
        write_text("last", recovery->last[moment], out);
        text_append(out, "}");
    }
    text_append(out, "}");
    write_seconds("took", took, recovery->is_over, out);
    text_append(out, "}");
}

static void write_recoveries(const struct chronicle_status *status, struct text *out) {
    write_name("recoveries", out);
    text_append(out, "[");
    for (size_t i = 0; i < status->recovery_count; i++) {
        text_append(out, i > 0 ? "," : "");
        write_recovery(status, i, out);
    }
    text_append(out, "]");
}

/* One column of the nodes. */
static void write_column(const struct chronicle_status *status, const char *name,
    void (*write)(const struct chronicle_node *node, struct text *out), struct text *out) {
    write_name(name, out);
    text_append(out, "[");
    for (size_t i = 0; i < status->known_nodes; i++) {
        text_append(out, i > 0 ? "," : "");
        write(&status->nodes[i], out);
    }
    text_append(out, "]");
}

static void write_node_name(const struct chronicle_node *node, struct text *out) {
    write_string(node->name, out);
}

static void write_node_state(const struct chronicle_node *node, struct text *out) {
    write_string(chronicle_node_state_name(node->state), out);
}

static void write_count(int64_t count, struct text *out) {
    if (count < 0) {
        text_append(out, "null");
    } else {
        write_digits((uint64_t)count, 1, out);
    }
}

static void write_node_rank(const struct chronicle_node *node, struct text *out) {
    write_count(node->rank, out);
}

static void write_node_first_rank(const struct chronicle_node *node, struct text *out) {
    write_count(node->first_rank, out);
}

static void write_node_workers(const struct chronicle_node *node, struct text *out) {
    write_count(node->workers, out);
}

static void write_node_failed_first(const struct chronicle_node *node, struct text *out) {
    write_count(node->failed_first, out);
}

static void write_node_spares(const struct chronicle_node *node, struct text *out) {
    write_count(node->spares_ready, out);
}

static void write_node_said(const struct chronicle_node *node, struct text *out) {
    if (node->said.nanoseconds == 0) {
        text_append(out, "null");
    } else {
        write_nanoseconds(node->said.nanoseconds, out);
    }
}

static void write_node_version(const struct chronicle_node *node, struct text *out) {
    if (node->version == NULL) {
        text_append(out, "null");
    } else {
        write_string(node->version, out);
    }
}

static void write_node_clock(const struct chronicle_node *node, struct text *out) {
    if (node->clock_offset.nanoseconds == 0) {
        text_append(out, "null");
    } else {
        write_nanoseconds(node->clock_offset.nanoseconds, out);
    }
}

static void write_rate(double rate, struct text *out) {
    if (rate < 0) {
        text_append(out, "null");
    } else {
        text_append_format(out, "%.6g", rate);
    }
}

static void write_node_step(const struct chronicle_node *node, struct text *out) {
    write_count(node->step, out);
}

static void write_node_rate(const struct chronicle_node *node, struct text *out) {
    write_rate(node->rate, out);
}

static void write_progress(const struct chronicle_status *status, struct text *out) {
    write_name("progress", out);
    text_append(out, "{");
    write_text("source", progress_source_name(status->source), out);
    write_number("step", status->step, status->step >= 0, out);
    write_name("rate", out);
    write_rate(status->rate, out);
    write_seconds("at", status->stepped.nanoseconds, status->step >= 0, out);
    write_name("slow", out);
    if (status->slow_at.nanoseconds > 0) {
        text_append(out, "{");
        write_number("rank", status->slow_rank, true, out);
        write_name("ratio", out);
        write_rate(status->slow_ratio, out);
        write_seconds("at", status->slow_at.nanoseconds, true, out);
        text_append(out, "}");
    } else {
        text_append(out, "null");
    }
    text_append(out, "}");
}

static void write_nodes(const struct chronicle_status *status, struct text *out) {
    write_name("nodes", out);
    text_append(out, "{");
    write_column(status, "name", write_node_name, out);
    write_column(status, "rank", write_node_rank, out);
    write_column(status, "first_rank", write_node_first_rank, out);
    write_column(status, "workers", write_node_workers, out);
    write_column(status, "state", write_node_state, out);
    write_column(status, "step", write_node_step, out);
    write_column(status, "rate", write_node_rate, out);
    write_column(status, "failed_first", write_node_failed_first, out);
    write_column(status, "spares", write_node_spares, out);
    write_column(status, "said", write_node_said, out);
    write_column(status, "version", write_node_version, out);
    write_column(status, "clock_offset", write_node_clock, out);
    text_append(out, "}");
}

/* Of one group: a page of text, not a list of all nodes. */
#define RANGES_MAXIMUM 64

static void write_groups(const struct chronicle_status *status, struct text *out) {
    struct node_groups groups;
    node_groups_make(status, &groups);
    write_name("groups", out);
    text_append(out, "[");
    for (size_t i = 0; i < groups.count; i++) {
        const struct node_group *group = &groups.groups[i];
        struct text names = {0};
        node_groups_append_names(status, group, RANGES_MAXIMUM, &names);
        text_append(out, i > 0 ? ",{" : "{");
        write_number("nodes", (int64_t)group->count, true, out);
        write_text("state", chronicle_node_state_name(group->state), out);
        write_number("failed_first", group->failed_first, true, out);
        write_flag("mixed", group->is_mixed, out);
        write_seconds("said", group->said.nanoseconds, group->said.nanoseconds > 0, out);
        write_text("which", text_string(&names), out);
        text_append(out, "}");
        text_clear(&names);
    }
    text_append(out, "]");
    node_groups_clear(&groups);
}

void chronicle_json_write_status(
    const struct chronicle_status *status, const struct chronicle_view *view, struct text *out) {
    text_append(out, "{");
    write_text("schema", CHRONICLE_STATUS_SCHEMA, out);
    write_seen(status, view, out);
    write_job(status, view, out);
    write_progress(status, out);
    write_hang(status, out);
    write_account(status, out);
    write_recoveries(status, out);
    if (view->has_groups) {
        write_groups(status, out);
    }
    if (view->has_nodes) {
        write_nodes(status, out);
    }
    text_append(out, "}\n");
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/telling/job_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "main/telling/page_text.h"
#include "wire/json/json_document.h"
#include "wire/telling/chronicle_json.h"

#define MICROSECOND INT64_C(1000)

static void append_text(const char *text_or_null, struct text *out) {
    struct text valid = {0};
    json_repair_text(slice_from_string(text_or_null != NULL ? text_or_null : ""), &valid);
    json_text_write(text_string(&valid), out);
    text_clear(&valid);
}

static void append_seconds(struct wall_time time, struct text *out) {
    int64_t micros = time.nanoseconds / MICROSECOND;
    text_append_format(out, "%" PRId64 ".%06" PRId64, micros / 1000000, micros % 1000000);
}

/* Data of the page. */

/* The states of the job, one after the other, each with its beginning. */
static void append_states(const struct inquiry *inquiry, struct text *out) {
    struct chronicle_status status = {0};
    enum job_state state = JOB_STATE_COUNT;
    size_t count = 0;
    text_append(out, ",\"states\":[");
    for (size_t i = 0; i < inquiry->count && count < JOB_REPORT_STATES_MAXIMUM; i++) {
        chronicle_status_take(&status, &inquiry->entries[i].entry);
        if (status.has_begun && status.state != state) {
            state = status.state;
            text_append(out, count++ > 0 ? ",[" : "[");
            append_seconds(status.since, out);
            text_append_format(out, ",\"%s\"]", job_state_name(state));
        }
    }
    text_append(out, "]");
    chronicle_status_clear(&status);
}

/* Steps a second, evenly taken where there are many. */
static void append_rates(const struct inquiry *inquiry, struct text *out) {
    size_t total = 0;
    size_t seen = 0;
    for (size_t i = 0; i < inquiry->count; i++) {
        total += inquiry->entries[i].entry.kind == CHRONICLE_PROGRESS ? 1 : 0;
    }
    size_t stride = total / JOB_REPORT_RATES_MAXIMUM + 1;
    text_append(out, ",\"rates\":[");
    for (size_t i = 0; i < inquiry->count; i++) {
        const struct chronicle_entry *entry = &inquiry->entries[i].entry;
        if (entry->kind != CHRONICLE_PROGRESS || seen++ % stride != 0) {
            continue;
        }
        double rate = 0;
        for (int at = 0; at < entry->value_count; at++) {
            rate = entry->values[at].field == CHRONICLE_RATE ? entry->values[at].rate : rate;
        }
        text_append(out, seen > 1 ? ",[" : "[");
        append_seconds(entry->time, out);
        text_append_format(
            out, ",%" PRId64 ",%.6g]", chronicle_entry_number(entry, CHRONICLE_STEP, 0), rate);
    }
    text_append(out, "]");
}

void job_report_append_data(const struct job_report *report, struct text *out) {
    const struct inquiry *inquiry = report->inquiry;
    size_t first =
        inquiry->count > JOB_REPORT_EVENTS_MAXIMUM ? inquiry->count - JOB_REPORT_EVENTS_MAXIMUM : 0;
    text_append_format(out,
        "{\"schema\":\"muster.page/1\",\"version\":\"" MUSTER_VERSION "\",\"live\":%s,\"status\":",
        report->is_live ? "true" : "false");
    text_append(out, report->status_json);
    append_states(inquiry, out);
    append_rates(inquiry, out);
    text_append_format(out, ",\"events_before\":%zu,\"events\":[", first);
    for (size_t i = first; i < inquiry->count; i++) {
        text_append(out, i > first ? "," : "");
        chronicle_json_write_entry(&inquiry->entries[i].entry, out);
    }
    text_append(out, "]}");
}

/* Between <script> and </script> nothing of the data may look like markup. */
static void append_inert(const struct text *json, struct text *out) {
    static const struct {
        const char *from;
        const char *to;
    } changes[] = {{"<", "\\u003c"}, {"\xe2\x80\xa8", "\\u2028"}, {"\xe2\x80\xa9", "\\u2029"}};
    const char *at = text_string(json);
    while (*at != '\0') {
        size_t plain = strcspn(at, "<\xe2");
        text_append_bytes(out, at, plain);
        at += plain;
        size_t taken = 0;
        for (size_t i = 0; i < sizeof changes / sizeof *changes && taken == 0; i++) {
            if (strncmp(at, changes[i].from, strlen(changes[i].from)) == 0) {
                text_append(out, changes[i].to);
                taken = strlen(changes[i].from);
            }
        }
        if (taken == 0 && *at != '\0') {
            text_append_bytes(out, at, taken = 1);
        }
        at += taken;
    }
}

void job_report_append_page(const struct job_report *report, struct text *out) {
    struct text data = {0};
    text_append(out, page_text_before);
    if (report != NULL) {
        job_report_append_data(report, &data);
        append_inert(&data, out);
    } else {
        text_append(out, "null");
    }
    text_append(out, page_text_after);
    text_clear(&data);
}

/* The trace. */

/* What is open of a node. */
struct trace_node {
    int workers;
    int64_t attempt;
    int64_t started; /* in microseconds; -1: no attempt runs */
};

struct trace {
    struct chronicle_status *status;
    struct trace_node *nodes; /* as of the status */
    bool has_ranks;
    bool is_begun;
    struct text *out;
};

static int64_t micros(struct wall_time time) {
    return time.nanoseconds / MICROSECOND;
}

/* The process of the job is 1, those of the nodes follow. */
static void begin_event(
    struct trace *trace, char phase, const char *name, size_t process, int thread, int64_t at) {
    text_append(trace->out, trace->is_begun ? ",\n" : "\n");
    trace->is_begun = true;
    text_append_format(trace->out, "{\"ph\":\"%c\",\"pid\":%zu,\"tid\":%d,\"ts\":%" PRId64, phase,
        process, thread, at);
    text_append(trace->out, ",\"name\":");
    append_text(name, trace->out);
}

static void append_span(struct trace *trace, const char *name, size_t process, int thread,
    int64_t from, int64_t until, const char *about) {
    begin_event(trace, 'X', name, process, thread, from);
    text_append_format(trace->out, ",\"dur\":%" PRId64, until > from ? until - from : 0);
    if (about != NULL) {
        text_append(trace->out, ",\"args\":{\"what\":");
        append_text(about, trace->out);
        text_append(trace->out, "}");
    }
    text_append(trace->out, "}");
}

static void append_name(
    struct trace *trace, const char *kind, size_t process, int thread, const char *name) {
    begin_event(trace, 'M', kind, process, thread, 0);
    text_append(trace->out, ",\"args\":{\"name\":");
    append_text(name, trace->out);
    text_append(trace->out, "}}");
}

static void end_attempt(struct trace *trace, size_t index, int64_t at) {
    struct trace_node *node = &trace->nodes[index];
    if (node->started < 0) {
        return;
    }
    char *name = text_format("attempt %" PRId64, node->attempt);
    int threads = trace->has_ranks && node->workers > 0 ? node->workers : 1;
    for (int thread = 0; thread < threads; thread++) {
        append_span(trace, name, index + 2, thread, node->started, at, NULL);
    }
    free(name);
    node->started = -1;
}

static void mark(struct trace *trace, const struct chronicle_entry *entry, size_t index) {
    const char *text = chronicle_entry_text(entry, CHRONICLE_TEXT);
    text = text != NULL ? text : chronicle_entry_text(entry, CHRONICLE_REASON);
    text = text != NULL ? text : chronicle_entry_text(entry, CHRONICLE_WHAT);
    int64_t local = chronicle_entry_number(entry, CHRONICLE_LOCAL_RANK, 0);
    begin_event(trace, 'i', chronicle_kind_name(entry->kind), index + 2,
        trace->has_ranks ? (int)local : 0, micros(entry->time));
    text_append(trace->out, ",\"s\":\"p\",\"args\":{\"what\":");
    append_text(text, trace->out);
    text_append(trace->out, "}}");
}

static bool ends_attempt(enum chronicle_kind kind) {
    return kind == CHRONICLE_STARTED || kind == CHRONICLE_STOPPED || kind == CHRONICLE_NODE_LOST ||
           kind == CHRONICLE_NODE_LEFT || kind == CHRONICLE_ENDED;
}

static void trace_entry(struct trace *trace, const struct chronicle_entry *entry) {
    int place = chronicle_status_find(trace->status, entry->node);
    int64_t at = micros(entry->time);
    if (place < 0) {
        return;
    }
    size_t index = (size_t)place;
    if (entry->kind == CHRONICLE_WORKER_FAILED || entry->kind == CHRONICLE_HANG ||
        entry->kind == CHRONICLE_NODE_LOST) {
        mark(trace, entry, index);
    }
    if (ends_attempt(entry->kind)) {
        end_attempt(trace, index, at);
    }
    if (entry->kind == CHRONICLE_STARTED) {
        trace->nodes[index].started = at;
        trace->nodes[index].attempt = chronicle_entry_number(entry, CHRONICLE_ATTEMPT, 0);
    } else if (entry->kind == CHRONICLE_PROGRESS) {
        begin_event(trace, 'C', "step", 1, 0, at);
        text_append_format(trace->out, ",\"args\":{\"step\":%" PRId64 "}}",
            chronicle_entry_number(entry, CHRONICLE_STEP, 0));
    }
}

static void trace_recovery(struct trace *trace, const struct chronicle_recovery *recovery) {
    int64_t from = micros(recovery->moments[RECOVERY_FAILED]);
    for (int i = RECOVERY_NOTICED; i < RECOVERY_MOMENT_COUNT; i++) {
        enum recovery_moment moment = (enum recovery_moment)i;
        if (recovery->moments[moment].nanoseconds != 0) {
            int64_t until =
                from + chronicle_recovery_phase(recovery, moment).nanoseconds / MICROSECOND;
            append_span(trace, recovery_moment_name(moment), 1, 1, from, until, recovery->what);
            from = until;
        }
    }
}

static void trace_states(struct trace *trace, const struct inquiry *inquiry) {
    struct chronicle_status status = {0};
    enum job_state state = JOB_STATE_COUNT;
    int64_t since = 0;
    for (size_t i = 0; i < inquiry->count; i++) {
        chronicle_status_take(&status, &inquiry->entries[i].entry);
        if (status.has_begun && status.state != state) {
            int64_t now = micros(status.since);
            if (state != JOB_STATE_COUNT) {
                append_span(trace, job_state_name(state), 1, 0, since, now, NULL);
            }
            state = status.state;
            since = now;
        }
    }
    if (state != JOB_STATE_COUNT && state != JOB_ENDED) {
        append_span(trace, job_state_name(state), 1, 0, since, micros(trace->status->now), NULL);
    }
    chronicle_status_clear(&status);
}

static void name_all(struct trace *trace) {
    const struct chronicle_status *status = trace->status;
    append_name(trace, "process_name", 1, 0, "job");
    append_name(trace, "thread_name", 1, 0, "states");
    append_name(trace, "thread_name", 1, 1, "recoveries");
    for (size_t i = 0; i < status->known_nodes; i++) {
        append_name(trace, "process_name", i + 2, 0, status->nodes[i].name);
        for (int local = 0; local < trace->nodes[i].workers && trace->has_ranks; local++) {
            char *name = text_format("local rank %d", local);
            append_name(trace, "thread_name", i + 2, local, name);
            free(name);
        }
    }
}

void job_report_append_trace(const struct job_report *report, struct text *out) {
    struct chronicle_status *status = report->status;
    struct trace trace = {.status = status,
        .nodes = memory_allocate((status->known_nodes + 1) * sizeof *trace.nodes),
        .has_ranks = status->known_nodes <= JOB_REPORT_TRACED_NODES_MAXIMUM,
        .out = out};
    for (size_t i = 0; i < status->known_nodes; i++) {
        trace.nodes[i] = (struct trace_node){.workers = status->nodes[i].workers, .started = -1};
    }
    text_append(out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    name_all(&trace);
    trace_states(&trace, report->inquiry);
    for (size_t i = 0; i < status->recovery_count; i++) {
        trace_recovery(&trace, &status->recoveries[i]);
    }
    for (size_t i = 0; i < report->inquiry->count; i++) {
        trace_entry(&trace, &report->inquiry->entries[i].entry);
    }
    for (size_t i = 0; i < status->known_nodes; i++) {
        end_attempt(&trace, i, micros(status->now));
    }
    text_append(out, "\n]}\n");
    free(trace.nodes);
}

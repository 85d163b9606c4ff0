/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/event_json.h"

#include <inttypes.h>

#include "wire/json/json_document.h"

static void write_text(const char *value, struct text *out) {
    struct text valid = {0};
    if (value == NULL) {
        text_append(out, "null");
        return;
    }
    json_repair_text(slice_from_string(value), &valid);
    json_text_write(text_string(&valid), out);
    text_clear(&valid);
}

static void write_member(const char *name, const char *value, struct text *out) {
    text_append_format(out, ", \"%s\": ", name);
    write_text(value, out);
}

static void write_number_or_null(const char *name, bool is_there, int64_t value, struct text *out) {
    text_append_format(out, ", \"%s\": ", name);
    if (is_there) {
        text_append_format(out, "%" PRId64, value);
    } else {
        text_append(out, "null");
    }
}

/* Here TorchElastic declares numbers but writes tuples of one item. */
static void write_single(const char *name, bool is_there, int64_t value, struct text *out) {
    text_append_format(out, ", \"%s\": [", name);
    if (is_there) {
        text_append_format(out, "%" PRId64 "]", value);
    } else {
        text_append(out, "null]");
    }
}

/* Writes the JSON document inside an agent's or a worker's record. */
static void write_status_details(const struct event_record *record, struct text *out) {
    const struct event_agent *agent = &record->agent;
    const struct event_worker *worker = record->worker;
    text_append(out, "{\"group_world_size\": ");
    if (agent->has_group) {
        text_append_format(out, "%d", agent->group_world_size);
    } else {
        text_append(out, "null");
    }
    write_member("entry_point", agent->entry_point, out);
    if (worker != NULL) {
        write_single("local_rank", true, worker->local_rank, out);
        write_single("role_rank", true, worker->role_rank, out);
        write_single("role_world_size", true, worker->role_world_size, out);
        write_single("exit_code", worker->has_exit_code, worker->exit_code, out);
        write_single("worker_pid", worker->is_failed && worker->pid != 0, worker->pid, out);
    }
    text_append(out, "}");
}

static void write_watchdog_details(const struct event_record *record, struct text *out) {
    const struct event_timer_record *timer = record->timer;
    text_append(out, "{\"watchdog_event\": ");
    write_text(event_watchdog_name(record->watchdog), out);
    if (timer != NULL) {
        text_append_format(out, ", \"worker_pid\": \"%" PRId64 "\"", timer->pid);
        write_member("scope_id", timer->scope, out);
        text_append_format(out, ", \"expiration_time\": \"%.6f\", \"signal\": \"%d\"",
            (double)timer->expiration.nanoseconds / NANOSECONDS_PER_SECOND, timer->signal);
    }
    text_append(out, "}");
}

static void write_standby_details(const struct event_standby_record *standby, struct text *out) {
    text_append(out, "{\"standby_event\": ");
    write_text(event_standby_name(standby->what), out);
    text_append_format(out, ", \"count\": %d, \"total\": %d", standby->count, standby->total);
    if (standby->reason != NULL) {
        write_member("reason", standby->reason, out);
    }
    text_append(out, "}");
}

static void write_details(const struct event_record *record, struct text *out) {
    struct text details = {0};
    if (record->standby != NULL) {
        write_standby_details(record->standby, &details);
    } else if (record->watchdog != EVENT_WATCHDOG_NONE) {
        write_watchdog_details(record, &details);
    } else {
        write_status_details(record, &details);
    }
    write_member("metadata", text_string(&details), out);
    text_clear(&details);
}

static void write_name(const struct event_record *record, struct text *out) {
    text_append(out, "{\"name\": ");
    if (record->standby != NULL) {
        write_text(event_standby_name(record->standby->what), out);
    } else if (record->watchdog != EVENT_WATCHDOG_NONE) {
        write_text(event_watchdog_name(record->watchdog), out);
    } else {
        text_append_format(
            out, "\"torchelastic.worker.status.%s\"", event_state_name(record->state));
    }
}

static void write_worker_id(const struct event_worker *worker, struct text *out) {
    if (worker == NULL || worker->pid == 0) {
        text_append(out, ", \"worker_id\": null");
    } else {
        text_append_format(out, ", \"worker_id\": \"%" PRId64 "\"", worker->pid);
    }
}

static void write_duration(const struct event_record *record, struct text *out) {
    if (record->watchdog != EVENT_WATCHDOG_NONE || record->standby != NULL) {
        return; /* these records have no such member */
    }
    if (record->has_duration) {
        text_append_format(out, ", \"duration_ms\": %.6f",
            (double)record->duration.nanoseconds / NANOSECONDS_PER_MILLISECOND);
    } else {
        text_append(out, ", \"duration_ms\": null");
    }
}

void event_json_write(const struct event_record *record, struct text *out) {
    const struct event_agent *agent = &record->agent;
    const struct event_worker *worker = record->worker;
    write_name(record, out);
    write_member("source", worker != NULL ? "WORKER" : "AGENT", out);
    text_append_format(out, ", \"timestamp\": %" PRId64 ", \"metadata\": {\"run_id\": ",
        record->time.nanoseconds / NANOSECONDS_PER_MILLISECOND);
    write_text(agent->run_id, out);
    write_number_or_null(
        "global_rank", worker != NULL, worker != NULL ? worker->global_rank : 0, out);
    write_number_or_null("group_rank", agent->has_group, agent->group_rank, out);
    write_worker_id(worker, out);
    write_member("role", agent->role, out);
    write_member("hostname", agent->host_name, out);
    write_member("state", event_state_name(record->state), out);
    text_append_format(out, ", \"total_run_time\": %" PRId64, agent->total_run_seconds);
    write_member("rdzv_backend", agent->rdzv_backend, out);
    write_member("raw_error", record->raw_error, out);
    write_details(record, out);
    text_append_format(out, ", \"agent_restarts\": %d", agent->restarts);
    write_duration(record, out);
    text_append(out, "}}\n");
}

void event_json_write_rendezvous(const struct event_rendezvous *record, struct text *out) {
    text_append(out, "{\"name\": ");
    write_text(record->name, out);
    write_member("run_id", record->run_id, out);
    write_member("message", record->message, out);
    write_member("hostname", record->host_name, out);
    text_append_format(out, ", \"pid\": %" PRId64, record->pid);
    write_member("node_state", event_node_state_name(record->state), out);
    text_append(out, ", \"master_endpoint\": \"\""); /* torchrun never fills it in either */
    write_number_or_null("rank", record->has_rank, record->rank, out);
    write_number_or_null("local_id", record->has_local_id, record->local_id, out);
    write_member("error_trace", record->trouble, out);
    text_append(out, "}\n");
}

void event_json_write_error(struct slice error_file, struct process_exit exit, struct text *out) {
    struct json_document *document;
    if (json_document_parse(error_file, EVENT_JSON_MAXIMUM_ERROR, &document, NULL) ==
        FAILURE_NONE) {
        json_value_write(json_document_root(document), out);
        json_document_free(document);
    } else if (exit.is_signal) {
        text_append(out, "{\"message\": \"<NONE>\"}");
    } else {
        text_append(out, "{\"message\": \"<NONE>\", \"errorTraits\": {\"category\": "
                         "\"system_terminated_error\", \"retryability\": \"False\"}}");
    }
}

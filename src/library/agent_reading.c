/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/agent_reading.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "wire/json/json_document.h"
#include "wire/telling/agent_line.h"

#define EXIT_JOB_FAILED 1

/* Events. */

static int number_of(const struct json_value *object, const char *name, int otherwise) {
    const struct json_value *value = json_value_member(object, name);
    int64_t number;
    if (json_value_is_array(value)) { /* TorchElastic writes some as lists of one */
        value = json_value_item(value, 0);
    }
    return json_value_integer(value, &number) && number >= INT_MIN && number <= INT_MAX
               ? (int)number
               : otherwise;
}

static double seconds_of(const struct json_value *object, const char *name, double otherwise) {
    double number;
    return json_value_number(json_value_member(object, name), &number) ? number : otherwise;
}

static const char *text_of(const struct json_value *object, const char *name) {
    return json_value_text(json_value_member(object, name));
}

/* The pid is a text. */
static long pid_of(const struct json_value *object, const char *name) {
    const char *text = text_of(object, name);
    return text == NULL ? 0 : strtol(text, NULL, 10);
}

static enum muster_agent_event_kind kind_of(
    const struct json_value *root, const struct json_value *inner) {
    const char *source = text_of(root, "source");
    if (source == NULL) {
        return MUSTER_AGENT_EVENT_RENDEZVOUS;
    }
    if (text_of(inner, "watchdog_event") != NULL) {
        return MUSTER_AGENT_EVENT_WATCHDOG;
    }
    if (text_of(inner, "standby_event") != NULL) {
        return MUSTER_AGENT_EVENT_STANDBY;
    }
    return text_equals(source, "WORKER") ? MUSTER_AGENT_EVENT_WORKER : MUSTER_AGENT_EVENT_AGENT;
}

static void fill_in_rendezvous(
    const struct json_value *root, struct muster_agent_event *out_event) {
    out_event->state = text_of(root, "node_state");
    out_event->run_id = text_of(root, "run_id");
    out_event->hostname = text_of(root, "hostname");
    out_event->message = text_of(root, "message");
    out_event->raw_error = text_of(root, "error_trace");
    out_event->group_rank = number_of(root, "rank", -1);
}

static void fill_in_agent(const struct json_value *root, const struct json_value *inner,
    struct muster_agent_event *out_event) {
    const struct json_value *metadata = json_value_member(root, "metadata");
    out_event->state = text_of(metadata, "state");
    out_event->timestamp = seconds_of(root, "timestamp", 0) / 1000; /* milliseconds */
    out_event->run_id = text_of(metadata, "run_id");
    out_event->role = text_of(metadata, "role");
    out_event->hostname = text_of(metadata, "hostname");
    out_event->raw_error = text_of(metadata, "raw_error");
    out_event->group_rank = number_of(metadata, "group_rank", -1);
    out_event->group_world_size = number_of(inner, "group_world_size", -1);
    out_event->global_rank = number_of(metadata, "global_rank", -1);
    out_event->local_rank = number_of(inner, "local_rank", -1);
    out_event->pid = pid_of(metadata, "worker_id");
    if (out_event->pid == 0) {
        out_event->pid = pid_of(inner, "worker_pid");
    }
    out_event->exit_code = number_of(inner, "exit_code", INT_MIN);
    out_event->has_exit_code = out_event->exit_code != INT_MIN;
    out_event->exit_code = out_event->has_exit_code ? out_event->exit_code : 0;
    out_event->restarts = number_of(metadata, "agent_restarts", 0);
    out_event->duration_ms = seconds_of(metadata, "duration_ms", -1);
}

/* The metadata inside are JSON in a text. */
static struct json_document *parse_inner(const struct json_value *root) {
    const char *text = text_of(json_value_member(root, "metadata"), "metadata");
    struct json_document *inner;
    return text != NULL && json_document_parse(slice_from_string(text), AGENT_LINE_MAXIMUM, &inner,
                               NULL) == FAILURE_NONE
               ? inner
               : NULL;
}

static void take_event(const struct agent_reading *reading, struct slice line) {
    struct json_document *document;
    if (reading->settings->event == NULL ||
        json_document_parse(line, AGENT_LINE_MAXIMUM, &document, NULL) != FAILURE_NONE) {
        return;
    }
    const struct json_value *root = json_document_root(document);
    struct json_document *inner_document = parse_inner(root);
    const struct json_value *inner =
        inner_document == NULL ? NULL : json_document_root(inner_document);
    char *json = text_format("%.*s", (int)line.length, (const char *)line.data);
    struct muster_agent_event event = {
        .kind = kind_of(root, inner),
        .name = text_of(root, "name"),
        .group_rank = -1,
        .group_world_size = -1,
        .global_rank = -1,
        .local_rank = -1,
        .duration_ms = -1,
        .json = json,
    };
    if (event.kind == MUSTER_AGENT_EVENT_RENDEZVOUS) {
        fill_in_rendezvous(root, &event);
    } else {
        fill_in_agent(root, inner, &event);
    }
    if (event.name != NULL) {
        reading->settings->event(reading->settings->context, &event);
    }
    free(json);
    json_document_free(inner_document);
    json_document_free(document);
}

static void take_metric(const struct agent_reading *reading, struct slice line) {
    struct metric metric;
    if (reading->settings->metric == NULL ||
        agent_line_read_metric(line, &metric) != FAILURE_NONE) {
        return;
    }
    const struct muster_metric told = {(double)metric.time.nanoseconds / NANOSECONDS_PER_SECOND,
        METRIC_GROUP, metric.name, metric.value};
    reading->settings->metric(reading->settings->context, &told);
    free(metric.name);
}

static void take_group(struct agent_reading *reading, struct slice line) {
    struct run_group group;
    if (agent_line_read_group(line, &group) == FAILURE_NONE) {
        run_group_clear(&reading->group);
        reading->group = group;
        reading->has_group = true;
    }
}

static void take_ask(struct agent_reading *reading, struct slice line) {
    const struct muster_agent_settings *settings = reading->settings;
    bool is_barrier;
    int restarts;
    if (settings->next_rendezvous == NULL ||
        agent_line_read_ask(line, &is_barrier, &restarts) != FAILURE_NONE) {
        return;
    }
    reading->has_asked = true;
    reading->waiting = is_barrier ? AGENT_WAITS_FOR_OTHERS : AGENT_WAITS_FOR_ROUND;
    if (!is_barrier) {
        settings->next_rendezvous(settings->context, restarts);
    } else if (settings->exit_barrier != NULL) {
        settings->exit_barrier(settings->context);
    }
}

void agent_reading_take(struct agent_reading *reading, struct slice line) {
    if (line.length == 0) {
        return;
    }
    const struct slice document = {line.data + 1, line.length - 1};
    if (line.data[0] == AGENT_LINE_EVENT) {
        take_event(reading, document);
    } else if (line.data[0] == AGENT_LINE_METRIC) {
        take_metric(reading, document);
    } else if (line.data[0] == AGENT_LINE_GROUP) {
        take_group(reading, document);
    } else if (line.data[0] == AGENT_LINE_ASK) {
        take_ask(reading, document);
    } else {
        (void)!agent_line_read_result(
            (char)line.data[0], document, &reading->run, &reading->is_complete);
    }
}

/* The result. */

static struct muster_process_failure make_failure(const struct failure_account *account) {
    bool has_ended = account->start_message == NULL && account->stuck.nanoseconds == 0;
    return (struct muster_process_failure){
        .global_rank = account->rank,
        .local_rank = account->local_rank,
        .pid = (long)account->pid,
        .exitcode = has_ended ? process_exit_python_code(account->exit) : EXIT_JOB_FAILED,
        .timestamp = (double)account->seconds,
        .hostname = account->host,
        .error_file = account->error_file,
        .message = account->start_message != NULL ? account->start_message : account->message,
        .evidence = account->evidence,
    };
}

static int compare_failures(const void *left, const void *right) {
    const struct muster_process_failure *a = left;
    const struct muster_process_failure *b = right;
    return (a->global_rank > b->global_rank) - (a->global_rank < b->global_rank);
}

static void make_workers(struct agent_reading *reading) {
    const struct run_result *run = &reading->run;
    reading->workers = memory_allocate(run->worker_count * sizeof *reading->workers);
    for (size_t i = 0; i < run->worker_count; i++) {
        reading->workers[i] = (struct muster_worker_exit){run->workers[i].global_rank,
            run->workers[i].local_rank, (long)run->workers[i].pid, run->workers[i].exit_code,
            {run->workers[i].return_value.data, run->workers[i].return_value.length}};
    }
}

static void make_failures(struct agent_reading *reading) {
    const struct run_result *run = &reading->run;
    reading->failures = memory_allocate(run->failure_count * sizeof *reading->failures);
    for (size_t i = 0; i < run->failure_count; i++) {
        reading->failures[i] = make_failure(&run->failures[i]);
    }
    qsort(reading->failures, run->failure_count, sizeof *reading->failures, compare_failures);
}

void agent_reading_end(struct agent_reading *reading) {
    struct run_result *run = &reading->run;
    if (!reading->is_complete) {
        run_result_clear(run);
        run->state = RUN_STATE_UNKNOWN;
        run->exit_status = EXIT_JOB_FAILED;
        run->message = memory_duplicate_string("the agent has ended without a result");
    }
    make_workers(reading);
    make_failures(reading);
    reading->root_cause = make_failure(&run->root_cause);
    reading->result = (struct muster_run_result){
        .state = (enum muster_worker_state)run->state,
        .exit_status = run->exit_status,
        .signal = run->signal,
        .restarts = run->restarts,
        .message = run->message,
        .workers = reading->workers,
        .worker_count = run->worker_count,
        .failures = reading->failures,
        .failure_count = run->failure_count,
        .root_cause = run->has_root_cause ? &reading->root_cause : NULL,
    };
    if (reading->settings->ended != NULL) {
        reading->settings->ended(reading->settings->context, &reading->result);
    }
}

void agent_reading_clear(struct agent_reading *reading) {
    run_group_clear(&reading->group);
    run_result_clear(&reading->run);
    free(reading->workers);
    free(reading->failures);
    *reading = (struct agent_reading){0};
}

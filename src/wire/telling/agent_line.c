/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/agent_line.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "core/launch/launch_config.h"
#include "wire/failure/failure_json.h"
#include "wire/json/json_document.h"

#define EXIT_CODE_MAXIMUM 255
#define SIGNAL_MAXIMUM 64
#define PORT_MAXIMUM 65535

/* Writing. */

static void write_text(const char *value, struct text *out) {
    struct text valid = {0};
    json_repair_text(slice_from_string(value), &valid);
    json_text_write(text_string(&valid), out);
    text_clear(&valid);
}

void agent_line_write_event(const char *record, struct text *out) {
    text_append_format(out, "%c%s", AGENT_LINE_EVENT, record);
}

void agent_line_write_metric(const struct metric *metric, struct text *out) {
    text_append_format(out, "%c{\"name\": ", AGENT_LINE_METRIC);
    write_text(metric->name, out);
    text_append_format(out, ", \"value\": %" PRId64 ", \"nanoseconds\": %" PRId64 "}\n",
        metric->value, metric->time.nanoseconds);
}

static void write_number(const char *name, int64_t value, struct text *out) {
    text_append_format(out, ", \"%s\": %" PRId64, name, value);
}

static void write_member(const char *name, const char *value, struct text *out) {
    text_append_format(out, ", \"%s\": ", name);
    write_text(value, out);
}

void agent_line_write_group(const struct run_group *group, struct text *out) {
    text_append_format(out, "%c{\"state\": %d", AGENT_LINE_GROUP, (int)group->state);
    write_number("group_rank", group->group_rank, out);
    write_number("group_world_size", group->group_world_size, out);
    write_number("base_rank", group->base_rank, out);
    write_number("world_size", group->world_size, out);
    write_number("role_base_rank", group->role_base_rank, out);
    write_number("role_world_size", group->role_world_size, out);
    write_number("restarts", group->restarts, out);
    write_member("run_id", group->run_id, out);
    write_member("role", group->role, out);
    write_member("master_host", group->master_host, out);
    write_number("master_port", group->master_port, out);
    text_append(out, ", \"pids\": [");
    for (size_t i = 0; i < group->worker_count; i++) {
        text_append_format(out, "%s%" PRId64, i > 0 ? ", " : "", group->pids[i]);
    }
    text_append(out, "]}\n");
}

void agent_line_write_ask(bool is_barrier, int attempt, struct text *out) {
    text_append_format(out, "%c{\"barrier\": %d", AGENT_LINE_ASK, is_barrier ? 1 : 0);
    write_number("attempt", attempt, out);
    text_append(out, "}\n");
}

static void write_account(char kind, const struct failure_account *account, struct text *out) {
    text_append_format(out, "%c", kind);
    failure_json_write(account, out);
    text_append(out, "\n");
}

static void write_worker(const struct run_worker *worker, struct text *out) {
    text_append_format(out,
        "%c{\"global_rank\": %d, \"local_rank\": %d, \"pid\": %" PRId64 ", \"exit_code\": %d",
        AGENT_LINE_WORKER, worker->global_rank, worker->local_rank, worker->pid, worker->exit_code);
    if (worker->return_value.length > 0) {
        struct bytes encoded = {0};
        (void)!base64_encode(bytes_slice(&worker->return_value), &encoded); /* without a ceiling */
        text_append(out, ", \"return_value\": \"");
        text_append_bytes(out, (const char *)encoded.data, encoded.length);
        text_append(out, "\"");
        bytes_clear(&encoded);
    }
    text_append(out, "}\n");
}

void agent_line_write_result(const struct run_result *result, struct text *out) {
    for (size_t i = 0; i < result->worker_count; i++) {
        write_worker(&result->workers[i], out);
    }
    for (size_t i = 0; i < result->failure_count; i++) {
        write_account(AGENT_LINE_FAILURE, &result->failures[i], out);
    }
    if (result->has_root_cause) {
        write_account(AGENT_LINE_ROOT_CAUSE, &result->root_cause, out);
    }
    text_append_format(out,
        "%c{\"state\": \"%s\", \"exit_status\": %d, \"signal\": %d, \"restarts\": %d",
        AGENT_LINE_RESULT, run_state_name(result->state), result->exit_status, result->signal,
        result->restarts);
    if (result->message != NULL) {
        text_append(out, ", \"message\": ");
        write_text(result->message, out);
    }
    text_append(out, "}\n");
}

/* Reading. */

/* `code` is the first failure; after it, nothing more is read. */
struct reader {
    struct json_document *document;
    enum failure_code code;
};

static struct reader open_reader(struct slice document) {
    struct reader reader = {0};
    reader.code = json_document_parse(document, AGENT_LINE_MAXIMUM, &reader.document, NULL);
    return reader;
}

static const struct json_value *member(const struct reader *reader, const char *name) {
    return json_value_member(json_document_root(reader->document), name);
}

static int64_t read_integer(
    struct reader *reader, const char *name, int64_t minimum, int64_t maximum) {
    int64_t value = minimum;
    if (reader->code == FAILURE_NONE && !json_value_integer(member(reader, name), &value)) {
        reader->code = FAILURE_MALFORMED;
    } else if (reader->code == FAILURE_NONE && (value < minimum || value > maximum)) {
        reader->code = FAILURE_LIMIT;
    }
    return reader->code == FAILURE_NONE ? value : minimum;
}

/* NULL where there is none. It belongs to the document. */
static const char *read_text(struct reader *reader, const char *name, bool is_needed) {
    const char *text = reader->code == FAILURE_NONE ? json_value_text(member(reader, name)) : NULL;
    if (text == NULL && is_needed && reader->code == FAILURE_NONE) {
        reader->code = FAILURE_MALFORMED;
    }
    return text;
}

static enum failure_code close_reader(struct reader *reader) {
    json_document_free(reader->document);
    return reader->code;
}

enum failure_code agent_line_read_metric(struct slice document, struct metric *out_metric) {
    struct reader reader = open_reader(document);
    const char *name = read_text(&reader, "name", true);
    int64_t value = read_integer(&reader, "value", INT64_MIN, INT64_MAX);
    int64_t time = read_integer(&reader, "nanoseconds", 0, INT64_MAX);
    if (reader.code == FAILURE_NONE) {
        *out_metric =
            (struct metric){memory_duplicate_string(name), value, (struct wall_time){time}};
    }
    return close_reader(&reader);
}

static void read_pids(struct reader *reader, struct run_group *group) {
    const struct json_value *list = reader->code == FAILURE_NONE ? member(reader, "pids") : NULL;
    size_t count = json_value_item_count(list);
    if (reader->code != FAILURE_NONE || !json_value_is_array(list) ||
        count > LAUNCH_MAXIMUM_WORKERS_PER_NODE) {
        reader->code = reader->code != FAILURE_NONE ? reader->code : FAILURE_MALFORMED;
        return;
    }
    group->pids = memory_allocate(count * sizeof *group->pids);
    group->worker_count = count;
    for (size_t i = 0; i < count; i++) {
        if (!json_value_integer(json_value_item(list, i), &group->pids[i]) || group->pids[i] < 0) {
            reader->code = FAILURE_MALFORMED;
        }
    }
}

enum failure_code agent_line_read_group(struct slice document, struct run_group *out_group) {
    struct reader reader = open_reader(document);
    struct run_group group = {
        .state = (enum run_group_state)read_integer(&reader, "state", 0, RUN_GROUP_STATE_COUNT - 1),
        .group_rank = (int)read_integer(&reader, "group_rank", 0, INT_MAX),
        .group_world_size = (int)read_integer(&reader, "group_world_size", 0, INT_MAX),
        .base_rank = (int)read_integer(&reader, "base_rank", 0, INT_MAX),
        .world_size = (int)read_integer(&reader, "world_size", 0, INT_MAX),
        .role_base_rank = (int)read_integer(&reader, "role_base_rank", 0, INT_MAX),
        .role_world_size = (int)read_integer(&reader, "role_world_size", 0, INT_MAX),
        .restarts = (int)read_integer(&reader, "restarts", 0, INT_MAX),
        .master_port = (int)read_integer(&reader, "master_port", 0, PORT_MAXIMUM),
        .run_id = memory_duplicate_string(read_text(&reader, "run_id", true)),
        .role = memory_duplicate_string(read_text(&reader, "role", true)),
        .master_host = memory_duplicate_string(read_text(&reader, "master_host", true)),
    };
    read_pids(&reader, &group);
    if (reader.code == FAILURE_NONE &&
        (group.base_rank > INT_MAX - LAUNCH_MAXIMUM_WORKERS_PER_NODE ||
            group.role_base_rank > INT_MAX - LAUNCH_MAXIMUM_WORKERS_PER_NODE)) {
        reader.code = FAILURE_LIMIT;
    }
    if (reader.code == FAILURE_NONE) {
        *out_group = group;
    } else {
        run_group_clear(&group);
    }
    return close_reader(&reader);
}

enum failure_code agent_line_read_ask(
    struct slice document, bool *out_is_barrier, int *out_attempt) {
    struct reader reader = open_reader(document);
    int64_t is_barrier = read_integer(&reader, "barrier", 0, 1);
    int attempt = (int)read_integer(&reader, "attempt", 0, INT_MAX);
    if (reader.code == FAILURE_NONE) {
        *out_is_barrier = is_barrier == 1;
        *out_attempt = attempt;
    }
    return close_reader(&reader);
}

/* Base64 tells how many bytes there are only up to two. */
static struct bytes read_return_value(struct reader *reader) {
    struct bytes value;
    const char *text = read_text(reader, "return_value", false);
    bytes_init(&value, RUN_RETURN_VALUE_MAXIMUM + 2);
    if (text != NULL) {
        reader->code = base64_decode(slice_from_string(text), &value);
    }
    if (value.length > RUN_RETURN_VALUE_MAXIMUM) {
        reader->code = FAILURE_LIMIT;
    }
    return value;
}

static enum failure_code read_worker(struct slice document, struct run_result *result) {
    struct reader reader = open_reader(document);
    struct run_worker worker = {
        .global_rank = (int)read_integer(&reader, "global_rank", 0, INT_MAX),
        .local_rank =
            (int)read_integer(&reader, "local_rank", 0, LAUNCH_MAXIMUM_WORKERS_PER_NODE - 1),
        .pid = read_integer(&reader, "pid", 0, INT64_MAX),
        .exit_code = (int)read_integer(&reader, "exit_code", -SIGNAL_MAXIMUM, EXIT_CODE_MAXIMUM),
    };
    worker.return_value = read_return_value(&reader);
    if (reader.code == FAILURE_NONE && result->worker_count >= LAUNCH_MAXIMUM_WORKERS_PER_NODE) {
        reader.code = FAILURE_LIMIT;
    }
    if (reader.code == FAILURE_NONE) {
        result->workers = memory_reallocate(
            result->workers, (result->worker_count + 1) * sizeof *result->workers);
        result->workers[result->worker_count++] = worker;
    } else {
        bytes_clear(&worker.return_value);
    }
    return close_reader(&reader);
}

static enum failure_code read_failure(struct slice document, struct run_result *result) {
    struct failure_account account;
    if (result->failure_count >= LAUNCH_MAXIMUM_WORKERS_PER_NODE) {
        return FAILURE_LIMIT;
    }
    enum failure_code code = failure_json_read(document, &account);
    if (code == FAILURE_NONE) {
        result->failures = memory_reallocate(
            result->failures, (result->failure_count + 1) * sizeof *result->failures);
        result->failures[result->failure_count++] = account;
    }
    return code;
}

static enum failure_code read_root_cause(struct slice document, struct run_result *result) {
    struct failure_account account;
    enum failure_code code = failure_json_read(document, &account);
    if (code == FAILURE_NONE) {
        failure_account_clear(&result->root_cause);
        result->root_cause = account;
        result->has_root_cause = true;
    }
    return code;
}

static enum failure_code read_end(
    struct slice document, struct run_result *result, bool *out_is_complete) {
    struct reader reader = open_reader(document);
    const char *name = read_text(&reader, "state", true);
    enum run_state state = name == NULL ? RUN_STATE_COUNT : run_state_from_name(name);
    int exit_status = (int)read_integer(&reader, "exit_status", 0, EXIT_CODE_MAXIMUM);
    int signal = (int)read_integer(&reader, "signal", 0, SIGNAL_MAXIMUM);
    int restarts = (int)read_integer(&reader, "restarts", 0, INT_MAX);
    const char *message = read_text(&reader, "message", false);
    if (reader.code == FAILURE_NONE && state == RUN_STATE_COUNT) {
        reader.code = FAILURE_MALFORMED;
    }
    if (reader.code == FAILURE_NONE) {
        free(result->message);
        result->state = state;
        result->exit_status = exit_status;
        result->signal = signal;
        result->restarts = restarts;
        result->message = memory_duplicate_string(message);
        *out_is_complete = true;
    }
    return close_reader(&reader);
}

enum failure_code agent_line_read_result(
    char kind, struct slice document, struct run_result *result, bool *out_is_complete) {
    switch (kind) {
    case AGENT_LINE_WORKER:
        return read_worker(document, result);
    case AGENT_LINE_FAILURE:
        return read_failure(document, result);
    case AGENT_LINE_ROOT_CAUSE:
        return read_root_cause(document, result);
    case AGENT_LINE_RESULT:
        return read_end(document, result, out_is_complete);
    default:
        return FAILURE_MALFORMED;
    }
}

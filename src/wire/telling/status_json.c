/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/status_json.h"

#include <limits.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "wire/json/json_document.h"
#include "wire/telling/chronicle_json.h"

#define LATEST_SECONDS 253402300800.0 /* the year 10000 */
#define SECONDS_PER_HOUR 3600

void status_seen_clear(struct status_seen *seen) {
    free(seen->run_id);
    free(seen->log_dir);
    free(seen->host);
    *seen = (struct status_seen){0};
}

/* Members. What is not there, or no such value, is not known. */

static int64_t nanoseconds_of(const struct json_value *value) {
    double seconds;
    if (!json_value_number(value, &seconds) || !(seconds >= 0) || seconds >= LATEST_SECONDS) {
        return 0;
    }
    int64_t micros =
        (int64_t)(seconds * (NANOSECONDS_PER_SECOND / CHRONICLE_GRAIN_NANOSECONDS) + 0.5);
    return micros * CHRONICLE_GRAIN_NANOSECONDS;
}

static int64_t nanoseconds(const struct json_value *object, const char *name) {
    return nanoseconds_of(json_value_member(object, name));
}

static int count_of(const struct json_value *value, int absent) {
    int64_t number;
    return json_value_integer(value, &number) && number >= 0 && number <= INT_MAX ? (int)number
                                                                                  : absent;
}

static int count(const struct json_value *object, const char *name, int absent) {
    return count_of(json_value_member(object, name), absent);
}

static char *clean_text(const struct json_value *value) {
    const char *text = json_value_text(value);
    return text != NULL ? chronicle_clean_text(text, CHRONICLE_TEXT_MAXIMUM) : NULL;
}

static struct duration offset_of(const struct json_value *value) {
    double seconds;
    bool is_known = json_value_number(value, &seconds) && seconds > -LATEST_SECONDS / 100 &&
                    seconds < LATEST_SECONDS / 100;
    return (struct duration){is_known ? (int64_t)(seconds * NANOSECONDS_PER_SECOND) : 0};
}

/* A number of a step; -1: it is none. */
static int64_t step_of(const struct json_value *value) {
    int64_t step;
    return json_value_integer(value, &step) && step >= 0 ? step : -1;
}

/* -1: it is none. */
static double rate_of(const struct json_value *value) {
    double rate;
    return json_value_number(value, &rate) && rate >= 0 ? rate : -1;
}

static double hours(const struct json_value *object, const char *name) {
    double number;
    bool is_known = json_value_number(json_value_member(object, name), &number);
    return is_known && number >= 0 && number < LATEST_SECONDS ? number * SECONDS_PER_HOUR : 0;
}

/* The index of the name, or `count`. */
static int find_name(const struct json_value *value, int number, const char *(*name_of)(int)) {
    const char *text = json_value_text(value);
    int index = 0;
    while (index < number &&
           (text == NULL || name_of(index) == NULL || !text_equals(name_of(index), text))) {
        index++;
    }
    return index;
}

static const char *name_of_job_state(int state) {
    return job_state_name((enum job_state)state);
}

static const char *name_of_result(int result) {
    return job_result_name((enum job_result)result);
}

static const char *name_of_node_state(int state) {
    return chronicle_node_state_name((enum chronicle_node_state)state);
}

static const char *name_of_cause(int cause) {
    return chronicle_cause_name((enum chronicle_cause)cause);
}

/* Parts. */

static struct chronicle_exclusion read_exclusion(const struct json_value *excluded) {
    return (struct chronicle_exclusion){.node = clean_text(json_value_member(excluded, "node")),
        .reason = clean_text(json_value_member(excluded, "reason")),
        .at = {nanoseconds(excluded, "at")}};
}

static bool read_job(const struct json_value *job, struct chronicle_status *status) {
    const struct json_value *nodes = json_value_member(job, "nodes");
    const struct json_value *restarts = json_value_member(job, "restarts");
    const struct json_value *changed = json_value_member(job, "host_changed");
    int state = find_name(json_value_member(job, "state"), JOB_STATE_COUNT, name_of_job_state);
    int result = find_name(json_value_member(job, "result"), JOB_RESULT_COUNT, name_of_result);
    int round = count(job, "round", -1);
    int here = count(nodes, "here", -1);
    int workers = count(job, "workers", -1);
    status->state = (enum job_state)state;
    status->result = result < JOB_RESULT_COUNT ? (enum job_result)result : JOB_UNDECIDED;
    status->began.nanoseconds = nanoseconds(job, "began");
    status->since.nanoseconds = nanoseconds(job, "since");
    status->has_begun = status->began.nanoseconds > 0;
    status->has_round = round >= 0;
    status->round = round >= 0 ? round : 0;
    status->node_count = workers >= 0 && here > 0 ? here : 0;
    status->here = status->node_count > 0 ? -1 : here;
    status->worker_count = workers >= 0 ? workers : 0;
    status->minimum_nodes = count(nodes, "min", 0);
    status->maximum_nodes = count(nodes, "max", 0);
    status->host_changed.nanoseconds = nanoseconds(changed, "at");
    status->has_past = json_value_is_true(json_value_member(changed, "account_kept"));
    status->restarts = count(restarts, "used", 0);
    status->max_restarts = count(restarts, "max", -1);
    status->excluded_count = count(json_value_member(job, "excluded"), "count", 0);
    status->excluded = read_exclusion(json_value_member(job, "excluded"));
    status->kept = read_exclusion(json_value_member(job, "kept"));
    status->hangs = count(job, "hangs", 0);
    return state < JOB_STATE_COUNT;
}

static void read_account(const struct json_value *account, struct chronicle_status *status) {
    struct chronicle_account *out = &status->account;
    double redone;
    const struct json_value *recovering = json_value_member(account, "recovering");
    int64_t ended = status->now.nanoseconds - status->began.nanoseconds;
    for (int state = 0; state < JOB_ENDED; state++) {
        if (state != JOB_RECOVERING) {
            out->states[state].nanoseconds = nanoseconds(account, name_of_job_state(state));
        }
    }
    for (int cause = CHRONICLE_CAUSE_NONE + 1; cause < CHRONICLE_CAUSE_COUNT; cause++) {
        out->recovering[cause].nanoseconds = nanoseconds(recovering, name_of_cause(cause));
        out->states[JOB_RECOVERING].nanoseconds += out->recovering[cause].nanoseconds;
    }
    out->redone.nanoseconds = nanoseconds(account, "redone");
    out->knows_redone = json_value_number(json_value_member(account, "redone"), &redone);
    out->states[JOB_TRAINING].nanoseconds =
        nanoseconds(account, "training_kept") + out->redone.nanoseconds;
    ended -= nanoseconds(account, "wall");
    out->states[JOB_ENDED].nanoseconds = ended > 0 ? ended : 0;
    out->worker_seconds = hours(account, "worker_hours");
    out->missing_worker_seconds = hours(account, "missing_worker_hours");
}

static void read_progress(const struct json_value *progress, struct chronicle_status *status) {
    status->source =
        progress_source_from_name(json_value_text(json_value_member(progress, "source")));
    status->step = step_of(json_value_member(progress, "step"));
    status->rate = rate_of(json_value_member(progress, "rate"));
    status->stepped.nanoseconds = nanoseconds(progress, "at");
    const struct json_value *slow = json_value_member(progress, "slow");
    status->slow_rank = count(slow, "rank", -1);
    status->slow_ratio = rate_of(json_value_member(slow, "ratio"));
    status->slow_at.nanoseconds = nanoseconds(slow, "at");
    status->lost_step = -1;
    status->step_of_world = status->step;
}

static void read_hang(const struct json_value *hang, struct chronicle_status *status) {
    status->is_hanging = json_value_is_object(hang);
    status->hung_rank = count(hang, "rank", -1);
    status->hung_since.nanoseconds = nanoseconds(hang, "since");
    status->hung = clean_text(json_value_member(hang, "what"));
    status->hung_node = clean_text(json_value_member(hang, "node"));
}

static void read_phases(const struct json_value *phases, struct chronicle_recovery *recovery) {
    int64_t moment = recovery->moments[RECOVERY_FAILED].nanoseconds;
    for (int i = 0; i < RECOVERY_MOMENT_COUNT; i++) {
        const struct json_value *phase =
            json_value_member(phases, recovery_moment_name((enum recovery_moment)i));
        if (i > RECOVERY_FAILED && json_value_is_object(phase)) {
            moment += nanoseconds(phase, "took");
            recovery->moments[i].nanoseconds = moment;
            recovery->last[i] = clean_text(json_value_member(phase, "last"));
        }
    }
}

static void read_recovery(
    const struct json_value *value, size_t index, struct chronicle_status *status) {
    struct chronicle_recovery *recovery = &status->recoveries[index];
    int64_t exit;
    int cause = find_name(json_value_member(value, "cause"), CHRONICLE_CAUSE_COUNT, name_of_cause);
    bool has_exit = json_value_integer(json_value_member(value, "exit"), &exit) && exit > INT_MIN &&
                    exit <= INT_MAX;
    *recovery = (struct chronicle_recovery){.cause = cause < CHRONICLE_CAUSE_COUNT
                                                         ? (enum chronicle_cause)cause
                                                         : CHRONICLE_CAUSE_NODE_LOST,
        .round = count(value, "round", 0),
        .what = clean_text(json_value_member(value, "what")),
        .node = clean_text(json_value_member(value, "node")),
        .rank = count(value, "rank", -1),
        .exit = has_exit ? (int)exit : INT_MIN,
        .is_charged = json_value_is_true(json_value_member(value, "charged")),
        .is_over = json_value_is_true(json_value_member(value, "over")),
        .redone_steps = step_of(json_value_member(value, "redone_steps"))};
    recovery->moments[RECOVERY_FAILED].nanoseconds = nanoseconds(value, "at");
    read_phases(json_value_member(value, "phases"), recovery);
    recovery->is_given_up =
        !recovery->is_over && (status->state == JOB_ENDED || index + 1 < status->recovery_count);
}

static void read_recoveries(const struct json_value *list, struct chronicle_status *status) {
    size_t number = json_value_item_count(list);
    number = number < CHRONICLE_RECOVERIES_MAXIMUM ? number : CHRONICLE_RECOVERIES_MAXIMUM;
    status->recoveries =
        memory_reserve(NULL, &status->recovery_capacity, number + 1, sizeof *status->recoveries);
    status->recovery_count = number;
    for (size_t i = 0; i < number; i++) {
        read_recovery(json_value_item(list, i), i, status);
    }
    int first = number > 0 ? count(json_value_item(list, 0), "seq", 1) : 1;
    status->recoveries_before = first > 0 ? (size_t)first - 1 : 0;
}

static void read_node(
    const struct json_value *columns, size_t index, struct chronicle_node *out_node) {
    int state = find_name(json_value_item(json_value_member(columns, "state"), index),
        CHRONICLE_NODE_STATE_COUNT, name_of_node_state);
    char *name = clean_text(json_value_item(json_value_member(columns, "name"), index));
    *out_node = (struct chronicle_node){.name = name != NULL ? name : memory_duplicate_string("-"),
        .state = state < CHRONICLE_NODE_STATE_COUNT ? (enum chronicle_node_state)state
                                                    : CHRONICLE_NODE_WAITING,
        .rank = count_of(json_value_item(json_value_member(columns, "rank"), index), -1),
        .first_rank =
            count_of(json_value_item(json_value_member(columns, "first_rank"), index), -1),
        .workers = count_of(json_value_item(json_value_member(columns, "workers"), index), -1),
        .failed_first =
            count_of(json_value_item(json_value_member(columns, "failed_first"), index), 0),
        .spares_ready = count_of(json_value_item(json_value_member(columns, "spares"), index), -1),
        .spares = -1,
        .step = step_of(json_value_item(json_value_member(columns, "step"), index)),
        .rate = rate_of(json_value_item(json_value_member(columns, "rate"), index))};
    out_node->version = clean_text(json_value_item(json_value_member(columns, "version"), index));
    out_node->clock_offset =
        offset_of(json_value_item(json_value_member(columns, "clock_offset"), index));
    out_node->said.nanoseconds =
        nanoseconds_of(json_value_item(json_value_member(columns, "said"), index));
}

static void read_nodes(const struct json_value *columns, struct chronicle_status *status) {
    size_t number = json_value_item_count(json_value_member(columns, "name"));
    number = number < CHRONICLE_NODES_MAXIMUM ? number : CHRONICLE_NODES_MAXIMUM;
    status->nodes = memory_reserve(NULL, &status->node_capacity, number + 1, sizeof *status->nodes);
    for (size_t i = 0; i < number; i++) {
        read_node(columns, i, &status->nodes[status->known_nodes++]);
    }
}

static enum failure_code read_root(
    const struct json_value *root, struct chronicle_status *status, struct status_seen *seen) {
    const char *schema = json_value_text(json_value_member(root, "schema"));
    const struct json_value *job = json_value_member(root, "job");
    const struct json_value *said = json_value_member(root, "seen");
    if (schema == NULL || !text_equals(schema, CHRONICLE_STATUS_SCHEMA) || !read_job(job, status)) {
        return FAILURE_MALFORMED;
    }
    status->now.nanoseconds = nanoseconds(said, "at");
    read_hang(json_value_member(root, "hang"), status);
    read_progress(json_value_member(root, "progress"), status);
    read_account(json_value_member(root, "account"), status);
    read_nodes(json_value_member(root, "nodes"), status);
    read_recoveries(json_value_member(root, "recoveries"), status);
    seen->run_id = clean_text(json_value_member(job, "id"));
    seen->log_dir = clean_text(json_value_member(job, "log_dir"));
    seen->host = clean_text(json_value_member(said, "node"));
    seen->is_complete = json_value_is_true(json_value_member(said, "complete"));
    return FAILURE_NONE;
}

enum failure_code status_json_read(
    struct slice text, struct chronicle_status *out_status, struct status_seen *out_seen) {
    struct json_document *document;
    struct chronicle_status status = {0};
    struct status_seen seen = {0};
    enum failure_code code = json_document_parse(text, STATUS_JSON_MAXIMUM, &document, NULL);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = read_root(json_document_root(document), &status, &seen);
    json_document_free(document);
    if (code != FAILURE_NONE) {
        chronicle_status_clear(&status);
        status_seen_clear(&seen);
        return code;
    }
    *out_status = status;
    *out_seen = seen;
    return FAILURE_NONE;
}

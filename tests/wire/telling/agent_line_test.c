/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <limits.h>

#include "base/memory.h"
#include "wire/telling/agent_line.h"

static void take(struct run_result *result, const char *lines, bool *out_is_complete) {
    for (const char *end; (end = strchr(lines, '\n')) != NULL; lines = end + 1) {
        const struct slice document = {(const unsigned char *)lines + 1, (size_t)(end - lines - 1)};
        assert_int_equal(
            agent_line_read_result(lines[0], document, result, out_is_complete), FAILURE_NONE);
    }
}

TEST(result_is_read_as_it_was_written) {
    struct run_worker workers[] = {{4, 0, 17, 0, {0}}, {5, 1, 18, -9, {0}}};
    assert_int_equal(bytes_append(&workers[0].return_value, "\0\377x\n", 4), FAILURE_NONE);
    struct failure_account failures[] = {{.host = memory_duplicate_string("node1"),
        .rank = 5,
        .local_rank = 1,
        .exit = {true, 9, false}}};
    struct run_result result = {.state = RUN_STATE_FAILED,
        .exit_status = 1,
        .restarts = 3,
        .message = memory_duplicate_string("\"w\nhy\""),
        .workers = workers,
        .worker_count = 2,
        .failures = failures,
        .failure_count = 1,
        .has_root_cause = true,
        .root_cause = {.host = memory_duplicate_string("node2"), .rank = 7}};
    struct run_result again = {0};
    struct text lines = {0};
    bool is_complete = false;
    agent_line_write_result(&result, &lines);
    take(&again, text_string(&lines), &is_complete);
    assert_true(is_complete);
    assert_int_equal(again.state, RUN_STATE_FAILED);
    assert_int_equal(again.exit_status, 1);
    assert_int_equal(again.restarts, 3);
    assert_string_equal(again.message, "\"w\nhy\"");
    assert_int_equal(again.worker_count, 2);
    assert_int_equal(again.workers[1].global_rank, 5);
    assert_int_equal(again.workers[0].return_value.length, 4);
    assert_memory_equal(again.workers[0].return_value.data, "\0\377x\n", 4);
    assert_int_equal(again.workers[1].exit_code, -9);
    assert_int_equal(again.workers[1].return_value.length, 0);
    assert_int_equal(again.failure_count, 1);
    assert_true(again.failures[0].exit.is_signal);
    assert_true(again.has_root_cause);
    assert_string_equal(again.root_cause.host, "node2");
    run_result_clear(&again);
    text_clear(&lines);
    bytes_clear(&workers[0].return_value);
    free(result.message);
    failure_account_clear(&failures[0]);
    failure_account_clear(&result.root_cause);
}

static enum failure_code read_group(const char *text, struct run_group *out_group) {
    return agent_line_read_group(slice_from_string(text), out_group);
}

TEST(worker_group_is_read_as_it_was_written) {
    int64_t pids[] = {31, 0};
    char words[] = "a \"b\"";
    struct run_group group = {
        RUN_GROUP_STATE_HEALTHY, 1, 2, 2, 4, 3, 5, 6, words, words, words, 29500, pids, 2};
    struct run_group again = {0};
    struct run_group copy;
    struct text line = {0};
    agent_line_write_group(&group, &line);
    assert_int_equal(read_group(text_string(&line) + 1, &again), FAILURE_NONE);
    run_group_copy(&again, &copy);
    run_group_clear(&again);
    assert_int_equal(copy.state, RUN_GROUP_STATE_HEALTHY);
    assert_int_equal(copy.base_rank, 2);
    assert_int_equal(copy.role_world_size, 5);
    assert_int_equal(copy.restarts, 6);
    assert_string_equal(copy.master_host, words);
    assert_int_equal(copy.worker_count, 2);
    assert_int_equal(copy.pids[0], 31);
    run_group_clear(&copy);
    text_clear(&line);
    group.base_rank = INT_MAX;
    agent_line_write_group(&group, &line);
    assert_int_equal(read_group(text_string(&line) + 1, &again), FAILURE_LIMIT);
    assert_int_equal(read_group("{\"state\": 9}", &again), FAILURE_LIMIT);
    assert_int_equal(read_group("{\"state\": 1}", &again), FAILURE_MALFORMED);
    text_clear(&line);
}

/* Writes a worker with so many bytes, and reads the line. */
static enum failure_code carry(size_t length) {
    struct run_worker worker = {.return_value = {0}};
    struct run_result result = {.workers = &worker, .worker_count = 1};
    struct run_result again = {0};
    struct text lines = {0};
    bool is_complete;
    assert_int_equal(bytes_grow(&worker.return_value, length), FAILURE_NONE);
    worker.return_value.length = length;
    memset(worker.return_value.data, 0xff, length);
    agent_line_write_result(&result, &lines);
    const char *line = text_string(&lines);
    const struct slice document = {(const unsigned char *)line + 1, strcspn(line, "\n") - 1};
    assert_true(document.length < AGENT_LINE_MAXIMUM);
    enum failure_code code = agent_line_read_result(*line, document, &again, &is_complete);
    assert_int_equal(again.worker_count, code == FAILURE_NONE ? 1 : 0);
    assert_true(code != FAILURE_NONE || again.workers[0].return_value.length == length);
    run_result_clear(&again);
    bytes_clear(&worker.return_value);
    text_clear(&lines);
    return code;
}

TEST(return_values_have_a_limit) {
    assert_int_equal(carry(RUN_RETURN_VALUE_MAXIMUM), FAILURE_NONE);
    assert_int_equal(carry(RUN_RETURN_VALUE_MAXIMUM + 1), FAILURE_LIMIT);
    assert_int_equal(carry(RUN_RETURN_VALUE_MAXIMUM + 3), FAILURE_LIMIT);
}

TEST(metric_is_read_as_it_was_written) {
    char name[] = "workers.\"r\".run_total";
    const struct metric metric = {name, -7, {1700000000123456789}};
    struct metric again;
    struct text line = {0};
    agent_line_write_metric(&metric, &line);
    assert_int_equal(text_string(&line)[0], AGENT_LINE_METRIC);
    assert_int_equal(
        agent_line_read_metric(slice_from_string(text_string(&line) + 1), &again), FAILURE_NONE);
    assert_string_equal(again.name, name);
    assert_int_equal(again.value, -7);
    assert_int_equal(again.time.nanoseconds, metric.time.nanoseconds);
    free(again.name);
    text_clear(&line);
}

static void assert_refused(char kind, const char *document, enum failure_code expected) {
    struct run_result result = {0};
    bool is_complete = false;
    assert_int_equal(
        agent_line_read_result(kind, slice_from_string(document), &result, &is_complete), expected);
    assert_false(is_complete);
    assert_int_equal(result.worker_count + result.failure_count, 0);
}

TEST(what_makes_no_sense_is_refused) {
    assert_refused('X', "{}", FAILURE_MALFORMED);
    assert_refused(AGENT_LINE_RESULT, "", FAILURE_MALFORMED);
    assert_refused(AGENT_LINE_RESULT,
        "{\"state\": \"HEALTHY\", \"exit_status\": 0, \"signal\": 0, \"restarts\": 0}",
        FAILURE_MALFORMED);
    assert_refused(AGENT_LINE_RESULT,
        "{\"state\": \"FAILED\", \"exit_status\": 256, \"signal\": 0, \"restarts\": 0}",
        FAILURE_LIMIT);
    assert_refused(AGENT_LINE_WORKER,
        "{\"global_rank\": 0, \"local_rank\": 4096, \"pid\": 1, \"exit_code\": 0}", FAILURE_LIMIT);
    assert_refused(AGENT_LINE_WORKER,
        "{\"global_rank\": 0, \"local_rank\": 0, \"pid\": 1, \"exit_code\": 0, "
        "\"return_value\": \"A\"}",
        FAILURE_MALFORMED);
    assert_refused(AGENT_LINE_FAILURE, "{}", FAILURE_MALFORMED);
    assert_refused(AGENT_LINE_ROOT_CAUSE, "[", FAILURE_MALFORMED);
}

TEST(event_is_a_record_with_a_letter) {
    struct text line = {0};
    agent_line_write_event("{\"name\": \"x\"}\n", &line);
    assert_string_equal(text_string(&line), "E{\"name\": \"x\"}\n");
    text_clear(&line);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as what an agent says at its end, line by line. What was accepted must
 * survive being written and read again. */
#include <stdlib.h>
#include <string.h>

#include "wire/telling/agent_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether every line was accepted. */
static bool read_lines(const uint8_t *data, size_t size, struct run_result *result) {
    bool is_complete = false;
    bool is_accepted = true;
    while (size > 0) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t length = end == NULL ? size : (size_t)(end - data);
        if (length > 0) {
            const struct slice document = {data + 1, length - 1};
            is_accepted &= agent_line_read_result((char)data[0], document, result, &is_complete) ==
                           FAILURE_NONE;
        }
        data += length;
        size -= length;
        if (size > 0) {
            data++;
            size--;
        }
    }
    return is_accepted;
}

static void read_as_metric(const uint8_t *data, size_t size) {
    struct metric metric;
    if (agent_line_read_metric((struct slice){data, size}, &metric) == FAILURE_NONE) {
        struct metric again;
        struct text line = {0};
        agent_line_write_metric(&metric, &line);
        if (agent_line_read_metric(slice_from_string(text_string(&line) + 1), &again) !=
                FAILURE_NONE ||
            again.value != metric.value || strcmp(again.name, metric.name) != 0) {
            abort();
        }
        free(again.name);
        free(metric.name);
        text_clear(&line);
    }
}

static void read_as_group(const uint8_t *data, size_t size) {
    struct run_group group;
    if (agent_line_read_group((struct slice){data, size}, &group) == FAILURE_NONE) {
        struct run_group again;
        struct text line = {0};
        agent_line_write_group(&group, &line);
        if (agent_line_read_group(slice_from_string(text_string(&line) + 1), &again) !=
                FAILURE_NONE ||
            again.worker_count != group.worker_count || strcmp(again.role, group.role) != 0) {
            abort();
        }
        run_group_clear(&again);
        run_group_clear(&group);
        text_clear(&line);
    }
}

static void read_as_ask(const uint8_t *data, size_t size) {
    bool is_barrier;
    int attempt;
    if (agent_line_read_ask((struct slice){data, size}, &is_barrier, &attempt) == FAILURE_NONE) {
        bool is_barrier_again;
        int attempt_again;
        struct text line = {0};
        agent_line_write_ask(is_barrier, attempt, &line);
        if (agent_line_read_ask(slice_from_string(text_string(&line) + 1), &is_barrier_again,
                &attempt_again) != FAILURE_NONE ||
            is_barrier_again != is_barrier || attempt_again != attempt) {
            abort();
        }
        text_clear(&line);
    }
}

static bool have_equal_values(const struct run_result *left, const struct run_result *right) {
    for (size_t i = 0; i < left->worker_count; i++) {
        if (!slice_equals(bytes_slice(&left->workers[i].return_value),
                bytes_slice(&right->workers[i].return_value))) {
            return false;
        }
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct run_result result = {0};
    struct run_result again = {0};
    struct text lines = {0};
    read_as_metric(data, size);
    read_as_group(data, size);
    read_as_ask(data, size);
    (void)read_lines(data, size, &result);
    agent_line_write_result(&result, &lines);
    if (!read_lines((const uint8_t *)text_string(&lines), lines.length, &again) ||
        again.worker_count != result.worker_count || again.failure_count != result.failure_count ||
        again.state != result.state || again.exit_status != result.exit_status ||
        again.restarts != result.restarts || !have_equal_values(&result, &again)) {
        abort();
    }
    text_clear(&lines);
    run_result_clear(&result);
    run_result_clear(&again);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/telling/health_json.h"

static void assert_spelling(const struct health_report *report, int status, const char *expected) {
    struct text out = {0};
    health_json_write(report, &out);
    assert_string_equal(text_string(&out), expected);
    assert_int_equal(health_http_status(&report->verdict), status);
    text_clear(&out);
}

TEST(a_living_agent_is_200_and_says_what_it_does) {
    struct health_report report = {
        .verdict = {.is_alive = true,
            .phase = HEALTH_RUNNING,
            .timeout = duration_from_seconds(60)},
        .run_id = "job \"7\"",
        .restarts = 1,
        .max_restarts = 3,
        .workers = 8,
        .running_workers = 7,
    };
    assert_spelling(&report, 200,
        "{\"status\": \"alive\", \"phase\": \"running\", \"reason\": \"the workers run\", "
        "\"run_id\": \"job \\\"7\\\"\", \"restarts\": 1, \"max_restarts\": 3, \"workers\": 8, "
        "\"running_workers\": 7, \"seconds_since_progress\": 0.000, \"timeout_seconds\": 60}\n");
}

TEST(a_stalled_agent_is_503_and_says_for_how_long) {
    struct health_report report = {
        .verdict = {.phase = HEALTH_RUNNING,
            .silence = duration_from_milliseconds(61500),
            .timeout = duration_from_milliseconds(2500)},
        .run_id = "job",
    };
    assert_spelling(&report, 503,
        "{\"status\": \"stalled\", \"phase\": \"running\", \"reason\": \"a timer is overdue: the "
        "watchdog has made no progress for 61.5 s; 2.5 s are allowed\", \"run_id\": \"job\", "
        "\"restarts\": 0, "
        "\"max_restarts\": 0, \"workers\": 0, \"running_workers\": 0, "
        "\"seconds_since_progress\": 61.500, \"timeout_seconds\": 2.5}\n");
}

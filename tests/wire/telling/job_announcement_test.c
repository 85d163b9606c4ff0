/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/telling/job_announcement.h"

static enum failure_code read_text(const char *text, struct job_announcement *out) {
    return job_announcement_read(slice_from_string(text), out);
}

TEST(what_is_written_is_read_again) {
    char run_id[] = "job \"7\" \xc3\xa9";
    char host[] = "fe80::1%eth0";
    const struct job_announcement job = {
        .run_id = run_id, .host = host, .port = 29500, .pid = 4711};
    struct job_announcement again = {0};
    struct text text = {0};
    job_announcement_write(&job, &text);
    assert_string_equal(text_string(&text),
        "{\"run_id\": \"job \\\"7\\\" \\u00e9\", \"host\": \"fe80::1%eth0\", \"port\": 29500, "
        "\"pid\": 4711}\n");
    assert_int_equal(read_text(text_string(&text), &again), FAILURE_NONE);
    assert_string_equal(again.run_id, run_id);
    assert_string_equal(again.host, host);
    assert_int_equal(again.port, 29500);
    assert_int_equal(again.pid, 4711);
    job_announcement_clear(&again);
    text_clear(&text);
}

TEST(agent_without_workers_says_where_it_can_be_asked) {
    char run_id[] = "job";
    char socket[] = "/run/user/1/muster/ask-1";
    char endpoint[] = "node1:29500";
    char longest[JOB_ANNOUNCEMENT_TEXT_MAXIMUM + 2];
    struct job_announcement job = {.run_id = run_id, .pid = 4711, .began = 1764378610};
    struct job_announcement again = {0};
    struct text text = {0};
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    job.facts[JOB_FACT_SOCKET] = socket;
    job.facts[JOB_FACT_ENDPOINT] = endpoint;
    job.facts[JOB_FACT_LOG_DIR] = longest;
    job_announcement_write(&job, &text);
    assert_string_equal(text_string(&text),
        "{\"run_id\": \"job\", \"pid\": 4711, \"began\": 1764378610, "
        "\"endpoint\": \"node1:29500\", \"socket\": \"/run/user/1/muster/ask-1\"}\n");
    assert_int_equal(read_text(text_string(&text), &again), FAILURE_NONE);
    assert_null(again.host);
    assert_int_equal(again.port, 0);
    assert_string_equal(again.facts[JOB_FACT_SOCKET], socket);
    assert_null(again.facts[JOB_FACT_LOG_DIR]);
    job_announcement_clear(&again);
    text_clear(&text);
}

TEST(announcement_has_its_limit_whatever_it_says) {
    char run_id[] = "job";
    char longest[JOB_ANNOUNCEMENT_TEXT_MAXIMUM + 1];
    struct job_announcement job = {.run_id = run_id, .pid = 1};
    struct job_announcement again = {0};
    struct text text = {0};
    memset(longest, 1, sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (int fact = 0; fact < JOB_FACT_COUNT; fact++) {
        job.facts[fact] = longest;
    }
    job_announcement_write(&job, &text);
    assert_true(text.length <= JOB_ANNOUNCEMENT_MAXIMUM);
    assert_int_equal(read_text(text_string(&text), &again), FAILURE_NONE);
    job_announcement_clear(&again);
    text_clear(&text);
}

TEST(a_long_run_id_is_cut_to_whole_characters) {
    char run_id[2 * 300 + 2] = "x"; /* so that the limit lies inside a character */
    char host[] = "node1";
    const struct job_announcement job = {.run_id = run_id, .host = host, .port = 1, .pid = 1};
    struct job_announcement again = {0};
    struct text text = {0};
    for (size_t i = 0; i < 300; i++) {
        memcpy(run_id + 1 + 2 * i, "\xc3\xa9", 3);
    }
    job_announcement_write(&job, &text);
    assert_int_equal(read_text(text_string(&text), &again), FAILURE_NONE);
    assert_int_equal(strlen(again.run_id), JOB_ANNOUNCEMENT_RUN_ID_MAXIMUM - 1);
    assert_memory_equal(again.run_id, run_id, JOB_ANNOUNCEMENT_RUN_ID_MAXIMUM - 1);
    job_announcement_clear(&again);
    text_clear(&text);
}

TEST(a_run_id_is_made_fit_for_a_terminal) {
    struct job_announcement job = {0};
    assert_int_equal(read_text("{\"run_id\": \"a\\u001b]0;b\\nc\", \"host\": \"h\", \"port\": 1, "
                               "\"pid\": 1, \"later\": [1]}",
                         &job),
        FAILURE_NONE);
    assert_string_equal(job.run_id, "a?]0;b?c");
    job_announcement_clear(&job);
}

TEST(everything_else_is_refused) {
    static const char *const texts[] = {"", "[]",
        "{\"run_id\": \"a\", \"host\": \"h\", \"port\": 1",
        "{\"run_id\": \"a\", \"host\": \"h\", \"port\": 0, \"pid\": 1}",
        "{\"run_id\": \"a\", \"host\": \"h\", \"port\": 65536, \"pid\": 1}",
        "{\"run_id\": \"a\", \"host\": \"h\", \"port\": \"1\", \"pid\": 1}",
        "{\"run_id\": \"a\", \"host\": \"h\", \"port\": 1, \"pid\": -1}",
        "{\"run_id\": \"a\", \"host\": \"\", \"port\": 1, \"pid\": 1}",
        "{\"run_id\": \"a\", \"host\": \"--file\", \"port\": 1, \"pid\": 1}",
        "{\"run_id\": \"a\", \"host\": \"h; reboot\", \"port\": 1, \"pid\": 1}",
        "{\"run_id\": \"a\", \"host\": \"h\", \"pid\": 1}",
        "{\"run_id\": \"a\", \"port\": 1, \"pid\": 1}",
        "{\"run_id\": 1, \"host\": \"h\", \"port\": 1, \"pid\": 1}",
        "{\"host\": \"h\", \"port\": 1, \"pid\": 1}"};
    struct job_announcement job = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(read_text(texts[i], &job), FAILURE_MALFORMED);
        assert_null(job.run_id);
    }
}

TEST(what_is_too_long_is_refused) {
    struct job_announcement job = {0};
    char *run_id = text_format("%0*d", (int)JOB_ANNOUNCEMENT_RUN_ID_MAXIMUM + 1, 0);
    char *text =
        text_format("{\"run_id\": \"%s\", \"host\": \"h\", \"port\": 1, \"pid\": 1}", run_id);
    char *longer = text_format("%*s%s", (int)JOB_ANNOUNCEMENT_MAXIMUM, "", text);
    assert_int_equal(read_text(text, &job), FAILURE_LIMIT);
    assert_int_equal(read_text(longer, &job), FAILURE_LIMIT);
    free(longer);
    free(text);
    free(run_id);
}

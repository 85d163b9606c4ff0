/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/rendezvous/host_answer.h"

static char names[] = "node7.local 10.0.0.7";

static void it_is_spelled_as_the_header_says(void **state) {
    (void)state;
    struct text text = {0};
    host_answer_write(&(struct host_answer){3, {29400, names}}, &text);
    assert_string_equal(text_string(&text),
        "{\"muster_host\": 1, \"term\": 3, \"place\": \"29400 node7.local 10.0.0.7\"}");
    text_clear(&text);
    host_answer_write(&(struct host_answer){0}, &text);
    assert_string_equal(text_string(&text), "{\"muster_host\": 1, \"term\": 0}");
    text_clear(&text);
}

static void what_is_written_is_read(void **state) {
    (void)state;
    struct text text = {0};
    struct host_answer answer;
    host_answer_write(&(struct host_answer){INT64_MAX, {1, names}}, &text);
    assert_int_equal(
        host_answer_read(slice_from_string(text_string(&text)), &answer), FAILURE_NONE);
    assert_int_equal(answer.term, INT64_MAX);
    assert_int_equal(answer.place.port, 1);
    assert_string_equal(answer.place.names, names);
    host_answer_clear(&answer);
    text_clear(&text);
    host_answer_write(&(struct host_answer){.term = 7}, &text);
    assert_int_equal(
        host_answer_read(slice_from_string(text_string(&text)), &answer), FAILURE_NONE);
    assert_int_equal(answer.term, 7);
    assert_null(answer.place.names);
    host_answer_clear(&answer);
    text_clear(&text);
}

static void odd_answers_are_refused(void **state) {
    (void)state;
    static const char *const malformed[] = {"", "host", "[]", "{}", "{\"muster_host\": 1}",
        "{\"muster_host\": true, \"term\": 1}", "{\"muster_host\": 1, \"term\": -1}",
        "{\"muster_host\": 1, \"term\": \"1\"}",
        "{\"muster_host\": 1, \"term\": 1, \"place\": null}",
        "{\"muster_host\": 1, \"term\": 1, \"place\": \"\"}",
        "{\"muster_host\": 1, \"term\": 1, \"place\": \"0 a\"}"};
    struct host_answer answer;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        assert_int_equal(
            host_answer_read(slice_from_string(malformed[i]), &answer), FAILURE_MALFORMED);
    }
    assert_int_equal(
        host_answer_read(slice_from_string("{\"muster_host\": 2}"), &answer), FAILURE_UNSUPPORTED);
}

static void a_long_answer_is_not_looked_at(void **state) {
    (void)state;
    static char text[HOST_ANSWER_MAXIMUM_SIZE + 1];
    struct host_answer answer;
    memset(text, ' ', sizeof text);
    assert_int_equal(host_answer_read((struct slice){(const uint8_t *)text, sizeof text}, &answer),
        FAILURE_LIMIT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_is_spelled_as_the_header_says),
    cmocka_unit_test(what_is_written_is_read),
    cmocka_unit_test(odd_answers_are_refused),
    cmocka_unit_test(a_long_answer_is_not_looked_at),
};

TEST_MAIN(tests)

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "wire/failure/failure_json.h"

static struct error_file read_file(const char *input) {
    struct error_file file;
    assert_int_equal(error_file_json_read(slice_from_string(input), &file, NULL), FAILURE_NONE);
    return file;
}

TEST(what_record_writes_is_read) {
    CLEARED_BY(error_file_clear)
    struct error_file file =
        read_file("{\"message\": {\"message\": \"ValueError: boom\", \"extraInfo\": "
                  "{\"py_callstack\": \"Traceback\\n  x\\n\", \"timestamp\": \"1795175835\"}}}");
    assert_true(file.is_message_object);
    assert_string_equal(file.message, "Traceback\n  x\n");
    assert_string_equal(file.summary, "ValueError: boom");
    assert_true(file.has_timestamp);
    assert_true(file.timestamp == 1795175835);
}

TEST(a_plain_message_is_read_with_its_timestamp) {
    struct error_file file = read_file("{\"message\": \"boom\", \"timestamp\": 12.9}");
    assert_false(file.is_message_object);
    assert_string_equal(file.message, "boom");
    assert_true(file.has_timestamp);
    assert_true(file.timestamp == 12);
    error_file_clear(&file);
}

TEST(without_a_traceback_the_message_is_shown) {
    struct error_file file = read_file("{\"message\": {\"message\": \"boom\", \"extraInfo\": {}}}");
    assert_string_equal(file.message, "boom");
    error_file_clear(&file);
    file = read_file("{\"message\": {}}");
    assert_string_equal(file.message, "<N/A>");
    assert_null(file.summary);
    error_file_clear(&file);
}

TEST(what_another_node_told_is_written_as_record_would) {
    CLEARED_BY(text_clear) struct text text = {0};
    CLEARED_BY(failure_account_clear)
    struct failure_account account = {
        .message = memory_duplicate_string("Traceback\n"),
        .summary = memory_duplicate_string("ValueError: boom"),
        .seconds = 1700000000,
        .exit = {.is_signal = true, .value = 9},
    };
    error_file_json_write(&account, &text);
    assert_string_equal(text_string(&text),
        "{\"message\": {\"message\": \"ValueError: boom\", \"extraInfo\": {\"py_callstack\": "
        "\"Traceback\\n\", \"timestamp\": \"1700000000\"}, \"errorCode\": -9}}");
}

TEST(the_summary_is_one_line) {
    static const char *const cases[][2] = {
        {"KeyError: 'a'\\nand more", "KeyError: 'a'"},
        {"\\n  boom  \\r\\n", "boom  "},
        {"Traceback (most recent call last):\\n  File x\\nOSError: gone\\n \\n", "OSError: gone"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FREED char *input = text_format("{\"message\": \"%s\"}", cases[i][0]);
        CLEARED_BY(error_file_clear) struct error_file file = read_file(input);
        assert_string_equal(file.summary, cases[i][1]);
    }
    CLEARED_BY(error_file_clear) struct error_file file = read_file("{\"message\": \" \\n\"}");
    assert_null(file.summary);
}

TEST(odd_timestamps_are_left_out) {
    static const char *const odd[] = {"\"1.5\"", "null", "[]", "1e300", "-1e300", "0", "-5",
        "\"soon\"", "9223372036854775807", "{}"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        FREED char *input = text_format("{\"message\": \"m\", \"timestamp\": %s}", odd[i]);
        CLEARED_BY(error_file_clear) struct error_file file = read_file(input);
        assert_false(file.has_timestamp);
    }
    CLEARED_BY(error_file_clear) struct error_file file = read_file("{\"message\": \"m\"}");
    assert_false(file.has_timestamp);
}

TEST(a_file_from_a_dying_worker_is_read_as_far_as_it_makes_sense) {
    struct error_file file = read_file("{\"message\": \"\\udcff \xff\"}");
    assert_string_equal(file.message, "\xef\xbf\xbd \xef\xbf\xbd");
    error_file_clear(&file);
}

TEST(malformed_error_files_are_described_and_kill_nobody) {
    static const char *const bad[][2] = {{"", "empty"}, {"{", "no JSON"}, {"[]", "no message"},
        {"null", "no message"}, {"3", "no message"}, {"{}", "no message"},
        {"{\"message\": 3}", "neither text nor an object"},
        {"{\"message\": null}", "neither text nor an object"},
        {"{\"message\": [\"x\"]}", "neither text nor an object"},
        {"{\"message\": {\"message\": \"half", "no JSON"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error_file file;
        CLEARED_BY(text_clear) struct text reason = {0};
        assert_int_equal(
            error_file_json_read(slice_from_string(bad[i][0]), &file, &reason), FAILURE_MALFORMED);
        assert_non_null(strstr(text_string(&reason), bad[i][1]));
        assert_null(strchr(text_string(&reason), '\n'));
    }
}

TEST(a_huge_error_file_is_refused) {
    size_t size = ERROR_FILE_JSON_MAXIMUM_SIZE + 1;
    uint8_t *data = malloc(size);
    assert_non_null(data);
    memset(data, ' ', size);
    struct error_file file;
    assert_int_equal(error_file_json_read((struct slice){data, size}, &file, NULL), FAILURE_LIMIT);
    free(data);
}

static void check_copy(const char *input, int exit_code, const char *expected) {
    CLEARED_BY(text_clear) struct text copy = {0};
    assert_int_equal(
        error_file_json_write_for_parent(slice_from_string(input), exit_code, &copy), FAILURE_NONE);
    assert_string_equal(text_string(&copy), expected);
}

TEST(the_parents_copy_carries_the_exit_code) {
    check_copy("{\"message\": {\"message\": \"boom \\u00e9\", \"extraInfo\": {}}}", 1,
        "{\"message\": {\"message\": \"boom \\u00e9\", \"extraInfo\": {}, \"errorCode\": 1}}");
    check_copy("{\"message\": {\"errorCode\": 5}, \"more\": [1]}", -9,
        "{\"message\": {\"errorCode\": -9}, \"more\": [1]}");
    check_copy("{\"message\": {}}", 0, "{\"message\": {}}");
    check_copy("{\"message\": \"text\"}", 1, "{\"message\": \"text\"}");
    struct text copy = {0};
    assert_int_equal(
        error_file_json_write_for_parent(slice_from_string("{"), 1, &copy), FAILURE_MALFORMED);
    assert_int_equal(copy.length, 0);
}

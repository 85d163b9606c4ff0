/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_fixture.h"

#include "host/log/log_stream.h"

static const struct instant start = {.nanoseconds = 1000000000};

static struct log_file open_file(const char *path) {
    struct log_file file;
    struct failure failure;
    assert_int_equal(log_file_open(path, &file, &failure), FAILURE_NONE);
    return file;
}

static void bytes_arrive_untouched(void **state) {
    (void)state;
    char path[128];
    struct log_file file = open_file(path_in(path, "log"));
    log_file_append(&file, (struct slice){(const uint8_t *)"a\0\r\n\xff", 5}, start);
    assert_int_equal(file.length, 5);
    assert_int_equal(file.lost, 0);
    struct text text = read_file(path);
    assert_int_equal(text.length, 5);
    assert_memory_equal(text.data, "a\0\r\n\xff", 5);
    text_clear(&text);
    log_file_close(&file);
}

static void an_old_file_is_emptied(void **state) {
    (void)state;
    char path[128];
    struct log_file file = open_file(path_in(path, "log"));
    log_file_append(&file, slice_from_string("old"), start);
    log_file_close(&file);
    file = open_file(path);
    log_file_append(&file, slice_from_string("new"), start);
    log_file_close(&file);
    assert_file(path, "new");
}

static void a_file_that_was_truncated_goes_on_at_its_new_end(void **state) {
    (void)state;
    char path[128];
    struct log_file file = open_file(path_in(path, "log"));
    log_file_append(&file, slice_from_string("0123456789"), start);
    assert_int_equal(truncate(path, 0), 0);
    log_file_append(&file, slice_from_string("abc"), start);
    assert_file(path, "abc");
    log_file_close(&file);
}

static void a_path_that_cannot_be_opened_is_named(void **state) {
    (void)state;
    char path[128];
    struct log_file file;
    struct failure failure;
    assert_int_equal(log_file_open(path_in(path, "missing/log"), &file, &failure), FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, ENOENT);
    assert_non_null(strstr(failure.message, path));
}

static void a_full_disk_costs_what_it_does_not_take(void **state) {
    (void)state;
    struct log_file file = open_file("/dev/full");
    log_file_append(&file, slice_from_string("12345"), start);
    assert_true(file.is_failing);
    assert_int_equal(file.system_error, ENOSPC);
    assert_int_equal(file.lost, 5);
    log_file_append(&file, slice_from_string("678"), start);
    assert_int_equal(file.lost, 8);
    assert_int_equal(file.length, 0);
    log_file_close(&file);
}

/* A file size limit acts as a disk that is full at first and not later. */
static void a_file_is_tried_again_after_a_second(void **state) {
    (void)state;
    char path[128];
    struct log_file file = open_file(path_in(path, "log"));
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 4, .rlim_max = before.rlim_max});
    log_file_append(&file, slice_from_string("abcdef"), start);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(file.system_error, EFBIG);
    assert_int_equal(file.length, 4);
    assert_int_equal(file.lost, 2);
    log_file_append(
        &file, slice_from_string("gh"), instant_after(start, duration_from_milliseconds(999)));
    assert_int_equal(file.lost, 4);
    log_file_append(
        &file, slice_from_string("ij"), instant_after(start, duration_from_milliseconds(1000)));
    assert_false(file.is_failing);
    assert_int_equal(file.lost, 4);
    assert_file(path, "abcdij");
    log_file_close(&file);
}

#define WITH_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

static const struct CMUnitTest tests[] = {
    WITH_DIRECTORY(bytes_arrive_untouched),
    WITH_DIRECTORY(an_old_file_is_emptied),
    WITH_DIRECTORY(a_file_that_was_truncated_goes_on_at_its_new_end),
    WITH_DIRECTORY(a_path_that_cannot_be_opened_is_named),
    WITH_DIRECTORY(a_full_disk_costs_what_it_does_not_take),
    WITH_DIRECTORY(a_file_is_tried_again_after_a_second),
};

UNIT_TESTS(tests)

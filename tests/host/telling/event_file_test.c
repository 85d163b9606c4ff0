/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/loop/whole_file.h"
#include "host/telling/event_thread.h"

static enum failure_code append(struct event_file *file, const char *record) {
    struct failure failure;
    return event_file_append(file, slice_from_string(record), &failure);
}

static void records_are_appended_to_what_is_there(void **state) {
    (void)state;
    char path[] = "/tmp/muster_event_file_XXXXXX";
    struct failure failure = {0};
    struct event_file *files[2];
    struct bytes content = {0};
    close(mkstemp(path));
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(event_file_open(path, &files[i], &failure), FAILURE_NONE);
    }
    assert_int_equal(append(files[0], "one\n"), FAILURE_NONE);
    assert_int_equal(append(files[1], "two\n"), FAILURE_NONE);
    assert_int_equal(append(files[0], "three\n"), FAILURE_NONE);
    assert_int_equal(whole_file_read(path, false, 100, &content, &failure), FAILURE_NONE);
    assert_int_equal(content.length, 14);
    assert_memory_equal(content.data, "one\ntwo\nthree\n", 14);
    bytes_clear(&content);
    event_file_free(files[0]);
    event_file_free(files[1]);
    unlink(path);
}

static void a_path_that_cannot_be_is_named(void **state) {
    (void)state;
    struct failure failure = {0};
    struct event_file *file = NULL;
    assert_int_equal(event_file_open("/nowhere/events", &file, &failure), FAILURE_SYSTEM);
    assert_null(file);
    assert_non_null(strstr(failure.message, "/nowhere/events"));
}

static void a_fifo_that_nobody_reads_holds_up_nobody(void **state) {
    (void)state;
    char directory[] = "/tmp/muster_event_file_XXXXXX";
    char path[64];
    struct failure failure = {0};
    struct event_file *file = NULL;
    assert_non_null(mkdtemp(directory));
    assert_true(snprintf(path, sizeof path, "%s/fifo", directory) > 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(event_file_open(path, &file, &failure), FAILURE_SYSTEM);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(event_file_open(path, &file, &failure), FAILURE_NONE);
    size_t lost = 0;
    for (size_t i = 0; i < 100000; i++) { /* more than a pipe holds */
        lost += append(file, "a record\n") == FAILURE_NONE ? 0 : 1;
    }
    assert_true(lost > 0 && lost < 100000);
    event_file_free(file);
    close(reader);
    unlink(path);
    rmdir(directory);
}

static void a_record_that_is_cut_short_names_what_has_cut_it(void **state) {
    (void)state;
    char path[] = "/tmp/muster_event_file_XXXXXX";
    struct failure failure = {0};
    struct event_file *file = NULL;
    struct rlimit before;
    close(mkstemp(path));
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(event_file_open(path, &file, &failure), FAILURE_NONE);
    const struct rlimit small = {6, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum failure_code code = event_file_append(file, slice_from_string("a record\n"), &failure);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(code, FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, EFBIG);
    event_file_free(file);
    unlink(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(records_are_appended_to_what_is_there),
    cmocka_unit_test(a_path_that_cannot_be_is_named),
    cmocka_unit_test(a_fifo_that_nobody_reads_holds_up_nobody),
    cmocka_unit_test(a_record_that_is_cut_short_names_what_has_cut_it),
};

UNIT_TESTS(tests)

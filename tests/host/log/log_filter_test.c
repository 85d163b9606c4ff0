/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_fixture.h"

#include "host/log/log_stream.h"

static const struct instant start = {.nanoseconds = 1000000000};

static void matching_lines_arrive_with_their_headers(void **state) {
    (void)state;
    char path[128];
    struct text_list needles = {0};
    text_list_add(&needles, "loss");
    text_list_add(&needles, "NaN");
    struct log_filter *filter;
    struct failure failure;
    assert_int_equal(
        log_filter_open(path_in(path, "filtered"), &needles, &filter, &failure), FAILURE_NONE);
    text_list_clear(&needles);
    log_filter_offer(filter, "[0]:", slice_from_string("loss=1\n"), start);
    log_filter_offer(filter, "[1]:", slice_from_string("nothing\n"), start);
    log_filter_offer(filter, "[1]:", slice_from_string("x=NaN\n"), start);
    log_filter_flush(filter, start);
    assert_file(path, "[0]:loss=1\n[1]:x=NaN\n");
    log_filter_free(filter);
}

static void many_lines_do_not_pile_up(void **state) {
    (void)state;
    char path[128];
    struct text_list needles = {0};
    text_list_add(&needles, "");
    struct log_filter *filter;
    struct failure failure;
    assert_int_equal(
        log_filter_open(path_in(path, "filtered"), &needles, &filter, &failure), FAILURE_NONE);
    text_list_clear(&needles);
    for (int i = 0; i < 100000; i++) {
        log_filter_offer(filter, "[default0]:", slice_from_string("line\n"), start);
        assert_true(filter->gathered.length < 128 * 1024);
    }
    log_filter_flush(filter, start);
    assert_int_equal(filter->file.length, 100000 * strlen("[default0]:line\n"));
    log_filter_free(filter);
}

#define WITH_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

static const struct CMUnitTest tests[] = {
    WITH_DIRECTORY(matching_lines_arrive_with_their_headers),
    WITH_DIRECTORY(many_lines_do_not_pile_up),
};

UNIT_TESTS(tests)

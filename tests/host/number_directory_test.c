/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "host/number_directory.h"

struct search {
    int wanted;
    int met;   /* how often */
    int calls; /* in all */
    int stop_after;
};

static bool look(void *context, int number) {
    struct search *search = context;
    search->met += number == search->wanted;
    search->calls++;
    return search->stop_after == 0 || search->calls < search->stop_after;
}

static void every_number_is_visited_and_nothing_else(void **state) {
    (void)state;
    struct search search = {.wanted = getpid()};
    assert_true(number_directory_each("/proc", look, &search));
    assert_int_equal(search.met, 1);
    /* "0" to "2" at least; the other entries, "." and "..", are no numbers. */
    struct search descriptors = {.wanted = STDERR_FILENO};
    assert_true(number_directory_each("/proc/self/fd", look, &descriptors));
    assert_int_equal(descriptors.met, 1);
    assert_in_range(descriptors.calls, 3, 1000);
}

static void visitor_ends_the_visit(void **state) {
    (void)state;
    struct search search = {.stop_after = 2};
    assert_true(number_directory_each("/proc/self/fd", look, &search));
    assert_int_equal(search.calls, 2);
}

static void missing_directory_is_told(void **state) {
    (void)state;
    struct search search = {0};
    assert_false(number_directory_each("/proc/no-such-directory", look, &search));
    assert_false(number_directory_each("/proc/self/stat", look, &search));
    assert_int_equal(search.calls, 0);
}

static void paths_are_put_together(void **state) {
    (void)state;
    char path[NUMBER_PATH_SIZE];
    number_path_format(path, "/proc/", 0, "");
    assert_string_equal(path, "/proc/0");
    number_path_format(path, "/proc/", 2147483647, "/stat");
    assert_string_equal(path, "/proc/2147483647/stat");
}

static void overlong_path_is_cut_and_ended(void **state) {
    (void)state;
    char path[NUMBER_PATH_SIZE];
    const char *long_part = "/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789";
    number_path_format(path, long_part, 1, long_part);
    assert_int_equal(strlen(path), NUMBER_PATH_SIZE - 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_number_is_visited_and_nothing_else),
    cmocka_unit_test(visitor_ends_the_visit),
    cmocka_unit_test(missing_directory_is_told),
    cmocka_unit_test(paths_are_put_together),
    cmocka_unit_test(overlong_path_is_cut_and_ended),
};

TEST_MAIN(tests)

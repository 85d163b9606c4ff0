/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "host/loop/files.h"
#include "temporary_tree.h"

struct search {
    int wanted;
    int met;   /* how often the wanted number occurred */
    int calls; /* all calls */
    int stop_after;
};

static bool look(void *context, int number) {
    struct search *search = context;
    search->met += number == search->wanted;
    search->calls++;
    return search->stop_after == 0 || search->calls < search->stop_after;
}

TEST(every_number_is_visited_and_nothing_else) {
    struct search search = {.wanted = getpid()};
    assert_true(number_directory_each("/proc", look, &search));
    assert_int_equal(search.met, 1);
    /* "0" to "2" at least; the other entries, "." and "..", are no numbers. */
    struct search descriptors = {.wanted = STDERR_FILENO};
    assert_true(number_directory_each("/proc/self/fd", look, &descriptors));
    assert_int_equal(descriptors.met, 1);
    assert_in_range(descriptors.calls, 3, 1000);
}

TEST(visitor_ends_the_visit) {
    struct search search = {.stop_after = 2};
    assert_true(number_directory_each("/proc/self/fd", look, &search));
    assert_int_equal(search.calls, 2);
}

TEST(missing_directory_is_told) {
    struct search search = {0};
    assert_false(number_directory_each("/proc/no-such-directory", look, &search));
    assert_false(number_directory_each("/proc/self/stat", look, &search));
    assert_int_equal(search.calls, 0);
}

TREE_TEST(only_prefix_and_number_count_in_order) {
    static const char *const names[] = {"nvidia10", "nvidia2", "nvidia0", "nvidiactl", "nvidia",
        "nvidia-uvm", "nvidia1x", "xnvidia3", "nvidia99999999", "4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        temporary_tree_write(fixture, names[i], "");
    }
    struct number_list entries = number_directory_list(fixture->root, "nvidia");
    assert_int_equal(entries.count, 3);
    assert_int_equal(entries.items[0], 0);
    assert_int_equal(entries.items[1], 2);
    assert_int_equal(entries.items[2], 10);
    number_list_clear(&entries);
    entries = number_directory_list(fixture->root, "");
    assert_int_equal(entries.count, 1);
    assert_int_equal(entries.items[0], 4);
    number_list_clear(&entries);
}

TEST(absent_directory_has_none) {
    struct number_list entries = number_directory_list("/no/such/directory", "x");
    assert_int_equal(entries.count, 0);
    number_list_clear(&entries);
}

TEST(paths_are_put_together) {
    char path[NUMBER_PATH_SIZE];
    number_path_format(path, "/proc/", 0, "");
    assert_string_equal(path, "/proc/0");
    number_path_format(path, "/proc/", 2147483647, "/stat");
    assert_string_equal(path, "/proc/2147483647/stat");
}

TEST(overlong_path_is_cut_and_ended) {
    char path[NUMBER_PATH_SIZE];
    const char *long_part = "/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789";
    number_path_format(path, long_part, 1, long_part);
    assert_int_equal(strlen(path), NUMBER_PATH_SIZE - 1);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/loop/files.h"
#include "temporary_tree.h"

static enum failure_code read_named(const struct temporary_tree *tree, const char *name,
    size_t maximum, struct bytes *bytes, bool *out_is_cut) {
    char *path = temporary_tree_path(tree, name);
    struct failure failure = {0};
    enum failure_code code = file_end_read(path, maximum, bytes, out_is_cut, &failure);
    assert_true(code == FAILURE_NONE || strstr(failure.message, path) != NULL);
    free(path);
    return code;
}

static void assert_end(
    const struct temporary_tree *tree, size_t maximum, const char *expected, bool is_cut) {
    struct bytes bytes = {0};
    bool is = !is_cut;
    assert_int_equal(read_named(tree, "file", maximum, &bytes, &is), FAILURE_NONE);
    assert_int_equal(is, is_cut);
    assert_true(slice_equals(bytes_slice(&bytes), slice_from_string(expected)));
    bytes_clear(&bytes);
}

TREE_TEST(short_file_is_read_completely) {
    temporary_tree_write(fixture, "file", "12345");
    assert_end(fixture, 6, "12345", false);
    assert_end(fixture, 5, "12345", false);
}

TREE_TEST(only_the_end_of_a_long_file_is_read) {
    temporary_tree_write(fixture, "file", "12345");
    assert_end(fixture, 4, "2345", true);
}

TREE_TEST(empty_file_has_an_empty_end) {
    temporary_tree_write(fixture, "file", "");
    assert_end(fixture, 4, "", false);
}

TEST(bytes_are_appended_where_there_is_room) {
    struct temporary_tree tree;
    struct bytes bytes;
    bool is_cut;
    bytes_init(&bytes, 3);
    temporary_tree_init(&tree);
    temporary_tree_write(&tree, "file", "12345");
    assert_int_equal(bytes_append(&bytes, "x", 1), FAILURE_NONE);
    assert_int_equal(read_named(&tree, "file", 4, &bytes, &is_cut), FAILURE_LIMIT);
    assert_int_equal(read_named(&tree, "file", 2, &bytes, &is_cut), FAILURE_NONE);
    assert_true(slice_equals(bytes_slice(&bytes), slice_from_string("x45")));
    bytes_clear(&bytes);
    temporary_tree_clear(&tree);
}

TREE_TEST(what_is_no_file_is_refused_without_waiting) {
    char *fifo = temporary_tree_path(fixture, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    free(fifo);
    temporary_tree_write(fixture, "directory/file", "");
    struct bytes bytes = {0};
    bool is_cut;
    assert_int_equal(read_named(fixture, "fifo", 9, &bytes, &is_cut), FAILURE_INVALID);
    assert_int_equal(read_named(fixture, "directory", 9, &bytes, &is_cut), FAILURE_INVALID);
    assert_int_equal(read_named(fixture, "missing", 9, &bytes, &is_cut), FAILURE_MISSING);
    assert_int_equal(read_named(fixture, "directory/file/x", 9, &bytes, &is_cut), FAILURE_SYSTEM);
    assert_int_equal(bytes.length, 0);
}

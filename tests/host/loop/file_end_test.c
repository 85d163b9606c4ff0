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

TEST(short_file_is_read_completely) {
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    temporary_tree_write(&tree, "file", "12345");
    assert_end(&tree, 6, "12345", false);
    assert_end(&tree, 5, "12345", false);
    temporary_tree_clear(&tree);
}

TEST(only_the_end_of_a_long_file_is_read) {
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    temporary_tree_write(&tree, "file", "12345");
    assert_end(&tree, 4, "2345", true);
    temporary_tree_clear(&tree);
}

TEST(empty_file_has_an_empty_end) {
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    temporary_tree_write(&tree, "file", "");
    assert_end(&tree, 4, "", false);
    temporary_tree_clear(&tree);
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

TEST(what_is_no_file_is_refused_without_waiting) {
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    char *fifo = temporary_tree_path(&tree, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    free(fifo);
    temporary_tree_write(&tree, "directory/file", "");
    struct bytes bytes = {0};
    bool is_cut;
    assert_int_equal(read_named(&tree, "fifo", 9, &bytes, &is_cut), FAILURE_INVALID);
    assert_int_equal(read_named(&tree, "directory", 9, &bytes, &is_cut), FAILURE_INVALID);
    assert_int_equal(read_named(&tree, "missing", 9, &bytes, &is_cut), FAILURE_MISSING);
    assert_int_equal(read_named(&tree, "directory/file/x", 9, &bytes, &is_cut), FAILURE_SYSTEM);
    assert_int_equal(bytes.length, 0);
    temporary_tree_clear(&tree);
}

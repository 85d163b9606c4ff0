/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/loop/files.h"
#include "temporary_tree.h"

static enum failure_code read_named(const struct temporary_tree *tree, const char *name,
    bool follows_symlink, size_t ceiling, struct bytes *bytes, struct failure *failure) {
    char *path = temporary_tree_path(tree, name);
    enum failure_code code = whole_file_read(path, follows_symlink, ceiling, bytes, failure);
    free(path);
    return code;
}

TREE_TEST(contents_are_appended) {
    static const char content[] = "a\0b";
    temporary_tree_write_bytes(fixture, "file", content, sizeof content);
    struct bytes bytes = {0};
    assert_int_equal(bytes_append(&bytes, "x", 1), FAILURE_NONE);
    assert_int_equal(read_named(fixture, "file", false, 4, &bytes, NULL), FAILURE_NONE);
    assert_int_equal(bytes.length, 5);
    assert_memory_equal(bytes.data, "xa\0b", 5);
    bytes_clear(&bytes);
}

TREE_TEST(too_long_files_are_refused_with_their_size) {
    temporary_tree_write(fixture, "file", "12345");
    struct bytes bytes = {0};
    struct failure failure;
    assert_int_equal(read_named(fixture, "file", false, 4, &bytes, &failure), FAILURE_LIMIT);
    assert_non_null(strstr(failure.message, "has 5 bytes, more than the 4 allowed"));
    assert_int_equal(bytes.length, 0);
}

TEST(files_of_unknown_size_stop_at_the_ceiling) {
    struct bytes bytes = {0};
    struct failure failure;
    assert_int_equal(
        whole_file_read("/proc/self/status", true, 100, &bytes, &failure), FAILURE_LIMIT);
    assert_int_equal(bytes.length, 0);
    assert_int_equal(
        whole_file_read("/proc/self/status", true, 65536, &bytes, &failure), FAILURE_NONE);
    assert_true(bytes.length > 100);
    bytes_clear(&bytes);
}

TREE_TEST(receivers_own_ceiling_counts_too) {
    temporary_tree_write(fixture, "file", "12345");
    struct bytes bytes;
    bytes_init(&bytes, 3);
    assert_int_equal(read_named(fixture, "file", false, 100, &bytes, NULL), FAILURE_LIMIT);
    assert_int_equal(bytes.length, 0);
    bytes_clear(&bytes);
}

TREE_TEST(what_is_no_file_is_refused_without_waiting) {
    char *fifo = temporary_tree_path(fixture, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    free(fifo);
    temporary_tree_write(fixture, "directory/file", "");
    temporary_tree_link(fixture, "link", "directory/file");
    temporary_tree_link(fixture, "loop", "loop");
    struct bytes bytes = {0};
    assert_int_equal(read_named(fixture, "fifo", false, 9, &bytes, NULL), FAILURE_INVALID);
    assert_int_equal(read_named(fixture, "directory", false, 9, &bytes, NULL), FAILURE_INVALID);
    assert_int_equal(read_named(fixture, "link", false, 9, &bytes, NULL), FAILURE_INVALID);
    assert_int_equal(read_named(fixture, "link", true, 9, &bytes, NULL), FAILURE_NONE);
    assert_int_equal(read_named(fixture, "loop", false, 9, &bytes, NULL), FAILURE_INVALID);
    assert_int_equal(read_named(fixture, "loop", true, 9, &bytes, NULL), FAILURE_SYSTEM);
    assert_int_equal(read_named(fixture, "nothing", false, 9, &bytes, NULL), FAILURE_MISSING);
    bytes_clear(&bytes);
}

TREE_TEST(integers_are_read_and_nothing_else) {
    static const struct {
        const char *content;
        enum failure_code code;
    } cases[] = {
        {"7\n", FAILURE_NONE},
        {"", FAILURE_MALFORMED},
        {"x", FAILURE_MALFORMED},
        {"3000000000", FAILURE_MALFORMED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        temporary_tree_write(fixture, "number", cases[i].content);
        char *path = temporary_tree_path(fixture, "number");
        int value = 7;
        assert_int_equal(whole_file_read_integer(path, &value, NULL), cases[i].code);
        assert_int_equal(value, 7);
        free(path);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <dirent.h>
#include <errno.h>

#include "host/failure/death_evidence.h"
#include "temporary_tree.h"

static enum failure_code read_named(const struct temporary_tree *tree, const char *name,
    struct bytes *bytes, struct failure *failure) {
    char *path = temporary_tree_path(tree, name);
    enum failure_code code = error_file_read(path, ERROR_FILE_CEILING, bytes, failure);
    free(path);
    return code;
}

static enum failure_code write_named(const struct temporary_tree *tree, const char *name,
    const char *content, struct failure *failure) {
    char *path = temporary_tree_path(tree, name);
    enum failure_code code = error_file_write(path, slice_from_string(content), failure);
    free(path);
    return code;
}

static void assert_content(
    const struct temporary_tree *tree, const char *name, const char *expected) {
    struct bytes bytes = {0};
    assert_int_equal(read_named(tree, name, &bytes, NULL), FAILURE_NONE);
    assert_true(slice_equals(bytes_slice(&bytes), slice_from_string(expected)));
    bytes_clear(&bytes);
}

static size_t count_entries(const struct temporary_tree *tree) {
    DIR *directory = opendir(tree->root);
    assert_non_null(directory);
    size_t count = 0;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        count += entry->d_name[0] != '.' ? 1 : 0;
    }
    assert_int_equal(closedir(directory), 0);
    return count;
}

TEST(workers_file_is_read) {
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    temporary_tree_write(&tree, "error.json", "{\"message\": \"\"}");
    assert_content(&tree, "error.json", "{\"message\": \"\"}");
    temporary_tree_clear(&tree);
}

TEST(gigabyte_is_refused_with_its_size) {
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    temporary_tree_write(&tree, "error.json", "");
    char *path = temporary_tree_path(&tree, "error.json");
    assert_int_equal(truncate(path, 1 << 30), 0);
    free(path);
    struct bytes bytes = {0};
    struct failure failure;
    assert_int_equal(read_named(&tree, "error.json", &bytes, &failure), FAILURE_LIMIT);
    assert_non_null(strstr(failure.message, "1073741824 bytes"));
    assert_int_equal(bytes.length, 0);
    temporary_tree_clear(&tree);
}

TEST(symlink_loop_fifo_and_absence_are_told_apart) {
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    temporary_tree_link(&tree, "loop", "loop");
    char *path = temporary_tree_path(&tree, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    free(path);
    struct bytes bytes = {0};
    struct failure failure;
    assert_int_equal(read_named(&tree, "loop", &bytes, &failure), FAILURE_INVALID);
    assert_non_null(strstr(failure.message, "symbolic link"));
    assert_int_equal(read_named(&tree, "fifo", &bytes, &failure), FAILURE_INVALID);
    assert_non_null(strstr(failure.message, "not a regular file"));
    assert_int_equal(read_named(&tree, "nothing", &bytes, &failure), FAILURE_MISSING);
    temporary_tree_clear(&tree);
}

TEST(written_file_replaces_the_old_one_and_leaves_nothing_else) {
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    assert_int_equal(write_named(&tree, "mine.json", "first, and longer", NULL), FAILURE_NONE);
    assert_content(&tree, "mine.json", "first, and longer");
    assert_int_equal(write_named(&tree, "mine.json", "second", NULL), FAILURE_NONE);
    assert_content(&tree, "mine.json", "second");
    assert_int_equal(count_entries(&tree), 1);
    temporary_tree_clear(&tree);
}

TEST(symbolic_link_keeps_pointing_at_what_is_written) {
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    temporary_tree_write(&tree, "real.json", "old");
    temporary_tree_link(&tree, "link.json", "real.json");
    assert_int_equal(write_named(&tree, "link.json", "new", NULL), FAILURE_NONE);
    assert_content(&tree, "real.json", "new");
    struct bytes bytes = {0};
    assert_int_equal(read_named(&tree, "link.json", &bytes, NULL), FAILURE_INVALID);
    temporary_tree_clear(&tree);
}

TEST(device_is_written_and_not_replaced) {
    struct stat before;
    assert_int_equal(stat("/dev/null", &before), 0);
    assert_int_equal(error_file_write("/dev/null", slice_from_string("x"), NULL), FAILURE_NONE);
    struct stat after;
    assert_int_equal(stat("/dev/null", &after), 0);
    assert_true(S_ISCHR(after.st_mode));
    assert_true(before.st_ino == after.st_ino);
}

TEST(too_long_name_for_a_second_file_is_written_in_place) {
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    assert_int_equal(write_named(&tree, name, "text", NULL), FAILURE_NONE);
    assert_content(&tree, name, "text");
    assert_int_equal(count_entries(&tree), 1);
    temporary_tree_clear(&tree);
}

TEST(what_cannot_be_written_is_named) {
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    struct failure failure;
    assert_int_equal(write_named(&tree, "no/such/place", "x", &failure), FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, ENOENT);
    assert_non_null(strstr(failure.message, "no/such/place"));
    char *path = temporary_tree_path(&tree, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    free(path);
    assert_int_equal(write_named(&tree, "fifo", "x", &failure), FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, ENXIO);
    temporary_tree_write(&tree, "directory/file", "");
    assert_int_equal(write_named(&tree, "directory", "x", &failure), FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, EISDIR);
    temporary_tree_clear(&tree);
}

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

TREE_TEST(written_file_replaces_the_old_one_and_leaves_nothing_else) {
    assert_int_equal(write_named(fixture, "mine.json", "first, and longer", NULL), FAILURE_NONE);
    assert_content(fixture, "mine.json", "first, and longer");
    assert_int_equal(write_named(fixture, "mine.json", "second", NULL), FAILURE_NONE);
    assert_content(fixture, "mine.json", "second");
    assert_int_equal(count_entries(fixture), 1);
}

TREE_TEST(symbolic_link_keeps_pointing_at_what_is_written) {
    temporary_tree_write(fixture, "real.json", "old");
    temporary_tree_link(fixture, "link.json", "real.json");
    assert_int_equal(write_named(fixture, "link.json", "new", NULL), FAILURE_NONE);
    assert_content(fixture, "real.json", "new");
    struct bytes bytes = {0};
    assert_int_equal(read_named(fixture, "link.json", &bytes, NULL), FAILURE_INVALID);
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

TREE_TEST(too_long_name_for_a_second_file_is_written_in_place) {
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    assert_int_equal(write_named(fixture, name, "text", NULL), FAILURE_NONE);
    assert_content(fixture, name, "text");
    assert_int_equal(count_entries(fixture), 1);
}

TREE_TEST(what_cannot_be_written_is_named) {
    struct failure failure;
    assert_int_equal(write_named(fixture, "no/such/place", "x", &failure), FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, ENOENT);
    assert_non_null(strstr(failure.message, "no/such/place"));
    char *path = temporary_tree_path(fixture, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    free(path);
    assert_int_equal(write_named(fixture, "fifo", "x", &failure), FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, ENXIO);
    temporary_tree_write(fixture, "directory/file", "");
    assert_int_equal(write_named(fixture, "directory", "x", &failure), FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, EISDIR);
}

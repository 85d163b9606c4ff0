/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "host/loop/files.h"

#define FILE_BYTES 10000

struct fixture {
    char outside[32]; /* what must stay */
    char path[64];
    struct directory_tree tree;
};

static void write_file(const char *directory, const char *name) {
    static const char zeros[FILE_BYTES];
    char *path = text_format("%s/%s", directory, name);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, zeros, sizeof zeros), (ssize_t)sizeof zeros);
    close(fd);
    free(path);
}

static char *make_directory(const char *directory, const char *name) {
    char *path = text_format("%s/%s", directory, name);
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.outside = "/tmp/directory_tree_XXXXXX"};
    assert_non_null(mkdtemp(fixture->outside));
    snprintf(fixture->path, sizeof fixture->path, "%s/tree", fixture->outside);
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    assert_true(directory_tree_note(fixture->path, &fixture->tree));
}

static void tear_down(struct fixture *fixture) {
    assert_int_equal(rmdir(fixture->outside), 0);
}

FIXTURE_TEST(everything_goes_and_is_counted) {
    uint64_t bytes;
    char *below = make_directory(fixture->path, "below");
    char *deepest = make_directory(below, "deepest");
    write_file(fixture->path, "file");
    write_file(deepest, "file");
    assert_true(directory_tree_remove(fixture->path, &fixture->tree, &bytes));
    assert_int_equal(access(fixture->path, F_OK), -1);
    assert_in_range(bytes, 2 * FILE_BYTES, 20 * FILE_BYTES);
    assert_true(directory_tree_remove(fixture->path, &fixture->tree, NULL));
    free(deepest);
    free(below);
}

FIXTURE_TEST(links_are_removed_and_not_followed) {
    char *beside = make_directory(fixture->outside, "beside");
    char *link = text_format("%s/link", fixture->path);
    write_file(beside, "file");
    assert_int_equal(symlink(beside, link), 0);
    assert_true(directory_tree_remove(fixture->path, &fixture->tree, NULL));
    char *file = text_format("%s/file", beside);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(beside), 0);
    free(file);
    free(link);
    free(beside);
}

FIXTURE_TEST(link_in_its_place_is_not_followed) {
    char *moved = text_format("%s/moved", fixture->outside);
    assert_int_equal(rename(fixture->path, moved), 0);
    write_file(moved, "file");
    assert_int_equal(symlink(moved, fixture->path), 0);
    assert_true(directory_tree_remove(fixture->path, &fixture->tree, NULL));
    assert_int_equal(unlink(fixture->path), 0);
    assert_true(directory_tree_remove(moved, &fixture->tree, NULL));
    assert_int_equal(access(moved, F_OK), -1);
    free(moved);
}

FIXTURE_TEST(another_directory_in_its_place_stays) {
    char *moved = text_format("%s/moved", fixture->outside);
    assert_int_equal(rename(fixture->path, moved), 0);
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    write_file(fixture->path, "file");
    assert_true(directory_tree_remove(fixture->path, &fixture->tree, NULL));
    assert_int_equal(access(fixture->path, F_OK), 0);
    struct directory_tree other;
    assert_true(directory_tree_note(fixture->path, &other));
    assert_true(directory_tree_remove(fixture->path, &other, NULL));
    assert_int_equal(rmdir(moved), 0);
    free(moved);
}

FIXTURE_TEST(closed_directories_go_as_well) {
    char *below = make_directory(fixture->path, "below");
    write_file(below, "file");
    assert_int_equal(chmod(below, 0), 0);
    assert_int_equal(chmod(fixture->path, 0500), 0);
    assert_true(directory_tree_remove(fixture->path, &fixture->tree, NULL));
    assert_int_equal(access(fixture->path, F_OK), -1);
    free(below);
}

/* From the inside out: each of the directories is moved into a new one. */
static void nest(struct fixture *fixture, int depth) {
    char *inner = make_directory(fixture->outside, "inner");
    char *outer = text_format("%s/outer", fixture->outside);
    char *place = text_format("%s/inner", outer);
    for (int i = 1; i < depth; i++) {
        assert_int_equal(mkdir(outer, 0700), 0);
        assert_int_equal(rename(inner, place), 0);
        assert_int_equal(rename(outer, inner), 0);
    }
    char *home = text_format("%s/inner", fixture->path);
    assert_int_equal(rename(inner, home), 0);
    free(home);
    free(place);
    free(outer);
    free(inner);
}

FIXTURE_TEST(depth_has_an_end) {
    nest(fixture, DIRECTORY_TREE_DEPTH_MAXIMUM + 1);
    errno = 0;
    assert_false(directory_tree_remove(fixture->path, &fixture->tree, NULL));
    assert_int_equal(errno, ENOTEMPTY);
    char *inner = text_format("%s/inner", fixture->path);
    struct directory_tree below;
    assert_true(directory_tree_note(inner, &below));
    assert_true(directory_tree_remove(inner, &below, NULL));
    assert_true(directory_tree_remove(fixture->path, &fixture->tree, NULL));
    assert_int_equal(access(fixture->path, F_OK), -1);
    free(inner);
}

TEST(what_is_no_own_directory_is_not_known) {
    struct directory_tree tree = {1, 1};
    assert_false(directory_tree_note("/tmp/there is no such directory", &tree));
    assert_int_equal(tree.inode, 0);
    assert_false(directory_tree_note("/dev/null", &tree));
}

/* Empty directory. */

static char *make_directories(void) {
    char *path = text_format("/tmp/empty_directory_XXXXXX");
    char *below;
    assert_non_null(mkdtemp(path));
    for (int i = 0; i < 2; i++) {
        below = text_format("%s/%d", path, i);
        assert_int_equal(mkdir(below, 0700), 0);
        free(below);
    }
    return path;
}

TEST(directories_alone_are_removed) {
    char *path = make_directories();
    assert_true(empty_directory_remove(path));
    assert_int_equal(access(path, F_OK), -1);
    assert_false(empty_directory_remove(path));
    free(path);
}

TEST(a_file_keeps_everything) {
    char *path = make_directories();
    char *file = text_format("%s/1/file", path);
    close(open(file, O_CREAT | O_WRONLY, 0600));
    assert_false(empty_directory_remove(path));
    assert_int_equal(access(file, F_OK), 0);
    assert_int_equal(unlink(file), 0);
    assert_true(empty_directory_remove(path));
    free(file);
    free(path);
}

TEST(a_link_is_kept_and_not_followed) {
    char *path = make_directories();
    char *link = text_format("%s/link", path);
    char *target = text_format("%s/0", path);
    assert_int_equal(symlink(target, link), 0);
    assert_false(empty_directory_remove(path));
    assert_int_equal(access(target, F_OK), 0);
    assert_int_equal(unlink(link), 0);
    assert_true(empty_directory_remove(path));
    free(target);
    free(link);
    free(path);
}

/* Temporary directory. */

static void expect(const struct text_list *environment, const char *const expected[]) {
    size_t i = 0;
    for (; expected[i] != NULL; i++) {
        assert_string_equal(temporary_directory_candidate(environment, i), expected[i]);
    }
    assert_null(temporary_directory_candidate(environment, i));
}

TEST(variables_come_first_and_only_those_that_are_set) {
    struct text_list environment = {0};
    const char *const none[] = {"/tmp", "/var/tmp", "/usr/tmp", ".", NULL};
    expect(&environment, none);
    text_list_set_variable(&environment, "TMP", "/third");
    text_list_set_variable(&environment, "TEMP", "");
    text_list_set_variable(&environment, "TMPDIR", "/first");
    const char *const two[] = {"/first", "/third", "/tmp", "/var/tmp", "/usr/tmp", ".", NULL};
    expect(&environment, two);
    text_list_clear(&environment);
}

TEST(without_an_environment_it_is_that_of_the_process) {
    setenv("TMPDIR", "/mine", 1);
    assert_string_equal(temporary_directory_candidate(NULL, 0), "/mine");
    unsetenv("TMPDIR");
    assert_string_not_equal(temporary_directory_candidate(NULL, 0), "/mine");
}

TEST(what_is_not_there_is_not_usable) {
    struct text_list environment = {0};
    char directory[] = "/tmp/temporary_directory_test_XXXXXX";
    assert_non_null(mkdtemp(directory));
    text_list_set_variable(&environment, "TMPDIR", "/there/is/no/such/place");
    text_list_set_variable(&environment, "TEMP", directory);
    assert_string_equal(temporary_directory_usable(&environment), directory);
    rmdir(directory);
    text_list_clear(&environment);
}

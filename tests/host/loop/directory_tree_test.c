/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "host/loop/directory_tree.h"

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

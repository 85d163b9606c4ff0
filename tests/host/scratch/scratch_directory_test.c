/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/scratch/scratch_directory.h"

#define MIB (UINT64_C(1) << 20)

struct fixture {
    char place[64]; /* on a tmpfs */
    struct text_list places;
    struct scratch_directory directory;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.place = "/dev/shm/scratch_directory_test_XXXXXX"};
    assert_non_null(mkdtemp(fixture->place));
    text_list_add(&fixture->places, fixture->place);
}

static void tear_down(struct fixture *fixture) {
    scratch_directory_clear(&fixture->directory);
    text_list_clear(&fixture->places);
    assert_int_equal(rmdir(fixture->place), 0);
}

static void make(struct fixture *fixture) {
    struct failure failure = {0};
    enum failure_code code =
        scratch_directory_make(&fixture->places, MIB, &fixture->directory, &failure);
    assert_string_equal(failure.message, "");
    assert_int_equal(code, FAILURE_NONE);
}

static void write_below(const char *directory) {
    char *below = text_format("%s/below", directory);
    char *file = text_format("%s/below/file", directory);
    assert_int_equal(mkdir(below, 0700), 0);
    int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "step 7", 6), 6);
    close(fd);
    free(file);
    free(below);
}

TEST(it_is_private_and_goes_with_its_files) {
    struct fixture fixture;
    struct stat status;
    uint64_t bytes;
    set_up(&fixture);
    make(&fixture);
    assert_int_equal(stat(fixture.directory.path, &status), 0);
    assert_int_equal(status.st_mode, S_IFDIR | 0700);
    write_below(fixture.directory.path);
    assert_true(scratch_directory_remove(&fixture.directory, &bytes));
    assert_in_range(bytes, 6, MIB);
    assert_null(fixture.directory.path);
    assert_true(scratch_directory_remove(&fixture.directory, &bytes));
    assert_int_equal(bytes, 0);
    tear_down(&fixture); /* nothing is left in the place */
}

FIXTURE_TEST(more_than_there_is_room_for_is_refused) {
    struct failure failure = {0};
    assert_int_equal(
        scratch_directory_make(&fixture->places, UINT64_C(1) << 60, &fixture->directory, &failure),
        FAILURE_LIMIT);
    assert_non_null(strstr(failure.message, "1099511627776.0 MiB are more than the"));
    assert_non_null(strstr(failure.message, fixture->place));
    assert_null(fixture->directory.path);
}

FIXTURE_TEST(places_that_cannot_be_used_are_told_in_words) {
    struct failure failure = {0};
    struct text_list places = {0};
    text_list_add(&places, "/no such place");
    text_list_add(&places, "/proc");
    assert_int_equal(
        scratch_directory_make(&places, MIB, &fixture->directory, &failure), FAILURE_SYSTEM);
    assert_non_null(strstr(failure.message,
        "/no such place cannot be used: No such file or directory, /proc is no tmpfs"));
    text_list_add(&places, fixture->place);
    assert_int_equal(
        scratch_directory_make(&places, MIB, &fixture->directory, &failure), FAILURE_NONE);
    assert_int_equal(strncmp(fixture->directory.path, fixture->place, strlen(fixture->place)), 0);
    uint64_t bytes;
    assert_true(scratch_directory_remove(&fixture->directory, &bytes));
    text_list_clear(&places);
}

FIXTURE_TEST(sweeping_takes_what_nobody_holds) {
    struct text_list removed = {0};
    uint64_t bytes;
    make(fixture);
    write_below(fixture->directory.path);
    scratch_directory_sweep(fixture->place, &removed);
    assert_int_equal(removed.count, 0);
    char *path = text_format("%s", fixture->directory.path);
    scratch_directory_clear(&fixture->directory); /* as a death does it */
    make(fixture);
    scratch_directory_sweep(fixture->place, &removed);
    assert_int_equal(removed.count, 1);
    assert_string_equal(removed.items[0], path);
    assert_int_equal(access(path, F_OK), -1);
    assert_true(scratch_directory_remove(&fixture->directory, &bytes));
    text_list_clear(&removed);
    free(path);
}

FIXTURE_TEST(sweeping_leaves_what_is_of_another_kind) {
    struct text_list removed = {0};
    char *file = text_format("%s/" SCRATCH_DIRECTORY_PREFIX "file", fixture->place);
    char *other = text_format("%s/other", fixture->place);
    char *link = text_format("%s/" SCRATCH_DIRECTORY_PREFIX "link", fixture->place);
    close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_int_equal(mkdir(other, 0700), 0);
    assert_int_equal(symlink(other, link), 0);
    scratch_directory_sweep(fixture->place, &removed);
    scratch_directory_sweep("/no such place", &removed);
    assert_int_equal(removed.count, 0);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir(other), 0);
    free(link);
    free(other);
    free(file);
}

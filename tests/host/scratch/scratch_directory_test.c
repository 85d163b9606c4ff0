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

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>

#include "host/register/dir_register.h"
#include "temporary_place.h"

struct fixture {
    char *path;
    bool is_final;
    struct failure why;
    struct directory_visit visit;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.path = temporary_place_new()};
    fixture->visit = (struct directory_visit){
        .path = fixture->path,
        .job = "job",
        .is_final = &fixture->is_final,
        .why = &fixture->why,
        .fd = -1,
    };
}

static void tear_down(struct fixture *fixture) {
    directory_visit_leave(&fixture->visit);
    temporary_place_free(fixture->path);
}

static void expect_refused(struct fixture *fixture, enum failure_code code, const char *words) {
    assert_int_not_equal(code, FAILURE_NONE);
    assert_true(fixture->is_final);
    if (strstr(fixture->why.message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", fixture->why.message, words);
    }
    if (strstr(fixture->why.message, fixture->path) == NULL) {
        fail_msg("\"%s\" does not name the directory", fixture->why.message);
    }
}

static char *inside(const struct fixture *fixture, const char *name) {
    return text_format("%s/%s", fixture->path, name);
}

static void directory_and_files_are_private(void **state) {
    (void)state;
    struct fixture fixture;
    char name[DIRECTORY_NAME_SIZE];
    struct stat status;
    set_up(&fixture);
    mode_t mask = umask(0);
    assert_int_equal(directory_visit_enter(&fixture.visit), FAILURE_NONE);
    assert_int_equal(
        directory_visit_make(&fixture.visit, slice_from_string("text"), true, name), FAILURE_NONE);
    umask(mask);
    assert_int_equal(fstat(fixture.visit.fd, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(fstatat(fixture.visit.fd, name, &status, 0), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    tear_down(&fixture);
}

static void what_was_made_is_read(void **state) {
    (void)state;
    struct fixture fixture;
    char name[DIRECTORY_NAME_SIZE];
    struct bytes text = {0};
    set_up(&fixture);
    assert_int_equal(directory_visit_enter(&fixture.visit), FAILURE_NONE);
    assert_int_equal(
        directory_visit_make(&fixture.visit, slice_from_string("text"), true, name), FAILURE_NONE);
    assert_int_equal(directory_visit_read(&fixture.visit, name, 4, &text), FAILURE_NONE);
    assert_true(slice_equals(bytes_slice(&text), slice_from_string("text")));
    assert_int_equal(directory_visit_read(&fixture.visit, "other", 4, &text), FAILURE_MISSING);
    assert_int_equal(text.length, 0);
    expect_refused(
        &fixture, directory_visit_read(&fixture.visit, name, 3, &text), "it is too long");
    bytes_clear(&text);
    tear_down(&fixture);
}

static void missing_directory_is_told(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    char *path = inside(&fixture, "missing");
    fixture.visit.path = path;
    expect_refused(&fixture, directory_visit_enter(&fixture.visit),
        "cannot open it (make it first, on a file system that all nodes share)");
    fixture.visit.path = "/proc/self/cmdline";
    assert_int_equal(directory_visit_enter(&fixture.visit), FAILURE_SYSTEM);
    assert_non_null(strstr(fixture.why.message, "--rdzv-backend dir needs a directory"));
    free(path);
    tear_down(&fixture);
}

static void path_too_long_is_told(void **state) {
    (void)state;
    struct fixture fixture;
    static char path[5001];
    set_up(&fixture);
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    fixture.visit.path = path;
    assert_int_equal(directory_visit_enter(&fixture.visit), FAILURE_SYSTEM);
    assert_int_equal(fixture.why.system_error, ENAMETOOLONG);
    assert_true(fixture.is_final);
    tear_down(&fixture);
}

static void symbolic_link_in_the_place_of_the_job_is_refused(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    char *job = inside(&fixture, "job");
    assert_int_equal(symlink("/tmp", job), 0);
    expect_refused(
        &fixture, directory_visit_enter(&fixture.visit), "it is a symbolic link or a file");
    assert_int_equal(unlink(job), 0);
    int fd = open(job, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    expect_refused(
        &fixture, directory_visit_enter(&fixture.visit), "it is a symbolic link or a file");
    free(job);
    tear_down(&fixture);
}

static void directory_in_which_others_write_is_refused(void **state) {
    (void)state;
    struct fixture fixture;
    char name[DIRECTORY_NAME_SIZE];
    set_up(&fixture);
    char *job = inside(&fixture, "job");
    assert_int_equal(mkdir(job, 0700), 0);
    assert_int_equal(chmod(job, 0777), 0);
    assert_int_equal(directory_visit_enter(&fixture.visit), FAILURE_NONE);
    expect_refused(&fixture, directory_visit_make(&fixture.visit, (struct slice){0}, false, name),
        "(mode 777)");
    free(job);
    tear_down(&fixture);
}

static void directory_of_another_user_is_refused(void **state) {
    (void)state;
    struct fixture fixture;
    char name[DIRECTORY_NAME_SIZE];
    if (geteuid() != 0) {
        SKIP_BECAUSE("needs root, to make a directory of another user");
    }
    set_up(&fixture);
    char *job = inside(&fixture, "job");
    assert_int_equal(mkdir(job, 0700), 0);
    assert_int_equal(chown(job, 12345, 12345), 0);
    assert_int_equal(directory_visit_enter(&fixture.visit), FAILURE_NONE);
    expect_refused(&fixture, directory_visit_make(&fixture.visit, (struct slice){0}, false, name),
        "it belongs to user 12345");
    free(job);
    tear_down(&fixture);
}

static void foreign_file_is_refused(void **state) {
    (void)state;
    struct fixture fixture;
    char name[DIRECTORY_NAME_SIZE];
    struct bytes text = {0};
    set_up(&fixture);
    assert_int_equal(directory_visit_enter(&fixture.visit), FAILURE_NONE);
    assert_int_equal(
        directory_visit_make(&fixture.visit, (struct slice){0}, false, name), FAILURE_NONE);
    assert_int_equal(symlinkat(name, fixture.visit.fd, "link"), 0);
    assert_int_equal(mkdirat(fixture.visit.fd, "directory", 0700), 0);
    assert_int_equal(mkfifoat(fixture.visit.fd, "fifo", 0600), 0);
    expect_refused(
        &fixture, directory_visit_read(&fixture.visit, "link", 9, &text), "it is a symbolic link");
    expect_refused(&fixture, directory_visit_read(&fixture.visit, "directory", 9, &text),
        "it is not a regular file");
    expect_refused(&fixture, directory_visit_read(&fixture.visit, "fifo", 9, &text),
        "it is not a regular file");
    tear_down(&fixture);
}

static void count(void *context, const char *name) {
    size_t *counted = context;
    *counted += text_starts_with(name, DIRECTORY_NEW_PREFIX) ? 1 : 0;
}

static void all_names_are_listed(void **state) {
    (void)state;
    struct fixture fixture;
    char name[DIRECTORY_NAME_SIZE];
    size_t counted = 0;
    set_up(&fixture);
    assert_int_equal(directory_visit_enter(&fixture.visit), FAILURE_NONE);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            directory_visit_make(&fixture.visit, (struct slice){0}, false, name), FAILURE_NONE);
    }
    assert_int_equal(directory_visit_list(&fixture.visit, count, &counted), FAILURE_NONE);
    assert_int_equal(counted, 3);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(directory_and_files_are_private),
    cmocka_unit_test(what_was_made_is_read),
    cmocka_unit_test(missing_directory_is_told),
    cmocka_unit_test(path_too_long_is_told),
    cmocka_unit_test(symbolic_link_in_the_place_of_the_job_is_refused),
    cmocka_unit_test(directory_in_which_others_write_is_refused),
    cmocka_unit_test(directory_of_another_user_is_refused),
    cmocka_unit_test(foreign_file_is_refused),
    cmocka_unit_test(all_names_are_listed),
};

UNIT_TESTS(tests)

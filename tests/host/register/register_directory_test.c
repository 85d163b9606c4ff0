/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host/register/dir_register.h"
#include "temporary_place.h"

/* As a network file system may fail: the reply is lost, and the server has made the link or not. */
static struct {
    int error; /* 0: none */
    bool is_made;
} lost_reply;

/* In the place of the C library's. */
int linkat(int from, const char *old, int to, const char *new, int flags) {
    bool is_made = lost_reply.error == 0 || lost_reply.is_made;
    long result = is_made ? syscall(SYS_linkat, from, old, to, new, flags) : 0;
    if (lost_reply.error != 0) {
        errno = lost_reply.error;
        return -1;
    }
    return (int)result;
}

struct fixture {
    char *path;
    struct register_directory directory;
    struct register_finding finding;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.path = temporary_place_new()};
    assert_int_equal(
        register_directory_init(&fixture->directory, fixture->path, "job/1", "node1", NULL),
        FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    register_finding_clear(&fixture->finding);
    register_directory_clear(&fixture->directory);
    temporary_place_free(fixture->path);
}

static enum failure_code append(struct fixture *fixture, int64_t number, const char *text) {
    register_finding_clear(&fixture->finding);
    return register_directory_append(
        &fixture->directory, number, slice_from_string(text), &fixture->finding);
}

static void expect_won(struct fixture *fixture, int64_t number, const char *text) {
    assert_int_equal(append(fixture, number, text), FAILURE_NONE);
    assert_true(fixture->finding.has_won);
}

static void expect_read(struct fixture *fixture, const char *text) {
    register_finding_clear(&fixture->finding);
    assert_int_equal(register_directory_read(&fixture->directory, &fixture->finding), FAILURE_NONE);
    assert_true(slice_equals(bytes_slice(&fixture->finding.text), slice_from_string(text)));
}

static void expect_renewal(struct fixture *fixture, int64_t term, const char *text) {
    register_finding_clear(&fixture->finding);
    assert_int_equal(
        register_directory_renewal(&fixture->directory, term, &fixture->finding), FAILURE_NONE);
    assert_true(slice_equals(bytes_slice(&fixture->finding.text), slice_from_string(text)));
}

static void run_id_is_spelled_as_a_name(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    assert_string_equal(fixture.directory.job, "muster-job%2f1");
    assert_string_equal(fixture.directory.marker, "machine.node1");
    tear_down(&fixture);
}

static void relative_path_is_refused(void **state) {
    (void)state;
    struct register_directory directory;
    struct failure failure;
    assert_int_equal(
        register_directory_init(&directory, "shared", "1", "n", &failure), FAILURE_INVALID);
    assert_non_null(strstr(failure.message, "'shared'"));
    assert_int_equal(register_directory_init(&directory, "", "1", "n", &failure), FAILURE_INVALID);
}

static void run_id_too_long_is_refused(void **state) {
    (void)state;
    struct register_directory directory;
    struct failure failure;
    char id[300];
    memset(id, '/', sizeof id);
    id[100] = '\0';
    assert_int_equal(
        register_directory_init(&directory, "/shared", id, "n", &failure), FAILURE_INVALID);
    assert_non_null(strstr(failure.message, "--rdzv-id"));
    id[50] = '\0';
    assert_int_equal(register_directory_init(&directory, "/s", id, "n", NULL), FAILURE_NONE);
    register_directory_clear(&directory);
}

static void number_is_won_once(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    expect_read(&fixture, "");
    expect_won(&fixture, 1, "one");
    expect_read(&fixture, "one");
    assert_int_equal(append(&fixture, 1, "another"), FAILURE_NONE);
    assert_false(fixture.finding.has_won);
    assert_true(slice_equals(bytes_slice(&fixture.finding.text), slice_from_string("one")));
    assert_non_null(
        strstr(text_string(&fixture.finding.place), "/muster-job%2f1/entry.000000000001"));
    tear_down(&fixture);
}

static void loser_learns_the_last_entry(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    expect_won(&fixture, 1, "one");
    expect_won(&fixture, 2, "two");
    expect_won(&fixture, 3, "three");
    assert_int_equal(append(&fixture, 2, "another"), FAILURE_NONE);
    assert_false(fixture.finding.has_won);
    assert_true(slice_equals(bytes_slice(&fixture.finding.text), slice_from_string("three")));
    tear_down(&fixture);
}

static void number_without_the_one_before_is_refused(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    assert_int_equal(append(&fixture, 2, "two"), FAILURE_MISSING);
    assert_true(fixture.finding.is_final);
    assert_non_null(strstr(fixture.finding.why.message, "entry.000000000001 is gone"));
    expect_read(&fixture, "");
    tear_down(&fixture);
}

static void link_that_was_made_is_won_though_its_reply_was_lost(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    lost_reply.error = EIO;
    lost_reply.is_made = true;
    expect_won(&fixture, 1, "one");
    lost_reply.error = 0;
    expect_read(&fixture, "one");
    tear_down(&fixture);
}

static void link_without_a_reply_may_still_be_made(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    lost_reply.error = ETIMEDOUT;
    lost_reply.is_made = false;
    assert_int_equal(append(&fixture, 1, "one"), FAILURE_SYSTEM);
    lost_reply.error = 0;
    assert_true(fixture.finding.is_unknown && !fixture.finding.has_won);
    assert_false(fixture.finding.is_final);
    tear_down(&fixture);
}

static void file_system_without_hard_links_is_refused(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    lost_reply.error = EOPNOTSUPP;
    lost_reply.is_made = false;
    assert_int_equal(append(&fixture, 1, "one"), FAILURE_SYSTEM);
    lost_reply.error = 0;
    assert_true(fixture.finding.is_final && !fixture.finding.is_unknown);
    assert_non_null(strstr(fixture.finding.why.message, "hard links"));
    tear_down(&fixture);
}

static void old_entries_are_emptied_but_never_won_again(void **state) {
    (void)state;
    struct fixture fixture;
    char text[8];
    char last[8];
    int64_t count = REGISTER_DIRECTORY_KEPT_ENTRIES + 6;
    set_up(&fixture);
    for (int64_t number = 1; number <= count; number++) {
        snprintf(text, sizeof text, "e%d", (int)number);
        expect_won(&fixture, number, text);
        register_directory_tidy(&fixture.directory, number, 1);
    }
    snprintf(last, sizeof last, "e%d", (int)count);
    expect_read(&fixture, last);
    for (int64_t number = 1; number <= count; number++) {
        struct stat status;
        char *path =
            text_format("%s/%s/entry.%012d", fixture.path, fixture.directory.job, (int)number);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_size > 0, number > count - REGISTER_DIRECTORY_KEPT_ENTRIES);
        assert_int_equal(append(&fixture, number, "again"), FAILURE_NONE);
        assert_false(fixture.finding.has_won);
        assert_true(slice_equals(bytes_slice(&fixture.finding.text), slice_from_string(last)));
        free(path);
    }
    tear_down(&fixture);
}

static void nothing_half_written_is_left(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    expect_won(&fixture, 1, "one");
    assert_int_equal(append(&fixture, 1, "lost"), FAILURE_NONE);
    expect_read(&fixture, "one");
    char *command = text_format("test -z \"$(ls '%s'/muster-*/ | grep '^new')\"", fixture.path);
    assert_int_equal(system(command), 0);
    free(command);
    tear_down(&fixture);
}

static char *path_of(const struct fixture *fixture, const char *name) {
    return text_format("%s/%s/%s", fixture->path, fixture->directory.job, name);
}

static void make_file(struct fixture *fixture, const char *name, const char *text) {
    char *path = path_of(fixture, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
    free(path);
}

static bool is_there(struct fixture *fixture, const char *name) {
    char *path = path_of(fixture, name);
    bool is = access(path, F_OK) == 0;
    free(path);
    return is;
}

static void set_modification_time(struct fixture *fixture, const char *name, time_t seconds) {
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = seconds}};
    char *path = path_of(fixture, name);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
}

/* A server of NFS may keep the number by which it recognizes an exclusive creation in the time of
 * modification, until the client sets the time. */
static void file_that_another_node_is_making_is_not_taken_for_old(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    expect_won(&fixture, 1, "one");
    make_file(&fixture, "new.0123456789abcdef", "");
    set_modification_time(&fixture, "new.0123456789abcdef", 1000);
    register_directory_tidy(&fixture.directory, 1, 1);
    assert_true(is_there(&fixture, "new.0123456789abcdef"));
    tear_down(&fixture);
}

static void file_that_was_left_behind_is_removed_after_a_day(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    expect_won(&fixture, 1, "one");
    make_file(&fixture, "new.0123456789abcdef", "left");
    set_modification_time(&fixture, "", time(NULL) + 86400 - 600); /* as a change after that time */
    register_directory_tidy(&fixture.directory, 1, 1);
    assert_true(is_there(&fixture, "new.0123456789abcdef"));
    set_modification_time(&fixture, "", time(NULL) + 86400 + 600);
    register_directory_tidy(&fixture.directory, 1, 1);
    assert_false(is_there(&fixture, "new.0123456789abcdef"));
    tear_down(&fixture);
}

static void what_only_looks_like_an_entry_is_none(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    expect_won(&fixture, 1, "one");
    make_file(&fixture, "entry.2", "no");
    make_file(&fixture, "entry.00000000000x", "no");
    make_file(&fixture, "entry.000000000000", "no");
    make_file(&fixture, "entry.0000000000002", "no");
    expect_read(&fixture, "one");
    make_file(&fixture, "entry.000000000002", "");
    register_finding_clear(&fixture.finding);
    assert_int_equal(
        register_directory_read(&fixture.directory, &fixture.finding), FAILURE_INVALID);
    assert_non_null(strstr(fixture.finding.why.message, "entry.000000000002"));
    assert_true(fixture.finding.is_final);
    tear_down(&fixture);
}

static void renewal_is_of_a_term(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    expect_renewal(&fixture, 1, "");
    assert_int_equal(
        register_directory_renew(&fixture.directory, 1, "a 1", &fixture.finding), FAILURE_NONE);
    expect_renewal(&fixture, 1, "a 1");
    expect_renewal(&fixture, 2, "");
    assert_int_equal(
        register_directory_renew(&fixture.directory, 1, "a 2", &fixture.finding), FAILURE_NONE);
    assert_int_equal(
        register_directory_renew(&fixture.directory, 2, "b 1", &fixture.finding), FAILURE_NONE);
    expect_renewal(&fixture, 1, "a 2");
    register_directory_tidy(&fixture.directory, 5, 3);
    expect_renewal(&fixture, 1, "");
    expect_renewal(&fixture, 2, "b 1");
    tear_down(&fixture);
}

static void note_is_made_while_only_one_machine_has_come(void **state) {
    (void)state;
    struct fixture fixture;
    struct register_directory other;
    set_up(&fixture);
    expect_read(&fixture, "");
    assert_non_null(strstr(text_string(&fixture.finding.note), fixture.path));
    expect_read(&fixture, "");
    assert_non_null(strstr(text_string(&fixture.finding.note), fixture.path));
    assert_int_equal(
        register_directory_init(&other, fixture.path, "job/1", "node2", NULL), FAILURE_NONE);
    register_finding_clear(&fixture.finding);
    assert_int_equal(register_directory_read(&other, &fixture.finding), FAILURE_NONE);
    assert_string_equal(text_string(&fixture.finding.note), "");
    expect_read(&fixture, "");
    assert_string_equal(text_string(&fixture.finding.note), "");
    register_directory_clear(&other);
    tear_down(&fixture);
}

static void jobs_of_one_directory_do_not_meet(void **state) {
    (void)state;
    struct fixture fixture;
    struct register_directory other;
    set_up(&fixture);
    expect_won(&fixture, 1, "one");
    assert_int_equal(
        register_directory_init(&other, fixture.path, "job_1", "node1", NULL), FAILURE_NONE);
    register_finding_clear(&fixture.finding);
    assert_int_equal(register_directory_read(&other, &fixture.finding), FAILURE_NONE);
    assert_int_equal(fixture.finding.text.length, 0);
    register_directory_clear(&other);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(run_id_is_spelled_as_a_name),
    cmocka_unit_test(relative_path_is_refused),
    cmocka_unit_test(run_id_too_long_is_refused),
    cmocka_unit_test(number_is_won_once),
    cmocka_unit_test(loser_learns_the_last_entry),
    cmocka_unit_test(number_without_the_one_before_is_refused),
    cmocka_unit_test(link_that_was_made_is_won_though_its_reply_was_lost),
    cmocka_unit_test(link_without_a_reply_may_still_be_made),
    cmocka_unit_test(file_system_without_hard_links_is_refused),
    cmocka_unit_test(old_entries_are_emptied_but_never_won_again),
    cmocka_unit_test(nothing_half_written_is_left),
    cmocka_unit_test(file_that_another_node_is_making_is_not_taken_for_old),
    cmocka_unit_test(file_that_was_left_behind_is_removed_after_a_day),
    cmocka_unit_test(what_only_looks_like_an_entry_is_none),
    cmocka_unit_test(renewal_is_of_a_term),
    cmocka_unit_test(note_is_made_while_only_one_machine_has_come),
    cmocka_unit_test(jobs_of_one_directory_do_not_meet),
};

UNIT_TESTS(tests)

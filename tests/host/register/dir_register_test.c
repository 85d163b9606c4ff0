/* SPDX-License-Identifier: BSD-3-Clause */
/* What is particular to a directory; tests/conformance has what all engines do. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#include "one_register.h"

#define KEPT_ENTRIES 8

/* As a network file system may fail: the reply is lost, and the server has made the link or not.
 * The register's thread reads this. */
static struct {
    atomic_int error; /* 0: none */
    atomic_int times; /* so often; 0: always */
    atomic_bool is_made;
    atomic_long type;     /* of the file system; 0: what it is */
    _Atomic time_t later; /* by the clock of its server */
} file_system;

/* In the place of the C library's. */
int linkat(int from, const char *old, int to, const char *new, int flags) {
    bool is_made = file_system.error == 0 || file_system.is_made;
    long result = is_made ? syscall(SYS_linkat, from, old, to, new, flags) : 0;
    if (file_system.error != 0) {
        errno = file_system.error;
        file_system.error = file_system.times == 1 ? 0 : file_system.error;
        file_system.times -= file_system.times > 0 ? 1 : 0;
        return -1;
    }
    return (int)result;
}

int fstatfs(int fd, struct statfs *status) {
    long result = syscall(SYS_fstatfs, fd, status);
    if (file_system.type != 0) {
        status->f_type = (__typeof__(status->f_type))file_system.type;
    }
    return (int)result;
}

int fstat(int fd, struct stat *status) {
    long result = syscall(SYS_fstat, fd, status);
    status->st_mtime += S_ISDIR(status->st_mode) ? file_system.later : 0;
    return (int)result;
}

struct fixture {
    struct one_register one;
    char *path;
};

static int set_up(void **state) {
    static struct fixture fixture;
    fixture.path = temporary_place_new();
    one_register_set_up(&fixture.one);
    fixture.one.run_id = "job/1";
    assert_int_equal(one_register_open(&fixture.one, "dir", fixture.path), FAILURE_NONE);
    *state = &fixture;
    return 0;
}

/* Whether a thread of the register is at work still, or about to end. */
static bool has_blocking_calls(void) {
    bool found = false;
    DIR *directory = opendir("/proc/self/task");
    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        char *path = text_format("/proc/self/task/%s/comm", entry->d_name);
        char name[32] = "";
        FILE *file = fopen(path, "r");
        if (file != NULL) {
            found = (fgets(name, sizeof name, file) != NULL &&
                        text_starts_with(name, "muster-blocking")) ||
                    found;
            fclose(file);
        }
        free(path);
    }
    closedir(directory);
    return found;
}

/* A visit to the directory goes on after the register was freed: so an old entry is emptied. */
static void end(struct fixture *fixture) {
    register_free(fixture->one.job_register);
    fixture->one.job_register = NULL;
    while (has_blocking_calls()) {
        usleep(1000);
    }
}

static void open_again(struct fixture *fixture) {
    end(fixture);
    assert_int_equal(one_register_open(&fixture->one, "dir", fixture->path), FAILURE_NONE);
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    end(fixture);
    one_register_tear_down(&fixture->one);
    temporary_place_free(fixture->path);
    file_system.error = 0;
    file_system.times = 0;
    file_system.is_made = false;
    file_system.type = 0;
    file_system.later = 0;
    return 0;
}

#define DIR_TEST(name) TEST_WITH(name, set_up, tear_down)

static char *inside(const struct fixture *fixture, const char *name) {
    return text_format("%s/muster-job%%2f1/%s", fixture->path, name);
}

static void make_file(const struct fixture *fixture, const char *name, const char *text) {
    char *path = inside(fixture, name);
    write_whole_file(path, text);
    free(path);
}

static bool look_at(const struct fixture *fixture, const char *name, struct stat *out_status) {
    char *path = inside(fixture, name);
    bool is_there = stat(path, out_status) == 0;
    free(path);
    return is_there;
}

static bool is_there(const struct fixture *fixture, const char *name) {
    struct stat status;
    return look_at(fixture, name, &status);
}

static void append(struct fixture *fixture, int64_t number, enum register_event_kind kind) {
    one_register_append(&fixture->one, number, FAR);
    assert_int_equal(fixture->one.kind, kind);
}

static void expect_unusable(struct fixture *fixture, const char *words) {
    one_register_read(&fixture->one, FAR);
    one_register_expect(&fixture->one, REGISTER_FAILED, true, words);
    one_register_expect(&fixture->one, REGISTER_FAILED, true, fixture->path);
}

TEST(what_is_no_path_of_a_shared_directory_does_not_open) {
    static const struct refused_settings refused[] = {
        {"shared", {NULL}, "'shared'"}, {"", {NULL}, "needs the absolute path"}};
    struct one_register one;
    char run_id[101] = {0};
    one_register_set_up(&one);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        one_register_expect_refused(&one, "dir", &refused[i]);
    }
    memset(run_id, '/', sizeof run_id - 1); /* each counts three times */
    one.run_id = run_id;
    assert_int_equal(one_register_open(&one, "dir", "/shared"), FAILURE_INVALID);
    assert_non_null(strstr(one.failure.message, "--rdzv-id"));
    run_id[50] = '\0';
    assert_int_equal(one_register_open(&one, "dir", "/shared"), FAILURE_NONE);
    one_register_tear_down(&one);
}

DIR_TEST(files_have_the_names_of_the_job_and_are_private) {
    struct fixture *fixture = *state;
    struct stat status;
    mode_t mask = umask(0);
    append(fixture, 1, REGISTER_WON);
    one_register_read(&fixture->one, FAR);
    umask(mask);
    assert_true(look_at(fixture, "", &status));
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_true(look_at(fixture, "entry.000000000001", &status));
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_true(is_there(fixture, "machine.node"));
}

DIR_TEST(directory_that_cannot_be_used_is_told) {
    struct fixture *fixture = *state;
    static char too_long[5001];
    memset(too_long, 'a', sizeof too_long - 1);
    too_long[0] = '/';
    const struct {
        const char *path;
        const char *words;
    } rows[] = {
        {"/nowhere/at/all",
            "cannot open it (make it first, on a file system that all nodes share)"},
        {"/proc/self/cmdline", "--rdzv-backend dir needs a directory"},
        {too_long, "the directory of --rdzv-endpoint, /aaa"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(one_register_open(&fixture->one, "dir", rows[i].path), FAILURE_NONE);
        one_register_read(&fixture->one, FAR);
        one_register_expect(&fixture->one, REGISTER_FAILED, true, rows[i].words);
    }
    open_again(fixture);
}

DIR_TEST(what_others_have_put_in_the_place_of_the_job_is_refused) {
    struct fixture *fixture = *state;
    char *job = text_format("%s/muster-job%%2f1", fixture->path);
    assert_int_equal(symlink("/tmp", job), 0);
    expect_unusable(fixture, "it is a symbolic link or a file");
    assert_int_equal(unlink(job), 0);
    write_whole_file(job, "");
    expect_unusable(fixture, "it is a symbolic link or a file");
    assert_int_equal(unlink(job), 0);
    assert_int_equal(mkdir(job, 0700), 0);
    assert_int_equal(chmod(job, 0777), 0);
    expect_unusable(fixture, "(mode 777)");
    free(job);
}

DIR_TEST(directory_of_another_user_is_refused) {
    struct fixture *fixture = *state;
    if (geteuid() != 0) {
        SKIP_BECAUSE("needs root, to make a directory of another user");
    }
    one_register_read(&fixture->one, FAR);
    char *job = inside(fixture, "");
    assert_int_equal(chown(job, 12345, 12345), 0);
    expect_unusable(fixture, "it belongs to user 12345");
    free(job);
}

DIR_TEST(foreign_file_in_the_place_of_an_entry_is_refused) {
    struct fixture *fixture = *state;
    char *entry = inside(fixture, "entry.000000000001");
    char *large = memory_allocate((size_t)2 << 20);
    one_register_read(&fixture->one, FAR);
    assert_int_equal(symlink("machine.node", entry), 0);
    expect_unusable(fixture, "it is a symbolic link");
    assert_int_equal(unlink(entry), 0);
    assert_int_equal(mkdir(entry, 0700), 0);
    expect_unusable(fixture, "it is not a regular file");
    assert_int_equal(rmdir(entry), 0);
    assert_int_equal(mkfifo(entry, 0600), 0);
    expect_unusable(fixture, "it is not a regular file");
    assert_int_equal(unlink(entry), 0);
    memset(large, 'a', ((size_t)2 << 20) - 1);
    write_whole_file(entry, large);
    expect_unusable(fixture, "it is too long");
    write_whole_file(entry, "hello");
    expect_unusable(fixture, "it is no JSON");
    write_whole_file(entry, "");
    expect_unusable(fixture, "entry.000000000001 is no file of this job's register: it is empty");
    if (geteuid() == 0) {
        assert_int_equal(chown(entry, 12345, 12345), 0);
        expect_unusable(fixture, "it belongs to another user");
    }
    free(large);
    free(entry);
}

DIR_TEST(what_only_looks_like_an_entry_is_none) {
    struct fixture *fixture = *state;
    append(fixture, 1, REGISTER_WON);
    make_file(fixture, "entry.2", "no");
    make_file(fixture, "entry.00000000000x", "no");
    make_file(fixture, "entry.000000000000", "no");
    make_file(fixture, "entry.0000000000002", "no");
    one_register_read(&fixture->one, FAR);
    assert_int_equal(fixture->one.number, 1);
}

/* {what the file system says of a link, how often, whether it is made, and what becomes of it} */
DIR_TEST(a_link_without_a_reply_is_made_or_may_still_be_made) {
    static const struct {
        int error;
        int times;
        bool is_made;
        enum register_event_kind kind;
        bool is_final;
        const char *words;
    } rows[] = {
        {EOPNOTSUPP, 0, false, REGISTER_FAILED, true,
            "(the file system must be able to make hard links)"},
        {ENOSPC, 0, false, REGISTER_FAILED, true,
            "cannot put an entry of the job's register there (the file system is full: remove "
            "something): No space left on device"},
        {EBUSY, 0, false, REGISTER_FAILED, false,
            "cannot put an entry of the job's register there: Device or resource busy"},
        {ETIMEDOUT, 2, false, REGISTER_WON, false, ""}, /* it is tried again */
        {ESTALE, 1, false, REGISTER_WON, false, ""},
        {EIO, 0, true, REGISTER_WON, false, ""},
    };
    struct fixture *fixture = *state;
    int64_t number = 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file_system.error = rows[i].error;
        file_system.times = rows[i].times;
        file_system.is_made = rows[i].is_made;
        one_register_append(&fixture->one, number, FAR);
        one_register_expect(&fixture->one, rows[i].kind, rows[i].is_final, rows[i].words);
        number += rows[i].kind == REGISTER_WON ? 1 : 0;
    }
    file_system.error = 0;
    one_register_read(&fixture->one, FAR);
    assert_int_equal(fixture->one.number, 3);
}

static void renew(struct fixture *fixture, int64_t term) {
    struct one_register *one = &fixture->one;
    one_register_await(
        one, register_renew(one->job_register, term, one_register_deadline(one, FAR)));
    assert_int_equal(one->kind, REGISTER_RENEWED);
}

/* Whoever has won tidies up, on a thread, and nobody waits for it. A renewal of an old term, which
 * it removes, is the sign here. */
static void append_and_tidy(struct fixture *fixture, int64_t number) {
    renew(fixture, 1);
    fixture->one.term = 3;
    append(fixture, number, REGISTER_WON);
    while (is_there(fixture, "renewal.1")) {
        one_register_read(&fixture->one, FAR);
    }
    open_again(fixture);
}

DIR_TEST(old_entries_are_emptied_but_never_won_again) {
    struct fixture *fixture = *state;
    const int64_t count = KEPT_ENTRIES + 6;
    for (int64_t number = 1; number <= count; number++) {
        append_and_tidy(fixture, number);
    }
    one_register_read(&fixture->one, FAR);
    assert_int_equal(fixture->one.number, count);
    for (int64_t number = 1; number <= count; number++) {
        struct stat status;
        char *name = text_format("entry.%012d", (int)number);
        assert_true(look_at(fixture, name, &status));
        assert_int_equal(status.st_size > 0, number > count - KEPT_ENTRIES);
        append(fixture, number, REGISTER_LOST);
        assert_int_equal(fixture->one.number, count);
        free(name);
    }
    end(fixture);
    char *command = text_format("test -z \"$(ls '%s'/muster-*/ | grep '^new')\"", fixture->path);
    assert_int_equal(system(command), 0); /* nothing half-written is left */
    free(command);
}

/* A server of NFS may keep the number by which it recognizes an exclusive creation in the time of
 * modification, until the client sets the time. */
DIR_TEST(file_that_another_node_is_making_is_not_taken_for_old) {
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000}};
    struct fixture *fixture = *state;
    one_register_read(&fixture->one, FAR);
    make_file(fixture, "new.0123456789abcdef", "");
    char *path = inside(fixture, "new.0123456789abcdef");
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    append_and_tidy(fixture, 1);
    assert_true(is_there(fixture, "new.0123456789abcdef"));
    free(path);
}

DIR_TEST(file_that_was_left_behind_is_removed_after_a_day) {
    struct fixture *fixture = *state;
    one_register_read(&fixture->one, FAR);
    make_file(fixture, "new.0123456789abcdef", "left");
    for (int64_t number = 1; number <= 2; number++) {
        file_system.later = 86400 + (number == 1 ? -600 : 600);
        append_and_tidy(fixture, number);
        assert_int_equal(is_there(fixture, "new.0123456789abcdef"), number == 1);
    }
}

DIR_TEST(only_renewals_of_old_terms_are_removed) {
    struct fixture *fixture = *state;
    renew(fixture, 2);
    renew(fixture, 3);
    append_and_tidy(fixture, 1);
    assert_true(is_there(fixture, "renewal.2") && is_there(fixture, "renewal.3"));
}

/* {the file system, what is said while only one machine has come} */
DIR_TEST(note_is_made_while_only_one_machine_has_come) {
    static const struct {
        long type;
        const char *words;
    } rows[] = {
        {0xef53, "is on a file system of this machine alone (ext4)"},
        {0x01021994, "is on a file system of this machine alone (tmpfs)"},
        {0x6969, "only this machine has written"},     /* NFS */
        {0x0bd00bd0, "only this machine has written"}, /* Lustre */
        {0x65735546, "only this machine has written"}, /* FUSE, which may be anything */
    };
    struct fixture *fixture = *state;
    struct one_register *one = &fixture->one;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file_system.type = rows[i].type;
        one_register_read(one, FAR);
        assert_non_null(strstr(text_string(&one->note), rows[i].words));
        assert_non_null(strstr(text_string(&one->note), fixture->path));
    }
    one->node_name = "node2";
    open_again(fixture);
    for (int i = 0; i < 2; i++) {
        one_register_read(one, FAR);
        assert_string_equal(text_string(&one->note), "");
        one->node_name = "node";
        open_again(fixture);
    }
}

DIR_TEST(register_may_be_freed_where_it_tells) {
    struct fixture *fixture = *state;
    struct one_register *one = &fixture->one;
    one->frees_itself = true;
    register_renew(one->job_register, 1, one_register_deadline(one, FAR));
    register_read(one->job_register, one_register_deadline(one, FAR));
    event_loop_run(one->loop); /* until one of the two is answered */
    assert_null(one->job_register);
    assert_int_not_equal(one->request, 0);
    one->frees_itself = false;
}

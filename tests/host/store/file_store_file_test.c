/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "host/loop/whole_file.h"
#include "host/store/file_store.h"
#include "temporary_tree.h"

struct fixture {
    struct temporary_tree tree;
    char *path;
    struct file_store_file file;
    struct failure failure;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    temporary_tree_init(&fixture->tree);
    fixture->path = temporary_tree_path(&fixture->tree, "store");
    file_store_file_init(&fixture->file, fixture->path);
}

static void tear_down(struct fixture *fixture) {
    file_store_file_clear(&fixture->file);
    free(fixture->path);
    temporary_tree_clear(&fixture->tree);
}

static enum failure_code enter(struct fixture *fixture, enum file_store_visit visit) {
    return file_store_file_enter(&fixture->file, visit, &fixture->failure);
}

static enum failure_code visit(struct fixture *fixture, enum file_store_visit kind) {
    enum failure_code code = enter(fixture, kind);
    file_store_file_leave(&fixture->file);
    return code;
}

static struct file_store_record value_record(const char *key, const char *value) {
    return (struct file_store_record){
        .key = slice_from_string(key), .value = slice_from_string(value)};
}

static enum failure_code write_value(struct fixture *fixture, const char *key, const char *value) {
    struct file_store_record record = value_record(key, value);
    assert_int_equal(enter(fixture, FILE_STORE_CREATE), FAILURE_NONE);
    enum failure_code code = file_store_file_append(&fixture->file, &record, 1, &fixture->failure);
    file_store_file_leave(&fixture->file);
    return code;
}

static void assert_bytes(struct fixture *fixture, const void *bytes, size_t length) {
    struct bytes found = {0};
    assert_int_equal(whole_file_read(fixture->path, false, 1 << 20, &found, NULL), FAILURE_NONE);
    assert_int_equal(found.length, length);
    assert_memory_equal(found.data, bytes, length);
    bytes_clear(&found);
}

static void assert_value(struct fixture *fixture, const char *key, const char *value) {
    struct file_store_answer answer = {0};
    struct store_request request = {.operation = STORE_GET, .key = slice_from_string(key)};
    assert_int_equal(
        file_store_answer_find(&answer, fixture->file.contents, &request, true), FAILURE_NONE);
    assert_false(answer.is_waiting);
    assert_true(slice_equals(answer.reply.blob, slice_from_string(value)));
    file_store_answer_clear(&answer);
}

static void write_bytes(struct fixture *fixture, const void *bytes, size_t length) {
    temporary_tree_write_bytes(&fixture->tree, "store", bytes, length);
}

static void append_bytes(struct fixture *fixture, const void *bytes, size_t length) {
    FILE *stream = fopen(fixture->path, "ab");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, length, stream), length);
    assert_int_equal(fclose(stream), 0);
}

TEST(a_missing_file_is_made_with_pytorchs_mode) {
    struct fixture fixture;
    set_up(&fixture);
    mode_t mask = umask(022);
    assert_int_equal(visit(&fixture, FILE_STORE_WRITE), FAILURE_SYSTEM);
    assert_int_equal(fixture.failure.system_error, ENOENT);
    assert_int_equal(visit(&fixture, FILE_STORE_CREATE), FAILURE_NONE);
    struct stat status;
    assert_int_equal(stat(fixture.path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0644);
    assert_int_equal(status.st_size, 0);
    umask(mask);
    tear_down(&fixture);
}

TEST(records_are_appended_and_taken) {
    struct fixture fixture;
    set_up(&fixture);
    assert_int_equal(write_value(&fixture, "/k", "v"), FAILURE_NONE);
    assert_int_equal(write_value(&fixture, "/k", "w"), FAILURE_NONE);
    assert_bytes(&fixture, "\2\0\0\0/k\1\0\0\0v\2\0\0\0/k\1\0\0\0w", 22);
    assert_value(&fixture, "/k", "w");
    tear_down(&fixture);
}

TEST(only_what_is_new_is_read) {
    struct fixture fixture;
    set_up(&fixture);
    write_bytes(&fixture, "\2\0\0\0/k\1\0\0\0v", 11);
    assert_int_equal(visit(&fixture, FILE_STORE_READ), FAILURE_NONE);
    assert_value(&fixture, "/k", "v");
    assert_int_equal(fixture.file.position, 11);
    append_bytes(&fixture, "\2\0\0\0/l\1\0\0\0w", 11);
    assert_int_equal(visit(&fixture, FILE_STORE_READ), FAILURE_NONE);
    assert_value(&fixture, "/l", "w");
    assert_int_equal(fixture.file.position, 22);
    tear_down(&fixture);
}

TEST(readers_share_the_lock_and_writers_do_not) {
    struct fixture fixture;
    set_up(&fixture);
    write_bytes(&fixture, "", 0);
    int other = open(fixture.path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(other, LOCK_SH), 0);
    assert_int_equal(visit(&fixture, FILE_STORE_READ), FAILURE_NONE);
    assert_int_equal(visit(&fixture, FILE_STORE_WRITE), FAILURE_INCOMPLETE);
    assert_non_null(strstr(fixture.failure.message, "locked"));
    assert_non_null(strstr(fixture.failure.message, fixture.path));
    assert_int_equal(flock(other, LOCK_EX), 0);
    assert_int_equal(visit(&fixture, FILE_STORE_READ), FAILURE_INCOMPLETE);
    assert_int_equal(flock(other, LOCK_UN), 0);
    assert_int_equal(enter(&fixture, FILE_STORE_WRITE), FAILURE_NONE);
    assert_int_equal(flock(other, LOCK_SH | LOCK_NB), -1);
    file_store_file_leave(&fixture.file);
    assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
    close(other);
    tear_down(&fixture);
}

TEST(half_a_record_hinders_writers_alone) {
    struct fixture fixture;
    set_up(&fixture);
    write_bytes(&fixture, "\2\0\0\0/k\1\0\0\0v\2\0\0\0/l", 17);
    assert_int_equal(visit(&fixture, FILE_STORE_READ), FAILURE_NONE);
    assert_value(&fixture, "/k", "v");
    assert_int_equal(visit(&fixture, FILE_STORE_WRITE), FAILURE_INCOMPLETE);
    assert_non_null(strstr(fixture.failure.message, "byte 11"));
    append_bytes(&fixture, "\1\0\0\0w", 5);
    assert_int_equal(visit(&fixture, FILE_STORE_WRITE), FAILURE_NONE);
    assert_value(&fixture, "/l", "w");
    tear_down(&fixture);
}

TEST(half_a_record_may_be_taken_back) {
    struct fixture fixture;
    set_up(&fixture);
    write_bytes(&fixture, "\2\0\0\0/k\1\0\0\0v\2\0\0\0/l", 17);
    assert_int_equal(visit(&fixture, FILE_STORE_READ), FAILURE_NONE);
    assert_int_equal(truncate(fixture.path, 11), 0);
    assert_int_equal(write_value(&fixture, "/m", "x"), FAILURE_NONE);
    assert_bytes(&fixture, "\2\0\0\0/k\1\0\0\0v\2\0\0\0/m\1\0\0\0x", 22);
    tear_down(&fixture);
}

TEST(what_is_no_filestore_is_refused_and_left_alone) {
    struct fixture fixture;
    set_up(&fixture);
    write_bytes(&fixture, "\2\0\0\0/k\1\0\0\0v#!/bin/sh", 20);
    assert_int_equal(visit(&fixture, FILE_STORE_CREATE), FAILURE_MALFORMED);
    assert_non_null(strstr(fixture.failure.message, "byte 11"));
    assert_non_null(strstr(fixture.failure.message, fixture.path));
    assert_bytes(&fixture, "\2\0\0\0/k\1\0\0\0v#!/bin/sh", 20);
    tear_down(&fixture);
}

static void assert_refused(
    const char *path, enum failure_code code, int system_error, const char *words) {
    struct file_store_file file;
    struct failure failure = {0};
    file_store_file_init(&file, path);
    assert_int_equal(file_store_file_enter(&file, FILE_STORE_CREATE, &failure), code);
    assert_int_equal(failure.system_error, system_error);
    assert_non_null(strstr(failure.message, path));
    assert_non_null(strstr(failure.message, words));
    file_store_file_clear(&file);
}

TEST(paths_that_cannot_hold_a_store_are_named) {
    struct fixture fixture;
    set_up(&fixture);
    char *missing = temporary_tree_path(&fixture.tree, "no/such/store");
    char *fifo = temporary_tree_path(&fixture.tree, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_refused(missing, FAILURE_SYSTEM, ENOENT, "No such file or directory");
    assert_refused(fixture.tree.root, FAILURE_SYSTEM, EISDIR, "Is a directory");
    assert_refused(fifo, FAILURE_INVALID, 0, "no regular file");
    assert_refused("", FAILURE_SYSTEM, ENOENT, "No such file");
    free(missing);
    free(fifo);
    tear_down(&fixture);
}

TEST(a_file_that_is_gone_or_another_is_not_used) {
    struct fixture fixture;
    set_up(&fixture);
    assert_int_equal(write_value(&fixture, "/k", "v"), FAILURE_NONE);
    assert_false(file_store_file_has_news(&fixture.file));
    assert_int_equal(truncate(fixture.path, 0), 0);
    assert_true(file_store_file_has_news(&fixture.file));
    assert_int_equal(visit(&fixture, FILE_STORE_WRITE), FAILURE_MISSING);
    assert_int_equal(unlink(fixture.path), 0);
    assert_true(file_store_file_has_news(&fixture.file));
    assert_int_equal(visit(&fixture, FILE_STORE_READ), FAILURE_MISSING);
    assert_non_null(strstr(fixture.failure.message, "removed"));
    tear_down(&fixture);
}

TEST(news_are_told_without_the_lock) {
    struct fixture fixture;
    set_up(&fixture);
    assert_int_equal(write_value(&fixture, "/k", "v"), FAILURE_NONE);
    int other = open(fixture.path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(other, LOCK_EX), 0);
    assert_false(file_store_file_has_news(&fixture.file));
    append_bytes(&fixture, "\2", 1);
    assert_true(file_store_file_has_news(&fixture.file));
    close(other);
    tear_down(&fixture);
}

TEST(a_write_that_finds_no_room_is_taken_back) {
    struct fixture fixture;
    set_up(&fixture);
    assert_int_equal(write_value(&fixture, "/k", "v"), FAILURE_NONE);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct rlimit small = {.rlim_cur = 20, .rlim_max = old.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum failure_code code = write_value(&fixture, "/k", "a longer value");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(code, FAILURE_SYSTEM);
    assert_int_equal(fixture.failure.system_error, EFBIG);
    assert_bytes(&fixture, "\2\0\0\0/k\1\0\0\0v", 11);
    assert_value(&fixture, "/k", "v");
    tear_down(&fixture);
}

TEST(a_long_file_is_read_in_several_visits) {
    struct fixture fixture;
    set_up(&fixture);
    size_t length = (size_t)5 << 20;
    uint8_t *bytes = memory_allocate(10 + length);
    memcpy(bytes, "\2\0\0\0/k\0\0\x50\0", 10);
    memset(bytes + 10, 'x', length);
    write_bytes(&fixture, bytes, 10 + length);
    append_bytes(&fixture, bytes, 10 + length);
    append_bytes(&fixture, "\2\0\0\0/k\1\0\0\0v", 11);
    int visits = 1;
    while (visit(&fixture, FILE_STORE_WRITE) == FAILURE_INCOMPLETE) {
        assert_true(fixture.file.has_more);
        visits++;
    }
    assert_int_equal(visits, 2);
    assert_false(fixture.file.has_more);
    assert_value(&fixture, "/k", "v");
    free(bytes);
    tear_down(&fixture);
}

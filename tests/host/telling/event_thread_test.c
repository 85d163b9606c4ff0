/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/loop/files.h"
#include "host/remembered_log.h"
#include "host/telling/event_thread.h"

#define LONG duration_from_seconds(60)

struct fixture {
    struct event_loop *loop;
    struct remembered_log log;
    char path[40];
};

/* A disk that accepts nothing until it is released. */
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t disk_changed = PTHREAD_COND_INITIALIZER;
static bool is_disk_released;
static int taken_by_disk;

static void change_disk(bool is_released) {
    pthread_mutex_lock(&disk);
    is_disk_released = is_released;
    taken_by_disk = 0;
    pthread_cond_broadcast(&disk_changed);
    pthread_mutex_unlock(&disk);
}

static enum failure_code hang(
    struct event_file *file, struct slice record, struct failure *failure) {
    (void)file;
    (void)record;
    (void)failure;
    pthread_mutex_lock(&disk);
    while (!is_disk_released) {
        pthread_cond_wait(&disk_changed, &disk);
    }
    taken_by_disk++;
    pthread_cond_broadcast(&disk_changed);
    pthread_mutex_unlock(&disk);
    return FAILURE_NONE;
}

static enum failure_code refuse(
    struct event_file *file, struct slice record, struct failure *failure) {
    (void)file;
    (void)record;
    return failure_set_system(failure, ENOSPC, "write");
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.path = "/tmp/muster_event_thread_XXXXXX"};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    remembered_log_init(&fixture->log);
    close(mkstemp(fixture->path));
}

static void tear_down(struct fixture *fixture) {
    unlink(fixture->path);
    text_clear(&fixture->log.text);
    assert_true(event_loop_free(fixture->loop));
}

static struct event_thread *start(struct fixture *fixture, struct duration patience,
    enum failure_code (*append)(
        struct event_file *file, struct slice record, struct failure *failure)) {
    struct event_thread_settings settings = {
        .loop = fixture->loop,
        .log = &fixture->log.log,
        .path = fixture->path,
        .patience = patience,
        .append = append,
    };
    struct event_thread *thread = NULL;
    assert_int_equal(event_thread_new(&settings, &thread, NULL), FAILURE_NONE);
    return thread;
}

FIXTURE_TEST(everything_is_written_in_order_before_the_end) {
    struct text expected = {0};
    struct bytes content = {0};
    struct event_thread *thread = start(fixture, LONG, NULL);
    for (int i = 0; i < 10000; i++) {
        char *line = text_format("record %d\n", i);
        event_thread_append(thread, line);
        text_append(&expected, line);
        free(line);
    }
    event_thread_free(thread);
    assert_int_equal(
        whole_file_read(fixture->path, false, expected.length + 1, &content, NULL), FAILURE_NONE);
    assert_int_equal(content.length, expected.length);
    assert_memory_equal(content.data, text_string(&expected), expected.length);
    assert_int_equal(fixture->log.count, 0);
    bytes_clear(&content);
    text_clear(&expected);
}

FIXTURE_TEST(records_of_several_are_appended_to_what_is_there) {
    struct bytes content = {0};
    for (int i = 0; i < 2; i++) {
        struct event_thread *thread = start(fixture, LONG, NULL);
        struct event_thread *other = start(fixture, LONG, NULL);
        event_thread_append(thread, "one\n");
        event_thread_free(thread);
        event_thread_append(other, "two\n");
        event_thread_free(other);
    }
    assert_int_equal(whole_file_read(fixture->path, false, 100, &content, NULL), FAILURE_NONE);
    assert_int_equal(content.length, 16);
    assert_memory_equal(content.data, "one\ntwo\none\ntwo\n", 16);
    bytes_clear(&content);
}

FIXTURE_TEST(a_fifo_that_nobody_reads_holds_up_nobody) {
    struct event_thread *none = NULL;
    unlink(fixture->path);
    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    struct event_thread_settings settings = {
        .loop = fixture->loop, .log = &fixture->log.log, .path = fixture->path, .patience = LONG};
    assert_int_equal(event_thread_new(&settings, &none, NULL), FAILURE_SYSTEM);
    int reader = open(fixture->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct event_thread *thread = start(fixture, LONG, NULL);
    for (int i = 0; i < 20000; i++) { /* more than a pipe holds */
        event_thread_append(thread, "a record\n");
    }
    event_thread_free(thread);
    assert_true(remembered_log_has(&fixture->log, "events were not written to '/tmp/"));
    close(reader);
}

/* As a disk that takes a part of a record. */
FIXTURE_TEST(a_part_of_a_record_is_a_lost_one) {
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct event_thread *thread = start(fixture, LONG, NULL);
    const struct rlimit small = {6, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    event_thread_append(thread, "a record\n");
    event_thread_free(thread);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_true(remembered_log_has(&fixture->log, "1 events were not written to '/tmp/"));
    assert_true(remembered_log_has(&fixture->log, "write: File too large"));
}

/* Far more records are given than may wait, and the disk accepts none of them. The caller is not
 * delayed. */
FIXTURE_TEST(what_finds_no_room_is_lost_said_once_and_counted) {
    change_disk(false);
    struct event_thread *thread = start(fixture, LONG, hang);
    char record[1024];
    memset(record, 'x', sizeof record);
    record[sizeof record - 1] = '\0';
    size_t room = EVENT_THREAD_CEILING / (sizeof record - 1);
    for (size_t i = 0; i < room + 7; i++) {
        event_thread_append(thread, record);
    }
    assert_int_equal(fixture->log.count, 1);
    assert_true(remembered_log_has(&fixture->log, "events are lost, '/tmp/"));
    change_disk(true);
    event_thread_free(thread);
    assert_int_equal(taken_by_disk, room);
    assert_int_equal(fixture->log.count, 2);
    assert_true(remembered_log_has(&fixture->log, "7 events were not written to '/tmp/"));
}

static struct event_thread *start_replacing(struct fixture *fixture, const char *path,
    enum failure_code (*append)(
        struct event_file *file, struct slice record, struct failure *failure)) {
    struct event_thread *thread = NULL;
    const struct event_thread_settings settings = {.loop = fixture->loop,
        .log = &fixture->log.log,
        .path = path,
        .patience = LONG,
        .is_opened_later = true,
        .replaces = true,
        .what = "metrics",
        .append = append};
    assert_int_equal(event_thread_new(&settings, &thread, NULL), FAILURE_NONE);
    return thread;
}

FIXTURE_TEST(a_record_that_is_all_of_a_file_replaces_the_one_before) {
    struct bytes content = {0};
    struct event_thread *thread = start_replacing(fixture, fixture->path, NULL);
    event_thread_append(thread, "a long first page\n");
    event_thread_free(thread);
    thread = start_replacing(fixture, fixture->path, NULL);
    event_thread_append(thread, "the last\n");
    event_thread_free(thread);
    assert_int_equal(whole_file_read(fixture->path, false, 100, &content, NULL), FAILURE_NONE);
    assert_int_equal(content.length, 9);
    assert_memory_equal(content.data, "the last\n", 9);
    assert_int_equal(fixture->log.count, 0);
    bytes_clear(&content);
}

FIXTURE_TEST(what_is_no_file_is_replaced_by_none) {
    unlink(fixture->path);
    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    struct event_thread *thread = start_replacing(fixture, fixture->path, NULL);
    event_thread_append(thread, "one\n");
    while (fixture->log.count == 0) {
        event_loop_run_ready(fixture->loop);
    }
    event_thread_append(thread, "two\n");
    event_thread_free(thread);
    assert_int_equal(fixture->log.count, 1);
    assert_true(remembered_log_has(&fixture->log, "metrics are lost, '/tmp/"));
    assert_true(remembered_log_has(&fixture->log, "it is no regular file"));
    struct stat status;
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
}

FIXTURE_TEST(what_waits_for_a_slow_disk_is_replaced_and_said_once) {
    change_disk(false);
    struct event_thread *thread = start_replacing(fixture, fixture->path, hang);
    for (int i = 0; i < 5; i++) {
        event_thread_append(thread, "a page\n");
    }
    assert_int_equal(fixture->log.count, 1);
    assert_true(remembered_log_has(&fixture->log, "it is too slow, or does not answer"));
    change_disk(true);
    event_thread_free(thread);
    assert_in_range(taken_by_disk, 1, 4); /* the first may have been taken before the second came */
    assert_int_equal(fixture->log.count, 1);
}

FIXTURE_TEST(a_disk_that_refuses_is_told_of_at_once_and_at_the_end) {
    struct event_thread *thread = start(fixture, LONG, refuse);
    for (int i = 0; i < 3; i++) {
        event_thread_append(thread, "a record\n");
    }
    while (fixture->log.count == 0) {
        event_loop_run_ready(fixture->loop);
    }
    assert_true(remembered_log_has(&fixture->log, "does not take them: write: No space left"));
    event_thread_free(thread);
    assert_true(remembered_log_has(&fixture->log, "3 events were not written"));
    assert_int_equal(fixture->log.count, 2);
}

static void expect_content(const char *path, const char *end, const char *expected) {
    struct bytes content = {0};
    char *whole = text_format("%s%s", path, end);
    assert_int_equal(whole_file_read(whole, false, 1000, &content, NULL), FAILURE_NONE);
    assert_int_equal(content.length, strlen(expected));
    assert_memory_equal(content.data, expected, content.length);
    unlink(whole);
    bytes_clear(&content);
    free(whole);
}

FIXTURE_TEST(file_that_is_full_is_turned_and_two_older_ones_are_kept) {
    struct event_thread *thread;
    const struct event_thread_settings settings = {.loop = fixture->loop,
        .log = &fixture->log.log,
        .path = fixture->path,
        .patience = LONG,
        .is_opened_later = true,
        .turn_at = 12};
    assert_int_equal(event_thread_new(&settings, &thread, NULL), FAILURE_NONE);
    for (int i = 0; i < 7; i++) {
        char *line = text_format("line %d\n", i);
        event_thread_append(thread, line);
        free(line);
    }
    event_thread_append(thread, "4\n");
    event_thread_free(thread);
    expect_content(fixture->path, "", "line 6\n4\n");
    expect_content(fixture->path, ".1", "line 5\n");
    expect_content(fixture->path, ".2", "line 4\n");
    assert_int_equal(fixture->log.count, 0);
}

FIXTURE_TEST(file_that_is_opened_later_and_cannot_be_is_told_once) {
    struct event_thread *thread;
    const struct event_thread_settings settings = {.loop = fixture->loop,
        .log = &fixture->log.log,
        .path = "/nonexistent/events",
        .patience = LONG,
        .is_opened_later = true};
    assert_int_equal(event_thread_new(&settings, &thread, NULL), FAILURE_NONE);
    while (fixture->log.count == 0) {
        event_loop_run_ready(fixture->loop);
    }
    for (int i = 0; i < 100; i++) {
        event_thread_append(thread, "lost\n");
    }
    event_thread_free(thread);
    assert_int_equal(fixture->log.count, 1);
    assert_non_null(strstr(text_string(&fixture->log.text), "/nonexistent/events"));
}

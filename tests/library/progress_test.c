/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <muster/progress.h>

#define PAGE_SIZE 4096

/* A page as an agent makes it, which the worker has under a number of its own. */
struct fixture {
    int fd;
    uint64_t *words;
};

static void set_up(struct fixture *fixture) {
    char number[16];
    fixture->fd = memfd_create("muster-progress", 0);
    assert_int_equal(ftruncate(fixture->fd, PAGE_SIZE), 0);
    char *start = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fixture->fd, 0);
    assert_ptr_not_equal(start, MAP_FAILED);
    fixture->words = (uint64_t *)(start + MUSTER_PROGRESS_OFFSET);
    fixture->words[MUSTER_PROGRESS_AGENT] = (uint64_t)getpid();
    fixture->words[MUSTER_PROGRESS_MARK] = MUSTER_PROGRESS_MAGIC;
    snprintf(number, sizeof number, "%d", fixture->fd);
    setenv("MUSTER_PROGRESS", number, 1);
}

static void tear_down(struct fixture *fixture) {
    munmap((char *)fixture->words - MUSTER_PROGRESS_OFFSET, PAGE_SIZE);
    close(fixture->fd);
    unsetenv("MUSTER_PROGRESS");
}

/* The library looks for its page once in a process, so each worker is one. */
static void play(const struct fixture *fixture, void (*worker)(const struct fixture *fixture)) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        worker(fixture);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void take_steps(const struct fixture *fixture) {
    (void)fixture;
    muster_progress_step(41);
    muster_progress_step(42);
    muster_progress_checkpoint(40);
}

FIXTURE_TEST(steps_are_in_the_page_with_their_times) {
    struct timespec now;
    play(fixture, take_steps);
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t *words = fixture->words;
    uint64_t end = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    assert_int_equal(words[MUSTER_PROGRESS_COUNT], 2);
    assert_int_equal(words[MUSTER_PROGRESS_STEP], 42);
    assert_int_equal(words[MUSTER_PROGRESS_FIRST_STEP], 41);
    assert_int_equal(words[MUSTER_PROGRESS_SOURCE], 2);
    assert_int_equal(words[MUSTER_PROGRESS_SAVES], 1);
    assert_int_equal(words[MUSTER_PROGRESS_SAVED_STEP], 40);
    assert_true(words[MUSTER_PROGRESS_FIRST] > 0);
    assert_true(words[MUSTER_PROGRESS_FIRST] <= words[MUSTER_PROGRESS_STEPPED]);
    assert_true(words[MUSTER_PROGRESS_STEPPED] <= words[MUSTER_PROGRESS_SAVED]);
    assert_true(words[MUSTER_PROGRESS_SAVED] <= end);
}

static void wait_twice(const struct fixture *fixture) {
    muster_progress_wait_end();
    muster_progress_wait_begin();
    uint64_t began = fixture->words[MUSTER_PROGRESS_WAITS];
    muster_progress_wait_begin();
    if (began == 0 || fixture->words[MUSTER_PROGRESS_WAITS] != began) {
        _exit(1);
    }
    muster_progress_wait_end();
    muster_progress_wait_end();
}

FIXTURE_TEST(wait_in_a_wait_counts_once) {
    play(fixture, wait_twice);
    assert_int_equal(fixture->words[MUSTER_PROGRESS_WAITS], 0);
    assert_true(fixture->words[MUSTER_PROGRESS_WAITED] > 0);
}

static void step_in_a_child(const struct fixture *fixture) {
    muster_progress_step(1);
    play(fixture, take_steps);
    muster_progress_step(2);
}

FIXTURE_TEST(child_of_a_worker_says_nothing) {
    play(fixture, step_in_a_child);
    assert_int_equal(fixture->words[MUSTER_PROGRESS_COUNT], 2);
    assert_int_equal(fixture->words[MUSTER_PROGRESS_STEP], 2);
}

static void step_from_another_number(const struct fixture *fixture) {
    int moved = dup(fixture->fd);
    int other = open("/dev/null", O_RDWR);
    if (moved == -1 || dup2(other, fixture->fd) == -1) {
        _exit(1);
    }
    muster_progress_step(7);
}

FIXTURE_TEST(page_is_found_where_its_number_is_another_files) {
    play(fixture, step_from_another_number);
    assert_int_equal(fixture->words[MUSTER_PROGRESS_STEP], 7);
}

static void expect_silence(struct fixture *fixture) {
    play(fixture, take_steps);
    assert_int_equal(fixture->words[MUSTER_PROGRESS_COUNT], 0);
    assert_int_equal(fixture->words[MUSTER_PROGRESS_SAVES], 0);
}

FIXTURE_TEST(nothing_is_said_without_the_variable_or_with_another_value) {
    static const char *const values[] = {"", "x", "-1", "99999999999", "1000", "3x"};
    unsetenv("MUSTER_PROGRESS");
    expect_silence(fixture);
    close(fixture->fd); /* so that it is not found */
    fixture->fd = open("/dev/null", O_RDWR);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        setenv("MUSTER_PROGRESS", values[i], 1);
        expect_silence(fixture);
    }
}

FIXTURE_TEST(page_of_another_process_is_let_be) {
    fixture->words[MUSTER_PROGRESS_WORKER] = 1;
    expect_silence(fixture);
    fixture->words[MUSTER_PROGRESS_WORKER] = 0;
    fixture->words[MUSTER_PROGRESS_AGENT] = 1;
    expect_silence(fixture);
}

FIXTURE_TEST(page_without_its_mark_is_let_be) {
    fixture->words[MUSTER_PROGRESS_MARK] = 1;
    expect_silence(fixture);
}

static void mark_late(const struct fixture *fixture) {
    muster_progress_step(1);
    fixture->words[MUSTER_PROGRESS_MARK] = MUSTER_PROGRESS_MAGIC;
    muster_progress_step(2);
}

FIXTURE_TEST(page_that_the_agent_marks_later_is_used_then) {
    fixture->words[MUSTER_PROGRESS_MARK] = 0;
    play(fixture, mark_late);
    assert_int_equal(fixture->words[MUSTER_PROGRESS_COUNT], 1);
    assert_int_equal(fixture->words[MUSTER_PROGRESS_STEP], 2);
}

FIXTURE_TEST(file_that_is_too_short_is_let_be) {
    assert_int_equal(ftruncate(fixture->fd, 100), 0);
    play(fixture, take_steps);
    assert_int_equal(ftruncate(fixture->fd, PAGE_SIZE), 0);
    assert_int_equal(fixture->words[MUSTER_PROGRESS_COUNT], 0);
}

static void step_backwards(const struct fixture *fixture) {
    (void)fixture;
    muster_progress_step(10);
    muster_progress_step(5);
    muster_progress_step(-1);
    muster_progress_checkpoint(-1);
    muster_progress_step(INT64_MAX);
}

FIXTURE_TEST(any_number_is_a_step_but_a_negative_one) {
    play(fixture, step_backwards);
    assert_int_equal(fixture->words[MUSTER_PROGRESS_COUNT], 3);
    assert_int_equal(fixture->words[MUSTER_PROGRESS_STEP], INT64_MAX);
    assert_int_equal(fixture->words[MUSTER_PROGRESS_SAVES], 0);
}

static void *step_often(void *context) {
    (void)context;
    for (int64_t n = 0; n < 1000; n++) {
        muster_progress_step(n);
    }
    return NULL;
}

static void step_in_threads(const struct fixture *fixture) {
    pthread_t threads[4];
    (void)fixture;
    for (size_t i = 0; i < 4; i++) {
        if (pthread_create(&threads[i], NULL, step_often, NULL) != 0) {
            _exit(1);
        }
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
}

FIXTURE_TEST(threads_may_step_beside_each_other) {
    play(fixture, step_in_threads);
    assert_true(fixture->words[MUSTER_PROGRESS_COUNT] >= 1000);
    assert_true(fixture->words[MUSTER_PROGRESS_COUNT] <= 4000);
}

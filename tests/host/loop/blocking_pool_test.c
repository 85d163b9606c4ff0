/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/loop/blocking_pool.h"

/* Where a blocking call waits until somebody lets it go on, as on a disk that hangs. */
struct gate {
    int ends[2];
    atomic_int arrived_count;
    atomic_int freed_count;
};

struct subject {
    struct gate *gate; /* NULL: it does not hang */
    atomic_int *freed_count;
    int number;
    pid_t thread;
    bool is_done;
};

struct fixture {
    struct event_loop *loop;
    struct blocking_pool *pool;
    struct gate gate;
    atomic_int freed_count;
    struct text answers;
    size_t answer_count;
    size_t wanted;
    pid_t thread; /* that has carried out the last call answered */
};

static void run_subject(void *context) {
    struct subject *subject = context;
    if (subject->gate != NULL) {
        char byte;
        atomic_fetch_add(&subject->gate->arrived_count, 1);
        assert_int_equal(read(subject->gate->ends[0], &byte, 1), 1);
    }
    subject->thread = gettid();
    subject->is_done = true;
}

static void free_subject(void *context) {
    struct subject *subject = context;
    atomic_fetch_add(subject->freed_count, 1);
    free(subject);
}

static void done(void *context, void *context_of_subject) {
    struct fixture *fixture = context;
    const struct subject *subject = context_of_subject;
    assert_true(subject->is_done);
    text_append_format(&fixture->answers, "%d ", subject->number);
    fixture->thread = subject->thread;
    fixture->answer_count++;
    if (fixture->answer_count == fixture->wanted) {
        event_loop_stop(fixture->loop);
    }
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    assert_int_equal(pipe2(fixture->gate.ends, O_CLOEXEC), 0);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(blocking_pool_new(fixture->loop, &fixture->pool, NULL), FAILURE_NONE);
}

static struct blocking_task make_task(struct fixture *fixture, int number, struct gate *gate) {
    struct subject *subject = memory_allocate(sizeof *subject);
    *subject =
        (struct subject){.gate = gate, .freed_count = &fixture->freed_count, .number = number};
    return (struct blocking_task){run_subject, free_subject, subject};
}

static struct blocking_call *send_call(struct fixture *fixture, int number, struct gate *gate) {
    struct blocking_call *call = NULL;
    struct blocking_task task = make_task(fixture, number, gate);
    struct blocking_answer answer = {done, fixture};
    fixture->wanted++;
    assert_int_equal(blocking_pool_send(fixture->pool, &task, &answer, &call, NULL), FAILURE_NONE);
    return call;
}

static void open_gate(struct fixture *fixture, int count) {
    for (int i = 0; i < count; i++) {
        assert_int_equal(write(fixture->gate.ends[1], "x", 1), 1);
    }
}

static void await_count(atomic_int *count, int wanted) {
    while (atomic_load(count) != wanted) {
        usleep(1000);
    }
}

/* `freed_count` are those that have been freed in the end. */
static void tear_down(struct fixture *fixture, int freed_count) {
    blocking_pool_free(fixture->pool);
    assert_true(event_loop_free(fixture->loop));
    await_count(&fixture->freed_count, freed_count);
    text_clear(&fixture->answers);
    close(fixture->gate.ends[0]);
    close(fixture->gate.ends[1]);
}

TEST(each_call_is_answered_once_by_the_loop) {
    enum { COUNT = 50 };
    struct fixture fixture;
    set_up(&fixture);
    for (int i = 0; i < COUNT; i++) {
        send_call(&fixture, i, NULL);
    }
    assert_int_equal(fixture.answer_count, 0); /* never from inside the call */
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.answer_count, COUNT);
    assert_int_equal(atomic_load(&fixture.freed_count), COUNT);
    tear_down(&fixture, COUNT);
}

/* Of a thread of this process; 0: it is gone. */
static char state_of(pid_t thread) {
    char path[64];
    char line[256] = {0};
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1) {
        return 0;
    }
    bool is_there = read(fd, line, sizeof line - 1) > 0;
    close(fd);
    return is_there ? strrchr(line, ')')[2] : 0;
}

TEST(a_thread_stays_for_the_next_call_where_that_is_wanted) {
    struct fixture fixture;
    set_up(&fixture);
    blocking_pool_keep_thread(fixture.pool);
    send_call(&fixture, 1, NULL);
    event_loop_run(fixture.loop);
    pid_t first = fixture.thread;
    for (char found = 'R'; found != 'S'; usleep(1000)) {
        found = state_of(first);
        assert_true(found == 'R' || found == 'S' || found == 'D');
    }
    send_call(&fixture, 2, NULL);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.thread, first);
    send_call(&fixture, 3, &fixture.gate); /* and what hangs holds up no other */
    send_call(&fixture, 4, NULL);
    fixture.wanted--;
    event_loop_run(fixture.loop);
    assert_string_equal(text_string(&fixture.answers), "1 2 4 ");
    open_gate(&fixture, 1);
    tear_down(&fixture, 4);
    while (state_of(first) != 0) {
        usleep(1000);
    }
}

TEST(calls_that_hang_hold_up_no_other) {
    enum { HANGING = BLOCKING_POOL_MAXIMUM_THREADS - 1 };
    struct fixture fixture;
    set_up(&fixture);
    for (int i = 0; i < HANGING; i++) {
        send_call(&fixture, 0, &fixture.gate);
    }
    await_count(&fixture.gate.arrived_count, HANGING);
    fixture.wanted = 0;
    send_call(&fixture, 1, NULL);
    event_loop_run(fixture.loop);
    assert_string_equal(text_string(&fixture.answers), "1 ");
    fixture.wanted = HANGING + 1;
    open_gate(&fixture, HANGING);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.answer_count, HANGING + 1);
    tear_down(&fixture, HANGING + 1);
}

TEST(those_that_find_no_thread_wait_for_one) {
    struct fixture fixture;
    set_up(&fixture);
    for (int i = 0; i < BLOCKING_POOL_MAXIMUM_THREADS; i++) {
        send_call(&fixture, 0, &fixture.gate);
    }
    await_count(&fixture.gate.arrived_count, BLOCKING_POOL_MAXIMUM_THREADS);
    send_call(&fixture, 1, NULL);
    event_loop_run_ready(fixture.loop);
    assert_int_equal(fixture.answer_count, 0);
    open_gate(&fixture, BLOCKING_POOL_MAXIMUM_THREADS);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.answer_count, BLOCKING_POOL_MAXIMUM_THREADS + 1);
    tear_down(&fixture, BLOCKING_POOL_MAXIMUM_THREADS + 1);
}

TEST(what_is_dropped_is_not_answered) {
    struct fixture fixture;
    set_up(&fixture);
    struct blocking_call *hanging = send_call(&fixture, 0, &fixture.gate);
    await_count(&fixture.gate.arrived_count, 1);
    blocking_pool_drop(fixture.pool, hanging);
    blocking_pool_drop(fixture.pool, send_call(&fixture, 1, NULL)); /* in whatever phase it is */
    fixture.wanted = 0;
    send_call(&fixture, 2, NULL);
    event_loop_run(fixture.loop);
    assert_string_equal(text_string(&fixture.answers), "2 ");
    open_gate(&fixture, 1);
    tear_down(&fixture, 3);
}

TEST(calls_may_hang_when_the_loop_goes) {
    struct fixture fixture;
    set_up(&fixture);
    for (int i = 0; i < BLOCKING_POOL_MAXIMUM_THREADS + 1; i++) {
        send_call(&fixture, 0, &fixture.gate);
    }
    await_count(&fixture.gate.arrived_count, BLOCKING_POOL_MAXIMUM_THREADS);
    blocking_pool_free(fixture.pool);
    fixture.pool = NULL;
    assert_int_equal(atomic_load(&fixture.freed_count), 1); /* what no thread had taken */
    open_gate(&fixture, BLOCKING_POOL_MAXIMUM_THREADS);
    tear_down(&fixture, BLOCKING_POOL_MAXIMUM_THREADS + 1);
}

TEST(without_a_loop_the_subject_comes_back) {
    struct fixture fixture;
    set_up(&fixture);
    struct blocking_task task = make_task(&fixture, 0, NULL);
    assert_int_equal(
        blocking_task_run_within(&task, duration_from_seconds(60), NULL, NULL), FAILURE_NONE);
    assert_true(((struct subject *)task.subject)->is_done);
    assert_int_equal(atomic_load(&fixture.freed_count), 0);
    free_subject(task.subject);
    tear_down(&fixture, 1);
}

TEST(without_a_loop_what_hangs_is_left_behind) {
    struct fixture fixture;
    struct failure failure = {0};
    set_up(&fixture);
    struct blocking_task task = make_task(&fixture, 0, &fixture.gate);
    assert_int_equal(
        blocking_task_run_within(&task, duration_from_milliseconds(20), NULL, &failure),
        FAILURE_TIMEOUT);
    assert_string_equal(failure.message, "no answer within 0.02 s");
    open_gate(&fixture, 1);
    tear_down(&fixture, 1);
}

static void stop(void *context) {
    const struct fixture *fixture = context;
    event_loop_stop(fixture->loop);
}

TEST(who_waits_hears_of_the_silence_and_may_give_up) {
    struct fixture fixture;
    set_up(&fixture);
    const struct blocking_watch watch = {
        fixture.loop, duration_from_milliseconds(1), stop, &fixture};
    struct blocking_task task = make_task(&fixture, 0, &fixture.gate);
    assert_int_equal(blocking_task_run_within(&task, duration_from_seconds(60), &watch, NULL),
        FAILURE_CANCELLED);
    open_gate(&fixture, 1);
    tear_down(&fixture, 1);
}

static void do_nothing(void *context) {
    (void)context;
}

TEST(a_loop_that_waits_is_told_of_the_end) {
    struct fixture fixture;
    struct failure failure = {0};
    set_up(&fixture);
    const struct blocking_watch watch = {
        fixture.loop, duration_from_seconds(60), do_nothing, &fixture};
    struct blocking_task task = make_task(&fixture, 0, NULL);
    assert_int_equal(
        blocking_task_run_within(&task, duration_from_seconds(60), &watch, NULL), FAILURE_NONE);
    assert_true(((struct subject *)task.subject)->is_done);
    free_subject(task.subject);
    task = make_task(&fixture, 1, &fixture.gate);
    assert_int_equal(
        blocking_task_run_within(&task, duration_from_milliseconds(20), &watch, &failure),
        FAILURE_TIMEOUT);
    assert_string_equal(failure.message, "no answer within 0.02 s");
    open_gate(&fixture, 1);
    tear_down(&fixture, 2);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Real children of this process. */
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/local_timer.h"
#include "host/remembered_log.h"

struct fixture {
    struct timer_queue *queue;
    struct local_timer_server *server;
    struct remembered_log log;
};

static void set_up(struct fixture *fixture) {
    remembered_log_init(&fixture->log);
    assert_int_equal(timer_queue_new(&fixture->queue, NULL), FAILURE_NONE);
    fixture->server = local_timer_server_new(fixture->queue, &fixture->log.log);
}

static void tear_down(struct fixture *fixture) {
    local_timer_server_free(fixture->server);
    timer_queue_free(fixture->queue);
    text_clear(&fixture->log.text);
}

/* A child that holds the timer and stays, until it is ended. */
static pid_t start_holder(struct fixture *fixture, const char *scope, double seconds) {
    pid_t child = fork();
    if (child == 0) {
        struct failure failure;
        if (local_timer_acquire(fixture->queue, scope, duration_from_seconds(seconds), &failure) !=
            FAILURE_NONE) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    return child;
}

static void expect_killed(pid_t child) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void serve_until(struct fixture *fixture, size_t ended) {
    while (ended > 0) {
        ended -= local_timer_server_serve(fixture->server, DURATION_FOREVER);
    }
}

static void an_expired_timer_ends_its_child_when_it_is_due(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    pid_t hanging = start_holder(&fixture, "hangs", 0.02);
    pid_t patient = start_holder(&fixture, "waits", 3600);
    serve_until(&fixture, 1);
    expect_killed(hanging);
    assert_int_equal(kill(patient, 0), 0);
    while (local_timer_server_timer_count(fixture.server) == 0) {
        local_timer_server_serve(fixture.server, DURATION_FOREVER);
    }
    assert_true(remembered_log_has(&fixture.log, "its timer expired: 'hangs'"));
    kill(patient, SIGKILL);
    expect_killed(patient);
    local_timer_server_clear(fixture.server, patient);
    assert_int_equal(local_timer_server_timer_count(fixture.server), 0);
    tear_down(&fixture);
}

static void what_is_released_in_time_ends_nobody(void **state) {
    (void)state;
    struct fixture fixture;
    int status;
    set_up(&fixture);
    pid_t child = fork();
    if (child == 0) {
        struct duration none = {0};
        struct failure failure;
        bool is_asked = local_timer_acquire(fixture.queue, "s", none, &failure) == FAILURE_NONE &&
                        local_timer_release(fixture.queue, "s", &failure) == FAILURE_NONE;
        _exit(is_asked ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(timer_queue_size(fixture.queue), 2);
    assert_int_equal(local_timer_server_serve(fixture.server, DURATION_FOREVER), 0);
    assert_int_equal(local_timer_server_timer_count(fixture.server), 0);
    tear_down(&fixture);
}

static void a_process_that_is_no_descendant_is_refused(void **state) {
    (void)state;
    struct fixture fixture;
    struct watchdog_expiry expiry;
    char scope[] = "theirs";
    set_up(&fixture);
    const int64_t strangers[] = {1, getppid(), getpid(), 0, -1, INT64_MAX};
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        const struct watchdog_request request = {
            .pid = strangers[i], .scope = scope, .signal = SIGKILL};
        local_timer_server_register(fixture.server, &request);
    }
    assert_false(local_timer_server_expired(fixture.server, &expiry));
    assert_true(remembered_log_has(&fixture.log, "is no descendant"));
    tear_down(&fixture);
}

static void take_in(void *context, const struct watchdog_request *request) {
    local_timer_server_register(context, request);
}

static void a_child_that_is_gone_counts_as_ended(void **state) {
    (void)state;
    struct fixture fixture;
    struct watchdog_expiry expiry;
    set_up(&fixture);
    pid_t child = start_holder(&fixture, "s", 0);
    while (local_timer_server_timer_count(fixture.server) == 0) {
        timer_queue_get(fixture.queue, 1, DURATION_FOREVER, take_in, fixture.server);
    }
    kill(child, SIGKILL);
    expect_killed(child);
    assert_true(local_timer_server_expired(fixture.server, &expiry));
    assert_int_equal(expiry.pid, child);
    assert_true(local_timer_server_reap(fixture.server, &expiry));
    watchdog_expiry_clear(&expiry);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_expired_timer_ends_its_child_when_it_is_due),
    cmocka_unit_test(what_is_released_in_time_ends_nobody),
    cmocka_unit_test(a_process_that_is_no_descendant_is_refused),
    cmocka_unit_test(a_child_that_is_gone_counts_as_ended),
};

TEST_MAIN(tests)

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <pthread.h>
#include <signal.h>

#include "host/raw_client.h"
#include "host/remembered_log.h"
#include "host/store_thread.h"
#include "host/tcp_listener.h"

struct fixture {
    struct event_loop *loop;
    struct store_thread *thread;
    int port;
    int renewed;
    int stop_after; /* renewals after which the loop returns */
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    int fd;
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &fixture->port, NULL), FAILURE_NONE);
    assert_int_equal(
        store_thread_start(fixture->loop, fd, NULL, NULL, &fixture->thread, NULL), FAILURE_NONE);
    assert_int_equal(store_thread_port(fixture->thread), fixture->port);
}

static void tear_down(struct fixture *fixture) {
    store_thread_stop(fixture->thread);
    assert_true(event_loop_free(fixture->loop));
}

static void count_renewal(void *context) {
    struct fixture *fixture = context;
    fixture->renewed++;
    if (fixture->renewed == fixture->stop_after) {
        event_loop_stop(fixture->loop);
    }
}

static void stop_thread_and_loop(void *context) {
    struct fixture *fixture = context;
    store_thread_stop(fixture->thread);
    fixture->thread = NULL;
    event_loop_stop(fixture->loop);
}

static void it_serves_while_its_caller_does_nothing(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int client = client_open(fixture.port);
    client_set(client, "/k", "v");
    client_expect_value(NULL, client, "/k", "v");
    close(client);
    tear_down(&fixture);
}

static void renewal_is_done_before_it_is_reported(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int client = client_open(fixture.port);
    client_set(client, "/k", "v");
    client_expect_ping(NULL, client, 1);
    fixture.stop_after = 1;
    store_thread_renew(fixture.thread, NULL, count_renewal, &fixture);
    event_loop_run(fixture.loop);
    client_expect_close(NULL, client);
    int fresh = client_open(fixture.port);
    client_expect_value(NULL, fresh, "/k", "");
    close(client);
    close(fresh);
    tear_down(&fixture);
}

static void renewal_keeps_what_it_is_told_to_keep(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int client = client_open(fixture.port);
    client_set(client, "/a/k", "kept");
    client_set(client, "/b/k", "gone");
    client_expect_ping(NULL, client, 1);
    char prefix[] = "/a/";
    fixture.stop_after = 1;
    store_thread_renew(fixture.thread, prefix, count_renewal, &fixture);
    prefix[1] = 'x'; /* it was copied */
    event_loop_run(fixture.loop);
    client_expect_value(NULL, client, "/a/k", "kept");
    client_expect_value(NULL, client, "/b/k", "");
    close(client);
    tear_down(&fixture);
}

static void every_renewal_is_reported(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    fixture.stop_after = 50;
    for (int i = 0; i < fixture.stop_after; i++) {
        store_thread_renew(fixture.thread, NULL, count_renewal, &fixture);
    }
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.renewed, 50);
    tear_down(&fixture);
}

static void thread_may_be_stopped_from_a_report(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    store_thread_renew(fixture.thread, NULL, stop_thread_and_loop, &fixture);
    store_thread_renew(fixture.thread, NULL, count_renewal, &fixture);
    event_loop_run(fixture.loop);
    assert_null(fixture.thread);
    assert_int_equal(fixture.renewed, 0);
    tear_down(&fixture);
}

static void stopping_closes_the_port_and_the_clients(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int client = client_open(fixture.port);
    client_expect_ping(NULL, client, 1);
    store_thread_renew(fixture.thread, NULL, count_renewal, &fixture);
    tear_down(&fixture);
    client_expect_close(NULL, client);
    close(client);
    int fd;
    int port;
    assert_int_equal(tcp_listener_open("127.0.0.1", fixture.port, &fd, &port, NULL), FAILURE_NONE);
    close(fd);
}

static void signals_stay_with_the_caller(void **state) {
    (void)state;
    struct fixture fixture;
    sigset_t before;
    sigset_t after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    set_up(&fixture);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int number = 1; number < NSIG; number++) {
        assert_int_equal(sigismember(&before, number), sigismember(&after, number));
    }
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_serves_while_its_caller_does_nothing),
    cmocka_unit_test(renewal_is_done_before_it_is_reported),
    cmocka_unit_test(renewal_keeps_what_it_is_told_to_keep),
    cmocka_unit_test(every_renewal_is_reported),
    cmocka_unit_test(thread_may_be_stopped_from_a_report),
    cmocka_unit_test(stopping_closes_the_port_and_the_clients),
    cmocka_unit_test(signals_stay_with_the_caller),
};

TEST_MAIN(tests)

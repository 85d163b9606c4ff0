/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <pthread.h>
#include <signal.h>

#include "host/network/tcp_listener.h"
#include "host/raw_client.h"
#include "host/remembered_log.h"
#include "host/store/store_thread.h"

struct fixture {
    struct event_loop *loop;
    struct store_thread *thread;
    int port;
    int renewed;
    int stop_after;   /* the loop returns after this many renewals */
    struct text news; /* the calls of the observer */
    const char *last; /* the loop returns after this call */
    bool stops_thread;
};

static void remember(struct fixture *fixture, const char *news) {
    text_append(&fixture->news, news);
    if (fixture->last != NULL && strcmp(fixture->last, news) == 0) {
        if (fixture->stops_thread) {
            store_thread_stop(fixture->thread);
            fixture->thread = NULL;
        }
        event_loop_stop(fixture->loop);
    }
}

static void remember_beat(void *context, const char *name, const char *value) {
    char *news = text_format("%s beats %s;", name, value);
    remember(context, news);
    free(news);
}

static void remember_gone(void *context, const char *name, const char *value) {
    char *news = text_format("%s is gone %s;", name, value);
    remember(context, news);
    free(news);
}

static void remember_watched(void *context) {
    remember(context, "a stranger wrote;");
}

static void remember_connections(void *context, size_t count) {
    if (count == 0) {
        remember(context, "nobody is connected;");
    }
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    int fd;
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &fixture->port, NULL), FAILURE_NONE);
    struct store_server_settings settings = {
        .presence_prefix = "/p/",
        .watched_key = "/record",
        .observer = {.beat = remember_beat,
            .gone = remember_gone,
            .watched_written = remember_watched,
            .connections = remember_connections,
            .context = fixture},
    };
    assert_int_equal(
        store_thread_start(fixture->loop, fd, &settings, &fixture->thread, NULL), FAILURE_NONE);
    assert_int_equal(store_thread_port(fixture->thread), fixture->port);
}

static void tear_down(struct fixture *fixture) {
    store_thread_stop(fixture->thread);
    assert_true(event_loop_free(fixture->loop));
    text_clear(&fixture->news);
}

static void run_until(struct fixture *fixture, const char *news) {
    fixture->last = news;
    event_loop_run(fixture->loop);
    fixture->last = NULL;
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

FIXTURE_TEST(it_serves_while_its_caller_does_nothing) {
    int client = client_open(fixture->port);
    client_set(client, "/k", "v");
    client_expect_value(NULL, client, "/k", "v");
    close(client);
}

FIXTURE_TEST(renewal_is_done_before_it_is_reported) {
    int client = client_open(fixture->port);
    client_set(client, "/k", "v");
    client_expect_ping(NULL, client, 1);
    fixture->stop_after = 1;
    store_thread_renew(fixture->thread, NULL, count_renewal, fixture);
    event_loop_run(fixture->loop);
    client_expect_close(NULL, client);
    int fresh = client_open(fixture->port);
    client_expect_value(NULL, fresh, "/k", "");
    close(client);
    close(fresh);
}

FIXTURE_TEST(renewal_keeps_what_it_is_told_to_keep) {
    int client = client_open(fixture->port);
    client_set(client, "/a/k", "kept");
    client_set(client, "/b/k", "gone");
    client_expect_ping(NULL, client, 1);
    char prefix[] = "/a/";
    fixture->stop_after = 1;
    store_thread_renew(fixture->thread, prefix, count_renewal, fixture);
    prefix[1] = 'x'; /* it was copied */
    event_loop_run(fixture->loop);
    client_expect_value(NULL, client, "/a/k", "kept");
    client_expect_value(NULL, client, "/b/k", "");
    close(client);
}

FIXTURE_TEST(every_renewal_is_reported) {
    fixture->stop_after = 50;
    for (int i = 0; i < fixture->stop_after; i++) {
        store_thread_renew(fixture->thread, NULL, count_renewal, fixture);
    }
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->renewed, 50);
}

FIXTURE_TEST(thread_may_be_stopped_from_a_report) {
    store_thread_renew(fixture->thread, NULL, stop_thread_and_loop, fixture);
    store_thread_renew(fixture->thread, NULL, count_renewal, fixture);
    event_loop_run(fixture->loop);
    assert_null(fixture->thread);
    assert_int_equal(fixture->renewed, 0);
}

TEST(stopping_closes_the_port_and_the_clients) {
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

TEST(signals_stay_with_the_caller) {
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

FIXTURE_TEST(end_of_a_connection_is_told_on_the_callers_loop) {
    int node = client_open(fixture->port);
    client_set(node, "/p/a", "1");
    client_expect_ping(NULL, node, 1);
    client_set(node, "/p/a", "2");
    client_expect_ping(NULL, node, 2);
    close(node);
    run_until(fixture, "nobody is connected;");
    assert_string_equal(text_string(&fixture->news), "a beats 2;a is gone 2;nobody is connected;");
}

FIXTURE_TEST(only_strangers_writes_of_the_watched_key_are_told) {
    int known = client_open(fixture->port);
    client_set(known, "/p/n", "1");
    client_set(known, "/record", "v");
    client_expect_value(NULL, known, "/record", "v");
    int stranger = client_open(fixture->port);
    client_expect_value(NULL, stranger, "/record", "v");
    client_set(stranger, "/another", "v");
    client_set(stranger, "/record", "w");
    run_until(fixture, "a stranger wrote;");
    assert_string_equal(text_string(&fixture->news), "n beats 1;a stranger wrote;");
    close(known);
    close(stranger);
}

/* As each node that comes asks for the record to be begun. */
FIXTURE_TEST(a_stranger_who_would_only_have_written_is_not_told_of) {
    int known = client_open(fixture->port);
    client_set(known, "/p/n", "1");
    client_set(known, "/record", "v");
    client_expect_value(NULL, known, "/record", "v");
    int stranger = client_open(fixture->port);
    client_ask(stranger, &(struct store_request){.operation = STORE_COMPARE_SET,
                             .key = slice_from_string("/record"),
                             .value = slice_from_string("begun")});
    client_expect(NULL, stranger, "\1\0\0\0\0\0\0\0v", 9);
    client_set(known, "/p/n", "2");
    run_until(fixture, "n beats 2;");
    client_set(known, "/p/n", "3"); /* what the first look at the news left is told with this */
    run_until(fixture, "n beats 3;");
    assert_null(strstr(text_string(&fixture->news), "a stranger wrote;"));
    client_ask(stranger, &(struct store_request){.operation = STORE_COMPARE_SET,
                             .key = slice_from_string("/record"),
                             .expected = slice_from_string("v"),
                             .value = slice_from_string("w")});
    run_until(fixture, "a stranger wrote;");
    close(known);
    close(stranger);
}

FIXTURE_TEST(dropped_client_is_told_as_gone) {
    int node = client_open(fixture->port);
    client_set(node, "/p/a", "1");
    run_until(fixture, "a beats 1;");
    char name[] = "a";
    store_thread_drop(fixture->thread, "nobody");
    store_thread_drop(fixture->thread, name);
    name[0] = 'x'; /* it was copied */
    run_until(fixture, "a is gone 1;");
    client_expect_close(NULL, node);
    close(node);
}

FIXTURE_TEST(thread_may_be_stopped_when_a_node_is_gone) {
    int node = client_open(fixture->port);
    client_set(node, "/p/a", "1");
    close(node);
    fixture->stops_thread = true;
    run_until(fixture, "a is gone 1;");
    assert_null(fixture->thread);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <sys/resource.h>

#include "agent/rendezvous/agent_round.h"
#include "host/store/store_client.h"

struct fixture {
    struct event_loop *loop;
    struct agent_worker_store *store;
    struct tally operations;
    int port; /* told last */
    int failed_count;
    bool is_waiting;
    bool is_present;
    bool is_closed;
};

static void opened(void *context, int port) {
    struct fixture *fixture = context;
    fixture->port = port;
    if (fixture->is_waiting) {
        event_loop_stop(fixture->loop);
    }
}

static void failed(void *context, const char *reason) {
    struct fixture *fixture = context;
    assert_string_not_equal(reason, "");
    fixture->failed_count++;
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    static const struct launch_config config = {.maximum_nodes = 2};
    const struct agent_worker_store_settings settings = {
        .config = &config,
        .operations = &fixture->operations,
        .observer = {opened, failed, fixture},
    };
    fixture->store = agent_worker_store_new(fixture->loop, &settings);
}

static void tear_down(struct fixture *fixture) {
    agent_worker_store_free(fixture->store);
    assert_true(event_loop_free(fixture->loop));
    assert_int_equal(fixture->failed_count, 0);
}

static int open_store(struct fixture *fixture, bool is_fresh) {
    fixture->port = 0;
    agent_worker_store_open(fixture->store, is_fresh);
    fixture->is_waiting = fixture->port == 0;
    if (fixture->is_waiting) {
        event_loop_run(fixture->loop);
        fixture->is_waiting = false;
    }
    return fixture->port;
}

static void answered(void *context, const struct store_client_result *result) {
    struct fixture *fixture = context;
    assert_int_equal(result->code, FAILURE_NONE);
    fixture->is_present =
        result->reply->kind == STORE_REPLY_BYTE && result->reply->byte == STORE_READY;
    event_loop_stop(fixture->loop);
}

static void closed(void *context, const struct failure *failure) {
    (void)failure;
    struct fixture *fixture = context;
    fixture->is_closed = true;
    event_loop_stop(fixture->loop);
}

static struct store_client *connect_client(struct fixture *fixture, int port) {
    struct store_client_settings settings = {
        .host = "127.0.0.1",
        .port = port,
        .connect_timeout = duration_from_seconds(20),
        .lost = closed,
        .context = fixture,
    };
    return store_client_new(fixture->loop, &settings);
}

static void ask(
    struct fixture *fixture, struct store_client *client, enum store_operation operation) {
    struct slice key = slice_from_string("/a");
    struct store_client_call call = {
        .request = {.operation = operation,
            .key = key,
            .number = 1,
            .keys = operation == STORE_CHECK ? &key : NULL,
            .count = operation == STORE_CHECK ? 1 : 0},
        .is_raw = true,
        .timeout = duration_from_seconds(20),
        .done = answered,
        .context = fixture,
    };
    store_client_send(client, &call);
    event_loop_run(fixture->loop);
}

static void a_fresh_store_has_another_port_and_ends_the_old_ones_connections(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int first = open_store(&fixture, true);
    struct store_client *client = connect_client(&fixture, first);
    ask(&fixture, client, STORE_ADD);
    int second = open_store(&fixture, true);
    assert_int_not_equal(first, second);
    while (!fixture.is_closed) {
        event_loop_run(fixture.loop);
    }
    store_client_free(client);
    tear_down(&fixture);
}

static void a_store_that_stays_keeps_its_port_and_forgets_everything(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int first = open_store(&fixture, false);
    struct store_client *client = connect_client(&fixture, first);
    ask(&fixture, client, STORE_ADD);
    store_client_free(client);
    assert_int_equal(open_store(&fixture, false), first);
    client = connect_client(&fixture, first);
    ask(&fixture, client, STORE_CHECK);
    assert_false(fixture.is_present);
    store_client_free(client);
    tear_down(&fixture);
}

/* No descriptor is left for it. */
static void a_store_that_cannot_be_opened_is_told_and_may_be_tried_again(void **state) {
    (void)state;
    struct fixture fixture;
    struct rlimit before;
    set_up(&fixture);
    int first = open_store(&fixture, true);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    agent_worker_store_open(fixture.store, true);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(fixture.failed_count, 1);
    assert_int_equal(fixture.port, first);
    fixture.failed_count = 0;
    assert_true(open_store(&fixture, false) > 0); /* the one before is gone: it is a fresh one */
    tear_down(&fixture);
}

static void a_store_that_is_being_wiped_is_freed_without_a_word(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    open_store(&fixture, true);
    fixture.port = 0;
    agent_worker_store_open(fixture.store, false);
    agent_worker_store_free(fixture.store);
    fixture.store = NULL;
    event_loop_run_ready(fixture.loop);
    assert_int_equal(fixture.port, 0);
    tear_down(&fixture);
}

static void the_stores_of_all_rounds_are_counted_together(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    uint64_t before = 0;
    for (int i = 0; i < 3; i++) {
        struct store_client *client = connect_client(&fixture, open_store(&fixture, i < 2));
        ask(&fixture, client, STORE_ADD);
        uint64_t now = tally_read(&fixture.operations);
        assert_true(now > before);
        before = now;
        store_client_free(client);
    }
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_fresh_store_has_another_port_and_ends_the_old_ones_connections),
    cmocka_unit_test(a_store_that_stays_keeps_its_port_and_forgets_everything),
    cmocka_unit_test(a_store_that_cannot_be_opened_is_told_and_may_be_tried_again),
    cmocka_unit_test(a_store_that_is_being_wiped_is_freed_without_a_word),
    cmocka_unit_test(the_stores_of_all_rounds_are_counted_together),
};

UNIT_TESTS(tests)

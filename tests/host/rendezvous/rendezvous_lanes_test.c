/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/network/tcp_listener.h"
#include "host/rendezvous/rendezvous_backend.h"
#include "host/store/store_thread.h"

struct fixture {
    struct event_loop *loop;
    struct store_thread *store;
    struct rendezvous_lanes lanes;
    int connected_count;
    int ended_count;
    enum failure_code answers[4]; /* in the order in which they came */
    int answer_count;
};

static void connected(void *context) {
    struct fixture *fixture = context;
    fixture->connected_count++;
    event_loop_stop(fixture->loop);
}

static void ended(void *context, const struct failure *failure) {
    struct fixture *fixture = context;
    assert_non_null(failure);
    fixture->ended_count++;
    event_loop_stop(fixture->loop);
}

static void answered(void *context, const struct store_client_result *result) {
    struct fixture *fixture = context;
    fixture->answers[fixture->answer_count++] = result->code;
    event_loop_stop(fixture->loop);
}

static void set_up_lanes(struct fixture *fixture, bool delegates) {
    *fixture = (struct fixture){0};
    struct store_server_settings settings = {0};
    int fd;
    int port;
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(
        store_thread_start(fixture->loop, fd, &settings, &fixture->store, NULL), FAILURE_NONE);
    fixture->lanes = (struct rendezvous_lanes){
        .loop = fixture->loop,
        .port = port,
        .silence_timeout = duration_from_seconds(3),
        .answer_timeout = duration_from_seconds(20),
        .delegates = delegates,
        .connected = connected,
        .ended = ended,
        .context = fixture,
    };
    static char host[] = "127.0.0.1";
    fixture->lanes.host = host;
    rendezvous_lanes_open(
        &fixture->lanes, &(struct rendezvous_lanes_trying){.patience = duration_from_seconds(20)});
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->connected_count, 1);
}

static void set_up(struct fixture *fixture) {
    set_up_lanes(fixture, false);
    assert_int_equal(rendezvous_lanes_count(&fixture->lanes), 3);
}

static void tear_down(struct fixture *fixture) {
    rendezvous_lanes_drop(&fixture->lanes);
    store_thread_stop(fixture->store);
    assert_true(event_loop_free(fixture->loop));
}

static void send_wait(struct fixture *fixture, const char *key) {
    struct slice keys[] = {slice_from_string(key)};
    struct store_client_call call = {
        .request = {.operation = STORE_WAIT, .keys = keys, .count = 1},
        .timeout = DURATION_FOREVER,
        .done = answered,
        .context = fixture,
    };
    rendezvous_lanes_send(&fixture->lanes, RENDEZVOUS_LANE_WAITER, &call);
}

static void send_set(struct fixture *fixture, const char *key) {
    struct store_client_call call = {
        .request = {.operation = STORE_SET, .key = slice_from_string(key)},
        .timeout = duration_from_seconds(20),
        .done = answered,
        .context = fixture,
    };
    rendezvous_lanes_send(&fixture->lanes, RENDEZVOUS_LANE_ASKER, &call);
}

static void one_lane_waits_while_another_asks(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    send_wait(&fixture, "a");
    send_set(&fixture, "a");
    while (fixture.answer_count < 2) {
        event_loop_run(fixture.loop);
    }
    assert_int_equal(fixture.answers[0], FAILURE_NONE);
    assert_int_equal(fixture.answers[1], FAILURE_NONE);
    tear_down(&fixture);
}

static void dropped_lanes_answer_what_was_asked_and_take_nothing_more(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    send_wait(&fixture, "a");
    rendezvous_lanes_drop(&fixture.lanes);
    assert_int_equal(fixture.answer_count, 1);
    assert_int_equal(fixture.answers[0], FAILURE_CANCELLED);
    assert_true(rendezvous_lanes_are_dropped(&fixture.lanes));
    send_set(&fixture, "a");
    assert_int_equal(fixture.answer_count, 1);
    tear_down(&fixture);
}

static void the_end_of_the_store_is_told(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    store_thread_stop(fixture.store);
    fixture.store = NULL;
    event_loop_run(fixture.loop);
    assert_true(fixture.ended_count > 0);
    tear_down(&fixture);
}

static void send_pop(struct fixture *fixture) {
    struct store_client_call call = {
        .request = {.operation = STORE_QUEUE_POP, .key = slice_from_string("queue")},
        .timeout = duration_from_seconds(20),
        .done = answered,
        .context = fixture,
    };
    rendezvous_lanes_send(&fixture->lanes, RENDEZVOUS_LANE_WATCHER, &call);
}

static void await_answers(struct fixture *fixture, int count) {
    while (fixture->answer_count < count) {
        event_loop_run(fixture->loop);
    }
    assert_int_equal(fixture->answers[count - 1], FAILURE_NONE);
}

/* What is opened later has not to find it out again. */
static void all_lanes_are_where_the_first_one_was_reached(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_lanes(&fixture, true);
    assert_string_equal(text_string(&fixture.lanes.reached), "127.0.0.1");
    static char nowhere[] = "name.invalid";
    fixture.lanes.host = nowhere;
    send_set(&fixture, "a");
    send_wait(&fixture, "a");
    await_answers(&fixture, 2);
    rendezvous_lanes_drop(&fixture.lanes);
    assert_int_equal(fixture.lanes.reached.length, 0);
    tear_down(&fixture);
}

static void a_node_that_delegates_opens_each_other_lane_when_it_is_used(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_lanes(&fixture, true);
    assert_int_equal(rendezvous_lanes_count(&fixture.lanes), 1);
    assert_null(fixture.lanes.accesses[RENDEZVOUS_LANE_WATCHER]);
    assert_null(fixture.lanes.accesses[RENDEZVOUS_LANE_WAITER]);
    send_set(&fixture, "a");
    send_wait(&fixture, "a");
    await_answers(&fixture, 2);
    assert_int_equal(rendezvous_lanes_count(&fixture.lanes), 2);
    send_pop(&fixture);
    await_answers(&fixture, 3);
    assert_int_equal(rendezvous_lanes_count(&fixture.lanes), 3);
    rendezvous_lanes_drop(&fixture.lanes);
    assert_int_equal(rendezvous_lanes_count(&fixture.lanes), 0);
    assert_int_equal(fixture.ended_count, 0);
    tear_down(&fixture);
}

static void a_late_waiter_is_not_renewed_before_it_is_used(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_lanes(&fixture, true);
    send_wait(&fixture, "b");
    rendezvous_lanes_renew_waiter(&fixture.lanes);
    assert_int_equal(fixture.answers[0], FAILURE_CANCELLED);
    assert_null(fixture.lanes.accesses[RENDEZVOUS_LANE_WAITER]); /* until the next wait */
    assert_int_equal(rendezvous_lanes_count(&fixture.lanes), 1);
    send_set(&fixture, "a");
    send_wait(&fixture, "a");
    await_answers(&fixture, 3);
    assert_int_equal(rendezvous_lanes_count(&fixture.lanes), 2);
    assert_int_equal(fixture.ended_count, 0);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_lane_waits_while_another_asks),
    cmocka_unit_test(dropped_lanes_answer_what_was_asked_and_take_nothing_more),
    cmocka_unit_test(the_end_of_the_store_is_told),
    cmocka_unit_test(all_lanes_are_where_the_first_one_was_reached),
    cmocka_unit_test(a_node_that_delegates_opens_each_other_lane_when_it_is_used),
    cmocka_unit_test(a_late_waiter_is_not_renewed_before_it_is_used),
};

UNIT_TESTS(tests)

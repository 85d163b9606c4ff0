/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/network/network_address.h"
#include "host/network/tcp_listener.h"
#include "host/raw_client.h"
#include "host/store/store_link.h"
#include "host/store/store_server.h"

struct fixture {
    struct event_loop *loop;
    struct store_server *server;
    struct store_link *link;
    int port;
    int ready;
    int replies;
    struct store_reply reply;
    int endings;
    struct failure failure;
};

static void ready(void *context) {
    ((struct fixture *)context)->ready++;
}

static void replied(void *context, const struct store_reply *reply) {
    struct fixture *fixture = context;
    fixture->replies++;
    fixture->reply = *reply;
}

static void rested(void *context, const struct store_reply *reply) {
    (void)context;
    (void)reply;
}

static void drained(void *context) {
    (void)context;
}

static void ended(void *context, const struct failure *failure) {
    struct fixture *fixture = context;
    fixture->endings++;
    fixture->failure = *failure;
}

static const struct store_link_owner owner = {ready, replied, rested, drained, ended};

static void open_link(struct fixture *fixture) {
    union tcp_address address;
    size_t count;
    assert_int_equal(
        name_lookup_resolve("127.0.0.1", fixture->port, &address, 1, &count, NULL), FAILURE_NONE);
    struct store_link_settings settings = {.address = &address,
        .limits = &STORE_REPLY_LIMITS_DEFAULT,
        .silence_timeout = duration_from_seconds(3),
        .owner = &owner,
        .context = fixture};
    assert_int_equal(store_link_open(fixture->loop, &settings, &fixture->link, NULL), FAILURE_NONE);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    int fd;
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &fixture->port, NULL), FAILURE_NONE);
    assert_int_equal(store_server_new(fixture->loop, fd, &(struct store_server_settings){0},
                         &fixture->server, NULL),
        FAILURE_NONE);
    open_link(fixture);
}

static void tear_down(struct fixture *fixture) {
    store_link_free(fixture->link);
    store_server_free(fixture->server);
    assert_true(event_loop_free(fixture->loop));
}

static void turn_until(struct fixture *fixture, const int *counter) {
    while (*counter == 0) {
        event_loop_run_ready(fixture->loop);
    }
}

FIXTURE_TEST(handshake_makes_it_ready_and_requests_are_answered) {
    turn_until(fixture, &fixture->ready);
    struct store_request count = {.operation = STORE_COUNT_KEYS};
    store_link_expect(fixture->link, &count);
    assert_true(store_link_send(fixture->link, (struct slice){(const uint8_t *)"\x07", 1}, false));
    turn_until(fixture, &fixture->replies);
    assert_int_equal(fixture->reply.kind, STORE_REPLY_INTEGER);
    assert_int_equal(fixture->reply.integer, 0);
}

FIXTURE_TEST(what_follows_signs_of_life_gets_its_own_reply) {
    turn_until(fixture, &fixture->ready);
    for (int i = 0; i < 20; i++) { /* more than may be unanswered */
        store_link_sign(fixture->link, false);
    }
    struct store_request count = {.operation = STORE_COUNT_KEYS};
    store_link_expect(fixture->link, &count);
    assert_true(store_link_send(fixture->link, (struct slice){(const uint8_t *)"\x07", 1}, false));
    turn_until(fixture, &fixture->replies);
    assert_int_equal(fixture->reply.kind, STORE_REPLY_INTEGER);
    assert_int_equal(fixture->reply.integer, 0);
    assert_int_equal(fixture->replies, 1); /* answers to signs are nobody's replies */
}

FIXTURE_TEST(the_end_is_told_while_an_answer_is_left) {
    turn_until(fixture, &fixture->ready);
    store_link_sign(fixture->link, false);
    store_server_renew(fixture->server, NULL);
    turn_until(fixture, &fixture->endings);
    assert_int_equal(fixture->failure.code, FAILURE_DISCONNECTED);
}

FIXTURE_TEST(end_is_reported_once_and_the_link_stays_until_freed) {
    turn_until(fixture, &fixture->ready);
    store_server_renew(fixture->server, NULL);
    turn_until(fixture, &fixture->endings);
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->endings, 1);
    assert_int_equal(fixture->failure.code, FAILURE_DISCONNECTED);
}

FIXTURE_TEST(closed_port_ends_it) {
    store_link_free(fixture->link);
    store_server_free(fixture->server);
    fixture->server = NULL;
    open_link(fixture);
    turn_until(fixture, &fixture->endings);
    assert_int_equal(fixture->ready, 0);
    assert_int_equal(fixture->failure.system_error, ECONNREFUSED);
}

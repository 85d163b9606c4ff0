/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/raw_client.h"
#include "host/remembered_log.h"
#include "host/store_peers.h"
#include "host/tcp_listener.h"

struct fixture {
    struct event_loop *loop;
    struct store_peers *peers;
    struct remembered_log log;
};

static void set_up(struct fixture *fixture, const struct store_limits *limits) {
    *fixture = (struct fixture){0};
    remembered_log_init(&fixture->log);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    fixture->peers = store_peers_new(fixture->loop, limits, &fixture->log.log);
}

static void tear_down(struct fixture *fixture) {
    store_peers_free(fixture->peers);
    assert_true(event_loop_free(fixture->loop));
    text_clear(&fixture->log.text);
}

/* A client that has shaken hands; returns its end. */
static int add_client(struct fixture *fixture) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    union tcp_address address = {.ipv4 = {.sin_family = AF_INET}};
    store_peers_add(fixture->peers, ends[0], &address);
    client_ask(ends[1], &(struct store_request){.operation = STORE_VALIDATE});
    return ends[1];
}

static void clients_are_counted_until_they_leave(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, &STORE_LIMITS_DEFAULT);
    int first = add_client(&fixture);
    int second = add_client(&fixture);
    assert_int_equal(store_peers_count(fixture.peers), 2);
    close(first);
    while (store_peers_count(fixture.peers) > 1) {
        event_loop_run_ready(fixture.loop);
    }
    store_peers_close_all(fixture.peers);
    assert_int_equal(store_peers_count(fixture.peers), 0);
    client_expect_close(fixture.loop, second);
    close(second);
    tear_down(&fixture);
}

static void unfinished_requests_share_the_memory_limit(void **state) {
    (void)state;
    struct fixture fixture;
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = 20000;
    set_up(&fixture, &limits);
    uint8_t half[9 + 8000] = {STORE_SET, 0x00, 0x20}; /* a key of 8192 bytes */
    int clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = add_client(&fixture);
        client_send(clients[i], half, sizeof half);
        event_loop_run_ready(fixture.loop);
    }
    assert_int_equal(store_peers_count(fixture.peers), 2);
    assert_true(remembered_log_has(&fixture.log, "memory"));
    for (int i = 0; i < 3; i++) {
        close(clients[i]);
    }
    tear_down(&fixture);
}

static void lines_about_hostile_clients_are_held_back(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, &STORE_LIMITS_DEFAULT);
    for (int i = 0; i < 200; i++) {
        int client = add_client(&fixture);
        client_send(client, "\xff", 1);
        event_loop_run_ready(fixture.loop);
        close(client);
    }
    assert_in_range(fixture.log.count, 1, 60);
    tear_down(&fixture);
}

static void catching_up_carries_out_what_has_arrived(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, &STORE_LIMITS_DEFAULT);
    int first = add_client(&fixture);
    int second = add_client(&fixture);
    client_set(first, "/k", "v");
    store_peers_catch_up(fixture.peers);
    client_expect_value(fixture.loop, second, "/k", "v");
    close(first);
    close(second);
    tear_down(&fixture);
}

static void renewal_closes_those_who_wait_for_what_is_forgotten(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, &STORE_LIMITS_DEFAULT);
    int for_kept = add_client(&fixture);
    int for_gone = add_client(&fixture);
    client_wait(for_kept, "/kept/k");
    client_wait(for_gone, "/gone/k");
    store_peers_catch_up(fixture.peers);
    store_peers_renew_table(fixture.peers, "/kept/");
    client_expect_close(fixture.loop, for_gone);
    client_set(for_kept, "/kept/k", "v");
    client_expect_byte(fixture.loop, for_kept, STORE_STOP_WAITING);
    close(for_kept);
    close(for_gone);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(clients_are_counted_until_they_leave),
    cmocka_unit_test(unfinished_requests_share_the_memory_limit),
    cmocka_unit_test(lines_about_hostile_clients_are_held_back),
    cmocka_unit_test(catching_up_carries_out_what_has_arrived),
    cmocka_unit_test(renewal_closes_those_who_wait_for_what_is_forgotten),
};

TEST_MAIN(tests)

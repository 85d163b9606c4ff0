/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_presence.h"
#include "host/raw_client.h"
#include "host/remembered_log.h"
#include "host/store/store_peers.h"
#include "host/network/tcp_listener.h"

struct fixture {
    struct event_loop *loop;
    struct store_peers *peers;
    struct remembered_log log;
    struct text news; /* the calls of the observer */
};

static void remember_beat(void *context, const char *name, const char *value) {
    struct fixture *fixture = context;
    text_append_format(&fixture->news, "%s beats %s\n", name, value);
}

static void remember_gone(void *context, const char *name, const char *value) {
    struct fixture *fixture = context;
    text_append_format(&fixture->news, "%s is gone %s\n", name, value);
}

static void remember_connections(void *context, size_t count) {
    struct fixture *fixture = context;
    text_append_format(&fixture->news, "%zu connections\n", count);
}

static void set_up(struct fixture *fixture, const struct store_limits *limits) {
    *fixture = (struct fixture){0};
    remembered_log_init(&fixture->log);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    fixture->peers = store_peers_new(
        fixture->loop, &(struct store_server_settings){.limits = limits, .log = &fixture->log.log});
}

/* Presence keys are below "/p/". */
static void set_up_presence(struct fixture *fixture, bool counts_connections) {
    *fixture = (struct fixture){0};
    remembered_log_init(&fixture->log);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    char prefix[] = "/p/";
    fixture->peers = store_peers_new(
        fixture->loop, &(struct store_server_settings){
                           .log = &fixture->log.log,
                           .presence_prefix = prefix,
                           .observer = {.beat = remember_beat,
                               .gone = remember_gone,
                               .connections = counts_connections ? remember_connections : NULL,
                               .context = fixture},
                       });
    prefix[1] = 'x'; /* it was copied */
}

static void tear_down(struct fixture *fixture) {
    store_peers_free(fixture->peers);
    assert_true(event_loop_free(fixture->loop));
    text_clear(&fixture->log.text);
    text_clear(&fixture->news);
}

/* Runs the loop until that many calls have come. */
static void await_news(struct fixture *fixture, size_t lines) {
    size_t seen = 0;
    for (int turn = 0; turn < TURNS && seen < lines; turn++) {
        event_loop_run_ready(fixture->loop);
        seen = 0;
        for (const char *at = text_string(&fixture->news); *at != '\0'; at++) {
            seen += *at == '\n';
        }
    }
}

static void expect_news(struct fixture *fixture, const char *expected) {
    assert_string_equal(text_string(&fixture->news), expected);
    text_clear(&fixture->news);
}

/* Adds a client that has done the handshake; returns its end. */
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

static void presence_ends_with_its_connection(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_presence(&fixture, false);
    int node = add_client(&fixture);
    int other = add_client(&fixture);
    client_set(node, "/p/a", "1");
    client_set(node, "/p/b", "2");
    client_set(node, "/p/a", "3");
    await_news(&fixture, 3);
    expect_news(&fixture, "a beats 1\nb beats 2\na beats 3\n");
    client_expect_value(fixture.loop, other, "/p/a", "3");
    close(node);
    await_news(&fixture, 2);
    expect_news(&fixture, "a is gone 3\nb is gone 2\n");
    client_expect_value(fixture.loop, other, "/p/a", "");
    client_expect_value(fixture.loop, other, "/p/b", "");
    close(other);
    tear_down(&fixture);
}

static void presence_ends_with_a_breach_of_the_protocol(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_presence(&fixture, false);
    int node = add_client(&fixture);
    client_set(node, "/p/a", "1");
    client_send(node, "\xff", 1);
    await_news(&fixture, 2);
    expect_news(&fixture, "a beats 1\na is gone 1\n");
    client_expect_close(fixture.loop, node);
    close(node);
    tear_down(&fixture);
}

static void goodbye_is_no_loss(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_presence(&fixture, false);
    int node = add_client(&fixture);
    client_set(node, "/p/a", "1");
    client_ask(
        node, &(struct store_request){.operation = STORE_DELETE, .key = slice_from_string("/p/a")});
    close(node);
    while (store_peers_count(fixture.peers) > 0) {
        event_loop_run_ready(fixture.loop);
    }
    expect_news(&fixture, "a beats 1\n");
    tear_down(&fixture);
}

static void client_can_ask_whether_presence_is_served(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_presence(&fixture, false);
    int client = add_client(&fixture);
    client_expect_value(fixture.loop, client, "/p/served", "1");
    store_peers_renew_table(fixture.peers, "/kept/");
    client_expect_value(fixture.loop, client, "/p/served", "1");
    close(client);
    tear_down(&fixture);
}

static void renewal_does_not_forget_who_is_there(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_presence(&fixture, false);
    int node = add_client(&fixture);
    client_set(node, "/p/a", "1");
    await_news(&fixture, 1);
    store_peers_renew_table(fixture.peers, "/kept/");
    close(node);
    await_news(&fixture, 2);
    expect_news(&fixture, "a beats 1\na is gone 1\n");
    tear_down(&fixture);
}

static void stalled_client_is_dropped_by_its_name(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_presence(&fixture, false);
    int node = add_client(&fixture);
    int other = add_client(&fixture);
    client_set(node, "/p/a", "1");
    client_set(other, "/p/b", "2");
    await_news(&fixture, 2);
    store_peers_drop(fixture.peers, "nobody");
    store_peers_drop(fixture.peers, "a");
    store_peers_drop(fixture.peers, "a");
    expect_news(&fixture, "a beats 1\nb beats 2\na is gone 1\n");
    assert_true(remembered_log_has(&fixture.log, "stalled"));
    client_expect_close(fixture.loop, node);
    client_expect_value(fixture.loop, other, "/p/b", "2");
    close(node);
    close(other);
    tear_down(&fixture);
}

static void presence_beyond_its_limits_costs_the_connection(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_presence(&fixture, false);
    int node = add_client(&fixture);
    char value[STORE_PRESENCE_VALUE_BYTES + 2] = {0};
    memset(value, 'x', sizeof value - 1);
    client_set(node, "/p/a", "1");
    client_set(node, "/p/a", value);
    client_expect_close(fixture.loop, node);
    expect_news(&fixture, "a beats 1\na is gone 1\n");
    assert_true(remembered_log_has(&fixture.log, "more than 512 bytes"));
    close(node);
    tear_down(&fixture);
}

/* A released waiter has a broken connection, so it ends while the effects of the SET are carried
 * out. A later effect still borrows its presence key, so the key must be deleted only after
 * that. */
static void presence_may_end_while_a_request_is_carried_out(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_presence(&fixture, false);
    int node = add_client(&fixture);
    int other = add_client(&fixture);
    client_set(node, "/p/a", "1");
    client_wait(node, "/k");
    await_news(&fixture, 1);
    shutdown(node, SHUT_RD); /* the reply cannot be delivered */
    client_set(other, "/k", "v");
    client_expect_value(fixture.loop, other, "/p/a", "");
    expect_news(&fixture, "a beats 1\na is gone 1\n");
    close(node);
    close(other);
    tear_down(&fixture);
}

static void connections_are_told_as_they_come_and_go(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_presence(&fixture, true);
    int first = add_client(&fixture);
    int second = add_client(&fixture);
    client_set(second, "/p/a", "1");
    await_news(&fixture, 3);
    close(second);
    await_news(&fixture, 5);
    store_peers_close_all(fixture.peers);
    expect_news(&fixture,
        "1 connections\n2 connections\na beats 1\na is gone 1\n1 connections\n0 connections\n");
    close(first);
    tear_down(&fixture);
}

static void ending_the_store_tells_nothing(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_presence(&fixture, false);
    int node = add_client(&fixture);
    client_set(node, "/p/a", "1");
    await_news(&fixture, 1);
    store_peers_free(fixture.peers);
    assert_true(event_loop_free(fixture.loop));
    expect_news(&fixture, "a beats 1\n");
    close(node);
    text_clear(&fixture.log.text);
}

static void add_one(int client, const char *key) {
    client_ask(client, &(struct store_request){
                           .operation = STORE_ADD, .key = slice_from_string(key), .number = 1});
}

static void turn(struct fixture *fixture) {
    for (int i = 0; i < 100; i++) {
        event_loop_run_ready(fixture->loop);
    }
}

/* Asks for more than a mebibyte, and then counts. */
static void ask_for_much_and_count(int client, int times, const char *key) {
    for (int i = 0; i < times; i++) {
        client_ask(client,
            &(struct store_request){.operation = STORE_GET, .key = slice_from_string("/big")});
    }
    add_one(client, key);
}

static void set_big(struct fixture *fixture, int client, const uint8_t *value, size_t length) {
    struct bytes request = {0};
    assert_int_equal(store_request_encode(&(struct store_request){.operation = STORE_SET,
                                              .key = slice_from_string("/big"),
                                              .value = {value, length}},
                         &request),
        FAILURE_NONE);
    for (size_t sent = 0; sent < request.length; event_loop_run_ready(fixture->loop)) {
        ssize_t now = send(client, request.data + sent, request.length - sent, MSG_NOSIGNAL);
        sent += now > 0 ? (size_t)now : 0;
    }
    bytes_clear(&request);
    client_expect_ping(fixture->loop, client, 1);
}

static void a_client_that_does_not_read_is_served_no_further_request_until_it_reads(void **state) {
    (void)state;
    enum { TIMES = 60, LENGTH = 200000 };
    struct fixture fixture;
    static uint8_t value[8 + LENGTH] = {LENGTH & 0xff, LENGTH >> 8 & 0xff, LENGTH >> 16};
    set_up(&fixture, &STORE_LIMITS_DEFAULT);
    int slow = add_client(&fixture);
    int other = add_client(&fixture);
    set_big(&fixture, other, value + 8, LENGTH);
    ask_for_much_and_count(slow, TIMES, "/n");
    turn(&fixture);
    client_expect_value(fixture.loop, other, "/n", "");
    for (int i = 0; i < TIMES; i++) {
        client_expect(fixture.loop, slow, value, sizeof value);
    }
    client_expect(fixture.loop, slow, "\1\0\0\0\0\0\0\0", 8);
    client_expect_value(fixture.loop, other, "/n", "1");
    client_expect_ping(fixture.loop, slow, 7);
    close(slow);
    close(other);
    tear_down(&fixture);
}

static void many_requests_of_one_client_leave_the_others_their_turn(void **state) {
    (void)state;
    enum { REQUESTS = 3000 };
    struct fixture fixture;
    struct bytes requests = {0};
    struct store_request add = {
        .operation = STORE_ADD, .key = slice_from_string("/n"), .number = 1};
    set_up(&fixture, &STORE_LIMITS_DEFAULT);
    int busy = add_client(&fixture);
    int other = add_client(&fixture);
    client_expect_ping(fixture.loop, busy, 1);
    client_expect_ping(fixture.loop, other, 2);
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(store_request_encode(&add, &requests), FAILURE_NONE);
    }
    client_send(busy, requests.data, requests.length);
    event_loop_run_ready(fixture.loop);
    add.number = 0;
    client_ask(other, &add);
    uint64_t seen = 0;
    client_await(fixture.loop, other);
    assert_int_equal(recv(other, &seen, sizeof seen, 0), sizeof seen);
    assert_in_range(seen, 0, REQUESTS / 2);
    turn(&fixture);
    client_ask(other, &add);
    client_expect(fixture.loop, other, &(uint64_t){REQUESTS}, sizeof seen);
    bytes_clear(&requests);
    close(busy);
    close(other);
    tear_down(&fixture);
}

static void renewal_does_not_wait_for_clients_that_do_not_read(void **state) {
    (void)state;
    enum { TIMES = 60, LENGTH = 200000 };
    struct fixture fixture;
    static uint8_t value[LENGTH];
    set_up(&fixture, &STORE_LIMITS_DEFAULT);
    int slow = add_client(&fixture);
    int other = add_client(&fixture);
    set_big(&fixture, other, value, LENGTH);
    ask_for_much_and_count(slow, TIMES, "/n");
    turn(&fixture);
    store_peers_catch_up(fixture.peers);
    store_peers_renew_table(fixture.peers, "/kept/");
    client_expect_close(fixture.loop, slow);
    assert_true(remembered_log_has(&fixture.log, "has not read its replies"));
    client_expect_value(fixture.loop, other, "/n", "");
    close(slow);
    close(other);
    tear_down(&fixture);
}

/* The buffers of those who do not read are given up for a client that writes. */
static void room_is_made_for_a_value_by_closing_who_holds_most(void **state) {
    (void)state;
    enum { TIMES = 40, LENGTH = 1 << 20 };
    struct fixture fixture;
    static uint8_t value[4 * LENGTH];
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = (size_t)20 << 20;
    set_up(&fixture, &limits);
    int slow[3];
    int other = add_client(&fixture);
    set_big(&fixture, other, value, sizeof value);
    for (int i = 0; i < 3; i++) {
        slow[i] = add_client(&fixture);
        ask_for_much_and_count(slow[i], TIMES, "/n");
        turn(&fixture);
    }
    client_expect_ping(fixture.loop, other, 2);
    set_big(&fixture, other, value, sizeof value);
    client_ask(other,
        &(struct store_request){
            .operation = STORE_APPEND, .key = slice_from_string("/big"), .value = {value, 100000}});
    client_expect_ping(fixture.loop, other, 3);
    assert_in_range(store_peers_count(fixture.peers), 1, 3);
    assert_true(remembered_log_has(&fixture.log, "holds most of it"));
    for (int i = 0; i < 3; i++) {
        close(slow[i]);
    }
    close(other);
    tear_down(&fixture);
}

static void a_full_store_names_the_keys_and_the_option_and_serves_its_owner(void **state) {
    (void)state;
    struct fixture fixture = {0};
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = (size_t)1 << 20;
    remembered_log_init(&fixture.log);
    assert_int_equal(event_loop_new(&fixture.loop, NULL), FAILURE_NONE);
    fixture.peers = store_peers_new(
        fixture.loop, &(struct store_server_settings){
                          .limits = &limits, .log = &fixture.log.log, .own_prefix = "/own/"});
    int worker = add_client(&fixture);
    int agent = add_client(&fixture);
    while (store_peers_count(fixture.peers) == 2) {
        char *key = text_format("/leak/%zu", ++limits.connections);
        struct bytes set = {0};
        assert_int_equal(store_request_encode(&(struct store_request){.operation = STORE_SET,
                                                  .key = slice_from_string(key),
                                                  .value = slice_from_string("value")},
                             &set),
            FAILURE_NONE);
        (void)send(worker, set.data, set.length, MSG_NOSIGNAL);
        event_loop_run_ready(fixture.loop);
        bytes_clear(&set);
        free(key);
    }
    assert_true(remembered_log_has(&fixture.log, "memory limit of 1.0 MiB"));
    assert_true(remembered_log_has(&fixture.log, "'leak/'; --store-memory gives it more"));
    client_set(agent, "/own/k", "v");
    client_expect_value(fixture.loop, agent, "/own/k", "v");
    close(worker);
    close(agent);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(clients_are_counted_until_they_leave),
    cmocka_unit_test(unfinished_requests_share_the_memory_limit),
    cmocka_unit_test(lines_about_hostile_clients_are_held_back),
    cmocka_unit_test(catching_up_carries_out_what_has_arrived),
    cmocka_unit_test(renewal_closes_those_who_wait_for_what_is_forgotten),
    cmocka_unit_test(presence_ends_with_its_connection),
    cmocka_unit_test(presence_ends_with_a_breach_of_the_protocol),
    cmocka_unit_test(goodbye_is_no_loss),
    cmocka_unit_test(client_can_ask_whether_presence_is_served),
    cmocka_unit_test(renewal_does_not_forget_who_is_there),
    cmocka_unit_test(stalled_client_is_dropped_by_its_name),
    cmocka_unit_test(presence_beyond_its_limits_costs_the_connection),
    cmocka_unit_test(presence_may_end_while_a_request_is_carried_out),
    cmocka_unit_test(connections_are_told_as_they_come_and_go),
    cmocka_unit_test(ending_the_store_tells_nothing),
    cmocka_unit_test(a_client_that_does_not_read_is_served_no_further_request_until_it_reads),
    cmocka_unit_test(many_requests_of_one_client_leave_the_others_their_turn),
    cmocka_unit_test(renewal_does_not_wait_for_clients_that_do_not_read),
    cmocka_unit_test(room_is_made_for_a_value_by_closing_who_holds_most),
    cmocka_unit_test(a_full_store_names_the_keys_and_the_option_and_serves_its_owner),
};

TEST_MAIN(tests)

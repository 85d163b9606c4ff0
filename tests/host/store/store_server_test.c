/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <netinet/tcp.h>

#include "host/network/network_address.h"
#include "host/network/tcp_listener.h"
#include "host/raw_client.h"
#include "host/remembered_log.h"
#include "host/store/store_server.h"

struct fixture {
    struct event_loop *loop;
    struct store_server *server;
    struct remembered_log log;
    int port;
    size_t count; /* of connections, as the observer was told last */
};

static void remember_count(void *context, size_t count) {
    ((struct fixture *)context)->count = count;
}

static void set_up_with(struct fixture *fixture, struct store_server_settings settings) {
    *fixture = (struct fixture){0};
    remembered_log_init(&fixture->log);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    int fd;
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &fixture->port, NULL), FAILURE_NONE);
    settings.log = &fixture->log.log;
    if (settings.observer.context == NULL) {
        settings.observer =
            (struct store_server_observer){.connections = remember_count, .context = fixture};
    }
    assert_int_equal(
        store_server_new(fixture->loop, fd, &settings, &fixture->server, NULL), FAILURE_NONE);
    assert_int_equal(store_server_port(fixture->server), fixture->port);
}

static void set_up(struct fixture *fixture, const struct store_limits *limits) {
    set_up_with(fixture, (struct store_server_settings){.limits = limits});
}

static void tear_down(struct fixture *fixture) {
    store_server_free(fixture->server);
    assert_true(event_loop_free(fixture->loop));
    text_clear(&fixture->log.text);
}

TEST(a_server_may_have_several_listening_sockets) {
    struct fixture fixture = {0};
    remembered_log_init(&fixture.log);
    assert_int_equal(event_loop_new(&fixture.loop, NULL), FAILURE_NONE);
    struct store_server_settings settings = {.log = &fixture.log.log, .is_local = true};
    int fd;
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &fixture.port, NULL), FAILURE_NONE);
    assert_int_equal(
        tcp_listener_open("::1", fixture.port, &settings.further_fds[0], &fixture.port, NULL),
        FAILURE_NONE);
    settings.further_count = 1;
    assert_int_equal(
        store_server_new(fixture.loop, fd, &settings, &fixture.server, NULL), FAILURE_NONE);
    int client = client_open(fixture.port);
    client_expect_ping(fixture.loop, client, 1);
    close(client);
    int ipv6_client = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 address = {.sin6_family = AF_INET6,
        .sin6_addr = IN6ADDR_LOOPBACK_INIT,
        .sin6_port = htons((uint16_t)fixture.port)};
    assert_int_equal(connect(ipv6_client, (struct sockaddr *)&address, sizeof address), 0);
    client_ask(ipv6_client, &(struct store_request){.operation = STORE_VALIDATE});
    client_expect_ping(fixture.loop, ipv6_client, 2);
    close(ipv6_client);
    tear_down(&fixture);
}

FIXTURE_TEST_AFTER(requests_that_arrive_together_are_answered_in_order, set_up(&fixture, NULL)) {
    int client = client_open(fixture->port);
    struct bytes requests = {0};
    for (int64_t i = 0; i < 100; i++) {
        struct store_request add = {
            .operation = STORE_ADD, .key = slice_from_string("/n"), .number = i};
        assert_int_equal(store_request_encode(&add, &requests), FAILURE_NONE);
    }
    client_send(client, requests.data, requests.length);
    int64_t sum = 0;
    for (int64_t i = 0; i < 100; i++) {
        sum += i;
        client_expect(fixture->loop, client, &sum, sizeof sum);
    }
    bytes_clear(&requests);
    close(client);
}

FIXTURE_TEST_AFTER(requests_in_single_bytes_work, set_up(&fixture, NULL)) {
    int client = client_connect(fixture->port);
    struct bytes requests = {0};
    struct store_request parts[] = {{.operation = STORE_VALIDATE},
        {.operation = STORE_SET, .key = slice_from_string("/k"), .value = slice_from_string("v")},
        {.operation = STORE_PING, .nonce = 0x01020304}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(store_request_encode(&parts[i], &requests), FAILURE_NONE);
    }
    for (size_t i = 0; i < requests.length; i++) {
        client_send(client, requests.data + i, 1);
        event_loop_run_ready(fixture->loop);
    }
    client_expect(fixture->loop, client, "\x04\x03\x02\x01", 4);
    client_expect_value(fixture->loop, client, "/k", "v");
    bytes_clear(&requests);
    close(client);
}

FIXTURE_TEST_AFTER(waiter_that_left_does_not_disturb_the_setter, set_up(&fixture, NULL)) {
    int waiter = client_open(fixture->port);
    client_wait(waiter, "/k");
    client_expect_ping(fixture->loop, waiter, 1);
    struct linger reset = {.l_onoff = 1};
    setsockopt(waiter, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    int writer = client_open(fixture->port);
    client_expect_ping(fixture->loop, writer, 2);
    close(waiter);
    client_set(writer, "/k", "v");
    client_expect_value(fixture->loop, writer, "/k", "v");
    assert_int_equal(fixture->count, 1);
    close(writer);
}

FIXTURE_TEST_AFTER(half_a_request_disturbs_nobody, set_up(&fixture, NULL)) {
    int half = client_open(fixture->port);
    client_send(half, "\x01\x02\0\0", 4);
    int whole = client_open(fixture->port);
    client_expect_ping(fixture->loop, whole, 9);
    client_send(half, "\0\0\0\0\0/k\x01\0\0\0\0\0\0\0v", 16);
    client_expect_value(fixture->loop, half, "/k", "v");
    close(half);
    close(whole);
}

FIXTURE_TEST_AFTER(breach_closes_one_connection_with_a_line_that_names_it, set_up(&fixture, NULL)) {
    int good = client_open(fixture->port);
    int bad = client_open(fixture->port);
    client_expect_ping(fixture->loop, bad, 1);
    client_send(bad, "\x13", 1);
    client_expect_close(fixture->loop, bad);
    client_expect_ping(fixture->loop, good, 2);
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    assert_int_equal(getsockname(bad, (struct sockaddr *)&address, &length), 0);
    char name[TCP_ADDRESS_TEXT_SIZE];
    tcp_address_describe((const union tcp_address *)(const void *)&address, name);
    assert_true(remembered_log_has(&fixture->log, name));
    assert_int_equal(fixture->log.count, 1);
    close(good);
    close(bad);
}

FIXTURE_TEST_AFTER(answers_before_a_breach_are_delivered, set_up(&fixture, NULL)) {
    int client = client_open(fixture->port);
    client_send(client, "\x0d\x01\x02\x03\x04\xff", 6);
    client_expect(fixture->loop, client, "\x01\x02\x03\x04", 4);
    client_expect_close(fixture->loop, client);
    close(client);
}

FIXTURE_TEST_AFTER(old_clients_are_served_but_for_the_agents_own_keys,
    set_up_with(&fixture, (struct store_server_settings){.own_prefix = "/own/"})) {
    int old = client_connect(fixture->port);
    client_send(old, "\x03\x05\0\0\0\0\0\0\0init/\x01\0\0\0\0\0\0\0", 22);
    client_expect(fixture->loop, old, "\x01\0\0\0\0\0\0\0", 8);
    client_send(old, "\x02\x06\0\0\0\0\0\0\0/own/k", 15);
    client_expect_close(fixture->loop, old);
    assert_true(remembered_log_has(&fixture->log, "a node of a torchrun older than 2.1"));
    close(old);
}

FIXTURE_TEST_AFTER(
    announced_sizes_beyond_the_limits_close_before_they_cost, set_up(&fixture, NULL)) {
    int client = client_open(fixture->port);
    client_send(client, "\x01\0\0\0\0\0\0\0\x40", 9); /* SET, a key of 2^62 bytes */
    client_expect_close(fixture->loop, client);
    assert_true(remembered_log_has(&fixture->log, "8192"));
    close(client);
}

TEST(connections_beyond_the_limit_are_turned_away) {
    struct fixture fixture;
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.connections = 2;
    set_up(&fixture, &limits);
    int first = client_open(fixture.port);
    int second = client_open(fixture.port);
    client_expect_ping(fixture.loop, first, 1);
    client_expect_ping(fixture.loop, second, 2);
    int third = client_connect(fixture.port);
    client_expect_close(fixture.loop, third);
    assert_true(remembered_log_has(&fixture.log, "limit of 2 connections"));
    close(first);
    while (fixture.count > 1) {
        event_loop_run_ready(fixture.loop);
    }
    int fourth = client_open(fixture.port);
    client_expect_ping(fixture.loop, fourth, 4);
    close(second);
    close(third);
    close(fourth);
    tear_down(&fixture);
}

FIXTURE_TEST_AFTER(renewal_without_prefix_forgets_everything_and_everyone, set_up(&fixture, NULL)) {
    int old = client_open(fixture->port);
    client_set(old, "/k", "old");
    client_expect_ping(fixture->loop, old, 1);
    int unaccepted = client_open(fixture->port);
    client_set(unaccepted, "/late", "old");
    store_server_renew(fixture->server, NULL);
    client_expect_close(fixture->loop, old);
    client_expect_close(fixture->loop, unaccepted);
    int fresh = client_open(fixture->port);
    client_expect_value(fixture->loop, fresh, "/k", "");
    client_expect_value(fixture->loop, fresh, "/late", "");
    close(old);
    close(unaccepted);
    close(fresh);
}

FIXTURE_TEST_AFTER(renewal_with_prefix_keeps_its_keys_and_the_connections, set_up(&fixture, NULL)) {
    int client = client_open(fixture->port);
    client_set(client, "/agents/a", "kept");
    client_set(client, "/worker", "gone");
    client_expect_ping(fixture->loop, client, 1);
    store_server_renew(fixture->server, "/agents/");
    client_expect_value(fixture->loop, client, "/agents/a", "kept");
    client_expect_value(fixture->loop, client, "/worker", "");
    close(client);
}

FIXTURE_TEST_AFTER(
    last_words_that_have_arrived_are_forgotten_by_a_renewal, set_up(&fixture, NULL)) {
    int client = client_open(fixture->port);
    client_expect_ping(fixture->loop, client, 1);
    client_set(client, "/worker", "last words");
    int unaccepted = client_open(fixture->port);
    client_set(unaccepted, "/other", "last words");
    store_server_renew(fixture->server, "/agents/");
    client_expect_value(fixture->loop, client, "/worker", "");
    client_expect_value(fixture->loop, client, "/other", "");
    close(client);
    close(unaccepted);
}

/* The server's descriptor for the connection to this client. */
static int server_end_of(int client) {
    struct sockaddr_in client_address;
    socklen_t length = sizeof client_address;
    assert_int_equal(getsockname(client, (struct sockaddr *)&client_address, &length), 0);
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in peer = {0};
        length = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0 &&
            peer.sin_port == client_address.sin_port) {
            return fd;
        }
    }
    return -1;
}

static int option_of(int fd, int level, int option) {
    int value = 0;
    socklen_t length = sizeof value;
    assert_int_equal(getsockopt(fd, level, option, &value, &length), 0);
    return value;
}

static void check_accepted_socket(struct store_server_settings settings) {
    struct fixture fixture;
    set_up_with(&fixture, settings);
    int client = client_open(fixture.port);
    client_expect_ping(fixture.loop, client, 1);
    int fd = server_end_of(client);
    assert_int_not_equal(fd, -1);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_int_equal(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 60);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 180000);
    close(client);
    tear_down(&fixture);
}

TEST(accepted_sockets_do_not_delay_and_notice_lost_hosts) {
    check_accepted_socket((struct store_server_settings){0});
}

TEST(where_presence_ends_with_its_connection_only_the_kernel_notices_lost_hosts) {
    check_accepted_socket((struct store_server_settings){
        .presence_prefix = "/p/", .ends_presence_with_connection_only = true});
}

/* Store seeds. */

TEST(keys_and_values_are_copied) {
    struct store_seeds seeds = {0};
    char key[] = "/record";
    uint8_t value[] = {0, 1, 2};
    store_seeds_add(&seeds, key, (struct slice){value, sizeof value});
    store_seeds_add(&seeds, "/empty", (struct slice){0});
    key[1] = 'x';
    value[0] = 9;
    assert_int_equal(seeds.count, 2);
    assert_string_equal(seeds.items[0].key, "/record");
    assert_int_equal(seeds.items[0].value.length, 3);
    assert_int_equal(seeds.items[0].value.data[0], 0);
    assert_int_equal(seeds.items[1].value.length, 0);
    store_seeds_clear(&seeds);
    assert_int_equal(seeds.count, 0);
    store_seeds_clear(&seeds); /* an empty list is cleared, too */
}

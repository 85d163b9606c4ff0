/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_presence.h"
#include "host/network/tcp_listener.h"
#include "host/store/store_peers.h"
#include "host/store_peers_fixture.h"

FIXTURE_TEST_AFTER(
    presence_beyond_its_limits_costs_the_connection, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    char value[STORE_PRESENCE_VALUE_BYTES + 2] = {0};
    memset(value, 'x', sizeof value - 1);
    client_set(node, "/p/a", "1");
    client_set(node, "/p/a", value);
    client_expect_close(fixture->loop, node);
    expect_news(fixture, "a beats 1\na is gone 1\n");
    assert_true(remembered_log_has(&fixture->log, "more than 512 bytes"));
    close(node);
}

static void write_anyhow(int client, enum store_operation operation, const char *key) {
    client_ask(client, &(struct store_request){.operation = operation,
                           .key = slice_from_string(key),
                           .value = slice_from_string("stolen"),
                           .expected = slice_from_string("1"),
                           .number = 1});
}

FIXTURE_TEST_AFTER(
    a_presence_key_is_its_connections_until_that_ends, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    int other = add_client(fixture);
    client_set(node, "/p/a", "1");
    await_news(fixture, 1);
    client_set(other, "/p/a", "stolen");
    write_anyhow(other, STORE_APPEND, "/p/a");
    client_expect_value(fixture->loop, other, "/p/a", "1");
    write_anyhow(other, STORE_DELETE, "/p/a");
    client_expect(fixture->loop, other, "\0\0\0\0\0\0\0\0", 8);
    write_anyhow(other, STORE_COMPARE_SET, "/p/a");
    client_expect(fixture->loop, other, "\1\0\0\0\0\0\0\0001", 9);
    assert_true(remembered_log_has(&fixture->log, "presence key of another connection"));
    write_anyhow(other, STORE_ADD, "/p/a");
    client_expect_close(fixture->loop, other);
    close(other);
    expect_news(fixture, "a beats 1\n");
    other = add_client(fixture);
    close(node);
    await_news(fixture, 1);
    client_set(other, "/p/a", "2");
    await_news(fixture, 2);
    expect_news(fixture, "a is gone 1\na beats 2\n");
    close(other);
}

FIXTURE_TEST_AFTER(nobody_unsays_that_presence_is_served, set_up_presence(&fixture, false)) {
    int client = add_client(fixture);
    write_anyhow(client, STORE_DELETE, "/p/served");
    client_expect(fixture->loop, client, "\0\0\0\0\0\0\0\0", 8);
    client_set(client, "/p/served", "no");
    client_expect_value(fixture->loop, client, "/p/served", "1");
    close(client);
}

FIXTURE_TEST_AFTER(a_client_that_does_not_read_is_served_no_further_request_until_it_reads,
    set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    enum { TIMES = 60, LENGTH = 200000 };
    static uint8_t value[8 + LENGTH] = {LENGTH & 0xff, LENGTH >> 8 & 0xff, LENGTH >> 16};
    int slow = add_client(fixture);
    int other = add_client(fixture);
    set_big(fixture, other, value + 8, LENGTH);
    ask_for_much_and_count(slow, TIMES, "/n");
    turn(fixture);
    client_expect_value(fixture->loop, other, "/n", "");
    for (int i = 0; i < TIMES; i++) {
        client_expect(fixture->loop, slow, value, sizeof value);
    }
    client_expect(fixture->loop, slow, "\1\0\0\0\0\0\0\0", 8);
    client_expect_value(fixture->loop, other, "/n", "1");
    client_expect_ping(fixture->loop, slow, 7);
    close(slow);
    close(other);
}

FIXTURE_TEST_AFTER(many_requests_of_one_client_leave_the_others_their_turn,
    set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    enum { REQUESTS = 3000 };
    struct bytes requests = {0};
    struct store_request add = {
        .operation = STORE_ADD, .key = slice_from_string("/n"), .number = 1};
    int busy = add_client(fixture);
    int other = add_client(fixture);
    client_expect_ping(fixture->loop, busy, 1);
    client_expect_ping(fixture->loop, other, 2);
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(store_request_encode(&add, &requests), FAILURE_NONE);
    }
    client_send(busy, requests.data, requests.length);
    event_loop_run_ready(fixture->loop);
    add.number = 0;
    client_ask(other, &add);
    uint64_t seen = 0;
    client_await(fixture->loop, other);
    assert_int_equal(recv(other, &seen, sizeof seen, 0), sizeof seen);
    assert_in_range(seen, 0, REQUESTS / 2);
    turn(fixture);
    client_ask(other, &add);
    client_expect(fixture->loop, other, &(uint64_t){REQUESTS}, sizeof seen);
    bytes_clear(&requests);
    close(busy);
    close(other);
}

TEST(a_full_store_names_the_keys_and_the_option_and_serves_its_owner) {
    struct fixture fixture = {0};
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = (size_t)1 << 20;
    remembered_log_init(&fixture.log);
    assert_int_equal(event_loop_new(&fixture.loop, NULL), FAILURE_NONE);
    fixture.peers = store_peers_new(
        fixture.loop, &(struct store_server_settings){.limits = &limits,
                          .log = &fixture.log.log,
                          .own_prefix = "/own/",
                          .observer = {.connections = remember_connections, .context = &fixture}});
    int worker = add_client(&fixture);
    int agent = add_client(&fixture);
    while (fixture.count == 2) {
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

/* The answer to a QUEUE_POP that gives way comes before the next one of its connection. Where there
 * is none for a while, it comes all the same. */
TEST(what_gives_way_is_answered_before_the_next_request_or_a_moment_later) {
    struct fixture fixture = {0};
    remembered_log_init(&fixture.log);
    assert_int_equal(event_loop_new(&fixture.loop, NULL), FAILURE_NONE);
    fixture.peers = store_peers_new(
        fixture.loop, &(struct store_server_settings){.log = &fixture.log.log,
                          .own_prefix = "/own/",
                          .observer = {.connections = remember_connections, .context = &fixture}});
    int client = add_client(&fixture);
    const struct store_request pop = {
        .operation = STORE_QUEUE_POP, .key = slice_from_string("/own/q")};
    client_ask(client, &pop);
    client_set(client, "/k", "1");
    client_ask(client, &(struct store_request){
                           .operation = STORE_ADD, .key = slice_from_string("/k"), .number = 1});
    client_expect(fixture.loop, client,
        "\0\0\0\0\0\0\0\0"
        "\2\0\0\0\0\0\0\0",
        16);
    client_ask(client, &pop);
    client_set(client, "/k", "1");
    client_expect(fixture.loop, client, "\0\0\0\0\0\0\0\0", 8);
    close(client);
    tear_down(&fixture);
}

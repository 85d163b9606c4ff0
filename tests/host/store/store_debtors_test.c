/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <malloc.h>

#include "host/store/store_peers.h"
#include "host/store_peers_fixture.h"

TEST(unfinished_requests_share_the_memory_limit) {
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
    assert_int_equal(fixture.count, 2);
    assert_true(remembered_log_has(&fixture.log, "memory"));
    for (int i = 0; i < 3; i++) {
        close(clients[i]);
    }
    tear_down(&fixture);
}

/* The buffers of those who do not read are given up for a client that writes. */
TEST(room_is_made_for_a_value_by_closing_who_holds_most) {
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
    assert_in_range(fixture.count, 1, 3);
    assert_true(remembered_log_has(&fixture.log, "holds most of it"));
    for (int i = 0; i < 3; i++) {
        close(slow[i]);
    }
    close(other);
    tear_down(&fixture);
}

/* Sends the first `sent` bytes of a SET to a value of `length` bytes, or as many as it can before
 * it is closed. */
static void begin_big(struct fixture *fixture, int client, size_t length, size_t sent) {
    static uint8_t value[8 << 20];
    struct bytes request = {0};
    assert_int_equal(store_request_encode(&(struct store_request){.operation = STORE_SET,
                                              .key = slice_from_string("/big"),
                                              .value = {value, length}},
                         &request),
        FAILURE_NONE);
    size_t wanted = sent < request.length ? sent : request.length;
    ssize_t now = 0;
    for (size_t done = 0; done < wanted && (now >= 0 || errno == EAGAIN);) {
        now = send(client, request.data + done, wanted - done, MSG_NOSIGNAL);
        done += now > 0 ? (size_t)now : 0;
        event_loop_run_ready(fixture->loop);
    }
    bytes_clear(&request);
    turn(fixture);
}

TEST(room_is_made_for_a_request_that_is_being_read) {
    enum { MEBIBYTE = 1 << 20 };
    struct fixture fixture;
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = (size_t)14 * MEBIBYTE;
    set_up(&fixture, &limits);
    int slow = add_client(&fixture);
    int other = add_client(&fixture);
    begin_big(&fixture, slow, 8 * MEBIBYTE, 15 * MEBIBYTE / 2);
    begin_big(&fixture, other, 7 * MEBIBYTE, SIZE_MAX);
    client_expect_ping(fixture.loop, other, 1);
    client_expect_close(fixture.loop, slow);
    assert_true(remembered_log_has(&fixture.log, "this client holds most of it"));
    close(slow);
    close(other);
    tear_down(&fixture);
}

TEST(a_request_that_is_being_read_makes_no_room_among_smaller_ones) {
    enum { MEBIBYTE = 1 << 20 };
    struct fixture fixture;
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = (size_t)9 * MEBIBYTE;
    set_up(&fixture, &limits);
    int small[2];
    int greedy = add_client(&fixture);
    for (int i = 0; i < 2; i++) {
        small[i] = add_client(&fixture);
        begin_big(&fixture, small[i], 2 * MEBIBYTE, MEBIBYTE);
    }
    begin_big(&fixture, greedy, 8 * MEBIBYTE, SIZE_MAX);
    client_expect_close(fixture.loop, greedy);
    assert_int_equal(fixture.count, 2);
    assert_true(remembered_log_has(&fixture.log, "unfinished input and unread output would pass"));
    for (int i = 0; i < 2; i++) {
        close(small[i]);
    }
    close(greedy);
    tear_down(&fixture);
}

/* Also after many clients that were hostile. */
TEST(what_fills_the_table_explains_why_buffers_have_no_room) {
    enum { MEBIBYTE = 1 << 20 };
    struct fixture fixture;
    static uint8_t value[15 * MEBIBYTE / 2];
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = (size_t)14 * MEBIBYTE;
    set_up(&fixture, &limits);
    for (int i = 0; i < 200; i++) {
        int client = add_client(&fixture);
        client_send(client, "\xff", 1);
        event_loop_run_ready(fixture.loop);
        close(client);
    }
    int owner = add_client(&fixture);
    int greedy = add_client(&fixture);
    set_big(&fixture, owner, value, sizeof value);
    begin_big(&fixture, greedy, 8 * MEBIBYTE, SIZE_MAX);
    client_expect_close(fixture.loop, greedy);
    assert_true(remembered_log_has(&fixture.log, ": 1 keys take 7.5 MiB of"));
    assert_true(remembered_log_has(&fixture.log, "--store-memory gives it more"));
    close(owner);
    close(greedy);
    tear_down(&fixture);
}

static int times_given_back;

/* In the place of the C library's. */
int malloc_trim(size_t kept) {
    (void)kept;
    times_given_back++;
    return 1;
}

TEST(memory_is_given_back_once_when_much_was_freed) {
    struct fixture fixture;
    static uint8_t value[20 << 20];
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.value_bytes = sizeof value;
    set_up(&fixture, &limits);
    int client = add_client(&fixture);
    set_big(&fixture, client, value, 10 << 20); /* of which little is freed */
    client_ask(client,
        &(struct store_request){.operation = STORE_DELETE, .key = slice_from_string("/big")});
    turn(&fixture);
    set_big(&fixture, client, value, sizeof value);
    times_given_back = 0;
    client_ask(client,
        &(struct store_request){.operation = STORE_DELETE, .key = slice_from_string("/big")});
    while (times_given_back == 0) {
        event_loop_run_ready(fixture.loop);
    }
    turn(&fixture);
    assert_int_equal(times_given_back, 1);
    close(client);
    tear_down(&fixture);
}

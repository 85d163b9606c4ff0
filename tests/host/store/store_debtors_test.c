/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/store/store_debtors.h"
#include "host/store_peers_fixture.h"

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(unfinished_requests_share_the_memory_limit),
    cmocka_unit_test(room_is_made_for_a_value_by_closing_who_holds_most),
};

TEST_MAIN(tests)

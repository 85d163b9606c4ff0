/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/store_client_fixture.h"

FIXTURE_TEST(requests_sent_before_the_connection_stands_are_answered_in_order) {
    struct answer set;
    struct answer get;
    send_request(fixture,
        &(struct store_request){
            .operation = STORE_SET, .key = key, .value = slice_from_string("value")},
        LONG, &set);
    send_request(fixture, &(struct store_request){.operation = STORE_GET, .key = key}, LONG, &get);
    turn_until(fixture, &get.calls);
    assert_int_equal(set.calls, 1);
    assert_int_equal(set.code, FAILURE_NONE);
    assert_int_equal(set.reply.kind, STORE_REPLY_NONE);
    assert_string_equal(get.text, "value");
}

FIXTURE_TEST(keys_carry_a_slash_unless_raw) {
    struct answer answer;
    ask(fixture,
        &(struct store_request){
            .operation = STORE_SET, .key = key, .value = slice_from_string("v")},
        LONG, &answer);
    answer = (struct answer){0};
    store_client_send(
        fixture->client, &(struct store_client_call){
                             .request = {.operation = STORE_GET, .key = slice_from_string("/k")},
                             .is_raw = true,
                             .timeout = LONG,
                             .done = remember,
                             .context = &answer});
    turn_until(fixture, &answer.calls);
    assert_string_equal(answer.text, "v");
}

FIXTURE_TEST(wait_that_times_out_leaves_the_connection_usable) {
    struct answer answer;
    ask(fixture, &(struct store_request){.operation = STORE_WAIT, .keys = &key, .count = 1}, SOON,
        &answer);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    assert_false(answer.is_over);
    ask(fixture, &(struct store_request){.operation = STORE_ADD, .key = key, .number = 5}, LONG,
        &answer);
    assert_int_equal(answer.reply.integer, 5);
    assert_int_equal(fixture->lost, 0);
}

FIXTURE_TEST(barrier_that_times_out_is_cancelled_too) {
    struct answer answer;
    ask(fixture, &(struct store_request){.operation = STORE_BARRIER, .key = key, .number = 2}, SOON,
        &answer);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    ask(fixture, &(struct store_request){.operation = STORE_BARRIER, .key = key, .number = 2}, LONG,
        &answer);
    assert_int_equal(answer.code, FAILURE_NONE);
}

FIXTURE_TEST(get_that_waits_first_gets_what_is_set_later) {
    struct answer answer = {0};
    store_client_send(fixture->client,
        &(struct store_client_call){.request = {.operation = STORE_GET, .key = key},
            .waits_first = true,
            .timeout = LONG,
            .done = remember,
            .context = &answer});
    int other = client_open(fixture->port);
    client_expect_ping(fixture->loop, other, 1);
    client_set(other, "/k", "late");
    turn_until(fixture, &answer.calls);
    assert_string_equal(answer.text, "late");
    close(other);
}

FIXTURE_TEST(request_behind_a_long_wait_may_time_out_alone) {
    struct answer wait;
    struct answer behind;
    send_request(fixture,
        &(struct store_request){.operation = STORE_WAIT, .keys = &key, .count = 1}, LONG, &wait);
    send_request(fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}, SOON, &behind);
    turn_until(fixture, &behind.calls);
    assert_int_equal(behind.code, FAILURE_TIMEOUT);
    assert_int_equal(wait.calls, 0);
    int other = client_open(fixture->port);
    client_set(other, "/k", "v");
    turn_until(fixture, &wait.calls);
    assert_int_equal(wait.code, FAILURE_NONE);
    close(other);
}

FIXTURE_TEST_AFTER(silent_server_costs_a_request_its_deadline_and_no_more, open_port(&fixture)) {
    start_client(fixture, LONG);
    int fd = shake_hands(fixture, 0);
    turn_until(fixture, &fixture->connected);
    struct answer answer;
    ask(fixture, &(struct store_request){.operation = STORE_ADD, .key = key, .number = 1}, SOON,
        &answer);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    assert_true(answer.is_over);
    turn_until(fixture, &fixture->lost);
    assert_int_equal(fixture->failure.code, FAILURE_TIMEOUT);
    client_expect_close(fixture->loop, fd);
    ask(fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}, LONG, &answer);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    assert_true(answer.is_over);
    close(fd);
}

FIXTURE_TEST_AFTER(release_that_crosses_the_cancel_counts, open_port(&fixture)) {
    start_client(fixture, LONG);
    int fd = shake_hands(fixture, 0);
    struct answer answer;
    send_request(fixture,
        &(struct store_request){.operation = STORE_WAIT, .keys = &key, .count = 1}, SOON, &answer);
    uint8_t wait[19];
    client_expect(fixture->loop, fd, "\x06\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0/k", sizeof wait);
    client_expect_byte(fixture->loop, fd, STORE_CANCEL_WAIT);
    client_send(fd, "\x00\x01", 2);
    turn_until(fixture, &answer.calls);
    assert_int_equal(answer.code, FAILURE_NONE);
    assert_int_equal(fixture->lost, 0);
    close(fd);
}

FIXTURE_TEST(large_values_pass_in_both_directions) {
    struct answer answer;
    size_t length = (size_t)5 << 20;
    uint8_t *value = malloc(length);
    memset(value, 'x', length);
    ask(fixture,
        &(struct store_request){.operation = STORE_SET, .key = key, .value = {value, length}}, LONG,
        &answer);
    assert_int_equal(answer.code, FAILURE_NONE);
    ask(fixture,
        &(struct store_request){.operation = STORE_COMPARE_SET,
            .key = key,
            .expected = {value, length},
            .value = slice_from_string("small")},
        LONG, &answer);
    assert_string_equal(answer.text, "small");
    free(value);
}

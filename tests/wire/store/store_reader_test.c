/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/store/store_request_codec.h"
#include "wire/store_proof_key.h"

struct fixture {
    struct plain_key plain;
    struct store_key key;
    struct store_gate gate;
    struct store_reader reader;
    struct store_reading reading;
};

static enum failure_code read_bytes(struct fixture *fixture, const void *data, size_t length) {
    return store_reader_next(
        &fixture->reader, &fixture->gate, (struct slice){data, length}, &fixture->reading);
}

static enum failure_code read_request(
    struct fixture *fixture, const struct store_request *request) {
    CLEARED_BY(bytes_clear) struct bytes bytes = {0};
    assert_int_equal(store_request_encode(request, &bytes), FAILURE_NONE);
    enum failure_code code = read_bytes(fixture, bytes.data, bytes.length);
    return code;
}

/* Up to the handshake; the token 0 is none. */
static void set_up(struct fixture *fixture, uint8_t token, const char *guarded_prefix) {
    *fixture = (struct fixture){.plain = {.token = token}};
    fixture->key = plain_store_key(&fixture->plain);
    fixture->gate = (struct store_gate){.key = token == 0 ? NULL : &fixture->key,
        .guarded_prefix = slice_from_string(guarded_prefix == NULL ? "" : guarded_prefix)};
    store_reader_init(&fixture->reader, &STORE_LIMITS_DEFAULT);
    assert_int_equal(
        read_request(fixture, &(struct store_request){.operation = STORE_VALIDATE}), FAILURE_NONE);
    assert_true(fixture->reading.is_request);
}

static void tear_down(struct fixture *fixture) {
    store_reader_clear(&fixture->reader);
}

static uint32_t ping(struct fixture *fixture) {
    struct store_request request = {.operation = STORE_PING, .nonce = STORE_PROOF_OFFERED};
    assert_int_equal(read_request(fixture, &request), FAILURE_NONE);
    assert_true(fixture->reading.is_request);
    return fixture->reading.decoded.request.nonce;
}

TEST(without_a_key_everything_may_be_asked) {
    struct fixture fixture;
    set_up(&fixture, 0, NULL);
    assert_int_equal(ping(&fixture), STORE_PROOF_OFFERED);
    assert_int_equal(read_request(&fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}),
        FAILURE_NONE);
    assert_true(fixture.reading.is_request);
    assert_int_equal(read_bytes(&fixture, "\xf0", 1), FAILURE_PROTOCOL);
    tear_down(&fixture);
}

/* "asks" is GET in PyTorch 2.0. */
static enum failure_code old_client_asks(
    uint8_t token, const char *guarded_prefix, const char *asks, size_t length) {
    struct fixture fixture;
    set_up(&fixture, token, guarded_prefix);
    store_reader_clear(&fixture.reader);
    store_reader_init(&fixture.reader, &STORE_LIMITS_DEFAULT);
    enum failure_code code = FAILURE_NONE;
    for (int i = 0; i < 2 && code == FAILURE_NONE; i++) { /* its first request, and a later one */
        code = read_bytes(&fixture, asks, length);
        assert_true(code != FAILURE_NONE || fixture.reading.is_request);
    }
    tear_down(&fixture);
    return code;
}

TEST(old_clients_may_ask_for_what_is_not_guarded) {
    static const char asks[] = "\x02\x02\0\0\0\0\0\0\0/k";
    static const size_t length = sizeof asks - 1;
    assert_int_equal(old_client_asks(0, NULL, asks, length), FAILURE_NONE);
    assert_int_equal(old_client_asks(7, "/other", asks, length), FAILURE_NONE);
    assert_int_equal(old_client_asks(7, "/k", asks, length), FAILURE_PROTOCOL);
    assert_int_equal(old_client_asks(7, NULL, asks, length), FAILURE_PROTOCOL);
    assert_int_equal(old_client_asks(7, NULL, asks, 1), FAILURE_PROTOCOL); /* at its first byte */
}

TEST(a_proof_opens_the_store) {
    struct fixture fixture;
    set_up(&fixture, 7, NULL);
    assert_int_equal(ping(&fixture), STORE_PROOF_WANTED);
    struct store_proof client = {0};
    struct store_proof_step step = store_proof_begin(&client, &fixture.key);
    assert_int_equal(read_bytes(&fixture, step.reply, step.reply_length - 1), FAILURE_INCOMPLETE);
    assert_int_equal(fixture.reading.decoded.needed, step.reply_length);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_bytes(&fixture, step.reply, step.reply_length), FAILURE_NONE);
        assert_false(fixture.reading.is_request);
        assert_int_equal(fixture.reading.decoded.consumed, step.reply_length);
        step = store_proof_continue(&client, &fixture.key,
            (struct slice){fixture.reading.reply, fixture.reading.reply_length});
    }
    assert_int_equal(step.outcome, STORE_PROOF_DONE);
    assert_int_equal(read_request(&fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}),
        FAILURE_NONE);
    assert_true(fixture.reading.is_request);
    tear_down(&fixture);
}

TEST(without_a_proof_a_request_is_refused_at_its_first_byte) {
    struct fixture fixture;
    set_up(&fixture, 7, NULL);
    const uint8_t set = STORE_SET;
    assert_int_equal(read_bytes(&fixture, &set, 1), FAILURE_PROTOCOL);
    assert_non_null(strstr(fixture.reading.decoded.reason, "without having proved"));
    assert_false(fixture.reading.is_request);
    tear_down(&fixture);
}

TEST(guarded_keys_are_refused_and_others_served) {
    struct fixture fixture;
    set_up(&fixture, 7, "/nodes/");
    struct store_request get = {.operation = STORE_GET, .key = slice_from_string("/k")};
    assert_int_equal(read_request(&fixture, &get), FAILURE_NONE);
    assert_true(fixture.reading.is_request);
    get.key = slice_from_string("/nodes/1");
    assert_int_equal(read_request(&fixture, &get), FAILURE_PROTOCOL);
    tear_down(&fixture);
}

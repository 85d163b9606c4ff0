/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "wire/store/store_codec.h"
#include "wire/store_proof_key.h"
#include "wire/store_vectors.h"

#define HANDSHAKE "00 cef7853c"

static void begin_validated(struct store_request_decoder *decoder) {
    store_request_decoder_init(decoder, &STORE_LIMITS_DEFAULT);
    decoder->is_validated = true;
}

static void assert_slices_equal(
    const struct slice *actual, const struct slice *expected, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_true(slice_equals(actual[i], expected[i]));
    }
}

static void assert_requests_equal(
    const struct store_request *actual, const struct store_request *expected) {
    assert_int_equal(actual->operation, expected->operation);
    assert_int_equal(actual->nonce, expected->nonce);
    assert_int_equal(actual->number, expected->number);
    assert_int_equal(actual->count, expected->count);
    assert_slices_equal(&actual->key, &expected->key, 1);
    assert_slices_equal(&actual->value, &expected->value, 1);
    assert_slices_equal(&actual->expected, &expected->expected, 1);
    assert_slices_equal(actual->keys, expected->keys, expected->count);
    if (expected->values != NULL) {
        assert_slices_equal(actual->values, expected->values, expected->count);
    }
}

TEST(requests_pytorch_sent_are_understood) {
    for (size_t i = 0; i < STORE_VECTOR_COUNT; i++) {
        struct store_request_decoder decoder;
        struct store_decoded_request out;
        CLEARED_BY(bytes_clear) struct bytes input = bytes_from_hex(store_vectors[i].request_hex);
        begin_validated(&decoder);
        assert_int_equal(
            store_request_decoder_next(&decoder, bytes_slice(&input), &out), FAILURE_NONE);
        assert_int_equal(out.consumed, input.length);
        assert_requests_equal(&out.request, &store_vectors[i].request);
        store_request_decoder_clear(&decoder);
    }
}

TEST(requests_are_encoded_as_pytorch_does) {
    for (size_t i = 0; i < STORE_VECTOR_COUNT; i++) {
        struct bytes expected = bytes_from_hex(store_vectors[i].request_hex);
        CLEARED_BY(bytes_clear) struct bytes actual = {0};
        assert_int_equal(store_request_encode(&store_vectors[i].request, &actual), FAILURE_NONE);
        assert_true(slice_equals(bytes_slice(&actual), bytes_slice(&expected)));
        bytes_clear(&expected);
    }
}

/* Each prefix is in newly allocated memory of exactly its size. So sanitizers notice a read beyond
 * the end, and the use of a slice from an earlier call. */
TEST(requests_may_arrive_byte_by_byte) {
    for (size_t i = 0; i < STORE_VECTOR_COUNT; i++) {
        struct store_request_decoder decoder;
        struct store_decoded_request out;
        CLEARED_BY(bytes_clear) struct bytes input = bytes_from_hex(store_vectors[i].request_hex);
        begin_validated(&decoder);
        for (size_t length = 0; length < input.length; length++) {
            uint8_t *part = memory_duplicate(input.data, length);
            assert_int_equal(
                store_request_decoder_next(&decoder, (struct slice){part, length}, &out),
                FAILURE_INCOMPLETE);
            assert_true(out.needed > length);
            assert_true(out.needed <= input.length);
            free(part);
        }
        assert_int_equal(
            store_request_decoder_next(&decoder, bytes_slice(&input), &out), FAILURE_NONE);
        assert_int_equal(out.consumed, input.length);
        assert_requests_equal(&out.request, &store_vectors[i].request);
        store_request_decoder_clear(&decoder);
    }
}

TEST(validate_carries_the_magic) {
    CLEARED_BY(bytes_clear) struct bytes actual = {0};
    CLEARED_BY(bytes_clear) struct bytes expected = bytes_from_hex(HANDSHAKE);
    assert_int_equal(
        store_request_encode(&(struct store_request){.operation = STORE_VALIDATE}, &actual),
        FAILURE_NONE);
    assert_true(slice_equals(bytes_slice(&actual), bytes_slice(&expected)));
}

TEST_OF(bytes, a_full_buffer_stays_as_it_was, bytes_init(&fixture, 4), bytes_clear) {
    assert_int_equal(
        store_request_encode(&(struct store_request){.operation = STORE_PING}, fixture),
        FAILURE_LIMIT);
    assert_int_equal(fixture->length, 0);
}

/* The result of a decoder with small limits for `hex`; the reason goes to `reason`. */
static enum failure_code verdict(bool is_validated, const char *hex, char *reason) {
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.key_bytes = 4;
    limits.value_bytes = 6;
    limits.keys_per_request = 3;
    limits.request_bytes = 60;
    struct store_request_decoder decoder;
    struct store_decoded_request out;
    store_request_decoder_init(&decoder, &limits);
    decoder.is_validated = is_validated;
    CLEARED_BY(bytes_clear) struct bytes input = bytes_from_hex(hex);
    enum failure_code code = store_request_decoder_next(&decoder, bytes_slice(&input), &out);
    if (code != FAILURE_NONE && code != FAILURE_INCOMPLETE) {
        memcpy(reason, out.reason, sizeof out.reason);
    }
    store_request_decoder_clear(&decoder);
    return code;
}

TEST(who_begins_in_another_way_is_refused_by_name) {
    char reason[STORE_REASON_SIZE] = "";
    assert_int_equal(verdict(false, "47 45 54", reason), FAILURE_PROTOCOL);
    assert_string_equal(reason, "first byte 0x47 where VALIDATE is due: not a TCPStore client");
    assert_int_equal(verdict(false, "07", reason), FAILURE_PROTOCOL);
    assert_int_equal(verdict(false, "09", reason), FAILURE_PROTOCOL);
    assert_int_equal(verdict(false, "00 05000000", reason), FAILURE_PROTOCOL);
    assert_string_equal(
        reason, "VALIDATE with 0x00000005 instead of 0x3c85f7ce: not a TCPStore client");
    assert_int_equal(verdict(false, "00 00000000", reason), FAILURE_PROTOCOL);
    assert_int_equal(verdict(false, "00 cef785", reason), FAILURE_INCOMPLETE);
    assert_int_equal(verdict(false, HANDSHAKE, reason), FAILURE_NONE);
}

/* What PyTorch 2.0 and older send, and the same in later ones. */
TEST(old_clients_have_no_handshake_and_other_numbers) {
    static const struct {
        const char *hex;
        enum store_operation operation;
    } old[] = {
        {"03 0500000000000000 696e69742f 0100000000000000", STORE_ADD},
        {"00 0100000000000000 6b 0200000000000000 7631", STORE_SET},
        {"01 0100000000000000 6b 0100000000000000 61 0100000000000000 62", STORE_COMPARE_SET},
        {"02 0100000000000000 6b", STORE_GET},
        {"04 0100000000000000 0100000000000000 6b", STORE_CHECK},
        {"05 0200000000000000 0100000000000000 6b 0100000000000000 6c", STORE_WAIT},
        {"06", STORE_COUNT_KEYS},
        {"08 0100000000000000 6b", STORE_DELETE},
    };
    for (size_t first = 0; first < sizeof old / sizeof *old; first++) {
        struct store_request_decoder decoder;
        struct store_decoded_request out;
        store_request_decoder_init(&decoder, &STORE_LIMITS_DEFAULT);
        for (size_t i = first; i < first + 2; i++) { /* as the first request, and later */
            struct bytes input = bytes_from_hex(old[i % (sizeof old / sizeof *old)].hex);
            for (size_t length = 0; length < input.length; length++) {
                assert_int_equal(
                    store_request_decoder_next(&decoder, (struct slice){input.data, length}, &out),
                    FAILURE_INCOMPLETE);
                assert_true(out.needed > length);
            }
            assert_int_equal(
                store_request_decoder_next(&decoder, bytes_slice(&input), &out), FAILURE_NONE);
            assert_int_equal(out.consumed, input.length);
            assert_int_equal(out.request.operation, old[i % (sizeof old / sizeof *old)].operation);
            bytes_clear(&input);
        }
        assert_true(decoder.is_old);
        CLEARED_BY(bytes_clear) struct bytes unknown = bytes_from_hex("07");
        assert_int_equal(
            store_request_decoder_next(&decoder, bytes_slice(&unknown), &out), FAILURE_PROTOCOL);
        assert_string_equal(out.reason, "unknown operation 0x07");
        store_request_decoder_clear(&decoder);
    }
}

TEST(a_second_validate_is_refused) {
    char reason[STORE_REASON_SIZE] = "";
    assert_int_equal(verdict(true, HANDSHAKE, reason), FAILURE_PROTOCOL);
    assert_string_equal(reason, "VALIDATE a second time");
}

TEST(unknown_operations_are_refused) {
    char reason[STORE_REASON_SIZE] = "";
    assert_int_equal(verdict(true, "13", reason), FAILURE_PROTOCOL);
    assert_string_equal(reason, "unknown operation 0x13");
    assert_int_equal(verdict(true, "ff", reason), FAILURE_PROTOCOL);
}

TEST(lengths_are_refused_as_soon_as_they_are_announced) {
    char reason[STORE_REASON_SIZE] = "";
    assert_int_equal(verdict(true, "03 0400000000000000", reason), FAILURE_INCOMPLETE);
    assert_int_equal(verdict(true, "03 0500000000000000", reason), FAILURE_LIMIT);
    assert_string_equal(reason, "GET: a key length of 5, the limit is 4");
    assert_int_equal(verdict(true, "03 ffffffffffffffff", reason), FAILURE_LIMIT);
    const char *set = "01 0100000000000000 61 0700000000000000";
    assert_int_equal(verdict(true, set, reason), FAILURE_LIMIT);
    assert_string_equal(reason, "SET: a value length of 7, the limit is 6");
    const char *expected = "02 0100000000000000 61 0000000000000040";
    assert_int_equal(verdict(true, expected, reason), FAILURE_LIMIT);
    assert_int_equal(verdict(true, "06 0300000000000000", reason), FAILURE_INCOMPLETE);
    assert_int_equal(verdict(true, "06 0400000000000000", reason), FAILURE_LIMIT);
    assert_string_equal(reason, "WAIT: a key count of 4, the limit is 3");
    /* Within a pair the second blob is the value, and may be longer. */
    const char *pair = "0b 0100000000000000 0100000000000000 61 0500000000000000";
    assert_int_equal(verdict(true, pair, reason), FAILURE_INCOMPLETE);
    const char *key = "0b 0200000000000000 0100000000000000 61 0000000000000000 0500000000000000";
    assert_int_equal(verdict(true, key, reason), FAILURE_LIMIT);
}

TEST(the_sum_of_a_list_is_limited) {
    char reason[STORE_REASON_SIZE] = "";
    /* 9 bytes, then pairs of at least 16: three pairs hold 57 of the 60 allowed. */
    const char *fits = "0b 0300000000000000 0300000000000000 616161";
    assert_int_equal(verdict(true, fits, reason), FAILURE_INCOMPLETE);
    const char *over = "0b 0300000000000000 0400000000000000 61616161";
    assert_int_equal(verdict(true, over, reason), FAILURE_LIMIT);
    assert_string_equal(reason, "MULTI_SET: a request size of 61, the limit is 60");
}

/* The list comes in pieces of 7 bytes. If each piece were parsed from the start, this would take
 * hours. */
TEST(the_largest_key_list_is_parsed_once) {
    const size_t count = 131072;
    CLEARED_BY(bytes_clear) struct bytes input = {0};
    uint8_t head[9] = {STORE_CHECK};
    little_endian_store64(head + 1, count);
    assert_int_equal(bytes_append(&input, head, sizeof head), FAILURE_NONE);
    for (size_t i = 0; i < count; i++) {
        uint8_t key[8 + 4];
        little_endian_store64(key, 4);
        little_endian_store32(key + 8, (uint32_t)i);
        assert_int_equal(bytes_append(&input, key, sizeof key), FAILURE_NONE);
    }
    struct store_request_decoder decoder;
    struct store_decoded_request out;
    begin_validated(&decoder);
    for (size_t length = 0; length < input.length; length += 7) {
        assert_int_equal(
            store_request_decoder_next(&decoder, (struct slice){input.data, length}, &out),
            FAILURE_INCOMPLETE);
        assert_null(decoder.blobs);
    }
    assert_int_equal(store_request_decoder_next(&decoder, bytes_slice(&input), &out), FAILURE_NONE);
    assert_int_equal(out.request.count, count);
    assert_int_equal(little_endian_load32(out.request.keys[count - 1].data), count - 1);
    assert_int_equal(
        store_request_decoder_next(&decoder, (struct slice){0}, &out), FAILURE_INCOMPLETE);
    assert_null(decoder.blobs);
    store_request_decoder_clear(&decoder);
}

/* Owned request. */

TEST(an_operation_on_one_key_has_it_and_its_value) {
    CLEARED_BY(owned_request_clear) struct owned_request request = {0};
    text_list_add(&request.keys, "/a");
    text_list_add(&request.values, "v");
    owned_request_finish(&request, STORE_SET, 7);
    assert_int_equal(request.request.operation, STORE_SET);
    assert_true(slice_equals(request.request.key, slice_from_string("/a")));
    assert_true(slice_equals(request.request.value, slice_from_string("v")));
    assert_int_equal(request.request.number, 0);
    assert_int_equal(request.request.count, 0);
}

/* Store reader. */

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

FIXTURE_TEST_AFTER(a_proof_opens_the_store, set_up(&fixture, 7, NULL)) {
    assert_int_equal(ping(fixture), STORE_PROOF_WANTED);
    struct store_proof client = {0};
    struct store_proof_step step = store_proof_begin(&client, &fixture->key);
    assert_int_equal(read_bytes(fixture, step.reply, step.reply_length - 1), FAILURE_INCOMPLETE);
    assert_int_equal(fixture->reading.decoded.needed, step.reply_length);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_bytes(fixture, step.reply, step.reply_length), FAILURE_NONE);
        assert_false(fixture->reading.is_request);
        assert_int_equal(fixture->reading.decoded.consumed, step.reply_length);
        step = store_proof_continue(&client, &fixture->key,
            (struct slice){fixture->reading.reply, fixture->reading.reply_length});
    }
    assert_int_equal(step.outcome, STORE_PROOF_DONE);
    assert_int_equal(read_request(fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}),
        FAILURE_NONE);
    assert_true(fixture->reading.is_request);
}

FIXTURE_TEST_AFTER(
    without_a_proof_a_request_is_refused_at_its_first_byte, set_up(&fixture, 7, NULL)) {
    const uint8_t set = STORE_SET;
    assert_int_equal(read_bytes(fixture, &set, 1), FAILURE_PROTOCOL);
    assert_non_null(strstr(fixture->reading.decoded.reason, "without having proved"));
    assert_false(fixture->reading.is_request);
}

FIXTURE_TEST_AFTER(guarded_keys_are_refused_and_others_served, set_up(&fixture, 7, "/nodes/")) {
    struct store_request get = {.operation = STORE_GET, .key = slice_from_string("/k")};
    assert_int_equal(read_request(fixture, &get), FAILURE_NONE);
    assert_true(fixture->reading.is_request);
    get.key = slice_from_string("/nodes/1");
    assert_int_equal(read_request(fixture, &get), FAILURE_PROTOCOL);
}

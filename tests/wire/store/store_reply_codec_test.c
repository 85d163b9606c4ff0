/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "wire/store/store_codec.h"
#include "wire/store_vectors.h"

static void assert_lists_equal(
    const struct store_reply *actual, const struct store_reply *expected) {
    assert_int_equal(actual->list.count, expected->list.count);
    for (size_t i = 0; i < expected->list.count; i++) {
        assert_true(slice_equals(actual->list.items[i], expected->list.items[i]));
    }
}

static void assert_replies_equal(
    const struct store_reply *actual, const struct store_reply *expected) {
    assert_int_equal(actual->kind, expected->kind);
    switch (expected->kind) {
    case STORE_REPLY_NONE:
        break;
    case STORE_REPLY_BYTE:
        assert_int_equal(actual->byte, expected->byte);
        break;
    case STORE_REPLY_INTEGER:
        assert_int_equal(actual->integer, expected->integer);
        break;
    case STORE_REPLY_NONCE:
        assert_int_equal(actual->nonce, expected->nonce);
        break;
    case STORE_REPLY_BLOB:
        assert_true(slice_equals(actual->blob, expected->blob));
        break;
    case STORE_REPLY_BLOBS:
    case STORE_REPLY_KEYS:
        assert_lists_equal(actual, expected);
        break;
    case STORE_REPLY_POP:
        assert_int_equal(actual->pop.length, expected->pop.length);
        assert_true(slice_equals(actual->pop.front, expected->pop.front));
        break;
    }
}

TEST(replies_are_encoded_as_pytorch_does) {
    for (size_t i = 0; i < STORE_VECTOR_COUNT; i++) {
        CLEARED_BY(bytes_clear) struct bytes expected = bytes_from_hex(store_vectors[i].reply_hex);
        CLEARED_BY(bytes_clear) struct bytes actual = {0};
        assert_int_equal(store_reply_encode(&store_vectors[i].reply, &actual), FAILURE_NONE);
        assert_true(slice_equals(bytes_slice(&actual), bytes_slice(&expected)));
        assert_int_equal(store_reply_encoded_size(&store_vectors[i].reply), expected.length);
    }
}

TEST(replies_pytorch_sent_are_understood_byte_by_byte) {
    for (size_t i = 0; i < STORE_VECTOR_COUNT; i++) {
        struct store_reply_decoder decoder;
        struct store_decoded_reply out;
        store_reply_decoder_init(&decoder, &STORE_REPLY_LIMITS_DEFAULT);
        store_reply_decoder_expect(&decoder, &store_vectors[i].request);
        CLEARED_BY(bytes_clear) struct bytes input = bytes_from_hex(store_vectors[i].reply_hex);
        for (size_t length = 0; length < input.length; length++) {
            uint8_t *part = memory_duplicate(input.data, length);
            assert_int_equal(store_reply_decoder_next(&decoder, (struct slice){part, length}, &out),
                FAILURE_INCOMPLETE);
            assert_true(out.needed > length);
            assert_true(out.needed <= input.length);
            free(part);
        }
        assert_int_equal(
            store_reply_decoder_next(&decoder, bytes_slice(&input), &out), FAILURE_NONE);
        assert_int_equal(out.consumed, input.length);
        assert_replies_equal(&out.reply, &store_vectors[i].reply);
        store_reply_decoder_clear(&decoder);
    }
}

TEST_OF(store_reply_decoder, a_cancelled_wait_may_be_answered_twice,
    store_reply_decoder_init(&fixture, &STORE_REPLY_LIMITS_DEFAULT), store_reply_decoder_clear) {
    struct store_decoded_reply out;
    store_reply_decoder_expect(fixture, &(struct store_request){.operation = STORE_CANCEL_WAIT});
    const uint8_t crossed[] = {STORE_STOP_WAITING, STORE_WAIT_CANCELLED};
    assert_int_equal(
        store_reply_decoder_next(fixture, (struct slice){crossed, 2}, &out), FAILURE_NONE);
    assert_int_equal(out.consumed, 1);
    assert_int_equal(out.reply.byte, STORE_STOP_WAITING);
    assert_int_equal(
        store_reply_decoder_next(fixture, (struct slice){crossed + 1, 1}, &out), FAILURE_NONE);
    assert_int_equal(out.reply.byte, STORE_WAIT_CANCELLED);
}

/* The result of a client with small limits that gets `hex` as the reply to `request`. */
static enum failure_code verdict(
    const struct store_request *request, const char *hex, char *reason) {
    struct store_reply_limits limits = {.blob_bytes = 6, .reply_bytes = 40};
    struct store_reply_decoder decoder;
    struct store_decoded_reply out;
    store_reply_decoder_init(&decoder, &limits);
    store_reply_decoder_expect(&decoder, request);
    CLEARED_BY(bytes_clear) struct bytes input = bytes_from_hex(hex);
    enum failure_code code = store_reply_decoder_next(&decoder, bytes_slice(&input), &out);
    if (code != FAILURE_NONE && code != FAILURE_INCOMPLETE) {
        memcpy(reason, out.reason, sizeof out.reason);
    }
    store_reply_decoder_clear(&decoder);
    return code;
}

TEST(a_server_cannot_make_the_client_wait_for_too_much) {
    char reason[STORE_REASON_SIZE] = "";
    const struct store_request get = {.operation = STORE_GET};
    assert_int_equal(verdict(&get, "0600000000000000", reason), FAILURE_INCOMPLETE);
    assert_int_equal(verdict(&get, "0700000000000000", reason), FAILURE_LIMIT);
    assert_string_equal(reason, "GET: the server sent a length of 7, the limit is 6");
    const struct store_request list = {.operation = STORE_LIST_KEYS};
    assert_int_equal(verdict(&list, "0400000000000000", reason), FAILURE_INCOMPLETE);
    assert_int_equal(verdict(&list, "0600000000000000", reason), FAILURE_LIMIT);
    assert_string_equal(
        reason, "LIST_KEYS: the server's reply is longer than the 40 bytes accepted");
    const char *long_list = "0300000000000000 0600000000000000 616161616161 0600000000000000"
                            "616161616161 0600000000000000";
    assert_int_equal(verdict(&list, long_list, reason), FAILURE_LIMIT);
}

TEST(impossible_answers_are_refused) {
    char reason[STORE_REASON_SIZE] = "";
    const struct store_request wait = {.operation = STORE_WAIT};
    assert_int_equal(verdict(&wait, "02", reason), FAILURE_PROTOCOL);
    assert_string_equal(reason, "WAIT: the server answered 2, which is not a valid reply");
    const struct store_request list = {.operation = STORE_LIST_KEYS};
    assert_int_equal(verdict(&list, "ffffffffffffffff", reason), FAILURE_PROTOCOL);
    const struct store_request pop = {.operation = STORE_QUEUE_POP};
    assert_int_equal(verdict(&pop, "feffffffffffffff", reason), FAILURE_PROTOCOL);
    assert_string_equal(reason, "QUEUE_POP: the server answered -2, which is not a valid reply");
}

TEST_OF(bytes, a_full_buffer_stays_as_it_was, bytes_init(&fixture, 4), bytes_clear) {
    struct store_reply reply = {.kind = STORE_REPLY_INTEGER, .integer = 1};
    assert_int_equal(store_reply_encode(&reply, fixture), FAILURE_LIMIT);
    assert_int_equal(fixture->length, 0);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "taken_memory.h"
#include "wire/register/etcd_message.h"

static void expect_bytes(struct bytes *bytes, const char *expected, size_t length) {
    assert_int_equal(bytes->length, length);
    assert_memory_equal(bytes->data, expected, length);
    bytes_clear(bytes);
}

/* The expected bytes were worked out by hand from the encoding; a real etcd reads them in
 * tests/interop. */

TEST(last_key_of_a_range_is_asked_for) {
    struct bytes out = {0};
    etcd_write_range_last((struct etcd_range){"a/", "a0"}, &out);
    expect_bytes(&out,
        "\x0a\x02"
        "a/\x12\x02"
        "a0\x18\x01\x28\x02",
        12);
    etcd_write_range_last((struct etcd_range){.key = "k"}, &out);
    expect_bytes(&out, "\x0a\x01k\x18\x01\x28\x02", 7);
}

TEST(value_is_put) {
    struct bytes out = {0};
    etcd_write_put("k", slice_from_string("value"), &out);
    expect_bytes(&out, "\x0a\x01k\x12\x05value", 10);
}

TEST(name_and_password_are_given) {
    struct bytes out = {0};
    etcd_write_authenticate("root", "pw", &out);
    expect_bytes(&out, "\x0a\x04root\x12\x02pw", 10);
}

TEST(puts_of_a_range_are_watched) {
    struct bytes out = {0};
    etcd_write_watch((struct etcd_range){"e3", "e0"}, &out);
    expect_bytes(&out,
        "\x0a\x0a\x0a\x02"
        "e3\x12\x02"
        "e0\x28\x01",
        12);
}

TEST(append_compares_puts_removes_or_reads) {
    struct bytes out = {0};
    const struct etcd_append append = {
        .absent = {.key = "e2"},
        .present = "e1",
        .key = "e2",
        .value = slice_from_string("v"),
        .removed = {{"d", "e"}},
        .otherwise = {"e", "f"},
    };
    etcd_write_append(&append, &out);
    static const char expected[] = "\x0a\x0a\x08\x00\x10\x01\x1a\x02"
                                   "e2\x28\x00"
                                   "\x0a\x0a\x08\x01\x10\x01\x1a\x02"
                                   "e1\x28\x00"
                                   "\x12\x09\x12\x07\x0a\x02"
                                   "e2\x12\x01v"
                                   "\x12\x08\x1a\x06\x0a\x01"
                                   "d\x12\x01"
                                   "e"
                                   "\x1a\x0c\x0a\x0a\x0a\x01"
                                   "e\x12\x01"
                                   "f\x18\x01\x28\x02";
    expect_bytes(&out, expected, sizeof expected - 1);
}

static struct slice bytes_of(const char *data, size_t length) {
    return (struct slice){(const uint8_t *)data, length};
}
#define MESSAGE(text) bytes_of(text, sizeof(text) - 1)

TEST(a_watch_tells_the_last_key_that_was_put_or_that_it_is_over) {
    struct etcd_reply reply;
    assert_int_equal(etcd_read_watch(MESSAGE("\x0a\x02\x18\x09\x18\x01"), &reply), FAILURE_NONE);
    assert_true(reply.is_created);
    assert_false(reply.has_key || reply.is_canceled);
    etcd_reply_clear(&reply);
    assert_int_equal(etcd_read_watch(MESSAGE("\x20\x01\x28\x05\x32\x03why"), &reply), FAILURE_NONE);
    assert_true(reply.is_canceled);
    etcd_reply_clear(&reply);
    assert_int_equal(etcd_read_watch(MESSAGE("\x5a\x09\x12\x07\x0a\x02"
                                             "e3\x2a\x01u\x5a\x09\x12\x07\x0a\x02"
                                             "e4\x2a\x01v\x5a\x00"),
                         &reply),
        FAILURE_NONE);
    assert_true(reply.has_key);
    assert_true(slice_equals(reply.key, slice_from_string("e4")));
    assert_true(slice_equals(reply.value, slice_from_string("v")));
    etcd_reply_clear(&reply);
    assert_int_equal(etcd_read_watch(MESSAGE("\x5a\x09\x12"), &reply), FAILURE_MALFORMED);
}

TEST(token_is_read) {
    FREED char *token = NULL;
    assert_int_equal(etcd_read_token(MESSAGE("\x0a\x00"), &token), FAILURE_MALFORMED);
    assert_null(token);
    assert_int_equal(etcd_read_token(MESSAGE("\x0a\x00\x12\x03tok"), &token), FAILURE_NONE);
    assert_string_equal(token, "tok");
}

TEST(fields_of_a_later_etcd_are_skipped) {
    struct etcd_reply reply;
    /* a number, 8 bytes, text, 4 bytes: in a reply, in its range, and in the pair there */
    assert_int_equal(etcd_read_append(MESSAGE("\xb8\x3e\x01"
                                              "\x1a\x1b\xb9\x3e\x08\x07\x06\x05\x04\x03\x02\x01"
                                              "\x0a\x0f\xba\x3e\x01x"
                                              "\x12\x09\x0a\x01k\xbd\x3e\x04\x03\x02\x01"),
                         &reply),
        FAILURE_NONE);
    assert_true(reply.has_key);
    assert_true(slice_equals(reply.key, slice_from_string("k")));
    etcd_reply_clear(&reply);
}

/* Puts a message into a field of another one; the length takes three bytes. */
static void wrap(struct bytes *message, uint8_t tag) {
    const size_t length = message->length;
    const uint8_t head[] = {tag, (uint8_t)(length & 0x7f) | 0x80,
        (uint8_t)(length >> 7 & 0x7f) | 0x80, (uint8_t)(length >> 14 & 0x7f)};
    struct bytes outer = {0};
    assert_int_equal(bytes_append(&outer, head, sizeof head), FAILURE_NONE);
    assert_int_equal(bytes_append(&outer, message->data, length), FAILURE_NONE);
    bytes_clear(message);
    *message = outer;
}

/* An operation of a reply can hold the reply of another transaction. */
TEST(transactions_in_transactions_are_skipped) {
    struct etcd_reply reply;
    CLEARED_BY(bytes_clear) struct bytes message = {0};
    for (int depth = 0; depth < 1000; depth++) {
        wrap(&message, 0x22); /* the transaction of an operation */
        wrap(&message, 0x1a); /* an operation of a transaction */
    }
    assert_int_equal(etcd_read_append(bytes_slice(&message), &reply), FAILURE_NONE);
    assert_false(reply.has_key);
    etcd_reply_clear(&reply);
}

TEST(fields_of_another_kind_are_refused) {
    struct etcd_reply reply;
    char *token;
    assert_int_equal(etcd_read_range(MESSAGE("\x10\x01"), &reply), FAILURE_MALFORMED);
    assert_int_equal(etcd_read_range(MESSAGE("\x12\x02\x08\x01"), &reply), FAILURE_MALFORMED);
    assert_int_equal(etcd_read_append(MESSAGE("\x1a\x02\x08\x01"), &reply), FAILURE_MALFORMED);
    assert_int_equal(etcd_read_token(MESSAGE("\x10\x01"), &token), FAILURE_MALFORMED);
}

/* The reply has two ranges, of which the second is empty. */
TEST(key_of_one_range_is_not_lost_in_another) {
    struct etcd_reply reply;
    assert_int_equal(
        etcd_read_append(MESSAGE("\x1a\x07\x0a\x05\x12\x03\x0a\x01k\x1a\x02\x0a\x00"), &reply),
        FAILURE_NONE);
    assert_true(reply.has_key);
    assert_true(slice_equals(reply.key, slice_from_string("k")));
    etcd_reply_clear(&reply);
}

TEST(message_of_the_largest_size_is_read) {
    struct etcd_reply reply;
    CLEARED_BY(bytes_clear) struct bytes message = {0};
    /* a pair, and its value of the rest */
    const uint8_t heads[] = {0x12, 0xfc, 0xff, 0x7f, 0x2a, 0xf8, 0xff, 0x7f};
    const size_t length = ETCD_MESSAGE_MAXIMUM - sizeof heads;
    assert_int_equal(bytes_append(&message, heads, sizeof heads), FAILURE_NONE);
    assert_int_equal(bytes_reserve(&message, length + 1), FAILURE_NONE);
    memset(message.data + message.length, 'v', length + 1);
    message.length += length;
    assert_int_equal(etcd_read_range(bytes_slice(&message), &reply), FAILURE_NONE);
    assert_int_equal(reply.value.length, length);
    etcd_reply_clear(&reply);
    message.length++;
    assert_int_equal(etcd_read_range(bytes_slice(&message), &reply), FAILURE_LIMIT);
}

/* Each would have a struct of its own. */
TEST(message_of_very_many_pieces_is_refused) {
    static const uint8_t pieces[][2] = {{0x12, 0x00}, {0x1a, 0x00}, {0x38, 0x01}};
    struct etcd_reply reply;
    CLEARED_BY(bytes_clear) struct bytes message = {0};
    for (size_t piece = 0; piece < sizeof pieces / sizeof *pieces; piece++) {
        message.length = 0;
        while (message.length < ETCD_MESSAGE_MAXIMUM) {
            assert_int_equal(bytes_append(&message, pieces[piece], 2), FAILURE_NONE);
        }
        assert_int_equal(etcd_read_range(bytes_slice(&message), &reply), FAILURE_LIMIT);
        assert_int_equal(etcd_read_append(bytes_slice(&message), &reply), FAILURE_LIMIT);
    }
}

/* After each try there is a little more memory: so it is missing at many places. */
TEST(message_without_memory_is_a_limit) {
    CLEARED_BY(etcd_reply_clear) struct etcd_reply reply = {0};
    CLEARED_BY(bytes_clear) struct bytes message = {0};
    size_t failures = 0;
    enum failure_code code = FAILURE_LIMIT;
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    for (int i = 0; i < 40; i++) { /* an operation with a pair, and an unknown number */
        assert_int_equal(
            bytes_append(&message, "\x1a\x0a\x0a\x08\x12\x06\x0a\x01k\x2a\x01v\x38\x01", 14),
            FAILURE_NONE);
    }
    struct rlimit before = taken_memory_begin();
    struct taken_memory *taken = taken_memory_take(NULL, 256);
    while (taken != NULL && code == FAILURE_LIMIT) {
        taken = taken_memory_give_one(taken);
        code = etcd_read_append(bytes_slice(&message), &reply);
        failures += code == FAILURE_LIMIT ? 1 : 0;
    }
    taken_memory_end(taken, before);
    assert_int_equal(code, FAILURE_NONE);
    assert_true(failures > 20);
    assert_true(slice_equals(reply.value, slice_from_string("v")));
}

TEST(broken_messages_are_refused) {
    struct etcd_reply reply = {.has_key = true};
    assert_int_equal(etcd_read_range(MESSAGE("\x12"), &reply), FAILURE_MALFORMED);
    assert_int_equal(etcd_read_range(MESSAGE("\x12\x05k"), &reply), FAILURE_MALFORMED);
    assert_int_equal(etcd_read_range(MESSAGE("\x13\x00"), &reply), FAILURE_MALFORMED);
    assert_int_equal(etcd_read_range(MESSAGE("\x00\x00"), &reply), FAILURE_MALFORMED);
    assert_int_equal(
        etcd_read_range(MESSAGE("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), &reply),
        FAILURE_MALFORMED);
    assert_int_equal(etcd_read_append(MESSAGE("\x1a\x02\x0a\x05"), &reply), FAILURE_MALFORMED);
    assert_true(reply.has_key);
}

TEST(frame_surrounds_one_message) {
    CLEARED_BY(bytes_clear) struct bytes out = {0};
    struct slice message;
    grpc_write_frame(slice_from_string("abc"), &out);
    assert_int_equal(grpc_read_frame(bytes_slice(&out), &message), FAILURE_NONE);
    assert_true(slice_equals(message, slice_from_string("abc")));
    out.length--;
    assert_int_equal(grpc_read_frame(bytes_slice(&out), &message), FAILURE_INCOMPLETE);
    out.length = 4;
    assert_int_equal(grpc_read_frame(bytes_slice(&out), &message), FAILURE_INCOMPLETE);
    assert_int_equal(grpc_read_frame(MESSAGE("\x01\x00\x00\x00\x00"), &message), FAILURE_MALFORMED);
    assert_int_equal(
        grpc_read_frame(MESSAGE("\x00\x00\x00\x00\x00x"), &message), FAILURE_MALFORMED);
    assert_int_equal(grpc_read_frame(MESSAGE("\x00\x7f\x00\x00\x00"), &message), FAILURE_LIMIT);
}

TEST(frames_of_a_stream_are_taken_one_by_one) {
    CLEARED_BY(bytes_clear) struct bytes out = {0};
    struct slice message;
    size_t length;
    grpc_write_frame(slice_from_string("abc"), &out);
    grpc_write_frame(slice_from_string(""), &out);
    struct slice frames = bytes_slice(&out);
    assert_true(grpc_take_frame(frames, &message, &length));
    assert_true(slice_equals(message, slice_from_string("abc")));
    assert_int_equal(length, 8);
    frames = slice_from(frames, length);
    assert_true(grpc_take_frame(frames, &message, &length));
    assert_int_equal(message.length, 0);
    frames = slice_from(frames, length);
    assert_false(grpc_take_frame(frames, &message, &length));
    for (size_t cut = 0; cut < 8; cut++) {
        assert_false(grpc_take_frame((struct slice){out.data, cut}, &message, &length));
    }
    assert_false(grpc_take_frame(MESSAGE("\x01\x00\x00\x00\x00"), &message, &length));
    assert_false(grpc_take_frame(MESSAGE("\x00\xff\xff\xff\xff"), &message, &length));
}

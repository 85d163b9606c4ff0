/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/register/etcd_message.h"

static void expect_bytes(struct bytes *bytes, const char *expected, size_t length) {
    assert_int_equal(bytes->length, length);
    assert_memory_equal(bytes->data, expected, length);
    bytes_clear(bytes);
}

/* The expected bytes were worked out by hand from the encoding; a real etcd reads them in
 * tests/interop. */

static void last_key_of_a_range_is_asked_for(void **state) {
    (void)state;
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

static void value_is_put(void **state) {
    (void)state;
    struct bytes out = {0};
    etcd_write_put("k", slice_from_string("value"), &out);
    expect_bytes(&out, "\x0a\x01k\x12\x05value", 10);
}

static void name_and_password_are_given(void **state) {
    (void)state;
    struct bytes out = {0};
    etcd_write_authenticate("root", "pw", &out);
    expect_bytes(&out, "\x0a\x04root\x12\x02pw", 10);
}

static void lengths_beyond_one_byte_are_varints(void **state) {
    (void)state;
    struct bytes out = {0};
    uint8_t value[300] = {0};
    etcd_write_put("k", (struct slice){value, sizeof value}, &out);
    assert_int_equal(out.length, 3 + 3 + 300);
    assert_memory_equal(out.data, "\x0a\x01k\x12\xac\x02", 6);
    bytes_clear(&out);
}

static void append_compares_puts_removes_or_reads(void **state) {
    (void)state;
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

static void found_key_and_value_are_read(void **state) {
    (void)state;
    struct etcd_reply reply;
    assert_int_equal(etcd_read_range(MESSAGE("\x0a\x02\x08\x01\x12\x0b\x0a\x01k\x10\x05\x18\x05"
                                             "\x2a\x02vv\x20\x01"),
                         &reply),
        FAILURE_NONE);
    assert_true(reply.has_key);
    assert_true(slice_equals(reply.key, slice_from_string("k")));
    assert_true(slice_equals(reply.value, slice_from_string("vv")));
    assert_int_equal(etcd_read_range(MESSAGE("\x0a\x02\x08\x01"), &reply), FAILURE_NONE);
    assert_false(reply.has_key);
    assert_int_equal(etcd_read_range(MESSAGE(""), &reply), FAILURE_NONE);
    assert_false(reply.has_key);
}

static void append_has_succeeded_or_tells_the_last_key(void **state) {
    (void)state;
    struct etcd_reply reply;
    assert_int_equal(etcd_read_append(MESSAGE("\x10\x01\x1a\x02\x12\x00"), &reply), FAILURE_NONE);
    assert_true(reply.has_succeeded);
    assert_int_equal(etcd_read_append(MESSAGE("\x1a\x0b\x0a\x09\x12\x07\x0a\x02"
                                              "e2\x2a\x01v"),
                         &reply),
        FAILURE_NONE);
    assert_false(reply.has_succeeded);
    assert_true(reply.has_key);
    assert_true(slice_equals(reply.key, slice_from_string("e2")));
}

static void token_is_read(void **state) {
    (void)state;
    struct slice token;
    assert_int_equal(etcd_read_token(MESSAGE("\x0a\x00\x12\x03tok"), &token), FAILURE_NONE);
    assert_true(slice_equals(token, slice_from_string("tok")));
    assert_int_equal(etcd_read_token(MESSAGE("\x0a\x00"), &token), FAILURE_MALFORMED);
}

static void broken_messages_are_refused(void **state) {
    (void)state;
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

static void frame_surrounds_one_message(void **state) {
    (void)state;
    struct bytes out = {0};
    struct slice message;
    grpc_write_frame(slice_from_string("abc"), &out);
    assert_int_equal(grpc_read_frame(bytes_slice(&out), &message), FAILURE_NONE);
    assert_true(slice_equals(message, slice_from_string("abc")));
    out.length--;
    assert_int_equal(grpc_read_frame(bytes_slice(&out), &message), FAILURE_INCOMPLETE);
    out.length = 4;
    assert_int_equal(grpc_read_frame(bytes_slice(&out), &message), FAILURE_INCOMPLETE);
    bytes_clear(&out);
    assert_int_equal(grpc_read_frame(MESSAGE("\x01\x00\x00\x00\x00"), &message), FAILURE_MALFORMED);
    assert_int_equal(
        grpc_read_frame(MESSAGE("\x00\x00\x00\x00\x00x"), &message), FAILURE_MALFORMED);
    assert_int_equal(grpc_read_frame(MESSAGE("\x00\x7f\x00\x00\x00"), &message), FAILURE_LIMIT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(last_key_of_a_range_is_asked_for),
    cmocka_unit_test(value_is_put),
    cmocka_unit_test(name_and_password_are_given),
    cmocka_unit_test(lengths_beyond_one_byte_are_varints),
    cmocka_unit_test(append_compares_puts_removes_or_reads),
    cmocka_unit_test(found_key_and_value_are_read),
    cmocka_unit_test(append_has_succeeded_or_tells_the_last_key),
    cmocka_unit_test(token_is_read),
    cmocka_unit_test(broken_messages_are_refused),
    cmocka_unit_test(frame_surrounds_one_message),
};

TEST_MAIN(tests)

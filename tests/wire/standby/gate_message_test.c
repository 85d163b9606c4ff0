/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/standby/gate_message.h"

static enum failure_code read(const char *bytes, size_t length, struct gate_message *message) {
    return gate_message_read((struct slice){(const uint8_t *)bytes, length}, message);
}

TEST(a_standby_worker_says_where_it_is) {
    struct gate_message message;
    assert_int_equal(read("H\1\0\0\0\x39\x30\0\0", 9, &message), FAILURE_NONE);
    assert_int_equal(message.kind, GATE_MESSAGE_HELLO);
    assert_int_equal(message.hello.pid, 12345);
    assert_int_equal(read("P\1\0\0\0\2\0\0\0\3\0\0\0\0\1\0\0", 17, &message), FAILURE_NONE);
    assert_int_equal(message.kind, GATE_MESSAGE_READY);
    assert_int_equal(message.ready.modules, 1);
    assert_int_equal(message.ready.skipped, 2);
    assert_int_equal(message.ready.cpu_milliseconds, 3);
    assert_int_equal(message.ready.memory_kib, 256);
    assert_false(message.ready.is_at_line);
    assert_int_equal(read("A\1\0\0\0\2\0\0\0\3\0\0\0\0\1\0\0", 17, &message), FAILURE_NONE);
    assert_int_equal(message.kind, GATE_MESSAGE_READY);
    assert_int_equal(message.ready.memory_kib, 256);
    assert_true(message.ready.is_at_line);
    assert_int_equal(read("Ewhy", 4, &message), FAILURE_NONE);
    assert_int_equal(message.kind, GATE_MESSAGE_FAILED);
    assert_true(slice_equals(message.reason, slice_from_string("why")));
    assert_int_equal(read("Dno", 3, &message), FAILURE_NONE);
    assert_int_equal(message.kind, GATE_MESSAGE_DIRTY);
    assert_true(slice_equals(message.reason, slice_from_string("no")));
    assert_int_equal(read("D", 1, &message), FAILURE_NONE);
    assert_int_equal(read("R", 1, &message), FAILURE_NONE);
    assert_int_equal(message.kind, GATE_MESSAGE_THROUGH);
}

TEST(a_message_of_another_length_is_none) {
    struct gate_message message;
    char space[GATE_MESSAGE_MAXIMUM + 1] = {0};
    for (size_t length = 1; length <= 20; length++) {
        space[0] = 'H';
        space[1] = GATE_VERSION;
        assert_int_equal(
            read(space, length, &message), length == 9 ? FAILURE_NONE : FAILURE_MALFORMED);
        space[0] = 'P';
        assert_int_equal(
            read(space, length, &message), length == 17 ? FAILURE_NONE : FAILURE_MALFORMED);
        space[0] = 'A';
        assert_int_equal(
            read(space, length, &message), length == 17 ? FAILURE_NONE : FAILURE_MALFORMED);
        space[0] = 'R';
        assert_int_equal(
            read(space, length, &message), length == 1 ? FAILURE_NONE : FAILURE_MALFORMED);
    }
    space[0] = 'D';
    assert_int_equal(read(space, GATE_MESSAGE_MAXIMUM, &message), FAILURE_NONE);
    assert_int_equal(read(space, GATE_MESSAGE_MAXIMUM + 1, &message), FAILURE_MALFORMED);
}

TEST(what_nobody_may_import_early_is_named) {
    struct gate_message message;
    assert_int_equal(read("Xa.b", 4, &message), FAILURE_NONE);
    assert_int_equal(message.kind, GATE_MESSAGE_LEFT_OUT);
    assert_true(slice_equals(message.name, slice_from_string("a.b")));
    assert_int_equal(read("Uwhy", 4, &message), FAILURE_NONE);
    assert_int_equal(message.kind, GATE_MESSAGE_UNSUITED);
    assert_true(slice_equals(message.reason, slice_from_string("why")));
}

TEST(an_unknown_letter_or_version_is_refused) {
    struct gate_message message = {.kind = GATE_MESSAGE_DIRTY};
    assert_int_equal(read("", 0, &message), FAILURE_MALFORMED);
    assert_int_equal(read("Y", 1, &message), FAILURE_MALFORMED);
    assert_int_equal(read("G", 1, &message), FAILURE_MALFORMED);
    assert_int_equal(read("H\2\0\0\0\1\0\0\0", 9, &message), FAILURE_UNSUPPORTED);
    assert_int_equal(message.kind, GATE_MESSAGE_DIRTY);
}

TEST(the_order_to_look_at_pages_names_the_worker) {
    struct bytes packet = {0};
    gate_message_write_pages(258, &packet);
    assert_int_equal(packet.length, 5);
    assert_memory_equal(packet.data, "W\2\1\0\0", 5);
    bytes_clear(&packet);
}

TEST(the_order_to_go_has_the_directory_and_the_environment) {
    struct bytes packet = {0};
    struct text_list environment = {0};
    text_list_add(&environment, "A=1");
    text_list_add(&environment, "B=");
    gate_message_write_go(0, &packet);
    gate_message_write_body("/job", &environment, &packet);
    static const char expected[] = "G\0\0\0\0\4\0\0\0/jobA=1\0B=";
    assert_int_equal(packet.length, sizeof expected);
    assert_memory_equal(packet.data, expected, sizeof expected);
    bytes_clear(&packet);
    text_list_clear(&environment);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "pickle_fixture.h"
#include "wire/pickle/pickle_document.h"
#include "wire/pickle/pickle_reader.h"

static void assert_integer(int64_t integer, const char *digits) {
    CLEARED_BY(bytes_clear) struct bytes out = {0};
    struct pickle_writer writer;
    pickle_writer_begin(&writer, &out);
    pickle_write_integer(&writer, integer);
    assert_int_equal(pickle_writer_end(&writer), FAILURE_NONE);
    assert_hexadecimal(&out, digits);
}

TEST(integers_take_the_shortest_form_as_python_writes_them) {
    assert_integer(0, "8004 4b00 2e");
    assert_integer(255, "8004 4bff 2e");
    assert_integer(256, "8004 4d0001 2e");
    assert_integer(65535, "8004 4dffff 2e");
    assert_integer(65536, "8004 4a00000100 2e");
    assert_integer(-1, "8004 4affffffff 2e");
    assert_integer(INT32_MAX, "8004 4affffff7f 2e");
    assert_integer(INT32_MIN, "8004 4a00000080 2e");
    assert_integer(1LL << 31, "8004 8a050000008000 2e");
    assert_integer(-(1LL << 31) - 1, "8004 8a05ffffff7fff 2e");
    assert_integer(INT64_MAX, "8004 8a08ffffffffffffff7f 2e");
    assert_integer(INT64_MIN, "8004 8a080000000000000080 2e");
}

TEST(long_text_has_a_long_length) {
    char text[301];
    memset(text, 'a', sizeof text - 1);
    text[300] = '\0';
    CLEARED_BY(bytes_clear) struct bytes out = {0};
    struct pickle_writer writer;
    pickle_writer_begin(&writer, &out);
    pickle_write_text(&writer, slice_from_string(text));
    assert_int_equal(pickle_writer_end(&writer), FAILURE_NONE);
    assert_int_equal(out.length, 2 + 5 + 300 + 1);
    assert_memory_equal(out.data + 2, "X\054\001\000\000aaa", 8);
}

TEST_OF(
    bytes, a_failure_sticks_and_leaves_the_buffer_as_it_was, bytes_init(&fixture, 8), bytes_clear) {
    struct pickle_writer writer;
    assert_int_equal(bytes_append(fixture, "x", 1), FAILURE_NONE);
    pickle_writer_begin(&writer, fixture);
    pickle_write_text(&writer, slice_from_string("too long for the buffer"));
    pickle_write_boolean(&writer, true);
    assert_int_equal(pickle_writer_end(&writer), FAILURE_LIMIT);
    assert_int_equal(fixture->length, 1);
    pickle_writer_begin(&writer, fixture);
    pickle_write_text(&writer, slice_from_string("\377"));
    pickle_write_boolean(&writer, true);
    assert_int_equal(pickle_writer_end(&writer), FAILURE_INVALID);
    assert_int_equal(fixture->length, 1);
    char text[256] = {0};
    bytes_clear(fixture);
    bytes_init(fixture, 0);
    pickle_writer_begin(&writer, fixture);
    pickle_write_bytes(&writer, (struct slice){(const uint8_t *)text, sizeof text});
    assert_int_equal(pickle_writer_end(&writer), FAILURE_LIMIT);
}

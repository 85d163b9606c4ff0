/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/standby/gate_message.h"

static enum failure_code read(const char *text, int64_t *pid, struct slice *imports) {
    return standby_record_read_hello(slice_from_string(text), pid, imports);
}

TEST(the_first_line_says_who_has_reached_the_hook) {
    int64_t pid;
    struct slice imports;
    assert_int_equal(read("hello 1 4242\njson\t/lib\n", &pid, &imports), FAILURE_NONE);
    assert_int_equal(pid, 4242);
    assert_true(slice_equals(imports, slice_from_string("json\t/lib\n")));
    assert_int_equal(read("hello 1 7\n", &pid, &imports), FAILURE_NONE);
    assert_int_equal(imports.length, 0);
}

TEST(a_line_that_is_not_there_yet_is_awaited) {
    int64_t pid;
    struct slice imports;
    assert_int_equal(read("", &pid, &imports), FAILURE_INCOMPLETE);
    assert_int_equal(read("hello 1 42", &pid, &imports), FAILURE_INCOMPLETE);
}

TEST(another_line_is_no_hello) {
    int64_t pid = 5;
    struct slice imports;
    assert_int_equal(read("json\t/lib\n", &pid, &imports), FAILURE_MALFORMED);
    assert_int_equal(read("hello 1 \n", &pid, &imports), FAILURE_MALFORMED);
    assert_int_equal(read("hello 1 -1\n", &pid, &imports), FAILURE_MALFORMED);
    assert_int_equal(read("hello 1 12345678901\n", &pid, &imports), FAILURE_MALFORMED);
    assert_int_equal(read("hello 2 1\n", &pid, &imports), FAILURE_UNSUPPORTED);
    assert_int_equal(
        read("hello 1 000000000000000000000000000000001\n", &pid, &imports), FAILURE_MALFORMED);
    assert_int_equal(pid, 5);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/failure/python_stack.h"

static void a_mapping_of_a_file_is_read(void **state) {
    (void)state;
    struct memory_mapping mapping;
    assert_int_equal(
        memory_map_read_line(
            slice_from_string("00b47000-00be2000 rw-p 00746000 fe:00 1062395      /usr/bin/a b"),
            &mapping),
        FAILURE_NONE);
    assert_int_equal(mapping.start, 0xb47000);
    assert_int_equal(mapping.end, 0xbe2000);
    assert_true(mapping.is_readable);
    assert_true(mapping.is_writable);
    assert_true(slice_equals(mapping.path, slice_from_string("/usr/bin/a b")));
    assert_true(memory_mapping_is_file(&mapping, "a "));
    assert_false(memory_mapping_is_file(&mapping, "bin"));
}

static void memory_without_a_file_has_no_path(void **state) {
    (void)state;
    struct memory_mapping mapping;
    assert_int_equal(
        memory_map_read_line(
            slice_from_string("7ffd9949fc00-7ffd9949fd00 r--p 00000000 00:00 0 "), &mapping),
        FAILURE_NONE);
    assert_false(mapping.is_writable);
    assert_int_equal(mapping.path.length, 0);
    assert_false(memory_mapping_is_file(&mapping, ""));
}

static void other_lines_are_refused(void **state) {
    (void)state;
    static const char *const lines[] = {"", "-", "12", "12-", "12-34", "12-34 r-", "34-12 r--p 0",
        "12-12 r--p 0", "fffffffffffffffff-12 r--p", "xy-12 r--p 0 0 0"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct memory_mapping mapping;
        assert_int_equal(
            memory_map_read_line(slice_from_string(lines[i]), &mapping), FAILURE_MALFORMED);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_mapping_of_a_file_is_read),
    cmocka_unit_test(memory_without_a_file_has_no_path),
    cmocka_unit_test(other_lines_are_refused),
};

UNIT_TESTS(tests)

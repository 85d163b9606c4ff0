/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/failure/python_stack.h"

/* Line 10: 2 instructions (short form); line 12: 1 (one-line form); line 9: 1 (line only, -3);
 * none: 1; line 109: 8 (long form, +100). */
static const uint8_t table[] = {0x81, 0x00, 0x80 | 12 << 3, 0x01, 0x02, 0x80 | 13 << 3, 0x07,
    0x80 | 15 << 3, 0x80 | 14 << 3 | 7, 0x40 | 8, 3, 0, 1, 1};

static enum failure_code find(uint64_t offset, int *out_line) {
    return python_lines_find((struct slice){table, sizeof table}, 10, offset, out_line);
}

static void instructions_have_lines(void **state) {
    (void)state;
    static const struct {
        uint64_t offset;
        int line;
    } cases[] = {{0, 10}, {3, 10}, {4, 12}, {6, 9}, {10, 109}, {25, 109}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int line = 0;
        assert_int_equal(find(cases[i].offset, &line), FAILURE_NONE);
        assert_int_equal(line, cases[i].line);
    }
}

static void some_have_none(void **state) {
    (void)state;
    int line = 7;
    assert_int_equal(find(8, &line), FAILURE_MISSING);
    assert_int_equal(find(26, &line), FAILURE_MISSING);
    assert_int_equal(line, 7);
}

static void other_bytes_are_no_table(void **state) {
    (void)state;
    static const uint8_t no_mark[] = {0x01};
    static const uint8_t no_number[] = {0x80 | 13 << 3};
    static const uint8_t endless[] = {
        0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x01};
    static const uint8_t below_zero[] = {0x80 | 13 << 3, 0x0d};
    static const struct slice tables[] = {{no_mark, sizeof no_mark}, {no_number, sizeof no_number},
        {endless, sizeof endless}, {below_zero, sizeof below_zero}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        int line;
        assert_int_equal(python_lines_find(tables[i], 1, 0, &line), FAILURE_MALFORMED);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(instructions_have_lines),
    cmocka_unit_test(some_have_none),
    cmocka_unit_test(other_bytes_are_no_table),
};

UNIT_TESTS(tests)

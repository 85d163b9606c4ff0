/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/pickle/pickle_writer.h"

static void opcodes_are_called_as_python_calls_them(void **state) {
    (void)state;
    assert_string_equal(pickle_opcode_name(PICKLE_STOP), "STOP");
    assert_string_equal(pickle_opcode_name(0x93), "STACK_GLOBAL");
    assert_string_equal(pickle_opcode_name('i'), "INST");
    assert_string_equal(pickle_opcode_name(0x98), "READONLY_BUFFER");
}

static void every_opcode_of_protocols_0_to_5_has_a_name_of_its_own(void **state) {
    (void)state;
    size_t count = 0;
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        const char *name = pickle_opcode_name((uint8_t)opcode);
        count += name != NULL;
        for (unsigned other = 0; name != NULL && other < opcode; other++) {
            const char *other_name = pickle_opcode_name((uint8_t)other);
            assert_true(other_name == NULL || strcmp(name, other_name) != 0);
        }
    }
    assert_int_equal(count, 68);
    assert_null(pickle_opcode_name(0));
    assert_null(pickle_opcode_name(0xff));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(opcodes_are_called_as_python_calls_them),
    cmocka_unit_test(every_opcode_of_protocols_0_to_5_has_a_name_of_its_own),
};

UNIT_TESTS(tests)

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/rendezvous/protocol_version.h"

#define SIXTY_THREE "012345678901234567890123456789012345678901234567890123456789012"

TEST(this_program_has_a_version_that_can_be_read) {
    struct protocol_version own = protocol_version_own();
    struct protocol_version read;
    CLEARED_BY(text_clear) struct text text = {0};
    protocol_version_write(&own, &text);
    assert_string_equal(text_string(&text), "1 muster " MUSTER_VERSION);
    assert_int_equal(
        protocol_version_read(slice_from_string(text_string(&text)), &read), FAILURE_NONE);
    assert_int_equal(read.number, own.number);
    assert_string_equal(read.program, own.program);
}

TEST(a_later_version_is_read_and_described) {
    struct protocol_version version;
    CLEARED_BY(text_clear) struct text text = {0};
    struct slice later = slice_from_string("999999 muster 12.0~rc1");
    assert_int_equal(protocol_version_read(later, &version), FAILURE_NONE);
    protocol_version_describe(&version, &text);
    assert_string_equal(
        text_string(&text), "muster 12.0~rc1, which speaks version 999999 of Muster's protocol");
    assert_int_equal(
        protocol_version_read(slice_from_string("1 " SIXTY_THREE), &version), FAILURE_NONE);
    assert_string_equal(version.program, SIXTY_THREE);
}

TEST(other_texts_are_no_versions) {
    static const char *const texts[] = {"", " ", "1", "1 ", "muster 1", "0 muster", "01 muster",
        "-1 muster", "+1 muster", "1_0 muster", "1\tmuster", "1000000 muster",
        "99999999999999999999 muster", "1 \033[2J", "1 m\n", "1 \x7f", "1 m\xc3\xbc",
        "1 " SIXTY_THREE "3"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct protocol_version version = {.number = 7, .program = "kept"};
        assert_int_equal(
            protocol_version_read(slice_from_string(texts[i]), &version), FAILURE_MALFORMED);
        assert_int_equal(version.number, 7);
        assert_string_equal(version.program, "kept");
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/utf8.h"

static size_t length_of(const char *text) {
    struct slice bytes = slice_from_string(text);
    return utf8_character_length(bytes.data, bytes.length);
}

static void characters_end_where_unicode_says(void **state) {
    (void)state;
    assert_int_equal(length_of("a\303\251"), 1);
    assert_int_equal(length_of("\303\251a"), 2);
    assert_int_equal(length_of("\340\240\200"), 3);
    assert_int_equal(length_of("\355\237\277"), 3);
    assert_int_equal(length_of("\357\277\275"), 3);
    assert_int_equal(length_of("\360\220\200\200"), 4);
    assert_int_equal(length_of("\364\217\277\277"), 4);
}

static void what_is_no_character_has_no_length(void **state) {
    (void)state;
    static const char *const wrong[] = {"", "\200", "\301\277", "\303", "\303(", "\340\237\277",
        "\355\240\200", "\360\217\277\277", "\360\220\200", "\364\220\200\200", "\365\200\200\200",
        "\377"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(length_of(wrong[i]), 0);
    }
}

static void python_text_may_hold_lone_surrogates(void **state) {
    (void)state;
    assert_true(utf8_is_python_text(slice_from_string("")));
    assert_true(utf8_is_python_text(slice_from_string("n\303\266de \360\237\220\247")));
    assert_true(utf8_is_python_text(slice_from_string("a\355\240\200b\355\277\277")));
    assert_false(utf8_is_python_text(slice_from_string("a\355\240")));
    assert_false(utf8_is_python_text(slice_from_string("a\355\240b")));
    assert_false(utf8_is_python_text(slice_from_string("n\366de")));
    assert_false(utf8_is_python_text(slice_from_string("a\303")));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(characters_end_where_unicode_says),
    cmocka_unit_test(what_is_no_character_has_no_length),
    cmocka_unit_test(python_text_may_hold_lone_surrogates),
};

TEST_MAIN(tests)

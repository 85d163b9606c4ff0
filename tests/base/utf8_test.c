/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/bytes.h"
#include "base/utf8.h"

static size_t length_of(const char *text) {
    struct slice bytes = slice_from_string(text);
    return utf8_character_length(bytes.data, bytes.length);
}

TEST(characters_end_where_unicode_says) {
    assert_int_equal(length_of("a\303\251"), 1);
    assert_int_equal(length_of("\303\251a"), 2);
    assert_int_equal(length_of("\340\240\200"), 3);
    assert_int_equal(length_of("\355\237\277"), 3);
    assert_int_equal(length_of("\357\277\275"), 3);
    assert_int_equal(length_of("\360\220\200\200"), 4);
    assert_int_equal(length_of("\364\217\277\277"), 4);
}

TEST(what_is_no_character_has_no_length) {
    static const char *const wrong[] = {"", "\200", "\301\277", "\303", "\303(", "\340\237\277",
        "\355\240\200", "\360\217\277\277", "\360\220\200", "\364\220\200\200", "\365\200\200\200",
        "\377"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(length_of(wrong[i]), 0);
    }
}

TEST(python_text_may_hold_lone_surrogates) {
    static const char *const good[] = {
        "", "n\303\266de \360\237\220\247", "a\355\240\200b\355\277\277"};
    static const char *const bad[] = {"a\355\240", "a\355\240b", "n\366de", "a\303"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(utf8_is_python_text((const uint8_t *)good[i], strlen(good[i])));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(utf8_is_python_text((const uint8_t *)bad[i], strlen(bad[i])));
    }
}

static void check_printable(const char *given, const char *expected) {
    char text[64];
    strncpy(text, given, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    utf8_make_string_printable(text);
    assert_string_equal(text, expected);
}

TEST(what_is_shown_does_nothing_to_a_terminal) {
    check_printable("", "");
    check_printable("n\303\266de\n\t\360\237\220\247", "n\303\266de\n\t\360\237\220\247");
    check_printable("\033[1;31mred\033[0m \033[m", "red ");
    check_printable("\033]0;title\007", "?]0;title?");
    check_printable("\033[2J\033[6n\033[31", "?[2J?[6n?[31");
    check_printable("a\rb\bc\177\302\233m\302\240", "a?b?c??m\302\240");
    check_printable("\233m \303", "?m ?");
}

TEST(a_line_stays_one_line) {
    char line[] = "one\ntwo\t\033[31mthree \342\200\256gnp.exe\342\201\246\330\234\303\266";
    utf8_make_line_printable(line);
    assert_string_equal(line, "one?two?three ?gnp.exe??\303\266");
}

TEST(bytes_may_hold_zeros) {
    char bytes[] = {'a', 0, '\033', '[', 'm', 'b'};
    assert_int_equal(utf8_make_printable(bytes, sizeof bytes), 3);
    assert_memory_equal(bytes, "a?b", 3);
}

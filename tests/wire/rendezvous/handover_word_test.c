/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/rendezvous/host_answer.h"

static void each_word_is_read_as_itself(void **state) {
    (void)state;
    for (int i = 0; i < HANDOVER_WORD_COUNT; i++) {
        enum handover_word word = HANDOVER_WORD_COUNT;
        assert_true(handover_word_read(
            slice_from_string(handover_word_text((enum handover_word)i)), &word));
        assert_int_equal(word, i);
    }
}

static void no_other_text_is_a_word(void **state) {
    static const char *const texts[] = {"", "name", "named ", "Moved", "moved 3", "standing 2"};
    enum handover_word word = HANDOVER_MOVED;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(handover_word_read(slice_from_string(texts[i]), &word));
        assert_int_equal(word, HANDOVER_MOVED);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_word_is_read_as_itself),
    cmocka_unit_test(no_other_text_is_a_word),
};

UNIT_TESTS(tests)

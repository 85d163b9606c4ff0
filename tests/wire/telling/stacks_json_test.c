/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/failure/failure_report.h"
#include "wire/telling/stacks_json.h"

#define LINE(ranks, words, stack)                                                                  \
    "{\"schema\":\"muster.stacks/1\",\"ranks\":" ranks ",\"words\":" words ",\"stack\":" stack "}"

static enum failure_code read(const char *line, struct folded_stacks *folded) {
    return stacks_json_read(slice_from_string(line), false, folded);
}

TEST(what_is_written_is_read) {
    CLEARED_BY(folded_stacks_clear) struct folded_stacks folded = {0};
    CLEARED_BY(folded_stacks_clear) struct folded_stacks again = {0};
    CLEARED_BY(text_clear) struct text line = {0};
    CLEARED_BY(text_clear) struct text counted = {0};
    folded_stacks_add(&folded, "a \"b\".py:1 in f\nc.py:2 in <module>\n", "running", false, 7, 1);
    folded_stacks_add(&folded, "a \"b\".py:1 in f\nc.py:2 in <module>\n", "running", false, 2, 3);
    stacks_json_write(&folded.items[0], &line);
    assert_string_equal(text_string(&line),
        LINE("[2,7]", "\"running\"", "[\"a \\\"b\\\".py:1 in f\",\"c.py:2 in <module>\"]") "\n");
    assert_int_equal(read(text_string(&line), &again), FAILURE_NONE);
    assert_int_equal(again.count, 1);
    assert_string_equal(again.items[0].stack, folded.items[0].stack);
    assert_int_equal(again.items[0].rank_count, 2);
    stacks_json_write_counted(&folded.items[0], &counted);
    assert_string_equal(text_string(&counted),
        "{\"ranks\":[2,7],\"times\":[3,1],\"words\":\"running\","
        "\"stack\":[\"a \\\"b\\\".py:1 in f\",\"c.py:2 in <module>\"]}");
}

TEST(a_stack_may_be_unknown) {
    CLEARED_BY(folded_stacks_clear) struct folded_stacks folded = {0};
    CLEARED_BY(text_clear) struct text line = {0};
    assert_int_equal(read(LINE("[0]", "\"gone\"", "null"), &folded), FAILURE_NONE);
    assert_null(folded.items[0].stack);
    stacks_json_write(&folded.items[0], &line);
    assert_string_equal(text_string(&line), LINE("[0]", "\"gone\"", "null") "\n");
}

TEST(nonsense_is_refused_and_adds_nothing) {
    static const char *const wrong[] = {"", "{}", "[]", "nonsense", LINE("[]", "\"a\"", "null"),
        LINE("[-1]", "\"a\"", "null"), LINE("[0,\"1\"]", "\"a\"", "null"),
        LINE("[2147483648]", "\"a\"", "null"), LINE("7", "\"a\"", "null"), LINE("[0]", "7", "null"),
        LINE("[0]", "\"a\"", "[7]"),
        "{\"schema\":\"muster.stacks/2\",\"ranks\":[0],\"words\":\"a\",\"stack\":null}"};
    CLEARED_BY(folded_stacks_clear) struct folded_stacks folded = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(read(wrong[i], &folded), FAILURE_MALFORMED);
    }
    assert_int_equal(folded.count, 0);
}

TEST(what_is_shown_is_one_line_that_may_be_shown) {
    CLEARED_BY(folded_stacks_clear) struct folded_stacks folded = {0};
    assert_int_equal(
        read(LINE("[0]", "\"a\\u001b[2Jb\\nc\"", "[\"x\\ny.py:1 in f\\u0007\"]"), &folded),
        FAILURE_NONE);
    assert_string_equal(folded.items[0].words, "a?[2Jb?c");
    assert_string_equal(folded.items[0].stack, "x?y.py:1 in f?\n");
}

TEST(a_stack_has_a_few_lines_and_a_line_a_few_ranks) {
    CLEARED_BY(folded_stacks_clear) struct folded_stacks folded = {0};
    CLEARED_BY(text_clear) struct text line = {0};
    text_append(
        &line, "{\"schema\":\"muster.stacks/1\",\"words\":\"a\",\"ranks\":[0],\"stack\":[\"f\"");
    for (int i = 0; i < 100; i++) {
        text_append(&line, ",\"f\"");
    }
    text_append(&line, "]}");
    assert_int_equal(read(text_string(&line), &folded), FAILURE_NONE);
    assert_int_equal(strlen(folded.items[0].stack), 2 * HANG_SUMMARY_FRAMES_MAXIMUM);
    line.length = 0;
    text_append(
        &line, "{\"schema\":\"muster.stacks/1\",\"words\":\"a\",\"stack\":null,\"ranks\":[0");
    for (size_t i = 0; i < STACKS_RANKS_MAXIMUM; i++) {
        text_append(&line, ",0");
    }
    text_append(&line, "]}");
    assert_int_equal(read(text_string(&line), &folded), FAILURE_MALFORMED);
}

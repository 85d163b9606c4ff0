/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "taken_memory.h"
#include "wire/json/json_document.h"

static struct json_document *parse(const char *input) {
    struct json_document *document;
    assert_int_equal(
        json_document_parse(slice_from_string(input), 1000, &document, NULL), FAILURE_NONE);
    return document;
}

static void check_rewritten(const char *input, const char *expected) {
    struct json_document *document = parse(input);
    CLEARED_BY(text_clear) struct text text = {0};
    json_value_write(json_document_root(document), &text);
    assert_string_equal(text_string(&text), expected);
    json_document_free(document);
}

TEST(writing_spells_as_python_does) {
    check_rewritten("{\"b\":1,\"a\":[true,false,null],\"c\":{}}",
        "{\"b\": 1, \"a\": [true, false, null], \"c\": {}}");
    check_rewritten("\"\303\251\360\237\230\200\\n\\u0001\x7f/\\\\\\\"\\b\\f\\r\\t\"",
        "\"\\u00e9\\ud83d\\ude00\\n\\u0001\x7f/\\\\\\\"\\b\\f\\r\\t\"");
    check_rewritten("[0.1, 1.0, 1e16, -2.5e-7]", "[0.1, 1.0, 1e+16, -2.5e-07]");
}

TEST(bad_text_is_refused_with_a_reason) {
    static const char *const bad[] = {"", "{", "{\"a\": }", "[1] x", "nul"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct json_document *document = NULL;
        CLEARED_BY(text_clear) struct text reason = {0};
        assert_int_equal(json_document_parse(slice_from_string(bad[i]), 1000, &document, &reason),
            FAILURE_MALFORMED);
        assert_true(text_starts_with(text_string(&reason), "no JSON (line "));
        assert_null(document);
    }
}

TEST(size_and_depth_have_ceilings) {
    struct json_document *document = NULL;
    assert_int_equal(
        json_document_parse(slice_from_string("[1, 2]"), 5, &document, NULL), FAILURE_LIMIT);
    char deep[JSON_DOCUMENT_MAXIMUM_DEPTH + 2];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    assert_int_equal(
        json_document_parse(slice_from_string(deep), 1000, &document, NULL), FAILURE_LIMIT);
    assert_null(document);
}

/* Whatever is missing, the reserve is there for it: what is JSON is never said to be none. */
TEST(text_is_parsed_with_the_reserve_where_there_is_no_other_memory) {
    char input[900];
    enum failure_code codes[40];
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    memset(input, 'x', sizeof input);
    input[0] = input[sizeof input - 1] = '"';
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct json_document *document = NULL;
        CLEARED_BY(text_clear) struct text reason = {0};
        assert_true(spare_memory_keep_reserve());
        void *left = malloc(1 + i * 128);
        struct rlimit before = taken_memory_begin();
        struct taken_memory *taken = taken_memory_take(NULL, (size_t)1 << 20);
        free(left);
        codes[i] = json_document_parse(
            (struct slice){(const uint8_t *)input, sizeof input}, 1000, &document, &reason);
        taken_memory_end(taken, before);
        json_document_free(document);
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        assert_int_equal(codes[i], FAILURE_NONE);
    }
    (void)spare_memory_give_up_reserve();
}

/* What Python can write or read and a strict parser cannot. */

static void expect_read(const char *input, const char *written) {
    struct json_document *document = NULL;
    CLEARED_BY(text_clear) struct text text = {0};
    CLEARED_BY(text_clear) struct text reason = {0};
    enum failure_code code =
        json_document_parse(slice_from_string(input), 1000, &document, &reason);
    if (written == NULL) {
        assert_int_equal(code, FAILURE_MALFORMED);
    } else {
        assert_int_equal(code, FAILURE_NONE);
        json_value_write(json_document_root(document), &text);
        assert_string_equal(text_string(&text), written);
        json_document_free(document);
    }
}

TEST(lone_surrogates_are_replaced) {
    expect_read("[\"\\udc80\"]", "[\"\\ufffd\"]");
    expect_read("[\"\\ud83dx\\ude00\"]", "[\"\\ufffdx\\ufffd\"]");
    expect_read("[\"\\ud83d\\ud83d\\ude00\"]", "[\"\\ufffd\\ud83d\\ude00\"]");
    expect_read("[\"\\u0000\"]", "[\"\\ufffd\"]");
    expect_read("[\"\\u00e9 \\ud83d\\ude00 \303\251\"]", "[\"\\u00e9 \\ud83d\\ude00 \\u00e9\"]");
}

TEST(escaped_backslashes_hide_no_escapes) {
    expect_read("[\"\\\\udc80\"]", "[\"\\\\udc80\"]");
    expect_read("[\"\\u00\"]", NULL);
}

TEST(bytes_that_are_no_characters_are_replaced) {
    expect_read("[\"\xff\"]", "[\"\\ufffd\"]");
    expect_read("[\"\xc3\"]", "[\"\\ufffd\"]");
    expect_read("[\"\xed\xa0\x80\"]", "[\"\\ufffd\\ufffd\\ufffd\"]");
    expect_read("[\"\xc0\xaf\"]", "[\"\\ufffd\\ufffd\"]");
    expect_read("[\"\xf4\x90\x80\x80\"]", "[\"\\ufffd\\ufffd\\ufffd\\ufffd\"]");
    expect_read("[\"\\\xff\"]", NULL);
}

TEST(numbers_that_are_none_are_replaced_outside_strings) {
    expect_read(
        "[NaN, Infinity, -Infinity]", "[null, 1.7976931348623157e+308, -1.7976931348623157e+308]");
    expect_read("[\"NaN\", \"-Infinity\", -1]", "[\"NaN\", \"-Infinity\", -1]");
    expect_read("[Na]", NULL);
}

TEST(text_loses_nul_and_broken_characters) {
    CLEARED_BY(text_clear) struct text text = {0};
    json_repair_text((struct slice){(const uint8_t *)"a\0\xff", 3}, &text);
    assert_string_equal(text_string(&text), "a\xef\xbf\xbd\xef\xbf\xbd");
}

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
    struct text text = {0};
    json_value_write(json_document_root(document), &text);
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
    json_document_free(document);
}

static void values_are_found_by_name_and_place(void **state) {
    (void)state;
    struct json_document *document = parse("{\"a\": [1, 2.5, \"x\"], \"b\": {\"c\": null}}");
    struct json_value *root = json_document_root(document);
    assert_true(json_value_is_object(root));
    struct json_value *array = json_value_member(root, "a");
    assert_true(json_value_is_array(array));
    assert_int_equal(json_value_item_count(array), 3);
    int64_t integer;
    double number;
    assert_true(json_value_integer(json_value_item(array, 0), &integer));
    assert_int_equal(integer, 1);
    assert_false(json_value_integer(json_value_item(array, 1), &integer));
    assert_true(json_value_number(json_value_item(array, 1), &number));
    assert_true(number == 2.5);
    assert_string_equal(json_value_text(json_value_item(array, 2)), "x");
    assert_null(json_value_item(array, 3));
    assert_null(json_value_text(json_value_member(json_value_member(root, "b"), "c")));
    json_document_free(document);
}

static void only_true_is_true(void **state) {
    (void)state;
    struct json_document *document = parse("[true, false, 1, \"true\", null]");
    struct json_value *root = json_document_root(document);
    assert_true(json_value_is_true(json_value_item(root, 0)));
    for (size_t i = 1; i < 6; i++) {
        assert_false(json_value_is_true(json_value_item(root, i)));
    }
    json_document_free(document);
}

static void nothing_is_found_in_nothing(void **state) {
    (void)state;
    int64_t integer;
    double number;
    assert_null(json_value_member(NULL, "a"));
    assert_null(json_value_item(NULL, 0));
    assert_null(json_value_text(NULL));
    assert_int_equal(json_value_item_count(NULL), 0);
    assert_false(json_value_is_object(NULL));
    assert_false(json_value_integer(NULL, &integer));
    assert_false(json_value_number(NULL, &number));
    json_document_free(NULL);
}

static void writing_spells_as_python_does(void **state) {
    (void)state;
    check_rewritten("{\"b\":1,\"a\":[true,false,null],\"c\":{}}",
        "{\"b\": 1, \"a\": [true, false, null], \"c\": {}}");
    check_rewritten("\"\303\251\360\237\230\200\\n\\u0001\x7f/\\\\\\\"\\b\\f\\r\\t\"",
        "\"\\u00e9\\ud83d\\ude00\\n\\u0001\x7f/\\\\\\\"\\b\\f\\r\\t\"");
    check_rewritten("[0.1, 1.0, 1e16, -2.5e-7]", "[0.1, 1.0, 1e+16, -2.5e-07]");
}

static void members_can_be_set(void **state) {
    (void)state;
    struct json_document *document = parse("{\"a\": 1}");
    json_value_set_integer(json_document_root(document), "errorCode", -9);
    json_value_set_integer(json_document_root(document), "a", 2);
    struct text text = {0};
    json_value_write(json_document_root(document), &text);
    assert_string_equal(text_string(&text), "{\"a\": 2, \"errorCode\": -9}");
    text_clear(&text);
    json_document_free(document);
}

static bool is_old(void *context, const char *rest) {
    return strcmp(rest, context) < 0;
}

static void members_of_a_tree_can_be_set_and_removed(void **state) {
    (void)state;
    struct json_document *document =
        parse("{\"a.1\": 1, \"a.2\": 2, \"a.3\": 3, \"b.1\": {}, \"c\": []}");
    struct json_value *root = json_document_root(document);
    struct text text = {0};
    char first_kept[] = "3";
    json_value_set_text(json_value_set_object(root, "b.1"), "x", "\xc3\xa9 \xff");
    json_value_set_text(json_value_set_object(root, "c"), "y", "");
    json_value_remove(root, "a.", is_old, first_kept);
    json_value_write(root, &text);
    assert_string_equal(text_string(&text),
        "{\"a.3\": 3, \"b.1\": {\"x\": \"\\u00e9 \\ufffd\"}, \"c\": {\"y\": \"\"}}");
    text_clear(&text);
    json_document_free(document);
}

static void bad_text_is_refused_with_a_reason(void **state) {
    (void)state;
    static const char *const bad[] = {"", "{", "{\"a\": }", "[1] x", "nul"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct json_document *document = NULL;
        struct text reason = {0};
        assert_int_equal(json_document_parse(slice_from_string(bad[i]), 1000, &document, &reason),
            FAILURE_MALFORMED);
        assert_true(text_starts_with(text_string(&reason), "no JSON (line "));
        assert_null(document);
        text_clear(&reason);
    }
}

static void size_and_depth_have_ceilings(void **state) {
    (void)state;
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
static void text_is_parsed_with_the_reserve_where_there_is_no_other_memory(void **state) {
    (void)state;
    char input[900];
    enum failure_code codes[40];
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    memset(input, 'x', sizeof input);
    input[0] = input[sizeof input - 1] = '"';
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct json_document *document = NULL;
        struct text reason = {0};
        assert_true(spare_memory_keep_reserve());
        void *left = malloc(1 + i * 128);
        struct rlimit before = taken_memory_begin();
        struct taken_memory *taken = taken_memory_take(NULL, (size_t)1 << 20);
        free(left);
        codes[i] = json_document_parse(
            (struct slice){(const uint8_t *)input, sizeof input}, 1000, &document, &reason);
        taken_memory_end(taken, before);
        json_document_free(document);
        text_clear(&reason);
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        assert_int_equal(codes[i], FAILURE_NONE);
    }
    (void)spare_memory_give_up_reserve();
}

static void any_string_becomes_a_json_string(void **state) {
    (void)state;
    struct text text = {0};
    json_text_write("tr\xff\"", &text);
    assert_string_equal(text_string(&text), "\"tr\\ufffd\\\"\"");
    text_clear(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_are_found_by_name_and_place),
    cmocka_unit_test(only_true_is_true),
    cmocka_unit_test(nothing_is_found_in_nothing),
    cmocka_unit_test(writing_spells_as_python_does),
    cmocka_unit_test(members_can_be_set),
    cmocka_unit_test(members_of_a_tree_can_be_set_and_removed),
    cmocka_unit_test(bad_text_is_refused_with_a_reason),
    cmocka_unit_test(size_and_depth_have_ceilings),
    cmocka_unit_test(text_is_parsed_with_the_reserve_where_there_is_no_other_memory),
    cmocka_unit_test(any_string_becomes_a_json_string),
};

UNIT_TESTS(tests)

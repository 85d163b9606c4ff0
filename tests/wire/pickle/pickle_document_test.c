/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/pickle/pickle_document.h"

struct fixture {
    struct pickle_document document;
    struct text reason;
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->document.maximum_values = 200;
    fixture->document.maximum_items = 10;
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    pickle_document_clear(&fixture->document);
    text_clear(&fixture->reason);
    free(fixture);
    return 0;
}

static uint32_t add(struct fixture *fixture, struct pickle_value value) {
    uint32_t index;
    assert_int_equal(
        pickle_document_add(&fixture->document, &value, &index, &fixture->reason), FAILURE_NONE);
    return index;
}

static uint32_t add_kind(struct fixture *fixture, enum pickle_kind kind) {
    return add(fixture, (struct pickle_value){.kind = kind});
}

static uint32_t add_integer(struct fixture *fixture, int64_t integer) {
    return add(fixture, (struct pickle_value){.kind = PICKLE_VALUE_INTEGER, .integer = integer});
}

static uint32_t add_text(struct fixture *fixture, const char *text) {
    return add(fixture,
        (struct pickle_value){.kind = PICKLE_VALUE_TEXT, .bytes = slice_from_string(text)});
}

static enum failure_code put(struct fixture *fixture, uint32_t container, uint32_t item) {
    return pickle_document_put(&fixture->document, container, &item, 1, &fixture->reason);
}

static uint32_t add_object(struct fixture *fixture, enum pickle_class of_class) {
    uint32_t object;
    assert_int_equal(pickle_document_add_object(&fixture->document, of_class,
                         add_kind(fixture, PICKLE_VALUE_TUPLE), &object, &fixture->reason),
        FAILURE_NONE);
    return object;
}

TEST_WITH(what_is_no_container_has_no_items, set_up, tear_down) {
    struct fixture *fixture = *state;
    uint32_t integer = add_integer(fixture, 5);
    struct pickle_walk walk =
        pickle_walk_begin(&fixture->document, &fixture->document.values[integer]);
    assert_null(pickle_walk_next(&walk));
}

TEST_WITH(an_object_knows_its_class_arguments_and_attributes, set_up, tear_down) {
    struct fixture *fixture = *state;
    uint32_t object = add_object(fixture, PICKLE_CLASS_NODE);
    uint32_t dict = add_kind(fixture, PICKLE_VALUE_DICT);
    uint32_t items[] = {add_text(fixture, "pid"), add_integer(fixture, 1), add_integer(fixture, 7),
        add_integer(fixture, 2), add_text(fixture, "pid"), add_integer(fixture, 3)};
    assert_int_equal(
        pickle_document_put(&fixture->document, dict, items, 6, &fixture->reason), FAILURE_NONE);
    const struct pickle_value *value = &fixture->document.values[object];
    assert_null(pickle_document_attribute(&fixture->document, value, "pid"));
    assert_int_equal(pickle_document_set_state(&fixture->document, object, dict, &fixture->reason),
        FAILURE_NONE);
    value = &fixture->document.values[object];
    assert_true(pickle_value_is_object(value, PICKLE_CLASS_NODE));
    assert_false(pickle_value_is_object(value, PICKLE_CLASS_DATETIME));
    assert_int_equal(
        pickle_document_arguments(&fixture->document, value)->kind, PICKLE_VALUE_TUPLE);
    assert_int_equal(pickle_document_attribute(&fixture->document, value, "pid")->integer, 3);
    assert_null(pickle_document_attribute(&fixture->document, value, "addr"));
}

TEST_WITH(a_second_state_is_malformed, set_up, tear_down) {
    struct fixture *fixture = *state;
    uint32_t object = add_object(fixture, PICKLE_CLASS_NODE);
    uint32_t dict = add_kind(fixture, PICKLE_VALUE_DICT);
    assert_int_equal(pickle_document_set_state(&fixture->document, object, dict, &fixture->reason),
        FAILURE_NONE);
    assert_int_equal(pickle_document_set_state(&fixture->document, object, dict, &fixture->reason),
        FAILURE_MALFORMED);
}

TEST_WITH(no_value_can_hold_itself, set_up, tear_down) {
    struct fixture *fixture = *state;
    uint32_t list = add_kind(fixture, PICKLE_VALUE_LIST);
    uint32_t other = add_kind(fixture, PICKLE_VALUE_LIST);
    assert_int_equal(put(fixture, list, list), FAILURE_MALFORMED);
    assert_string_equal(
        text_string(&fixture->reason), "a value that changes after it was used, or holds itself");
    assert_int_equal(put(fixture, other, list), FAILURE_NONE);
    assert_int_equal(put(fixture, list, other), FAILURE_MALFORMED);
}

TEST_WITH(too_much_is_refused, set_up, tear_down) {
    struct fixture *fixture = *state;
    uint32_t integer = add_integer(fixture, 1);
    uint32_t list = add_kind(fixture, PICKLE_VALUE_LIST);
    uint32_t dict = add_kind(fixture, PICKLE_VALUE_DICT);
    const uint32_t pair[] = {integer, integer};
    for (int i = 0; i < 10; i++) {
        assert_int_equal(put(fixture, list, integer), FAILURE_NONE);
        assert_int_equal(
            pickle_document_put(&fixture->document, dict, pair, 2, &fixture->reason), FAILURE_NONE);
    }
    assert_int_equal(put(fixture, list, integer), FAILURE_LIMIT);
    assert_string_equal(text_string(&fixture->reason), "a list of more than 10 items");
    assert_int_equal(
        pickle_document_put(&fixture->document, dict, pair, 2, &fixture->reason), FAILURE_LIMIT);
    while (fixture->document.value_count < fixture->document.maximum_values) {
        (void)add_integer(fixture, 2);
    }
    const struct pickle_value none = {.kind = PICKLE_VALUE_NONE};
    uint32_t index;
    assert_int_equal(
        pickle_document_add(&fixture->document, &none, &index, &fixture->reason), FAILURE_LIMIT);
}

TEST_WITH(depth_is_bounded, set_up, tear_down) {
    struct fixture *fixture = *state;
    uint32_t inner = add_kind(fixture, PICKLE_VALUE_LIST);
    for (int depth = 1; depth < PICKLE_MAXIMUM_DEPTH; depth++) {
        uint32_t outer = add_kind(fixture, PICKLE_VALUE_LIST);
        assert_int_equal(put(fixture, outer, inner), FAILURE_NONE);
        inner = outer;
    }
    uint32_t outer = add_kind(fixture, PICKLE_VALUE_LIST);
    assert_int_equal(put(fixture, outer, inner), FAILURE_LIMIT);
    assert_string_equal(text_string(&fixture->reason), "values nest deeper than 32");
}

TEST_WITH(attributes_are_bounded, set_up, tear_down) {
    struct fixture *fixture = *state;
    fixture->document.maximum_items = 1000;
    uint32_t object = add_object(fixture, PICKLE_CLASS_NODE);
    uint32_t dict = add_kind(fixture, PICKLE_VALUE_DICT);
    const uint32_t pair[] = {add_text(fixture, "a"), add_integer(fixture, 1)};
    for (int i = 0; i <= PICKLE_MAXIMUM_ATTRIBUTES; i++) {
        assert_int_equal(
            pickle_document_put(&fixture->document, dict, pair, 2, &fixture->reason), FAILURE_NONE);
    }
    assert_int_equal(pickle_document_set_state(&fixture->document, object, dict, &fixture->reason),
        FAILURE_LIMIT);
    assert_string_equal(text_string(&fixture->reason), "an object of more than 64 attributes");
}

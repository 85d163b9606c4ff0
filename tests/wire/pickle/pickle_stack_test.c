/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/pickle/pickle_reader.h"

struct fixture {
    struct pickle_document document;
    struct pickle_stack stack;
    struct text reason;
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->document.maximum_values = 1000;
    fixture->stack = (struct pickle_stack){
        .document = &fixture->document, .maximum = 300, .reason = &fixture->reason};
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    pickle_stack_clear(&fixture->stack);
    pickle_document_clear(&fixture->document);
    text_clear(&fixture->reason);
    free(fixture);
    return 0;
}

static void push_integer(struct fixture *fixture, int64_t integer) {
    const struct pickle_value value = {.kind = PICKLE_VALUE_INTEGER, .integer = integer};
    assert_int_equal(pickle_stack_push_new(&fixture->stack, &value), FAILURE_NONE);
}

static int64_t pop_integer(struct fixture *fixture) {
    uint32_t value;
    assert_int_equal(pickle_stack_pop(&fixture->stack, PICKLE_VALUE_INTEGER, &value), FAILURE_NONE);
    return fixture->document.values[value].integer;
}

static void the_last_value_comes_first(void **state) {
    struct fixture *fixture = *state;
    push_integer(fixture, 1);
    push_integer(fixture, 2);
    assert_int_equal(pop_integer(fixture), 2);
    assert_int_equal(pop_integer(fixture), 1);
    const uint32_t *values;
    assert_int_equal(pickle_stack_pop_many(&fixture->stack, 1, &values), FAILURE_MALFORMED);
    assert_string_equal(text_string(&fixture->reason), "a value is missing on the stack");
}

static void a_value_of_another_kind_is_named(void **state) {
    struct fixture *fixture = *state;
    uint32_t value;
    push_integer(fixture, 1);
    assert_int_equal(
        pickle_stack_pop(&fixture->stack, PICKLE_VALUE_DICT, &value), FAILURE_MALFORMED);
    assert_string_equal(text_string(&fixture->reason), "an integer where a dict belongs");
    assert_int_equal(pop_integer(fixture), 1);
}

static void a_mark_fences_off_what_is_below(void **state) {
    struct fixture *fixture = *state;
    const uint32_t *values;
    size_t count;
    push_integer(fixture, 1);
    assert_int_equal(pickle_stack_mark(&fixture->stack), FAILURE_NONE);
    assert_int_equal(pickle_stack_pop_many(&fixture->stack, 1, &values), FAILURE_MALFORMED);
    assert_int_equal(pickle_stack_keep(&fixture->stack, 0), FAILURE_MALFORMED);
    push_integer(fixture, 2);
    push_integer(fixture, 3);
    assert_int_equal(pickle_stack_pop_many(&fixture->stack, 3, &values), FAILURE_MALFORMED);
    assert_int_equal(pickle_stack_pop_to_mark(&fixture->stack, &values, &count), FAILURE_NONE);
    assert_int_equal(count, 2);
    assert_int_equal(fixture->document.values[values[0]].integer, 2);
    assert_int_equal(fixture->document.values[values[1]].integer, 3);
    assert_int_equal(pop_integer(fixture), 1);
    assert_int_equal(pickle_stack_pop_to_mark(&fixture->stack, &values, &count), FAILURE_MALFORMED);
}

static void a_mark_on_an_empty_stack_holds_nothing(void **state) {
    struct fixture *fixture = *state;
    const uint32_t *values;
    size_t count;
    assert_int_equal(pickle_stack_mark(&fixture->stack), FAILURE_NONE);
    assert_int_equal(pickle_stack_pop_to_mark(&fixture->stack, &values, &count), FAILURE_NONE);
    assert_int_equal(count, 0);
}

static void dropping_takes_a_value_or_a_mark(void **state) {
    struct fixture *fixture = *state;
    push_integer(fixture, 1);
    push_integer(fixture, 2);
    assert_int_equal(pickle_stack_drop(&fixture->stack), FAILURE_NONE);
    assert_int_equal(pickle_stack_mark(&fixture->stack), FAILURE_NONE);
    assert_int_equal(pickle_stack_drop(&fixture->stack), FAILURE_NONE);
    assert_int_equal(pop_integer(fixture), 1);
    assert_int_equal(pickle_stack_drop(&fixture->stack), FAILURE_MALFORMED);
}

static void the_memo_gives_back_what_was_kept(void **state) {
    struct fixture *fixture = *state;
    push_integer(fixture, 1);
    assert_int_equal(pickle_stack_keep(&fixture->stack, 200), FAILURE_NONE);
    push_integer(fixture, 2);
    assert_int_equal(pickle_stack_keep_next(&fixture->stack), FAILURE_NONE);
    assert_int_equal(pickle_stack_recall(&fixture->stack, 200), FAILURE_NONE);
    assert_int_equal(pop_integer(fixture), 1);
    assert_int_equal(pickle_stack_recall(&fixture->stack, 1), FAILURE_NONE);
    assert_int_equal(pop_integer(fixture), 2);
    assert_int_equal(pickle_stack_recall(&fixture->stack, 0), FAILURE_MALFORMED);
    assert_string_equal(text_string(&fixture->reason), "memo 0 is empty");
    assert_int_equal(pickle_stack_recall(&fixture->stack, 4000000000), FAILURE_MALFORMED);
}

static void stack_memo_and_marks_have_ceilings(void **state) {
    struct fixture *fixture = *state;
    push_integer(fixture, 1);
    assert_int_equal(pickle_stack_keep(&fixture->stack, 299), FAILURE_NONE);
    assert_int_equal(pickle_stack_keep(&fixture->stack, 300), FAILURE_LIMIT);
    assert_int_equal(pickle_stack_keep(&fixture->stack, 4000000000), FAILURE_LIMIT);
    for (int i = 0; i < PICKLE_MAXIMUM_DEPTH; i++) {
        assert_int_equal(pickle_stack_mark(&fixture->stack), FAILURE_NONE);
    }
    assert_int_equal(pickle_stack_mark(&fixture->stack), FAILURE_LIMIT);
    while (fixture->stack.count < 300) {
        assert_int_equal(pickle_stack_recall(&fixture->stack, 299), FAILURE_NONE);
    }
    assert_int_equal(pickle_stack_recall(&fixture->stack, 299), FAILURE_LIMIT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_last_value_comes_first, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_value_of_another_kind_is_named, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_mark_fences_off_what_is_below, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_mark_on_an_empty_stack_holds_nothing, set_up, tear_down),
    cmocka_unit_test_setup_teardown(dropping_takes_a_value_or_a_mark, set_up, tear_down),
    cmocka_unit_test_setup_teardown(the_memo_gives_back_what_was_kept, set_up, tear_down),
    cmocka_unit_test_setup_teardown(stack_memo_and_marks_have_ceilings, set_up, tear_down),
};

UNIT_TESTS(tests)

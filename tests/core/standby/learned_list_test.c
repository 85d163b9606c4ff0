/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/standby/learned_list.h"

static size_t add_text(struct learned_list *list, const char *text) {
    return learned_list_add_text(list, slice_from_string(text));
}

static void assert_text(const struct learned_list *list, const char *expected) {
    assert_true(slice_equals(learned_list_text(list), slice_from_string(expected)));
}

static void modules_keep_the_order_in_which_they_came(void **state) {
    (void)state;
    struct learned_list list;
    learned_list_init(&list);
    assert_int_equal(add_text(&list, "json\t/lib/json.py\nabc\t\n"), 2);
    assert_int_equal(add_text(&list, "zlib\t\njson\t/other/json.py\n"), 1);
    assert_int_equal(learned_list_count(&list), 3);
    assert_text(&list, "json\t/lib/json.py\nabc\t\nzlib\t\n");
    learned_list_clear(&list);
}

static void the_text_of_a_list_makes_the_same_list(void **state) {
    (void)state;
    struct learned_list one;
    struct learned_list other;
    learned_list_init(&one);
    learned_list_init(&other);
    add_text(&one, "a\tb\nc\td\n");
    assert_int_equal(learned_list_add_text(&other, learned_list_text(&one)), 2);
    assert_text(&other, "a\tb\nc\td\n");
    learned_list_clear(&one);
    learned_list_clear(&other);
}

static void a_line_that_is_cut_off_is_not_read(void **state) {
    (void)state;
    struct learned_list list;
    learned_list_init(&list);
    assert_int_equal(add_text(&list, "json\t/lib\nab"), 1);
    assert_int_equal(add_text(&list, ""), 0);
    assert_text(&list, "json\t/lib\n");
    learned_list_clear(&list);
}

static void what_cannot_be_a_module_is_left_out(void **state) {
    (void)state;
    struct learned_list list;
    struct text name = {0};
    learned_list_init(&list);
    assert_int_equal(add_text(&list, "no tab\n\torigin\n\n\x1b[2J\t\na\tb\x01\n\xff\t\n"), 0);
    for (int i = 0; i < LEARNED_LIST_NAME_MAXIMUM; i++) {
        text_append(&name, "n");
    }
    struct slice fits = slice_from_string(text_string(&name));
    assert_true(learned_list_add(&list, fits, (struct slice){0}));
    text_append(&name, "n");
    struct slice is_too_long = slice_from_string(text_string(&name));
    assert_false(learned_list_add(&list, is_too_long, (struct slice){0}));
    assert_int_equal(learned_list_count(&list), 1);
    text_clear(&name);
    learned_list_clear(&list);
}

static void the_text_never_grows_beyond_its_limits(void **state) {
    (void)state;
    struct learned_list list;
    char origin[LEARNED_LIST_ORIGIN_MAXIMUM];
    memset(origin, 'o', sizeof origin);
    learned_list_init(&list);
    for (int i = 0; i < 1100; i++) {
        char *name = text_format("module%d", i);
        (void)learned_list_add(
            &list, slice_from_string(name), (struct slice){(const uint8_t *)origin, sizeof origin});
        free(name);
    }
    assert_true(list.text.length <= LEARNED_LIST_TEXT_MAXIMUM);
    assert_true(list.text.length > LEARNED_LIST_TEXT_MAXIMUM - 2 * LEARNED_LIST_ORIGIN_MAXIMUM);
    struct slice shared = learned_list_shared_text(&list);
    assert_true(shared.length <= LEARNED_LIST_SHARED_MAXIMUM);
    assert_true(shared.length > LEARNED_LIST_SHARED_MAXIMUM - 2 * LEARNED_LIST_ORIGIN_MAXIMUM);
    assert_int_equal(shared.data[shared.length - 1], '\n');
    learned_list_clear(&list);
}

static bool leave_out(struct learned_list *list, const char *name) {
    return learned_list_leave_out(list, slice_from_string(name));
}

static void what_is_left_out_keeps_its_place_and_is_not_learned_again(void **state) {
    (void)state;
    struct learned_list list;
    learned_list_init(&list);
    add_text(&list, "abc\t/a\nab\t/b\nc\t\n");
    assert_true(leave_out(&list, "ab"));
    assert_false(leave_out(&list, "ab"));
    assert_text(&list, "abc\t/a\nab#/b\nc\t\n");
    assert_int_equal(add_text(&list, "ab\t/b\n"), 0);
    assert_true(leave_out(&list, "later"));
    assert_int_equal(add_text(&list, "later\t/l\n"), 0);
    assert_text(&list, "abc\t/a\nab#/b\nc\t\nlater#\n");
    assert_false(leave_out(&list, ""));
    assert_false(leave_out(&list, "a\nb"));
    learned_list_clear(&list);
}

static void another_list_learns_what_is_left_out(void **state) {
    (void)state;
    struct learned_list list;
    learned_list_init(&list);
    add_text(&list, "b\t/here\n");
    assert_int_equal(add_text(&list, "a#/a\nb#/b\n"), 1);
    assert_text(&list, "b#/here\na#/a\n");
    learned_list_clear(&list);
}

static void a_change_that_two_workers_tell_differently_is_not_known(void **state) {
    (void)state;
    struct learned_list list;
    learned_list_init(&list);
    add_text(&list, "=1 A\t12\na\t\n=2 B\t7\n");
    assert_int_equal(add_text(&list, "=1 A\t1\n=2 B\t7\n"), 0);
    assert_text(&list, "=1 A\t??\na\t\n=2 B\t7\n");
    assert_false(leave_out(&list, "=1 A"));
    assert_false(leave_out(&list, "=3 C"));
    assert_text(&list, "=1 A\t??\na\t\n=2 B\t7\n");
    learned_list_clear(&list);
}

static void what_several_lists_have_in_common_keeps_the_order_of_the_first(void **state) {
    (void)state;
    struct learned_list own[3];
    struct learned_list common;
    const struct learned_list *lists[3];
    for (size_t i = 0; i < 3; i++) {
        learned_list_init(&own[i]);
        lists[i] = &own[i];
    }
    learned_list_init(&common);
    add_text(&own[0], "json\t/lib\nonly_first\t/lib\n=1 NAME\tdry\nleft\t/lib\nabc\t/lib\n");
    add_text(&own[1], "abc\t/lib\njson\t/lib\n=2 NAME\tdry\n");
    add_text(&own[2], "abc\t/other\njson\t/lib\nonly_last\t/lib\n");
    assert_true(learned_list_leave_out(&own[0], slice_from_string("left")));
    learned_list_add_common(&common, lists, 3);
    assert_text(&common, "json\t/lib\n=1 NAME\tdry\nleft#/lib\nabc\t/lib\n");
    learned_list_add_common(&common, lists, 1);
    assert_int_equal(learned_list_count(&common), 5);
    for (size_t i = 0; i < 3; i++) {
        learned_list_clear(&own[i]);
    }
    learned_list_clear(&common);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(modules_keep_the_order_in_which_they_came),
    cmocka_unit_test(the_text_of_a_list_makes_the_same_list),
    cmocka_unit_test(a_line_that_is_cut_off_is_not_read),
    cmocka_unit_test(what_cannot_be_a_module_is_left_out),
    cmocka_unit_test(the_text_never_grows_beyond_its_limits),
    cmocka_unit_test(what_is_left_out_keeps_its_place_and_is_not_learned_again),
    cmocka_unit_test(another_list_learns_what_is_left_out),
    cmocka_unit_test(a_change_that_two_workers_tell_differently_is_not_known),
    cmocka_unit_test(what_several_lists_have_in_common_keeps_the_order_of_the_first),
};

UNIT_TESTS(tests)

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/standby/standby_preparation.h"

static size_t add_text(struct learned_list *list, const char *text) {
    return learned_list_add_text(list, slice_from_string(text));
}

static void assert_text(const struct learned_list *list, const char *expected) {
    assert_true(slice_equals(learned_list_text(list), slice_from_string(expected)));
}

#define LEARNED_LIST_TEST(name)                                                                    \
    TEST_OF(learned_list, name, learned_list_init(&fixture), learned_list_clear)

LEARNED_LIST_TEST(modules_keep_the_order_in_which_they_came) {
    assert_int_equal(add_text(fixture, "json\t/lib/json.py\nabc\t\n"), 2);
    assert_int_equal(add_text(fixture, "zlib\t\njson\t/other/json.py\n"), 1);
    assert_int_equal(learned_list_count(fixture), 3);
    assert_text(fixture, "json\t/lib/json.py\nabc\t\nzlib\t\n");
}

LEARNED_LIST_TEST(what_cannot_be_a_module_is_left_out) {
    struct text line = {0};
    assert_int_equal(add_text(fixture, "no tab\n\torigin\n\n\x1b[2J\t\na\tb\x01\n\xff\t\n"), 0);
    for (int i = 0; i < LEARNED_LIST_NAME_MAXIMUM; i++) {
        text_append(&line, "n");
    }
    text_append(&line, "\t\n");
    char *is_too_long = text_format("n%s", text_string(&line));
    assert_int_equal(add_text(fixture, is_too_long), 0);
    assert_int_equal(add_text(fixture, text_string(&line)), 1);
    free(is_too_long);
    text_clear(&line);
}

TEST(the_text_never_grows_beyond_its_limits) {
    struct learned_list list;
    char origin[LEARNED_LIST_ORIGIN_MAXIMUM];
    memset(origin, 'o', sizeof origin);
    learned_list_init(&list);
    for (int i = 0; i < 1100; i++) {
        char *line = text_format("module%d\t%.*s\n", i, (int)sizeof origin, origin);
        (void)add_text(&list, line);
        free(line);
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

static size_t add_told(struct learned_list *list, const char *text) {
    return learned_list_add_told(list, slice_from_string(text));
}

LEARNED_LIST_TEST(a_name_leads_to_no_other_directory) {
    assert_int_equal(add_text(fixture, "../a\t\na/b\t\n.a\t\na.\t\na..b\t\na b\t\n-\n"), 0);
    assert_int_equal(add_text(fixture, "81d__mypyc\t\n_a.b-c\t\n\xc3\xa4.b\t\n"), 3);
}

TEST(the_name_and_the_value_of_a_secret_are_not_kept) {
    static const char *const names[] = {"PIN", "CARD_PIN", "pin_of_card", "DB_PASS", "PASSWORD",
        "MY_SECRET", "HF_TOKEN", "API_KEY", "PWD", "AWS_CREDENTIALS", "BASIC_AUTH", "Otp"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct learned_list list;
        char *own = text_format("=7 %s\t12345\na\t\n", names[i]);
        char *told = text_format("=8 %s\t12345\n=9 %s!1\n", names[i], names[i]);
        learned_list_init(&list);
        assert_int_equal(add_text(&list, own), 2);
        assert_int_equal(add_told(&list, told), 2);
        assert_text(&list, "=7 ?\t?\na\t\n=8 ?!?\n=9 ?!?\n");
        learned_list_clear(&list);
        free(own);
        free(told);
    }
}

LEARNED_LIST_TEST(a_value_that_is_no_short_word_is_not_kept) {
    add_text(fixture, "=1 A\t123456\n=2 B\tsh -c\n=3 C\t12345\n=4 D\t\n=5 E\t????\n=6 F\ta-b\n");
    assert_text(fixture, "=1 A\t?\n=2 B\t?\n=3 C\t12345\n=4 D\t\n=5 E\t????\n=6 F\t?\n");
}

LEARNED_LIST_TEST(what_is_no_variable_is_left_out) {
    assert_int_equal(
        add_text(fixture, "=\t1\n=1\t1\n=1 \t1\n= A\t1\n=1 A-B\t1\n=1 A B\t1\n=x A\t1\n=1 A#1\n"),
        0);
}

LEARNED_LIST_TEST(what_another_node_tells_is_marked_until_a_worker_of_this_one_does_it) {
    assert_int_equal(add_told(fixture, "a\t/x/site-packages/a.py\nb#\n=1 A\t7\n=2 B\t8\nc!\n"), 5);
    assert_text(fixture, "a!/x/site-packages/a.py\nb#\n=1 A!7\n=2 B!8\nc!\n");
    assert_true(slice_equals(learned_list_shared_text(fixture), slice_from_string("b#\n")));
    assert_int_equal(add_text(fixture, "a\t/x/site-packages/a.py\n=1 A\t7\n=2 B\t9\nc\t/c\n"), 0);
    assert_text(fixture, "a\t/x/site-packages/a.py\nb#\n=1 A\t7\n=2 B\t?\nc!\n");
    assert_int_equal(add_told(fixture, "=1 A\t8\na\t/y/site-packages/a.py\n"), 0);
    assert_text(fixture, "a\t/x/site-packages/a.py\nb#\n=1 A\t7\n=2 B\t?\nc!\n");
}

LEARNED_LIST_TEST(what_another_node_tells_is_only_of_libraries) {
    assert_int_equal(add_told(fixture, "a\t/home/me/a.py\nb\tsite-packages/b.py\n"
                                       "c\t/x/site-packages/../../tmp/c.py\nd\t/tmp/d.py\n"),
        0);
    assert_int_equal(add_told(fixture, "a\tbuilt-in\nb\tfrozen\nc\t/usr/lib/python3.11/c.py\n"
                                       "d\t/usr/lib/python3/dist-packages/d.py\n"),
        4);
}

TEST(the_text_of_another_node_is_not_read_beyond_its_limits) {
    struct learned_list list;
    struct text text = {0};
    learned_list_init(&list);
    for (int i = 0; text.length < LEARNED_LIST_SHARED_MAXIMUM; i++) {
        text_append_format(&text, "=%d A\t1\n", i);
    }
    assert_int_equal(add_told(&list, text_string(&text)), 0);
    text.length = LEARNED_LIST_SHARED_MAXIMUM;
    struct slice fits = {(const uint8_t *)text.data, text.length};
    assert_int_equal(learned_list_add_told(&list, fits), LEARNED_LIST_CHANGES_MAXIMUM);
    /* What comes after a change that is not in the list may depend on it. */
    assert_int_equal(add_told(&list, "late\t\n"), 0);
    learned_list_clear(&list);
    text_clear(&text);
}

TEST(a_list_has_so_many_lines_and_no_more) {
    struct learned_list list;
    struct text text = {0};
    learned_list_init(&list);
    for (int i = 0; text.length < LEARNED_LIST_TEXT_MAXIMUM; i++) {
        text_append_format(&text, "%d\t\n", i);
    }
    assert_int_equal(add_text(&list, text_string(&text)), LEARNED_LIST_LINES_MAXIMUM);
    assert_false(leave_out(&list, "late"));
    assert_true(leave_out(&list, "7"));
    learned_list_clear(&list);
    text_clear(&text);
}

LEARNED_LIST_TEST(what_is_left_out_keeps_its_place_and_is_not_learned_again) {
    add_text(fixture, "abc\t/a\nab\t/b\nc\t\n");
    assert_true(leave_out(fixture, "ab"));
    assert_false(leave_out(fixture, "ab"));
    assert_text(fixture, "abc\t/a\nab#/b\nc\t\n");
    assert_int_equal(add_text(fixture, "ab\t/b\n"), 0);
    assert_true(leave_out(fixture, "later"));
    assert_int_equal(add_text(fixture, "later\t/l\n"), 0);
    assert_text(fixture, "abc\t/a\nab#/b\nc\t\nlater#\n");
    assert_false(leave_out(fixture, ""));
    assert_false(leave_out(fixture, "a\nb"));
}

LEARNED_LIST_TEST(programs_lines_are_counted_until_they_are_left_out) {
    assert_int_equal(learned_list_lines(fixture), 0);
    add_text(fixture, "a\t\n__line__.0123456789abcdef\t\nb\t\n__line__.\t\n__line__\t\n");
    assert_int_equal(learned_list_lines(fixture), 1);
    learned_list_add_told(fixture, slice_from_string("__line__.00\t\n"));
    assert_int_equal(learned_list_lines(fixture), 2);
    assert_true(learned_list_leave_out(fixture, slice_from_string("__line__.0123456789abcdef")));
    assert_int_equal(learned_list_lines(fixture), 1);
}

LEARNED_LIST_TEST(programs_lines_are_shared_first) {
    add_text(fixture, "a\t\n__line__.01\t\nb\t\n__line__.02\t\n");
    learned_list_add_told(fixture, slice_from_string("__line__.03\t\n"));
    assert_true(slice_equals(learned_list_shared_text(fixture),
        slice_from_string("__line__.01\t\n__line__.02\t\na\t\nb\t\n")));
}

LEARNED_LIST_TEST(a_change_that_two_workers_tell_differently_is_not_known) {
    add_text(fixture, "=1 A\t12\na\t\n=2 B\t7\n");
    assert_int_equal(add_text(fixture, "=1 A\t1\n=2 B\t7\n"), 0);
    assert_text(fixture, "=1 A\t??\na\t\n=2 B\t7\n");
    assert_false(leave_out(fixture, "=1 A"));
    assert_false(leave_out(fixture, "=3 C"));
    assert_text(fixture, "=1 A\t??\na\t\n=2 B\t7\n");
}

TEST(what_several_lists_have_in_common_keeps_the_order_of_the_first) {
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

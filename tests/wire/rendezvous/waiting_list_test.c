/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "wire/rendezvous/job_notes.h"

static void add(struct text *list, const char *run_id) {
    struct text longer = {0};
    assert_true(waiting_list_add(slice_from_string(text_string(list)), run_id, &longer));
    text_clear(list);
    *list = longer;
}

static void expect(const char *list, const char *run_id, const char *first, const char *second) {
    CLEARED_BY(text_list_clear) struct text_list others = {0};
    waiting_list_read(slice_from_string(list), run_id, 2, &others);
    assert_int_equal(others.count, (first != NULL) + (second != NULL));
    if (first != NULL) {
        assert_string_equal(others.items[0], first);
    }
    if (second != NULL) {
        assert_string_equal(others.items[1], second);
    }
}

TEST(jobs_find_each_other_the_latest_first) {
    CLEARED_BY(text_clear) struct text list = {0};
    add(&list, "one");
    expect(text_string(&list), "one", NULL, NULL);
    add(&list, "two");
    add(&list, "three");
    assert_string_equal(text_string(&list), "one\ntwo\nthree\n");
    expect(text_string(&list), "one", "three", "two");
    expect(text_string(&list), "three", "two", "one");
}

TEST(a_job_is_listed_once) {
    struct text longer = {0};
    assert_false(waiting_list_add(slice_from_string("one\ntwo\n"), "one", &longer));
    assert_int_equal(longer.length, 0);
    expect("two\none\ntwo\n", "job", "two", "one");
}

TEST(what_is_no_line_of_text_is_not_listed) {
    struct text longer = {0};
    char long_id[WAITING_LIST_ID_BYTES + 2];
    memset(long_id, 'x', sizeof long_id);
    long_id[sizeof long_id - 1] = '\0';
    assert_false(waiting_list_add((struct slice){0}, long_id, &longer));
    assert_false(waiting_list_add((struct slice){0}, "a\nb", &longer));
    assert_false(waiting_list_add((struct slice){0}, "", &longer));
    assert_false(waiting_list_add((struct slice){0}, "\xff", &longer));
    expect("\n\na\x1b[2J\none", "job", "one", NULL);
}

TEST(the_earliest_make_room) {
    CLEARED_BY(text_clear) struct text list = {0};
    for (int i = 0; i < 1000; i++) {
        FREED char *run_id = text_format("experiment-%d", i);
        add(&list, run_id);
        assert_true(list.length <= WAITING_LIST_BYTES);
    }
    expect(text_string(&list), "job", "experiment-999", "experiment-998");
    assert_null(strstr(text_string(&list), "experiment-1\n"));
}

TEST(what_no_agent_can_have_written_is_not_believed) {
    char value[WAITING_LIST_BYTES + 2];
    CLEARED_BY(text_clear) struct text list = {0};
    memset(value, '\n', sizeof value);
    memcpy(value, "one", 3);
    value[sizeof value - 1] = '\0';
    expect(value, "job", NULL, NULL);
    assert_true(waiting_list_add(slice_from_string(value), "job", &list));
    assert_string_equal(text_string(&list), "job\n");
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_step.h"

struct line {
    struct store_entries entries;
    struct store_waiters waiters;
    struct store_effects effects;
    struct store_connection clients[3];
    struct store_entry *entry;
    struct store_entry *other;
};

static int setup(void **state) {
    struct line *line = calloc(1, sizeof *line);
    store_entries_init(&line->entries, 100000);
    line->waiters.entries = &line->entries;
    line->entry = store_entries_add(&line->entries, slice_from_string("/k"));
    line->other = store_entries_add(&line->entries, slice_from_string("/other"));
    *state = line;
    return 0;
}

static int teardown(void **state) {
    struct line *line = *state;
    store_entries_clear(&line->entries);
    store_effects_clear(&line->effects);
    free(line);
    return 0;
}

static void begin(struct line *line, int client, bool wants_other) {
    struct store_wait *wait = store_wait_begin(&line->waiters, &line->clients[client], 2);
    store_wait_add(wait, line->entry);
    if (wants_other) {
        store_wait_add(wait, line->other);
    }
}

static void one_leaves_from_the_middle_of_the_line(void **state) {
    struct line *line = *state;
    for (int i = 0; i < 3; i++) {
        begin(line, i, false);
    }
    store_waiters_drop(&line->waiters, &line->clients[1]);
    assert_null(line->clients[1].wait);
    assert_int_equal(line->waiters.count, 2);
    store_waiters_wake_all(&line->waiters, line->entry, &line->effects);
    assert_int_equal(line->effects.count, 2);
    assert_ptr_equal(line->effects.items[0].connection, &line->clients[0]);
    assert_ptr_equal(line->effects.items[1].connection, &line->clients[2]);
    assert_int_equal(line->waiters.count, 0);
    assert_null(line->entry->last_waiter);
}

static void waking_one_goes_on_to_the_first_who_misses_nothing_else(void **state) {
    struct line *line = *state;
    begin(line, 0, true);
    begin(line, 1, false);
    begin(line, 2, false);
    store_waiters_wake_one(&line->waiters, line->entry, &line->effects);
    assert_int_equal(line->effects.count, 1);
    assert_ptr_equal(line->effects.items[0].connection, &line->clients[1]);
    store_waiters_wake_one(&line->waiters, line->other, &line->effects);
    assert_int_equal(line->effects.count, 2);
    assert_ptr_equal(line->effects.items[1].connection, &line->clients[0]);
    store_waiters_wake_one(&line->waiters, line->entry, &line->effects);
    assert_int_equal(line->effects.count, 3);
    store_waiters_wake_one(&line->waiters, line->entry, &line->effects);
    assert_int_equal(line->effects.count, 3);
}

static void entries_that_existed_for_a_wait_go_with_it(void **state) {
    struct line *line = *state;
    begin(line, 0, true);
    begin(line, 1, false);
    store_waiters_drop(&line->waiters, &line->clients[0]);
    assert_null(store_entries_find(&line->entries, slice_from_string("/other")));
    assert_non_null(store_entries_find(&line->entries, slice_from_string("/k")));
    store_waiters_drop(&line->waiters, &line->clients[1]);
    assert_int_equal(line->entries.memory, 0);
    store_waiters_drop(&line->waiters, &line->clients[1]);
}

static void expelling_takes_waits_out_of_all_lines(void **state) {
    struct line *line = *state;
    begin(line, 0, true);
    begin(line, 1, false);
    store_waiters_expel(&line->waiters, line->other, "over", &line->effects);
    assert_int_equal(line->effects.count, 1);
    assert_int_equal(line->effects.items[0].kind, STORE_EFFECT_CLOSE);
    assert_string_equal(line->effects.items[0].reason, "over");
    assert_null(line->clients[0].wait);
    assert_ptr_equal(line->entry->first_waiter->wait, line->clients[1].wait);
    store_waiters_expel(&line->waiters, line->entry, "over", NULL);
    assert_null(line->clients[1].wait);
}

#define waiters_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static const struct CMUnitTest tests[] = {
    waiters_test(one_leaves_from_the_middle_of_the_line),
    waiters_test(waking_one_goes_on_to_the_first_who_misses_nothing_else),
    waiters_test(entries_that_existed_for_a_wait_go_with_it),
    waiters_test(expelling_takes_waits_out_of_all_lines),
};

UNIT_TESTS(tests)

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/workers/restart_history.h"

static struct instant at(int64_t seconds) {
    return (struct instant){seconds * NANOSECONDS_PER_SECOND};
}

static const struct duration window = {100 * (int64_t)NANOSECONDS_PER_SECOND};

TEST(restarts_count_until_they_are_as_old_as_the_window) {
    struct restart_history history = {0};
    restart_history_note(&history, 0, NULL, at(0));
    restart_history_note(&history, 1, NULL, at(10));
    restart_history_note(&history, 2, NULL, at(50));
    restart_history_note(&history, 2, NULL, at(60));
    assert_int_equal(restart_history_count(&history, window, at(60)), 2);
    assert_int_equal(restart_history_count(&history, window, at(109)), 2);
    assert_int_equal(restart_history_count(&history, window, at(110)), 1);
    assert_int_equal(restart_history_count(&history, window, at(150)), 0);
}

TEST(the_last_restarts_that_are_given_back_are_forgotten) {
    struct restart_history history = {0};
    restart_history_note(&history, 0, NULL, at(0));
    restart_history_note(&history, 3, NULL, at(10));
    restart_history_note(&history, 2, NULL, at(20));
    assert_int_equal(restart_history_count(&history, window, at(20)), 2);
    restart_history_note(&history, 0, NULL, at(20));
    restart_history_note(&history, 1, NULL, at(30));
    assert_int_equal(restart_history_count(&history, window, at(129)), 1);
}

TEST(who_comes_later_knows_what_it_is_told_and_nothing_else) {
    struct restart_history history = {0};
    struct restart_ages ages = {.count = 2, .seconds = {5, 90}};
    restart_history_note(&history, 7, &ages, at(1000));
    assert_int_equal(restart_history_count(&history, window, at(1000)), 2);
    assert_int_equal(restart_history_count(&history, window, at(1010)), 1);
    history = (struct restart_history){0};
    restart_history_note(&history, 7, NULL, at(1000));
    assert_int_equal(restart_history_count(&history, window, at(1000)), 0);
    restart_history_note(&history, 8, NULL, at(1000));
    assert_int_equal(restart_history_count(&history, window, at(1000)), 1);
}

TEST(what_is_told_of_a_known_restart_makes_it_older_and_never_younger) {
    struct restart_history history = {0};
    struct restart_ages ages = {.count = 1, .seconds = {3}};
    restart_history_note(&history, 0, NULL, at(0));
    restart_history_note(&history, 1, NULL, at(10));
    restart_history_note(&history, 1, &ages, at(60));
    assert_int_equal(restart_history_count(&history, window, at(110)), 0);
    ages.seconds[0] = 95;
    restart_history_note(&history, 1, &ages, at(60));
    assert_int_equal(restart_history_count(&history, window, at(64)), 1);
    assert_int_equal(restart_history_count(&history, window, at(65)), 0);
}

TEST(ages_are_told_of_those_within_the_window) {
    struct restart_history history = {0};
    struct restart_ages ages;
    restart_history_note(&history, 0, NULL, at(0));
    restart_history_note(&history, 1, NULL, at(1));
    restart_history_note(&history, 2, NULL, at(90));
    restart_history_tell(&history, window, at(100), &ages);
    assert_int_equal(ages.count, 2);
    assert_int_equal(ages.seconds[0], 10);
    assert_int_equal(ages.seconds[1], 99);
    restart_history_tell(&history, window, at(101), &ages);
    assert_int_equal(ages.count, 1);
}

TEST(more_restarts_than_are_kept_are_no_more_than_are_kept) {
    struct restart_history history = {0};
    struct restart_ages ages = {.count = RESTART_HISTORY_MAXIMUM};
    restart_history_note(&history, 3, &ages, at(1)); /* a record of whoever wrote it */
    assert_int_equal(restart_history_count(&history, window, at(1)), RESTART_HISTORY_MAXIMUM);
    restart_history_note(&history, INT64_MAX, NULL, at(1));
    restart_history_note(&history, 0, NULL, at(1));
    assert_int_equal(restart_history_count(&history, window, at(1)), 0);
    for (int i = 1; i <= 150; i++) {
        restart_history_note(&history, i, NULL, at(i));
    }
    assert_int_equal(history.count, RESTART_HISTORY_MAXIMUM);
    assert_int_equal(restart_history_count(&history, window, at(150)), 100);
    assert_int_equal(restart_history_count(&history, window, at(160)), 90);
}

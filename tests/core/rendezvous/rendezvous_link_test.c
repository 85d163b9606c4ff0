/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_link.h"
#include "core/rendezvous/rendezvous_state.h"

#define SECOND INT64_C(1000000000)

static const struct duration interval = {5 * SECOND};

static struct instant at(int64_t seconds) {
    return (struct instant){seconds * SECOND};
}

/* A link to a store that serves presence, open since second 0. */
static struct rendezvous_link opened(void) {
    struct rendezvous_link link;
    rendezvous_link_init(&link, 1);
    rendezvous_link_connect(&link);
    assert_true(rendezvous_link_open(&link, true, false, at(0), interval));
    return link;
}

static void a_connection_that_was_not_awaited_is_none(void **state) {
    (void)state;
    struct rendezvous_link link;
    rendezvous_link_init(&link, 1);
    assert_false(rendezvous_link_open(&link, true, true, at(0), interval));
    assert_false(rendezvous_link_is_open(&link));
    assert_false(link.was_open);
    assert_false(rendezvous_link_close(&link));
}

static void a_link_that_closes_says_whether_it_was_open(void **state) {
    (void)state;
    struct rendezvous_link link = opened();
    rendezvous_link_fetch(&link, at(0));
    assert_true(rendezvous_link_close(&link));
    assert_false(rendezvous_link_is_open(&link));
    assert_true(link.was_open);
    rendezvous_link_connect(&link);
    assert_false(rendezvous_link_close(&link));
}

static void news_are_told_unless_a_change_was_announced(void **state) {
    (void)state;
    struct rendezvous_link link = opened();
    rendezvous_link_fetch(&link, at(0));
    rendezvous_link_note_news(&link);
    assert_true(rendezvous_link_end_fetch(&link));
    rendezvous_link_note_change(&link, true);
    rendezvous_link_fetch(&link, at(1));
    rendezvous_link_note_news(&link);
    assert_false(rendezvous_link_end_fetch(&link));
    rendezvous_link_note_change(&link, false);
    rendezvous_link_fetch(&link, at(2));
    rendezvous_link_note_news(&link);
    assert_true(rendezvous_link_end_fetch(&link));
}

/* The announced change may be one that the fetch did not see. */
static void a_change_announced_during_a_fetch_holds_for_the_next(void **state) {
    (void)state;
    struct rendezvous_link link = opened();
    rendezvous_link_fetch(&link, at(0));
    rendezvous_link_note_change(&link, true);
    assert_false(rendezvous_link_end_fetch(&link));
    assert_true(link.is_refetch_wanted);
    rendezvous_link_fetch(&link, at(1));
    rendezvous_link_note_news(&link);
    assert_false(rendezvous_link_end_fetch(&link));
}

static void lose_write(struct rendezvous_link *link, struct instant now) {
    rendezvous_link_write(link, false, now);
    rendezvous_link_lose_write(link, now);
}

static void a_pause_follows_from_the_second_lost_write_on(void **state) {
    (void)state;
    struct rendezvous_link link = opened();
    rendezvous_link_fetch(&link, at(0));
    (void)rendezvous_link_end_fetch(&link);
    lose_write(&link, at(1));
    assert_false(rendezvous_link_is_pausing(&link));
    lose_write(&link, at(1));
    assert_true(rendezvous_link_is_pausing(&link));
    assert_false(link.is_refetch_wanted);
    rendezvous_link_end_pause(&link, at(2));
    assert_false(rendezvous_link_is_pausing(&link));
    assert_true(link.is_refetch_wanted);
}

static void a_write_that_was_won_ends_the_row_of_lost_ones(void **state) {
    (void)state;
    struct rendezvous_link link = opened();
    lose_write(&link, at(1));
    rendezvous_link_write(&link, false, at(1));
    rendezvous_link_win_write(&link, at(1), interval, interval);
    lose_write(&link, at(1));
    assert_false(rendezvous_link_is_pausing(&link));
}

static void only_a_write_of_heartbeats_puts_the_next_off(void **state) {
    (void)state;
    struct rendezvous_link link = opened();
    assert_false(rendezvous_link_is_heartbeat_due(&link, at(4)));
    rendezvous_link_write(&link, false, at(4));
    rendezvous_link_win_write(&link, at(4), interval, interval);
    assert_true(rendezvous_link_is_heartbeat_due(&link, at(5)));
    rendezvous_link_write(&link, true, at(5));
    rendezvous_link_lose_write(&link, at(5));
    assert_true(rendezvous_link_is_heartbeat_due(&link, at(5)));
    rendezvous_link_write(&link, true, at(5));
    rendezvous_link_win_write(&link, at(5), interval, interval);
    assert_false(rendezvous_link_is_heartbeat_due(&link, at(9)));
    assert_true(rendezvous_link_is_heartbeat_due(&link, at(10)));
}

static void heartbeats_that_are_rare_are_due_soon_after_a_change(void **state) {
    (void)state;
    const struct duration rare = duration_from_seconds(60);
    struct rendezvous_link link = opened();
    rendezvous_link_write(&link, true, at(5));
    rendezvous_link_win_write(&link, at(5), rare, interval);
    assert_false(rendezvous_link_is_heartbeat_due(&link, at(64)));
    assert_true(rendezvous_link_is_heartbeat_due(&link, at(65)));
    rendezvous_link_write(&link, false, at(20));
    rendezvous_link_win_write(&link, at(20), rare, interval);
    assert_false(rendezvous_link_is_heartbeat_due(&link, at(24)));
    assert_true(rendezvous_link_is_heartbeat_due(&link, at(25)));
    rendezvous_link_write(&link, false, at(23));
    rendezvous_link_win_write(&link, at(23), rare, interval);
    assert_true(rendezvous_link_is_heartbeat_due(&link, at(25)));
}

static void a_sign_of_life_is_due_once_in_an_interval(void **state) {
    (void)state;
    struct rendezvous_link link = opened();
    assert_false(rendezvous_link_beat(&link, at(4), interval));
    assert_true(rendezvous_link_beat(&link, at(6), interval));
    assert_false(rendezvous_link_beat(&link, at(10), interval));
    assert_true(rendezvous_link_beat(&link, at(11), interval));
    (void)rendezvous_link_close(&link);
    assert_false(rendezvous_link_beat(&link, at(100), interval));
}

static void who_is_told_of_everything_does_not_poll(void **state) {
    (void)state;
    struct rendezvous_link link = opened();
    rendezvous_link_fetch(&link, at(0));
    (void)rendezvous_link_end_fetch(&link);
    assert_false(rendezvous_link_is_poll_due(&link, false, at(2)));
    assert_true(rendezvous_link_is_poll_due(&link, true, at(2)));
    rendezvous_link_note_news(&link);
    assert_true(rendezvous_link_is_poll_due(&link, false, at(2)));
    rendezvous_link_fetch(&link, at(2)); /* one request at a time */
    assert_false(rendezvous_link_is_poll_due(&link, true, at(9)));
}

static void a_lost_connection_is_said_at_intervals_until_there_is_a_new_one(void **state) {
    (void)state;
    struct rendezvous_link link = opened();
    struct moment next = {0};
    assert_true(rendezvous_link_close(&link));
    rendezvous_link_connect_again(&link, at(1), at(14));
    rendezvous_link_wake(&link, at(1), &next);
    assert_int_equal(next.at.nanoseconds, at(7).nanoseconds);
    assert_false(rendezvous_link_says_lost(&link, at(6)));
    assert_true(rendezvous_link_says_lost(&link, at(7)));
    assert_false(rendezvous_link_says_lost(&link, at(8)));
    assert_true(rendezvous_link_says_lost(&link, at(13)));
    assert_false(rendezvous_link_says_lost(&link, at(19))); /* too late: the node gives up */
    assert_true(rendezvous_link_open(&link, true, false, at(17), interval));
    assert_false(rendezvous_link_says_lost(&link, at(30)));
}

static void every_name_is_another_one_of_musters(void **state) {
    (void)state;
    struct rendezvous_link link = opened();
    struct node_identity one = {.local_id = rendezvous_link_draw_local_id(&link)};
    struct node_identity other = {.local_id = rendezvous_link_draw_local_id(&link)};
    assert_true(node_identity_is_muster(&one));
    assert_false(node_identity_equals(&one, &other));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_connection_that_was_not_awaited_is_none),
    cmocka_unit_test(a_link_that_closes_says_whether_it_was_open),
    cmocka_unit_test(news_are_told_unless_a_change_was_announced),
    cmocka_unit_test(a_change_announced_during_a_fetch_holds_for_the_next),
    cmocka_unit_test(a_pause_follows_from_the_second_lost_write_on),
    cmocka_unit_test(a_write_that_was_won_ends_the_row_of_lost_ones),
    cmocka_unit_test(only_a_write_of_heartbeats_puts_the_next_off),
    cmocka_unit_test(heartbeats_that_are_rare_are_due_soon_after_a_change),
    cmocka_unit_test(a_sign_of_life_is_due_once_in_an_interval),
    cmocka_unit_test(who_is_told_of_everything_does_not_poll),
    cmocka_unit_test(a_lost_connection_is_said_at_intervals_until_there_is_a_new_one),
    cmocka_unit_test(every_name_is_another_one_of_musters),
};

UNIT_TESTS(tests)

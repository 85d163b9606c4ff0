/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include <limits.h>

#include "wire/rendezvous/delegation_text.h"

static void expect_same_meeting(
    const struct rendezvous_meeting *left, const struct rendezvous_meeting *right) {
    assert_int_equal(left->round, right->round);
    assert_int_equal(left->port, right->port);
    assert_string_equal(left->address, right->address);
}

static void expect_same(const struct rendezvous_wish *left, const struct rendezvous_wish *right) {
    assert_int_equal(left->kind, right->kind);
    assert_int_equal(left->finished_round, right->finished_round);
    assert_int_equal(left->ended_round, right->ended_round);
    assert_int_equal(left->is_charged, right->is_charged);
    assert_int_equal(left->doubted_round, right->doubted_round);
    assert_int_equal(left->signal, right->signal);
    assert_int_equal(left->local_world_size, right->local_world_size);
    assert_string_equal(left->role, right->role);
    assert_string_equal(left->reason, right->reason);
    expect_same_meeting(&left->meeting, &right->meeting);
}

TEST(a_wish_is_spelled_as_the_header_says) {
    struct rendezvous_wish wish = rendezvous_wish_of(RENDEZVOUS_WISH_JOIN);
    struct rendezvous_wish read;
    CLEARED_BY(text_clear) struct text text = {0};
    wish.sequence = 2;
    wish.ended_round = 7;
    wish.is_charged = true;
    strcpy(wish.reason, "worker 3 exited with code 1");
    delegation_wish_write(&wish, &text);
    assert_string_equal(
        text_string(&text), "wish join 2 -1 7 1 -1 0 0 -1 worker 3 exited with code 1");
    assert_int_equal(delegation_wish_read(text_string(&text), &read), FAILURE_NONE);
    assert_int_equal(read.sequence, 2);
    expect_same(&wish, &read);
}

TEST(the_longest_wish_fits_into_a_presence_key) {
    struct rendezvous_wish wish = {.kind = RENDEZVOUS_WISH_LEAVE,
        .sequence = INT64_MAX / 4,
        .finished_round = INT64_MAX / 4,
        .ended_round = INT64_MAX / 4,
        .doubted_round = INT64_MAX / 4,
        .signal = 64,
        .local_world_size = INT_MAX,
        .meeting = {.round = RENDEZVOUS_WISH_NO_ROUND}};
    struct rendezvous_wish read;
    CLEARED_BY(text_clear) struct text text = {0};
    memset(wish.role, 'r', sizeof wish.role - 1);
    memset(wish.reason, 'x', sizeof wish.reason - 1);
    delegation_wish_write(&wish, &text);
    assert_true(text.length <= DELEGATION_WISH_BYTES);
    assert_int_equal(delegation_wish_read(text_string(&text), &read), FAILURE_NONE);
    expect_same(&wish, &read);
    text_clear(&text);
    wish.reason[0] = '\0'; /* it is said without where the workers meet */
    wish.meeting = (struct rendezvous_meeting){.round = INT64_MAX / 4, .port = 65535};
    memset(wish.meeting.address, 'a', sizeof wish.meeting.address - 1);
    delegation_wish_write(&wish, &text);
    assert_true(text.length <= DELEGATION_WISH_BYTES);
    assert_int_equal(delegation_wish_read(text_string(&text), &read), FAILURE_NONE);
    expect_same(&wish, &read);
}

TEST(rank_0_says_where_the_workers_meet) {
    struct rendezvous_wish wish = rendezvous_wish_of(RENDEZVOUS_WISH_JOIN);
    struct rendezvous_wish read;
    CLEARED_BY(text_clear) struct text text = {0};
    wish.sequence = 2;
    wish.meeting = rendezvous_meeting_at(0, "10.0.0.1", 29400);
    delegation_wish_write(&wish, &text);
    assert_string_equal(text_string(&text), "wish join 2 -1 -1 0 -1 0 0 0 29400 8 10.0.0.1");
    assert_int_equal(delegation_wish_read(text_string(&text), &read), FAILURE_NONE);
    expect_same(&wish, &read);
    text_clear(&text);
    wish.meeting = rendezvous_meeting_at(3, NULL, 29400);
    delegation_wish_write(&wish, &text);
    assert_string_equal(text_string(&text), "wish join 2 -1 -1 0 -1 0 0 3 0");
    assert_int_equal(delegation_wish_read(text_string(&text), &read), FAILURE_NONE);
    expect_same(&wish, &read);
}

TEST(other_values_are_no_wish) {
    static const char *const texts[] = {"", "running", "finished", "wish", "wish join",
        "wish jo 1 -1 -1 0 -1 0 0 -1", "wish join 0 -1 -1 0 -1 0 0 -1",
        "wish join 1 -2 -1 0 -1 0 0 -1", "wish join 1 -1 -1 2 -1 0 0 -1",
        "wish join 1 -1 -1 0 -1 65 0 -1", "wish join 1 -1 -1 0 -1", "wish join 1 -1 -1 0 -1 0",
        "wish join 1 -1 -1 0 -1 0 0", "wish join 1 -1 -1 0 -1 0 0x", "wish join 1 -1 -1 0 -1 0 -1",
        "wish join 1 -1 -1 0 -1 0 1", "wish join 1 -1 -1 0 -1 0 1 2",
        "wish join 1 -1 -1 0 -1 0 1 3 ab -1", "wish join 1 -1 -1 0 -1 0 1 64 ab -1",
        "wish join 1 -1 -1 0 -1 0 1 1 ab -1", "wish join  1 -1 -1 0 -1 0 0 -1",
        "wish join 99999999999999999999999999999999999999 -1 -1 0 -1 0 0 -1",
        "wish join 1 -99999999999999999999999999999999 -1 0 -1 0 0 -1",
        "wish join 1 -1 -1 0 -1 0 0 -3", "wish join 1 -1 -1 0 -1 0 0 3",
        "wish join 1 -1 -1 0 -1 0 0 3 65536 1 a", "wish join 1 -1 -1 0 -1 0 0 3 1 0 ",
        "wish join 1 -1 -1 0 -1 0 0 3 1 2 a", "wish join 1 -1 -1 0 -1 0 0 3 1 64 a"};
    struct rendezvous_wish wish;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(delegation_wish_read(texts[i], &wish), FAILURE_MALFORMED);
    }
}

static struct slice slice_of(const struct text *text) {
    return slice_from_string(text_string(text));
}

TEST(a_standing_lists_this_node_alone) {
    CLEARED_BY(rendezvous_state_clear)
    struct rendezvous_state record = {.round = 8,
        .is_complete = true,
        .is_frozen = true,
        .origin = 1073741825,
        .restarts = 1,
        .size = 4,
        .reason = "worker 3 exited with code 1"};
    struct rendezvous_telling telling = {.place = 2, .answers = 2};
    struct delegation_standing read;
    CLEARED_BY(text_clear) struct text text = {0};
    for (int i = 0; i < 4; i++) {
        struct node_identity identity = {.pid = i};
        rendezvous_state_obtain(&record, &identity)->is_participant = true;
        record.nodes[i].rank = i;
    }
    struct rendezvous_crowd crowd = rendezvous_state_crowd(&record);
    delegation_standing_write(&record, &crowd, &telling, false, &text);
    assert_string_equal(text_string(&text),
        "standing 2 8 0 0 1073741825 1 0 4 0 2049 4 0 0 1 2 worker 3 exited with code 1");
    assert_int_equal(delegation_standing_read(slice_of(&text), &read), FAILURE_NONE);
    assert_true(read.state.is_frozen);
    assert_int_equal(read.answers, 2);
    assert_int_equal(read.state.round, 8);
    assert_int_equal(read.state.count, 1);
    assert_int_equal(read.state.nodes[0].rank, 2);
    assert_int_equal(rendezvous_state_participants(&read.state), 4);
    assert_true(rendezvous_state_is_whole(&read.state));
    assert_string_equal(read.state.reason, record.reason);
    delegation_standing_clear(&read);
}

/* What a node reads of a standing whose record has these ages and this reason. */
static void read_told(const struct restart_ages *ages, const char *reason, const char *expected,
    struct delegation_standing *out_read) {
    struct rendezvous_state record = {.round = 8, .restarts = 9, .ages = *ages};
    struct rendezvous_telling telling = {.place = NODE_TABLE_ABSENT, .answers = 2};
    struct rendezvous_crowd crowd = {0};
    CLEARED_BY(text_clear) struct text text = {0};
    snprintf(record.reason, sizeof record.reason, "%s", reason);
    delegation_standing_write(&record, &crowd, &telling, false, &text);
    assert_non_null(strstr(text_string(&text), expected));
    assert_true(text.length <= DELEGATION_STANDING_BYTES);
    assert_int_equal(delegation_standing_read(slice_of(&text), out_read), FAILURE_NONE);
    assert_string_equal(out_read->state.reason, reason);
}

TEST(the_ages_of_restarts_stand_before_the_reason) {
    struct restart_ages ages = {.count = 2, .seconds = {3, 40}};
    struct delegation_standing read;
    read_told(&ages, "worker 3 failed", " 0 0 {3 40} worker 3 failed", &read);
    assert_int_equal(read.state.ages.count, 2);
    assert_int_equal(read.state.ages.seconds[1], 40);
    delegation_standing_clear(&read);
    read_told(&ages, "", " 0 0 {3 40}", &read);
    assert_int_equal(read.state.ages.count, 2);
    delegation_standing_clear(&read);
    ages.count = 0;
    read_told(&ages, "{odd} words", " 0 0 {odd} words", &read);
    assert_int_equal(read.state.ages.count, 0);
    delegation_standing_clear(&read);
    ages.count = RESTART_HISTORY_MAXIMUM;
    for (size_t i = 0; i < ages.count; i++) {
        ages.seconds[i] = RESTART_AGE_MAXIMUM;
    }
    read_told(&ages, "w", "} w", &read);
    assert_true(read.state.ages.count > 20);
    delegation_standing_clear(&read);
}

TEST(a_standing_of_a_ranked_round_has_the_ranks) {
    static const char *const wrong[] = {
        "standing 1 1 0 0 0 0 0 0 0 129 2 0 0 1 1",         /* no ranks */
        "standing 1 1 0 0 0 0 0 0 0 129 2 0 0 1 1 2 2 1 2", /* a rank beyond the last */
        "standing 1 1 0 0 0 0 0 0 0 129 2 0 0 1 1 1 2 2 2", /* the same within the role */
        "standing 1 1 0 0 0 0 0 0 0 129 2 0 0 1 1 1 2 1 3", /* more in the role than in all */
        "standing 1 1 0 0 0 0 0 0 0 128 2 0 0 1 1 1 2 1 2", /* an open round */
        "standing 1 1 0 0 0 0 0 0 0 129 2 1 0 2 0 1 2 1 2", /* a node that waits */
        "standing 1 1 0 0 0 0 0 0 0 129 2 0 0 0 0 1 2 1 2", /* in no list */
        "standing 1 1 0 0 0 0 0 0 0 513 2 0 0 1 1 1 1 a",   /* where they meet, without ranks */
        "standing 1 1 0 0 0 0 0 0 0 641 2 0 0 1 1 1 2 1 2", /* and not where they meet */
        "standing 1 1 0 0 0 0 0 0 0 641 2 0 0 1 1 1 2 1 2 0",
        "standing 1 1 0 0 0 0 0 0 0 641 2 0 0 1 1 1 2 1 2 1 9 a",
    };
    const struct rank_assignment ranks = {2, 5, 1, 4};
    struct rendezvous_state record = {.round = 8, .is_complete = true, .ranked = 9};
    struct rendezvous_telling telling = {.place = 1, .answers = 2, .ranks = ranks};
    struct delegation_standing read;
    CLEARED_BY(text_clear) struct text text = {0};
    for (int i = 0; i < 2; i++) {
        struct node_identity identity = {.pid = i};
        rendezvous_state_obtain(&record, &identity)->is_participant = true;
        record.nodes[i].rank = i;
    }
    struct rendezvous_crowd crowd = rendezvous_state_crowd(&record);
    delegation_standing_write(&record, &crowd, &telling, false, &text);
    assert_string_equal(text_string(&text), "standing 2 8 0 0 0 0 0 0 0 129 2 0 0 1 1 2 5 1 4");
    assert_int_equal(delegation_standing_read(slice_of(&text), &read), FAILURE_NONE);
    assert_true(rendezvous_state_is_ranked(&read.state));
    assert_memory_equal(&read.ranks, &ranks, sizeof ranks);
    assert_int_equal(read.meeting.port, 0);
    delegation_standing_clear(&read);
    text_clear(&text);
    telling.meeting = rendezvous_meeting_at(8, "::1", 29400);
    delegation_standing_write(&record, &crowd, &telling, false, &text);
    assert_string_equal(
        text_string(&text), "standing 2 8 0 0 0 0 0 0 0 641 2 0 0 1 1 2 5 1 4 29400 3 ::1");
    assert_int_equal(delegation_standing_read(slice_of(&text), &read), FAILURE_NONE);
    expect_same_meeting(&read.meeting, &telling.meeting);
    delegation_standing_clear(&read);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(
            delegation_standing_read(slice_from_string(wrong[i]), &read), FAILURE_MALFORMED);
    }
    rendezvous_state_clear(&record);
}

TEST(a_round_that_is_held_is_told_without_ranks) {
    static const char *const wrong[] = {
        "standing 1 1 0 0 0 0 0 0 0 1153 2 0 0 1 1 1 2 1 2",     /* it is ranked, too */
        "standing 1 1 0 0 0 0 0 0 0 1665 2 0 0 1 1 1 2 1 2 1 a", /* and they meet */
        "standing 1 1 0 0 0 0 0 0 0 1281 2 0 0 1 1",             /* another has ranked it */
        "standing 1 1 0 0 0 0 0 0 0 1537 2 0 0 1 1 1 1 a",       /* where they meet */
        "standing 1 1 0 0 0 0 0 0 0 1024 2 0 0 1 1",             /* an open round */
        "standing 1 1 0 0 0 0 0 0 0 1025 2 0 0 0 0",             /* in no list */
        "standing 1 1 0 0 0 0 0 0 0 1025 2 1 0 2 0",             /* a node that waits */
    };
    struct rendezvous_state record = {.round = 8, .is_complete = true, .ranked = 9};
    struct rendezvous_telling telling = {.place = 0, .answers = 1, .is_held = true};
    struct node_identity identity = {.pid = 1};
    struct delegation_standing read;
    CLEARED_BY(text_clear) struct text text = {0};
    rendezvous_state_obtain(&record, &identity)->is_participant = true;
    struct rendezvous_crowd crowd = rendezvous_state_crowd(&record);
    delegation_standing_write(&record, &crowd, &telling, false, &text);
    assert_string_equal(text_string(&text), "standing 1 8 0 0 0 0 0 0 0 1025 1 0 0 1 0");
    assert_int_equal(delegation_standing_read(slice_of(&text), &read), FAILURE_NONE);
    assert_true(read.is_held && rendezvous_state_is_ranked(&read.state));
    assert_int_equal(read.ranks.world_size, 0);
    delegation_standing_clear(&read);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(
            delegation_standing_read(slice_from_string(wrong[i]), &read), FAILURE_MALFORMED);
    }
    rendezvous_state_clear(&record);
}

TEST(a_round_that_another_host_has_ranked_is_known_as_such) {
    static const char *const wrong[] = {
        "standing 1 1 0 0 0 0 0 0 0 385 2 0 0 1 1 1 2 1 2", /* and by this one */
        "standing 1 1 0 0 0 0 0 0 0 256 2 0 0 1 1",         /* an open round */
        "standing 1 1 0 0 0 0 0 0 0 257 2 0 0 0 0",         /* in no list */
    };
    struct rendezvous_state record = {.round = 8, .is_complete = true, .ranked = 9};
    struct rendezvous_telling telling = {.place = 0, .answers = 1};
    struct node_identity identity = {.pid = 1};
    struct delegation_standing read;
    CLEARED_BY(text_clear) struct text text = {0};
    rendezvous_state_obtain(&record, &identity)->is_participant = true;
    struct rendezvous_crowd crowd = rendezvous_state_crowd(&record);
    delegation_standing_write(&record, &crowd, &telling, false, &text);
    assert_string_equal(text_string(&text), "standing 1 8 0 0 0 0 0 0 0 257 1 0 0 1 0");
    assert_int_equal(delegation_standing_read(slice_of(&text), &read), FAILURE_NONE);
    assert_true(rendezvous_state_is_ranked(&read.state) && read.ranks.world_size == 0);
    delegation_standing_clear(&read);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(
            delegation_standing_read(slice_from_string(wrong[i]), &read), FAILURE_MALFORMED);
    }
    rendezvous_state_clear(&record);
}

TEST(a_standing_has_the_same_size_for_any_number_of_nodes) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    struct rendezvous_telling telling = {.place = NODE_TABLE_ABSENT};
    struct delegation_standing read;
    CLEARED_BY(text_clear) struct text text = {0};
    for (int i = 0; i < 2000; i++) {
        struct node_identity identity = {.pid = i};
        rendezvous_state_obtain(&record, &identity)->is_waiting = true;
    }
    struct rendezvous_crowd crowd = rendezvous_state_crowd(&record);
    delegation_standing_write(&record, &crowd, &telling, false, &text);
    assert_true(text.length < 64);
    assert_int_equal(delegation_standing_read(slice_of(&text), &read), FAILURE_NONE);
    assert_int_equal(read.state.count, 0);
    assert_int_equal(rendezvous_state_waiting(&read.state), 2000);
    delegation_standing_clear(&read);
    text_clear(&text);
    delegation_standing_write(&record, &crowd, &telling, true, &text);
    assert_int_equal(delegation_standing_read(slice_of(&text), &read), FAILURE_NONE);
    assert_true(read.is_withdrawn);
}

TEST(a_standing_that_no_record_has_is_refused) {
    static const char *const texts[] = {"", "standing", "withdrawn", "withdrawn 1 2",
        "standing 1 1 0 0 0 0 0 0 0 1 0 0 0 1 0", /* it is in a list that has nobody */
        "standing 1 1 0 0 0 0 0 0 0 1 2 0 0 1 2", /* a rank beyond the last */
        "standing 1 1 0 0 0 0 0 0 0 4096 2 0 0 1 1", "standing 1 1 0 0 0 0 0 0 0 1 65537 0 0 1 1",
        "standing 1 1 0 0 0 0 0 0 0 1 2 0 0 4 1", "standing 1 -1 0 0 0 0 0 0 0 1 2 0 0 1 1",
        "standing 1 9999999999999999999 0 0 0 0 0 0 0 1 2 0 0 1 1",
        "standing 1 1 0 0 0 0 0 0 0 1 2 0 0 1 1x"};
    struct delegation_standing standing;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(
            delegation_standing_read(slice_from_string(texts[i]), &standing), FAILURE_MALFORMED);
    }
    char longest[DELEGATION_STANDING_BYTES + 1];
    memset(longest, ' ', sizeof longest);
    struct slice too_long = {(const uint8_t *)longest, sizeof longest};
    assert_int_equal(delegation_standing_read(too_long, &standing), FAILURE_LIMIT);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What a succession relies on in a register, whichever engine keeps it.
 *
 *     register_conformance ENGINE [ENDPOINT [PATTERN [KEY=VALUE …]]]
 *
 * Several racers, each with a register of its own, as so many nodes of one job have. Faults are put
 * between a register and its engine: replies that are lost after success, and requests that are
 * answered late. */
#include "register_under_test.h"

#define RACERS 6
#define ENTRIES 200

static struct register_entry make_entry(struct racer *racer, int64_t number) {
    struct register_entry entry = {
        .number = number,
        .kind = number == 1 ? REGISTER_ENTRY_CLAIM : REGISTER_ENTRY_COMMIT,
        .term = 1,
        .host = text_format("racer%d", racer->index),
        .addresses = memory_duplicate_string("10.0.0.1:29400"),
        .settings = memory_duplicate_string("settings"),
    };
    register_entry_write_nonce(random_seed(), random_seed(), entry.nonce);
    assert_int_equal(bytes_append(&entry.record, "record", 6), FAILURE_NONE);
    return entry;
}

/* Each racer appends what follows the last entry that it knows of. */
struct race {
    struct register_under_test *under_test;
    struct racer *racers;
    char entries[ENTRIES + 1][REGISTER_ENTRY_NONCE_SIZE]; /* as racers were told of them */
    int win_counts[ENTRIES + 1];
    int64_t known[RACERS];
    struct register_entry attempts[RACERS];
    size_t running;
};

static void attempt(struct race *race, struct racer *racer) {
    int i = racer->index;
    register_entry_clear(&race->attempts[i]);
    if (race->known[i] == ENTRIES) {
        race->running--;
        if (race->running == 0) {
            event_loop_stop(race->under_test->loop);
        }
        return;
    }
    race->attempts[i] = make_entry(racer, race->known[i] + 1);
    register_append(racer->job_register, &race->attempts[i], far(race->under_test));
}

/* Whoever is told of a number is told of the same entry. */
static void note_entry(struct race *race, int64_t number, const char *nonce) {
    if (race->entries[number][0] == '\0') {
        memcpy(race->entries[number], nonce, REGISTER_ENTRY_NONCE_SIZE);
    }
    assert_string_equal(race->entries[number], nonce);
}

static void race_goes_on(void *context, const struct register_event *event) {
    struct racer *racer = context;
    struct race *race = racer->race;
    const struct register_entry *tried = &race->attempts[racer->index];
    if (event->kind == REGISTER_FAILED) {
        fail_msg("%s", event->failure->message);
    }
    if (event->kind == REGISTER_WON) {
        note_entry(race, tried->number, tried->nonce);
        race->win_counts[tried->number]++;
        race->known[racer->index] = tried->number;
    } else {
        assert_int_equal(event->kind, REGISTER_LOST);
        assert_true(event->entry->number >= tried->number);
        assert_string_not_equal(event->entry->nonce, tried->nonce);
        note_entry(race, event->entry->number, event->entry->nonce);
        race->known[racer->index] = event->entry->number;
    }
    attempt(race, racer);
}

static void run_race(struct register_under_test *under_test, unsigned lost_replies) {
    struct race race = {.under_test = under_test, .running = RACERS};
    char *run_id = unused_run_id();
    struct racer *racers = racers_new(under_test, run_id, RACERS, race_goes_on);
    for (int i = 0; i < RACERS; i++) {
        racers[i].race = &race;
        racers[i].faults.lost_replies_in_ten = lost_replies;
        attempt(&race, &racers[i]);
    }
    event_loop_run(under_test->loop);
    for (int64_t number = 1; number <= ENTRIES; number++) {
        /* a winner whose reply was lost may find a later entry when it asks again */
        assert_true(
            race.win_counts[number] == 1 || (race.win_counts[number] == 0 && lost_replies > 0));
    }
    racers[0].told = NULL;
    struct answer answer = read_last(under_test, &racers[0]);
    assert_int_equal(answer.entry.number, ENTRIES);
    assert_string_equal(answer.entry.nonce, race.entries[ENTRIES]);
    answer_clear(&answer);
    racers_free(racers, RACERS);
    free(run_id);
}

static void each_number_has_exactly_one_winner(void **state) {
    run_race(*state, 0);
}

static void each_number_has_one_winner_though_replies_are_lost(void **state) {
    run_race(*state, 3);
}

static void reader_sees_a_chain_that_only_grows(void **state) {
    struct register_under_test *under_test = *state;
    char *run_id = unused_run_id();
    struct racer *racers = racers_new(under_test, run_id, 2, NULL);
    struct answer answer = read_last(under_test, &racers[1]);
    assert_false(answer.has_entry);
    answer_clear(&answer);
    for (int64_t number = 1; number <= 20; number++) {
        struct register_entry entry = make_entry(&racers[0], number);
        assert_int_equal(append(under_test, &racers[0], &entry).kind, REGISTER_WON);
        answer = read_last(under_test, &racers[1]);
        assert_true(answer.has_entry);
        assert_int_equal(answer.entry.number, number);
        assert_string_equal(answer.entry.nonce, entry.nonce);
        assert_string_equal(answer.entry.host, entry.host);
        assert_string_equal(answer.entry.addresses, entry.addresses);
        assert_true(slice_equals(bytes_slice(&answer.entry.record), bytes_slice(&entry.record)));
        answer_clear(&answer);
        register_entry_clear(&entry);
    }
    racers_free(racers, 2);
    free(run_id);
}

static void old_number_is_never_won_again(void **state) {
    struct register_under_test *under_test = *state;
    char *run_id = unused_run_id();
    struct racer *racers = racers_new(under_test, run_id, 2, NULL);
    for (int64_t number = 1; number <= 40; number++) {
        struct register_entry entry = make_entry(&racers[0], number);
        assert_int_equal(append(under_test, &racers[0], &entry).kind, REGISTER_WON);
        register_entry_clear(&entry);
    }
    for (int64_t number = 1; number <= 40; number += 3) {
        struct register_entry late = make_entry(&racers[1], number);
        struct answer answer = append(under_test, &racers[1], &late);
        assert_int_equal(answer.kind, REGISTER_LOST);
        assert_true(answer.entry.number >= number);
        assert_string_not_equal(answer.entry.nonce, late.nonce);
        answer_clear(&answer);
        register_entry_clear(&late);
    }
    racers_free(racers, 2);
    free(run_id);
}

static void number_beyond_the_next_is_not_won(void **state) {
    struct register_under_test *under_test = *state;
    char *run_id = unused_run_id();
    struct racer *racers = racers_new(under_test, run_id, 1, NULL);
    struct register_entry entry = make_entry(&racers[0], 2);
    struct answer answer = append(under_test, &racers[0], &entry);
    assert_int_equal(answer.kind, REGISTER_FAILED);
    assert_true(answer.is_final);
    assert_true(answer.failure.message[0] != '\0');
    answer_clear(&answer);
    answer = read_last(under_test, &racers[0]);
    assert_false(answer.has_entry);
    answer_clear(&answer);
    register_entry_clear(&entry);
    racers_free(racers, 1);
    free(run_id);
}

static void own_entry_is_won_again_whenever_it_is_appended(void **state) {
    struct register_under_test *under_test = *state;
    char *run_id = unused_run_id();
    struct racer *racers = racers_new(under_test, run_id, 1, NULL);
    struct register_entry entry = make_entry(&racers[0], 1);
    assert_int_equal(append(under_test, &racers[0], &entry).kind, REGISTER_WON);
    assert_int_equal(append(under_test, &racers[0], &entry).kind, REGISTER_WON);
    register_entry_clear(&entry);
    racers_free(racers, 1);
    free(run_id);
}

static void largest_record_is_kept(void **state) {
    struct register_under_test *under_test = *state;
    char *run_id = unused_run_id();
    struct racer *racers = racers_new(under_test, run_id, 2, NULL);
    struct register_entry entry = make_entry(&racers[0], 1);
    bytes_clear(&entry.record);
    assert_int_equal(bytes_grow(&entry.record, REGISTER_ENTRY_RECORD_MAXIMUM), FAILURE_NONE);
    for (size_t i = 0; i < REGISTER_ENTRY_RECORD_MAXIMUM; i++) {
        entry.record.data[i] = (uint8_t)(i * 7);
    }
    entry.record.length = REGISTER_ENTRY_RECORD_MAXIMUM;
    assert_int_equal(append(under_test, &racers[0], &entry).kind, REGISTER_WON);
    struct answer answer = read_last(under_test, &racers[1]);
    assert_true(slice_equals(bytes_slice(&answer.entry.record), bytes_slice(&entry.record)));
    answer_clear(&answer);
    register_entry_clear(&entry);
    racers_free(racers, 2);
    free(run_id);
}

static void renewal_changes_each_time_and_only_then(void **state) {
    struct register_under_test *under_test = *state;
    char *run_id = unused_run_id();
    struct racer *racers = racers_new(under_test, run_id, 2, NULL);
    struct answer before = renewal(under_test, &racers[1], 1);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(renew(under_test, &racers[0], 1).kind, REGISTER_RENEWED);
        struct answer now = renewal(under_test, &racers[1], 1);
        assert_string_not_equal(text_string(&now.renewal), text_string(&before.renewal));
        struct answer again = renewal(under_test, &racers[1], 1);
        assert_string_equal(text_string(&again.renewal), text_string(&now.renewal));
        answer_clear(&before);
        answer_clear(&again);
        before = now;
    }
    /* a host of another term does not disturb it */
    assert_int_equal(renew(under_test, &racers[1], 2).kind, REGISTER_RENEWED);
    struct answer now = renewal(under_test, &racers[0], 1);
    assert_string_equal(text_string(&now.renewal), text_string(&before.renewal));
    answer_clear(&now);
    answer_clear(&before);
    racers_free(racers, 2);
    free(run_id);
}

static void two_jobs_do_not_meet(void **state) {
    struct register_under_test *under_test = *state;
    char *run_id = unused_run_id();
    char *longer = text_format("%s/x", run_id);
    struct racer *one = racers_new(under_test, run_id, 1, NULL);
    struct racer *other = racers_new(under_test, longer, 1, NULL);
    struct register_entry entry = make_entry(one, 1);
    assert_int_equal(append(under_test, one, &entry).kind, REGISTER_WON);
    assert_int_equal(renew(under_test, one, 1).kind, REGISTER_RENEWED);
    struct answer answer = read_last(under_test, other);
    assert_false(answer.has_entry);
    answer_clear(&answer);
    answer = renewal(under_test, other, 1);
    assert_string_equal(text_string(&answer.renewal), "");
    answer_clear(&answer);
    entry.nonce[0] = entry.nonce[0] == '0' ? '1' : '0';
    assert_int_equal(append(under_test, other, &entry).kind, REGISTER_WON);
    register_entry_clear(&entry);
    racers_free(one, 1);
    racers_free(other, 1);
    free(longer);
    free(run_id);
}

static void engine_without_a_word_is_left_at_the_deadline(void **state) {
    struct register_under_test *under_test = *state;
    char *run_id = unused_run_id();
    struct racer *racers = racers_new(under_test, run_id, 1, NULL);
    struct register_entry entry = make_entry(&racers[0], 1);
    racers[0].faults.is_silent = true;
    racers[0].deadline_milliseconds = 20;
    struct answer answer = read_last(under_test, &racers[0]);
    assert_int_equal(answer.kind, REGISTER_FAILED);
    assert_int_equal(answer.failure.code, FAILURE_TIMEOUT);
    answer_clear(&answer);
    answer = append(under_test, &racers[0], &entry);
    assert_int_equal(answer.kind, REGISTER_UNKNOWN);
    answer_clear(&answer);
    /* which may have taken effect: then it is won, whoever asks again */
    racers[0].faults.is_silent = false;
    racers[0].deadline_milliseconds = 0;
    assert_int_equal(append(under_test, &racers[0], &entry).kind, REGISTER_WON);
    register_entry_clear(&entry);
    racers_free(racers, 1);
    free(run_id);
}

/* Where the engine watches: of whatever came since the entry known, and when. */
static void a_watch_tells_of_the_entry_after_the_one_known(void **state) {
    struct register_under_test *under_test = *state;
    char *run_id = unused_run_id();
    struct racer *racers = racers_new(under_test, run_id, 2, NULL);
    for (int64_t number = 1; number <= 12 && under_test->engine->watches; number++) {
        struct register_entry entry = make_entry(&racers[0], number);
        bool reads_before = number > 1 && number % 3 > 0; /* else what it knows is older */
        if (reads_before) {
            struct answer before = read_last(under_test, &racers[1]);
            assert_int_equal(before.entry.number, number - 1);
            answer_clear(&before);
        }
        bool is_there_before = number % 2 == 0;
        if (!is_there_before) {
            assert_int_not_equal(watch(&racers[1], number - 1), 0);
        }
        struct answer won = append(under_test, &racers[0], &entry);
        assert_int_equal(won.kind, REGISTER_WON);
        if (is_there_before) {
            assert_int_not_equal(watch(&racers[1], number - 1), 0);
        }
        struct answer told = news(under_test, &racers[1]);
        assert_int_equal(told.kind, REGISTER_NEWS);
        assert_int_equal(told.entry.number, number);
        assert_string_equal(told.entry.nonce, entry.nonce);
        answer_clear(&told);
        register_entry_clear(&entry);
    }
    racers_free(racers, 2);
    free(run_id);
}

static void a_watch_of_what_does_not_come_ends_at_its_deadline(void **state) {
    struct register_under_test *under_test = *state;
    char *run_id = unused_run_id();
    struct racer *racers = racers_new(under_test, run_id, 2, NULL);
    struct register_entry entry = make_entry(&racers[0], 1);
    assert_int_equal(append(under_test, &racers[0], &entry).kind, REGISTER_WON);
    racers[1].deadline_milliseconds = 300;
    if (watch(&racers[1], 1) != 0) {
        struct answer told = news(under_test, &racers[1]);
        assert_int_equal(told.kind, REGISTER_FAILED);
        answer_clear(&told);
    }
    register_entry_clear(&entry);
    racers_free(racers, 2);
    free(run_id);
}

static void a_watch_that_is_given_up_tells_nothing(void **state) {
    struct register_under_test *under_test = *state;
    char *run_id = unused_run_id();
    struct racer *racers = racers_new(under_test, run_id, 2, NULL);
    struct register_entry first = make_entry(&racers[0], 1);
    struct register_entry second = make_entry(&racers[0], 2);
    assert_int_equal(append(under_test, &racers[0], &first).kind, REGISTER_WON);
    uint64_t request = watch(&racers[1], 1);
    register_cancel(racers[1].job_register, request);
    assert_int_equal(append(under_test, &racers[0], &second).kind, REGISTER_WON);
    struct answer answer = read_last(under_test, &racers[1]);
    assert_int_equal(answer.kind, REGISTER_READ);
    assert_int_equal(answer.entry.number, 2);
    answer_clear(&answer);
    register_entry_clear(&first);
    register_entry_clear(&second);
    racers_free(racers, 2);
    free(run_id);
}

/* A directory that is missing stays so until the user makes it; a server may come. */
static void gone_engine_is_told_and_an_append_may_be_unknown(void **state) {
    struct register_under_test *under_test = register_under_test_gone();
    struct racer *racers = racers_new(under_test, "job", 1, NULL);
    struct register_entry entry = make_entry(&racers[0], 1);
    bool is_final = text_equals(under_test->engine->name, "dir");
    (void)state;
    racers[0].deadline_milliseconds = is_final ? 0 : 60;
    struct answer answer = read_last(under_test, &racers[0]);
    assert_int_equal(answer.kind, REGISTER_FAILED);
    assert_int_equal(answer.is_final, is_final);
    assert_true(answer.failure.message[0] != '\0');
    answer_clear(&answer);
    answer = append(under_test, &racers[0], &entry);
    assert_int_equal(answer.kind, is_final ? REGISTER_FAILED : REGISTER_UNKNOWN);
    answer_clear(&answer);
    answer = renew(under_test, &racers[0], 1);
    assert_int_equal(answer.kind, REGISTER_FAILED);
    answer_clear(&answer);
    register_entry_clear(&entry);
    racers_free(racers, 1);
    text_list_clear(&under_test->conf);
}

static void gone_engine_may_be_closed_with_requests_under_way(void **state) {
    struct register_under_test *under_test = register_under_test_gone();
    struct racer *racers = racers_new(under_test, "job", 1, NULL);
    struct register_entry entry = make_entry(&racers[0], 1);
    (void)state;
    register_renew(racers[0].job_register, 1, far(under_test));
    register_append(racers[0].job_register, &entry, far(under_test));
    register_cancel(racers[0].job_register, register_read(racers[0].job_register, far(under_test)));
    event_loop_run_ready(under_test->loop);
    register_entry_clear(&entry);
    racers_free(racers, 1);
    text_list_clear(&under_test->conf);
}

/* For who asks a register that cannot be used; with a usable one there is nothing to say. */
static void say_why(struct register_under_test *under_test, bool appends) {
    char *run_id = unused_run_id();
    struct racer *racers = racers_new(under_test, run_id, 1, NULL);
    struct register_entry entry = make_entry(&racers[0], 1);
    racers[0].deadline_milliseconds = 20000;
    struct answer answer =
        appends ? append(under_test, &racers[0], &entry) : read_last(under_test, &racers[0]);
    if (answer.kind == REGISTER_FAILED || answer.kind == REGISTER_UNKNOWN) {
        print_message("%s: %s\n",
            answer.kind == REGISTER_UNKNOWN ? "unknown"
            : answer.is_final               ? "final"
                                            : "failed",
            answer.failure.message);
        assert_true(answer.failure.message[0] != '\0');
    }
    answer_clear(&answer);
    register_entry_clear(&entry);
    racers_free(racers, 1);
    free(run_id);
}

static void first_read_says_why_it_fails(void **state) {
    say_why(*state, false);
}

static void first_append_says_why_it_fails(void **state) {
    say_why(*state, true);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_number_has_exactly_one_winner),
    cmocka_unit_test(each_number_has_one_winner_though_replies_are_lost),
    cmocka_unit_test(reader_sees_a_chain_that_only_grows),
    cmocka_unit_test(old_number_is_never_won_again),
    cmocka_unit_test(number_beyond_the_next_is_not_won),
    cmocka_unit_test(own_entry_is_won_again_whenever_it_is_appended),
    cmocka_unit_test(largest_record_is_kept),
    cmocka_unit_test(renewal_changes_each_time_and_only_then),
    cmocka_unit_test(two_jobs_do_not_meet),
    cmocka_unit_test(engine_without_a_word_is_left_at_the_deadline),
    cmocka_unit_test(a_watch_tells_of_the_entry_after_the_one_known),
    cmocka_unit_test(a_watch_of_what_does_not_come_ends_at_its_deadline),
    cmocka_unit_test(a_watch_that_is_given_up_tells_nothing),
    cmocka_unit_test(gone_engine_is_told_and_an_append_may_be_unknown),
    cmocka_unit_test(gone_engine_may_be_closed_with_requests_under_way),
    cmocka_unit_test(first_read_says_why_it_fails),
    cmocka_unit_test(first_append_says_why_it_fails),
};

int main(int argument_count, char **arguments) {
    register_under_test_choose(argument_count, arguments);
    return cmocka_run_group_tests(tests, register_under_test_set_up, register_under_test_tear_down);
}

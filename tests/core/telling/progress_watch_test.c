/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "core/telling/progress_watch.h"

#define WORKERS 2

struct fixture {
    struct progress_watch *watch;
    struct progress_sample workers[WORKERS];
    int64_t now; /* in milliseconds */
    struct progress_news news[PROGRESS_NEWS_MAXIMUM];
    size_t count;
    struct progress_news slow; /* that was told last */
    int slow_count;
};

static struct instant at(int64_t milliseconds) {
    return (struct instant){milliseconds * NANOSECONDS_PER_MILLISECOND};
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){
        .watch = progress_watch_new(WORKERS, (struct progress_patience){0}), .now = 1000};
    progress_watch_begin(fixture->watch, at(fixture->now), true);
}

static void tear_down(struct fixture *fixture) {
    progress_watch_free(fixture->watch);
}

/* Its first step, or the next one. */
static void step(struct fixture *fixture, int local_rank, int64_t number, int64_t when) {
    struct progress_sample *worker = &fixture->workers[local_rank];
    if (worker->count++ == 0) {
        worker->first_step = number;
        worker->first = at(when);
    }
    worker->source = PROGRESS_PROGRAM;
    worker->step = number;
    worker->stepped = at(when);
}

static void look(struct fixture *fixture, int64_t when, bool is_last) {
    fixture->now = when;
    for (int rank = 0; rank < WORKERS; rank++) {
        progress_watch_see(fixture->watch, rank, &fixture->workers[rank], at(when));
    }
    fixture->count = progress_watch_tell(fixture->watch, at(when), is_last, fixture->news);
}

FIXTURE_TEST(node_trains_when_its_last_worker_has_taken_its_first_step) {
    look(fixture, 1100, false);
    assert_int_equal(fixture->count, 0);
    step(fixture, 0, 70, 1150);
    look(fixture, 1200, false);
    assert_int_equal(fixture->count, 0);
    assert_false(progress_watch_has_begun(fixture->watch));
    step(fixture, 1, 70, 1220);
    look(fixture, 1250, false);
    assert_int_equal(fixture->count, 2);
    assert_int_equal(fixture->news[0].kind, CHRONICLE_TRAINING);
    assert_int_equal(fixture->news[0].at.nanoseconds, at(1220).nanoseconds);
    assert_int_equal(fixture->news[0].took.nanoseconds, at(220).nanoseconds);
    assert_int_equal(fixture->news[0].local_rank, 1);
    assert_int_equal(fixture->news[1].kind, CHRONICLE_PROGRESS);
    assert_int_equal(fixture->news[1].step, 70);
    look(fixture, 1300, false);
    assert_int_equal(fixture->count, 0);
}

FIXTURE_TEST(step_of_a_node_is_that_of_the_worker_that_is_least_far) {
    assert_int_equal(progress_watch_step(fixture->watch), -1);
    step(fixture, 1, 70, 1150);
    look(fixture, 1200, false);
    assert_int_equal(progress_watch_step(fixture->watch), 70);
    step(fixture, 0, 69, 1220);
    look(fixture, 1250, false);
    assert_int_equal(progress_watch_step(fixture->watch), 69);
    progress_watch_begin(fixture->watch, at(1300), true);
    assert_int_equal(progress_watch_step(fixture->watch), -1);
}

FIXTURE_TEST(worker_that_takes_no_steps_is_not_awaited) {
    for (int64_t number = 1; number <= 3; number++) {
        step(fixture, 1, number, 1000 + number);
    }
    look(fixture, 1250, false);
    assert_int_equal(fixture->news[0].kind, CHRONICLE_TRAINING);
    assert_int_equal(fixture->news[0].local_rank, 1);
}

static void train(struct fixture *fixture) {
    step(fixture, 0, 1, 1010);
    step(fixture, 1, 1, 1010);
    look(fixture, 1050, false);
}

FIXTURE_TEST(rate_is_that_of_the_workers_own_times) {
    train(fixture);
    for (int64_t number = 2; number <= 21; number++) {
        step(fixture, 0, number, 1010 + (number - 1) * 500);
    }
    look(fixture, 11050, false);
    assert_int_equal(fixture->count, 1);
    assert_int_equal(fixture->news[0].step, 21);
    assert_true(fixture->news[0].rate == 2);
    assert_int_equal(fixture->news[0].at.nanoseconds, at(11010).nanoseconds);
}

FIXTURE_TEST(standstill_is_told_once) {
    train(fixture);
    look(fixture, 11050, false);
    assert_int_equal(fixture->count, 1);
    assert_true(fixture->news[0].rate == 0);
    assert_int_equal(fixture->news[0].at.nanoseconds, at(11050).nanoseconds);
    look(fixture, 21100, false);
    look(fixture, 31100, true);
    assert_int_equal(fixture->count, 0);
}

FIXTURE_TEST(last_look_tells_how_far_the_workers_came_on_any_node) {
    progress_watch_begin(fixture->watch, at(fixture->now), false);
    train(fixture);
    assert_int_equal(fixture->count, 1); /* of the steps the node of rank 0 tells */
    step(fixture, 0, 2, 1100);
    look(fixture, 30000, false);
    assert_int_equal(fixture->count, 0);
    look(fixture, 30100, true);
    assert_int_equal(fixture->count, 1);
    assert_int_equal(fixture->news[0].step, 2);
}

FIXTURE_TEST(checkpoint_is_told_once) {
    train(fixture);
    fixture->workers[0].save_count = 1;
    fixture->workers[0].saved_step = 1;
    fixture->workers[0].saved = at(1060);
    look(fixture, 1100, false);
    assert_int_equal(fixture->count, 1);
    assert_int_equal(fixture->news[0].kind, CHRONICLE_CHECKPOINT);
    assert_int_equal(fixture->news[0].step, 1);
    look(fixture, 1200, false);
    assert_int_equal(fixture->count, 0);
}

FIXTURE_TEST(times_that_cannot_be_are_those_of_the_look) {
    step(fixture, 0, 1, 10);
    step(fixture, 1, 1, 999999);
    look(fixture, 1050, false);
    assert_int_equal(fixture->news[0].took.nanoseconds, at(50).nanoseconds);
}

FIXTURE_TEST(program_that_begins_to_tell_has_no_rate_with_what_was_counted) {
    train(fixture);
    fixture->workers[0].source = PROGRESS_OPTIMIZER;
    step(fixture, 0, 5000, 5000);
    fixture->workers[0].source = PROGRESS_OPTIMIZER;
    look(fixture, 11050, false);
    assert_int_equal(fixture->count, 1);
    assert_true(fixture->news[0].rate < 0);
}

/* Standstill. */

/* Whether it was told; the last look was a second before, or when it was given. */
static bool stands_still(struct fixture *fixture, int64_t when, struct duration *out_silence) {
    struct duration silence = {0};
    look(fixture, when, false);
    enum progress_standing standing = progress_watch_judge(fixture->watch, at(when), &silence);
    if (out_silence != NULL) {
        *out_silence = silence;
    }
    return standing == PROGRESS_STANDS_STILL;
}

static void be_patient(struct fixture *fixture, struct progress_patience patience) {
    progress_watch_free(fixture->watch);
    fixture->watch = progress_watch_new(WORKERS, patience);
    progress_watch_begin(fixture->watch, at(fixture->now), true);
}

/* Both workers take as many steps more, each after so many milliseconds; a look follows each.
 * Returns when the last was taken; nothing stands still meanwhile. */
static int64_t take_steps(struct fixture *fixture, int64_t since, int count, int64_t apart) {
    for (int i = 0; i < count; i++) {
        since += apart;
        for (int rank = 0; rank < WORKERS; rank++) {
            step(fixture, rank, fixture->workers[rank].step + 1, since);
        }
        assert_false(stands_still(fixture, since, NULL));
    }
    return since;
}

static const struct progress_patience learned = {.is_learned = true};

FIXTURE_TEST(workers_that_take_no_step_for_so_long_stand_still_and_that_is_told_once) {
    struct duration silence;
    be_patient(fixture, (struct progress_patience){.time = duration_from_seconds(5)});
    int64_t last = take_steps(fixture, 1000, 3, 100);
    assert_false(stands_still(fixture, last + 4999, NULL));
    assert_true(stands_still(fixture, last + 5001, &silence));
    assert_int_equal(silence.nanoseconds, at(5001).nanoseconds);
    assert_false(stands_still(fixture, last + 60000, NULL));
}

FIXTURE_TEST(worker_that_goes_on_ends_a_standstill_and_another_one_may_follow) {
    struct duration silence;
    be_patient(fixture, (struct progress_patience){.time = duration_from_seconds(5)});
    int64_t last = take_steps(fixture, 1000, 3, 100);
    assert_true(stands_still(fixture, last + 5001, NULL));
    step(fixture, 1, 4, last + 7000);
    look(fixture, last + 7500, false);
    assert_int_equal(
        progress_watch_judge(fixture->watch, at(last + 7500), &silence), PROGRESS_GOES_ON);
    assert_false(stands_still(fixture, last + 11999, NULL));
    assert_true(stands_still(fixture, last + 12001, NULL));
}

FIXTURE_TEST(as_long_as_one_worker_takes_steps_nothing_stands_still) {
    be_patient(fixture, (struct progress_patience){.time = duration_from_seconds(5)});
    int64_t last = take_steps(fixture, 1000, 3, 100);
    for (int64_t second = 1; second < 100; second++) {
        step(fixture, 1, 3 + second, last + second * 1000);
        assert_false(stands_still(fixture, last + second * 1000, NULL));
    }
}

FIXTURE_TEST(workers_that_have_never_taken_a_step_do_not_stand_still) {
    be_patient(fixture, (struct progress_patience){.time = duration_from_seconds(5)});
    assert_false(stands_still(fixture, 1000000, NULL));
    be_patient(fixture, learned);
    assert_false(stands_still(fixture, 100000000, NULL));
}

FIXTURE_TEST(without_patience_nobody_is_judged) {
    int64_t last = take_steps(fixture, 1000, 100, 100);
    assert_false(stands_still(fixture, last + 100000000, NULL));
}

FIXTURE_TEST(learned_patience_is_a_minute_at_least) {
    be_patient(fixture, learned);
    int64_t last = take_steps(fixture, 1000, 40, 100);
    assert_false(stands_still(fixture, last + 59999, NULL));
    assert_true(stands_still(fixture, last + 60001, NULL));
}

FIXTURE_TEST(learned_patience_is_twenty_times_as_long_as_a_step) {
    be_patient(fixture, learned);
    int64_t last = take_steps(fixture, 1000, 40, 10000);
    assert_false(stands_still(fixture, last + 199999, NULL));
    assert_true(stands_still(fixture, last + 200001, NULL));
}

FIXTURE_TEST(steps_that_grow_tenfold_are_no_standstill) {
    be_patient(fixture, learned);
    int64_t last = take_steps(fixture, 1000, 2000, 5000);
    (void)take_steps(fixture, last, 2000, 50000);
}

/* Of the last thousand steps ten may take as long as they like. */
FIXTURE_TEST(slowest_hundredth_of_the_steps_does_not_count) {
    be_patient(fixture, learned);
    int64_t last = take_steps(fixture, 1000, 1100, 100);
    for (int i = 0; i < 10; i++) {
        last = take_steps(fixture, take_steps(fixture, last, 1, 50000), 50, 100);
    }
    assert_true(stands_still(fixture, last + 60001, NULL));
    last = take_steps(fixture, last + 61000, 1, 100);
    last = take_steps(fixture, take_steps(fixture, last, 1, 50000), 50, 100);
    assert_false(stands_still(fixture, last + 999999, NULL));
    assert_true(stands_still(fixture, last + 1000001, NULL));
}

FIXTURE_TEST(first_steps_after_a_start_teach_nothing_and_take_as_long_as_they_like) {
    be_patient(fixture, learned);
    int64_t last = take_steps(fixture, 1000, PROGRESS_FIRST_STEPS, 600000);
    assert_false(stands_still(fixture, last + 6000000, NULL));
    last = take_steps(fixture, last + 6000000, 40, 100);
    assert_true(stands_still(fixture, last + 60001, NULL));
    progress_watch_begin(fixture->watch, at(last + 61000), true);
    memset(fixture->workers, 0, sizeof fixture->workers);
    last = take_steps(fixture, last + 61000, PROGRESS_FIRST_STEPS, 300000);
    (void)take_steps(fixture, last, 1, 100); /* what was learned before counts */
    assert_true(stands_still(fixture, last + 100 + 60001, NULL));
}

FIXTURE_TEST(longest_step_with_a_checkpoint_is_allowed_for_twice) {
    be_patient(fixture, learned);
    int64_t last = take_steps(fixture, 1000, 40, 100);
    fixture->workers[0].save_count = 1;
    fixture->workers[0].saved = at(last + 39000);
    assert_false(stands_still(fixture, last + 39500, NULL)); /* it is told before the next step */
    last = take_steps(fixture, last + 39900, 1, 100);
    last = take_steps(fixture, last, 40, 100);
    assert_false(stands_still(fixture, last + 79999, NULL));
    assert_true(stands_still(fixture, last + 80001, NULL));
}

/* As a long validation is, after each epoch. */
FIXTURE_TEST(what_was_over_by_itself_is_not_told_a_second_time) {
    be_patient(fixture, learned);
    int64_t last = take_steps(fixture, 1000, 40, 100);
    assert_true(stands_still(fixture, last + 60001, NULL));
    last = take_steps(fixture, last + 300000, 1, 0);
    for (int epoch = 0; epoch < 10; epoch++) {
        last = take_steps(fixture, last, 100, 100);
        assert_false(stands_still(fixture, last + 300000, NULL));
        last = take_steps(fixture, last + 300000, 1, 0);
    }
    last = take_steps(fixture, last, 10, 100);
    assert_true(stands_still(fixture, last + 600001, NULL));
}

FIXTURE_TEST(too_few_steps_teach_nothing) {
    be_patient(fixture, learned);
    int64_t last = take_steps(fixture, 1000, PROGRESS_FIRST_STEPS + 10, 100);
    assert_false(stands_still(fixture, last + 60001, NULL));
    last = take_steps(fixture, last + 60001, 1, 0);
    last = take_steps(fixture, last, 1, 100);
    assert_false(stands_still(fixture, last + 1200000, NULL));
    assert_true(stands_still(fixture, last + 1200021, NULL));
}

/* A minute of 60 steps, in which each worker waits so many milliseconds a step. */
static void pass_minute(struct fixture *fixture, int minute, int wait0, int wait1) {
    const int waits[WORKERS] = {wait0, wait1};
    for (int second = 1; second <= 60; second++) {
        int64_t when = 1000 + (minute * 60 + second) * 1000;
        for (int rank = 0; rank < WORKERS; rank++) {
            step(fixture, rank, minute * 60 + second, when);
            fixture->workers[rank].waited.nanoseconds +=
                waits[rank] * (int64_t)NANOSECONDS_PER_MILLISECOND;
        }
        look(fixture, when, false);
        for (size_t i = 0; i < fixture->count; i++) {
            if (fixture->news[i].kind == CHRONICLE_SLOW) {
                fixture->slow = fixture->news[i];
                fixture->slow_count++;
            }
        }
    }
}

FIXTURE_TEST(worker_that_waits_less_than_the_others_for_three_minutes_is_slow) {
    for (int minute = 0; minute < 3; minute++) {
        pass_minute(fixture, minute, 500, 1);
    }
    assert_int_equal(fixture->slow_count, 0); /* the first minute begins with the first step */
    pass_minute(fixture, 3, 500, 1);
    assert_int_equal(fixture->slow_count, 1);
    assert_int_equal(fixture->slow.local_rank, 1);
    assert_true(fixture->slow.rate > 1.9 && fixture->slow.rate < 2.1);
    pass_minute(fixture, 4, 500, 1);
    assert_int_equal(fixture->slow_count, 1); /* it is told once, … */
    pass_minute(fixture, 5, 100, 100);
    for (int minute = 6; minute < 10; minute++) {
        pass_minute(fixture, minute, 1, 300);
    }
    assert_int_equal(fixture->slow_count, 2); /* … until it was not slow in between */
    assert_int_equal(fixture->slow.local_rank, 0);
}

FIXTURE_TEST(nobody_is_slow_who_marks_no_waits_or_is_busy_a_little_longer) {
    for (int minute = 0; minute < 5; minute++) {
        pass_minute(fixture, minute, 500, 0);
    }
    for (int minute = 5; minute < 10; minute++) {
        pass_minute(fixture, minute, 500, 450);
    }
    assert_int_equal(fixture->slow_count, 0);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/workers/worker_group.h"

static const struct process_exit succeeded = {.value = 0};
static const struct process_exit failed = {.value = 3};
static const struct process_exit terminated = {.is_signal = true, .value = 15};

static struct wall_time at(double seconds) {
    return (struct wall_time){.nanoseconds = (int64_t)(seconds * 1e9)};
}

TEST(success_needs_every_worker) {
    struct worker_group group;
    worker_group_init(&group, 2);
    assert_true(worker_group_record_exit(&group, 1, succeeded, at(1), false));
    assert_false(worker_group_has_succeeded(&group));
    assert_true(worker_group_record_exit(&group, 0, succeeded, at(2), false));
    assert_true(worker_group_has_succeeded(&group));
    assert_int_equal(worker_group_root_cause(&group), SIZE_MAX);
    worker_group_clear(&group);
}

TEST(ranks_that_do_not_run_are_refused) {
    struct worker_group group;
    worker_group_init(&group, 1);
    assert_false(worker_group_record_exit(&group, -1, failed, at(1), false));
    assert_false(worker_group_record_exit(&group, 1, failed, at(1), false));
    assert_true(worker_group_record_exit(&group, 0, failed, at(1), false));
    assert_false(worker_group_record_exit(&group, 0, failed, at(1), false));
    assert_false(worker_group_record_start_failure(&group, 0, "no", at(1)));
    assert_int_equal(group.failure_count, 1);
    worker_group_clear(&group);
}

TEST(a_worker_that_is_ending_fails_once) {
    struct worker_group group;
    worker_group_init(&group, 2);
    assert_false(worker_group_record_ending(&group, 0, succeeded, at(1)));
    assert_false(worker_group_record_ending(&group, 2, failed, at(1)));
    assert_true(worker_group_record_ending(&group, 0, failed, at(1)));
    assert_false(worker_group_record_ending(&group, 0, failed, at(2)));
    assert_true(worker_group_has_failure(&group));
    assert_true(worker_group_record_exit(&group, 1, failed, at(2), false));
    assert_false(worker_group_record_exit(&group, 0, terminated, at(3), true));
    assert_int_equal(group.failure_count, 2);
    assert_int_equal(group.running_count, 0);
    assert_int_equal(worker_group_root_cause(&group), 0);
    const struct worker_failure *failure = &group.failures[0];
    assert_true(failure->exit.is_signal); /* its real end */
    assert_int_equal(failure->exit.value, 15);
    assert_false(failure->is_from_our_signal);
    assert_int_equal(failure->observed.nanoseconds, at(1).nanoseconds);
    assert_false(worker_group_record_exit(&group, 0, failed, at(4), false));
    assert_int_equal(failure->exit.value, 15);
    worker_group_clear(&group);
}

TEST(a_failure_that_was_announced_stays_one) {
    struct worker_group group;
    worker_group_init(&group, 1);
    assert_true(worker_group_record_ending(&group, 0, failed, at(1)));
    assert_false(worker_group_record_exit(&group, 0, succeeded, at(2), false));
    assert_false(worker_group_has_succeeded(&group));
    assert_int_equal(group.failures[0].exit.value, 3);
    worker_group_clear(&group);
}

TEST(failures_keep_the_order_in_which_they_were_observed) {
    struct worker_group group;
    worker_group_init(&group, 3);
    assert_true(worker_group_record_exit(&group, 2, failed, at(5.9), false));
    assert_true(worker_group_record_exit(&group, 0, failed, at(5.1), false));
    assert_true(worker_group_record_exit(&group, 1, failed, at(4.9), false));
    assert_int_equal(group.failures[0].local_rank, 2);
    assert_int_equal(group.failures[1].local_rank, 0);
    assert_int_equal(group.failures[2].local_rank, 1);
    worker_group_clear(&group);
}

TEST(the_smallest_second_is_to_blame_and_the_first_observed_breaks_ties) {
    struct worker_group group;
    worker_group_init(&group, 3);
    assert_true(worker_group_record_exit(&group, 2, failed, at(5.9), false));
    assert_true(worker_group_record_exit(&group, 0, failed, at(5.1), false));
    assert_int_equal(worker_group_root_cause(&group), 0);
    assert_true(worker_group_record_exit(&group, 1, failed, at(4.9), false));
    assert_int_equal(worker_group_root_cause(&group), 2);
    worker_group_clear(&group);
}

TEST(an_error_file_tells_the_time_better_than_the_observation) {
    struct worker_group group;
    worker_group_init(&group, 2);
    assert_true(worker_group_record_exit(&group, 0, failed, at(7), false));
    assert_true(worker_group_record_exit(&group, 1, failed, at(9), false));
    worker_group_set_error_time(&group, 1, 6);
    assert_int_equal(worker_group_root_cause(&group), 1);
    worker_group_set_error_time(&group, 0, 6);
    assert_int_equal(worker_group_root_cause(&group), 0);
    worker_group_set_error_time(&group, 7, 1);
    assert_int_equal(worker_group_root_cause(&group), 0);
    worker_group_clear(&group);
}

TEST(a_worker_we_stopped_is_to_blame_only_when_nobody_else_is) {
    struct worker_group group;
    worker_group_init(&group, 2);
    assert_true(worker_group_record_exit(&group, 0, terminated, at(3), true));
    assert_int_equal(worker_group_root_cause(&group), 0);
    assert_true(worker_group_record_exit(&group, 1, failed, at(9), false));
    assert_int_equal(worker_group_root_cause(&group), 1);
    worker_group_clear(&group);
}

TEST(a_worker_that_could_not_start_is_to_blame_before_all_others) {
    struct worker_group group;
    worker_group_init(&group, 2);
    assert_true(worker_group_record_exit(&group, 0, failed, at(3), false));
    assert_true(worker_group_record_start_failure(&group, 1, "exec failed", at(4)));
    assert_int_equal(worker_group_root_cause(&group), 1);
    assert_string_equal(group.failures[1].start_message, "exec failed");
    assert_int_equal(group.states[1], WORKER_FAILED);
    worker_group_clear(&group);
}

TEST(a_stuck_worker_is_given_up) {
    struct worker_group group;
    worker_group_init(&group, 2);
    assert_true(worker_group_record_stuck(&group, 1, duration_from_seconds(5), at(3)));
    assert_false(worker_group_record_stuck(&group, 1, duration_from_seconds(6), at(4)));
    assert_false(worker_group_record_exit(&group, 1, terminated, at(5), true));
    assert_true(worker_group_record_exit(&group, 0, terminated, at(3), true));
    assert_int_equal(group.failure_count, 2);
    assert_int_equal(worker_group_root_cause(&group), 0);
    assert_int_equal(group.failures[0].local_rank, 1);
    assert_int_equal(group.failures[0].stuck.nanoseconds, duration_from_seconds(5).nanoseconds);
    worker_group_clear(&group);
}

TEST(a_new_attempt_forgets_the_failures) {
    struct worker_group group;
    worker_group_init(&group, 2);
    assert_true(worker_group_record_start_failure(&group, 1, "exec failed", at(4)));
    worker_group_reset(&group);
    assert_false(worker_group_has_failure(&group));
    assert_int_equal(group.running_count, 2);
    assert_int_equal(group.states[1], WORKER_RUNNING);
    worker_group_clear(&group);
}

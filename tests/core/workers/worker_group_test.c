/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/workers/worker_group.h"

static const struct process_exit succeeded = {.value = 0};
static const struct process_exit failed = {.value = 3};
static const struct process_exit terminated = {.is_signal = true, .value = 15};

static struct wall_time at(double seconds) {
    return (struct wall_time){.nanoseconds = (int64_t)(seconds * 1e9)};
}

TEST_OF(worker_group, ranks_that_do_not_run_are_refused, worker_group_init(&fixture, 1),
    worker_group_clear) {
    assert_false(worker_group_record_exit(fixture, -1, failed, at(1), false));
    assert_false(worker_group_record_exit(fixture, 1, failed, at(1), false));
    assert_true(worker_group_record_exit(fixture, 0, failed, at(1), false));
    assert_false(worker_group_record_exit(fixture, 0, failed, at(1), false));
    assert_false(worker_group_record_start_failure(fixture, 0, "no", at(1)));
    assert_int_equal(fixture->failure_count, 1);
}

TEST_OF(worker_group, a_worker_that_is_ending_fails_once, worker_group_init(&fixture, 2),
    worker_group_clear) {
    assert_false(worker_group_record_ending(fixture, 0, succeeded, at(1)));
    assert_false(worker_group_record_ending(fixture, 2, failed, at(1)));
    assert_true(worker_group_record_ending(fixture, 0, failed, at(1)));
    assert_false(worker_group_record_ending(fixture, 0, failed, at(2)));
    assert_true(worker_group_has_failure(fixture));
    assert_true(worker_group_record_exit(fixture, 1, failed, at(2), false));
    assert_false(worker_group_record_exit(fixture, 0, terminated, at(3), true));
    assert_int_equal(fixture->failure_count, 2);
    assert_int_equal(fixture->running_count, 0);
    assert_int_equal(worker_group_root_cause(fixture), 0);
    const struct worker_failure *failure = &fixture->failures[0];
    assert_true(failure->exit.is_signal); /* its real end */
    assert_int_equal(failure->exit.value, 15);
    assert_false(failure->is_from_our_signal);
    assert_int_equal(failure->observed.nanoseconds, at(1).nanoseconds);
    assert_false(worker_group_record_exit(fixture, 0, failed, at(4), false));
    assert_int_equal(failure->exit.value, 15);
}

TEST_OF(worker_group, a_failure_that_was_announced_stays_one, worker_group_init(&fixture, 1),
    worker_group_clear) {
    assert_true(worker_group_record_ending(fixture, 0, failed, at(1)));
    assert_false(worker_group_record_exit(fixture, 0, succeeded, at(2), false));
    assert_false(worker_group_has_succeeded(fixture));
    assert_int_equal(fixture->failures[0].exit.value, 3);
}

TEST_OF(worker_group, failures_keep_the_order_in_which_they_were_observed,
    worker_group_init(&fixture, 3), worker_group_clear) {
    assert_true(worker_group_record_exit(fixture, 2, failed, at(5.9), false));
    assert_true(worker_group_record_exit(fixture, 0, failed, at(5.1), false));
    assert_true(worker_group_record_exit(fixture, 1, failed, at(4.9), false));
    assert_int_equal(fixture->failures[0].local_rank, 2);
    assert_int_equal(fixture->failures[1].local_rank, 0);
    assert_int_equal(fixture->failures[2].local_rank, 1);
}

TEST_OF(worker_group, an_error_file_tells_the_time_better_than_the_observation,
    worker_group_init(&fixture, 2), worker_group_clear) {
    assert_true(worker_group_record_exit(fixture, 0, failed, at(7), false));
    assert_true(worker_group_record_exit(fixture, 1, failed, at(9), false));
    worker_group_set_error_time(fixture, 1, 6);
    assert_int_equal(worker_group_root_cause(fixture), 1);
    worker_group_set_error_time(fixture, 0, 6);
    assert_int_equal(worker_group_root_cause(fixture), 0);
    worker_group_set_error_time(fixture, 7, 1);
    assert_int_equal(worker_group_root_cause(fixture), 0);
}

TEST_OF(worker_group, a_worker_that_could_not_start_is_to_blame_before_all_others,
    worker_group_init(&fixture, 2), worker_group_clear) {
    assert_true(worker_group_record_exit(fixture, 0, failed, at(3), false));
    assert_true(worker_group_record_start_failure(fixture, 1, "exec failed", at(4)));
    assert_int_equal(worker_group_root_cause(fixture), 1);
    assert_string_equal(fixture->failures[1].start_message, "exec failed");
    assert_int_equal(fixture->states[1], WORKER_FAILED);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/telling/event_record.h"

TEST(each_state_is_found_by_its_name) {
    for (int i = 0; i < RUN_STATE_COUNT; i++) {
        assert_int_equal(run_state_from_name(run_state_name((enum run_state)i)), i);
    }
}

TEST(what_is_no_state_has_no_name) {
    assert_null(run_state_name(RUN_STATE_COUNT));
    assert_int_equal(run_state_from_name("HEALTHY"), RUN_STATE_COUNT);
    assert_int_equal(run_state_from_name(""), RUN_STATE_COUNT);
}

TEST(cleared_result_is_empty_and_can_be_cleared_again) {
    struct run_result result = {.state = RUN_STATE_FAILED,
        .message = memory_duplicate_string("why"),
        .failures = memory_allocate(sizeof(struct failure_account)),
        .failure_count = 1};
    result.failures[0].host = memory_duplicate_string("node1");
    run_result_clear(&result);
    assert_null(result.message);
    assert_int_equal(result.failure_count, 0);
    run_result_clear(&result);
}

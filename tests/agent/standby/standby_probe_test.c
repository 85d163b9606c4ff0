/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "../standby_fixture.h"
#include "agent/standby/standby_spare.h"

static bool run_probe(struct standby_fixture *fixture) {
    struct text_list environment = {0};
    struct standby_probe probe = {0};
    assert_int_equal(
        standby_probe_start(&probe, &fixture->starter, &environment, NULL, NULL), FAILURE_NONE);
    assert_true(probe.pid > 0);
    event_loop_run(fixture->loop); /* until its end */
    bool has_hello = standby_probe_end(&probe);
    assert_int_equal(probe.pid, 0);
    assert_false(standby_probe_end(&probe));
    return has_hello;
}

STANDBY_TEST(it_tells_whether_the_hook_was_reached) {
    assert_true(run_probe(fixture));
    fixture->is_hook_missing = true;
    assert_false(run_probe(fixture));
}

STANDBY_TEST(one_that_cannot_be_started_leaves_nothing) {
    struct text_list environment = {0};
    struct standby_probe probe = {0};
    struct failure failure;
    fixture->refuses_to_spawn = true;
    assert_int_equal(standby_probe_start(&probe, &fixture->starter, &environment, NULL, &failure),
        FAILURE_SYSTEM);
    assert_false(standby_probe_end(&probe));
}

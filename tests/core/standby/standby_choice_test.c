/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/standby/standby_plan.h"

static struct launch_config job(enum launch_standby standby) {
    return (struct launch_config){.standby = standby,
        .entry = LAUNCH_ENTRY_SCRIPT,
        .max_restarts = 1,
        .minimum_nodes = 1,
        .maximum_nodes = 1};
}

TEST(off_is_off) {
    struct launch_config config = job(LAUNCH_STANDBY_OFF);
    assert_int_equal(standby_choose(&config, 1, 64), STANDBY_CHOICE_OFF);
}

TEST(nobody_waits_in_a_job_that_never_starts_its_workers_again) {
    struct launch_config config = job(LAUNCH_STANDBY_ON);
    assert_int_equal(standby_choose(&config, 8, 1), STANDBY_CHOICE_WANTED);
    config.max_restarts = 0;
    assert_int_equal(standby_choose(&config, 8, 1), STANDBY_CHOICE_NO_RESTART);
    config.standby = LAUNCH_STANDBY_AUTO; /* who has not asked for them is not told */
    assert_int_equal(standby_choose(&config, 1, 8), STANDBY_CHOICE_OFF);
    config.standby = LAUNCH_STANDBY_ON;
    config.maximum_nodes = 2;
    assert_int_equal(standby_choose(&config, 8, 1), STANDBY_CHOICE_WANTED);
}

TEST(auto_wants_python_and_two_cpus_for_each_worker) {
    struct launch_config config = job(LAUNCH_STANDBY_AUTO);
    assert_int_equal(standby_choose(&config, 4, 8), STANDBY_CHOICE_WANTED);
    assert_int_equal(standby_choose(&config, 5, 8), STANDBY_CHOICE_FEW_CPUS);
    config.entry = LAUNCH_ENTRY_MODULE;
    assert_int_equal(standby_choose(&config, 4, 8), STANDBY_CHOICE_WANTED);
    config.entry = LAUNCH_ENTRY_PROGRAM;
    assert_int_equal(standby_choose(&config, 4, 8), STANDBY_CHOICE_NO_PYTHON);
    assert_false(standby_is_for_python(&config));
    config.standby = LAUNCH_STANDBY_ON;
    assert_int_equal(standby_choose(&config, 4, 8), STANDBY_CHOICE_WANTED);
}

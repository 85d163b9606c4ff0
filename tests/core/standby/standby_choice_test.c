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

static void off_is_off(void **state) {
    (void)state;
    struct launch_config config = job(LAUNCH_STANDBY_OFF);
    assert_int_equal(standby_choose(&config, 1, 64), STANDBY_CHOICE_OFF);
}

static void nobody_waits_in_a_job_that_never_starts_its_workers_again(void **state) {
    (void)state;
    struct launch_config config = job(LAUNCH_STANDBY_ON);
    assert_int_equal(standby_choose(&config, 8, 1), STANDBY_CHOICE_WANTED);
    config.max_restarts = 0;
    assert_int_equal(standby_choose(&config, 8, 1), STANDBY_CHOICE_NO_RESTART);
    config.maximum_nodes = 2;
    assert_int_equal(standby_choose(&config, 8, 1), STANDBY_CHOICE_WANTED);
}

static void auto_wants_python_and_two_cpus_for_each_worker(void **state) {
    (void)state;
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

static void most_of_the_memory_is_left(void **state) {
    (void)state;
    assert_true(standby_leaves_memory(0, 4, 0)); /* the size of one is not known */
    assert_true(standby_leaves_memory(4000 * STANDBY_MEMORY_PART, 4, 1000));
    assert_false(standby_leaves_memory(4000 * STANDBY_MEMORY_PART - 1, 4, 1000));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(off_is_off),
    cmocka_unit_test(nobody_waits_in_a_job_that_never_starts_its_workers_again),
    cmocka_unit_test(most_of_the_memory_is_left),
    cmocka_unit_test(auto_wants_python_and_two_cpus_for_each_worker),
};

UNIT_TESTS(tests)

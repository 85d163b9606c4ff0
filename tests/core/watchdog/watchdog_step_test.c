/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/watchdog/watchdog_machine.h"

static struct watchdog_machine machine_that_climbs(int maximum_ancestors) {
    return (struct watchdog_machine){.settings = {.maximum_ancestors = maximum_ancestors}};
}

/* Returns the next pid in the search; 0 when the search is over. */
static int64_t see(
    struct watchdog_machine *machine, uint64_t start_time, int64_t parent, int owner) {
    struct watchdog_effects effects = {0};
    struct watchdog_sight sight = {true, start_time, parent, owner};
    bool is_found = watchdog_step_take_sight(machine, &sight, &effects);
    assert_int_equal(effects.count, is_found ? 0 : 1);
    return is_found ? 0 : effects.items[0].look_up.pid;
}

static void begin(struct watchdog_machine *machine, int64_t pid) {
    struct watchdog_effects effects = {0};
    watchdog_step_find_owner(machine, pid, true, &effects);
    assert_int_equal(effects.count, 1);
    assert_int_equal(effects.items[0].kind, WATCHDOG_EFFECT_LOOK_UP);
    assert_int_equal(effects.items[0].look_up.pid, pid);
    assert_true(effects.items[0].look_up.is_asking);
}

static void a_process_of_a_worker_has_its_rank(void **state) {
    (void)state;
    struct watchdog_machine machine = machine_that_climbs(64);
    begin(&machine, 50);
    assert_int_equal(see(&machine, 5, 40, 3), 0);
    assert_true(machine.search.is_there);
    assert_int_equal(machine.search.start_time, 5);
    assert_int_equal(machine.search.owner, 3);
}

static void a_descendant_of_a_worker_has_its_rank_and_its_own_start_time(void **state) {
    (void)state;
    struct watchdog_machine machine = machine_that_climbs(64);
    begin(&machine, 50);
    assert_int_equal(see(&machine, 5, 40, -1), 40);
    assert_int_equal(see(&machine, 4, 30, -1), 30);
    assert_int_equal(see(&machine, 3, 20, 2), 0);
    assert_int_equal(machine.search.pid, 50);
    assert_int_equal(machine.search.start_time, 5);
    assert_int_equal(machine.search.owner, 2);
}

static void nobody_is_looked_for_above_the_first_process(void **state) {
    (void)state;
    struct watchdog_machine machine = machine_that_climbs(64);
    begin(&machine, 50);
    assert_int_equal(see(&machine, 5, 40, -1), 40);
    assert_int_equal(see(&machine, 4, 1, -1), 0);
    assert_true(machine.search.is_there);
    assert_int_equal(machine.search.owner, -1);
}

static void ancestors_are_looked_at_up_to_a_limit(void **state) {
    (void)state;
    struct watchdog_machine machine = machine_that_climbs(2);
    begin(&machine, 50);
    assert_int_equal(see(&machine, 5, 40, -1), 40);
    assert_int_equal(see(&machine, 4, 30, -1), 30);
    assert_int_equal(see(&machine, 3, 20, -1), 0);
    assert_int_equal(machine.search.owner, -1);
    machine = machine_that_climbs(0);
    begin(&machine, 50);
    assert_int_equal(see(&machine, 5, 40, -1), 0);
}

static void an_ancestor_that_has_ended_leaves_a_process_without_an_owner(void **state) {
    (void)state;
    struct watchdog_machine machine = machine_that_climbs(64);
    struct watchdog_effects effects = {0};
    const struct watchdog_sight nobody = {0};
    begin(&machine, 50);
    assert_int_equal(see(&machine, 5, 40, -1), 40);
    assert_true(watchdog_step_take_sight(&machine, &nobody, &effects));
    assert_true(machine.search.is_there);
    assert_int_equal(machine.search.owner, -1);
    begin(&machine, 60);
    assert_true(watchdog_step_take_sight(&machine, &nobody, &effects));
    assert_false(machine.search.is_there);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_process_of_a_worker_has_its_rank),
    cmocka_unit_test(a_descendant_of_a_worker_has_its_rank_and_its_own_start_time),
    cmocka_unit_test(nobody_is_looked_for_above_the_first_process),
    cmocka_unit_test(ancestors_are_looked_at_up_to_a_limit),
    cmocka_unit_test(an_ancestor_that_has_ended_leaves_a_process_without_an_owner),
};

UNIT_TESTS(tests)

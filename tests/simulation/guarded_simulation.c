/* SPDX-License-Identifier: BSD-3-Clause */
/* The same as node_simulation.c, of processes beside the workers: guardians of agents that stand
 * still, and standby workers. */
#include "node_storm.h"
#include "whole_seeds.h"

/* Agents stand still for longer than the others wait for them. No worker runs beside a new world,
 * which whole_guardian.c checks in every storm; here nothing else excuses it. */
static struct whole_settings standing_still(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = seed % 3 != 0;
    settings.rendezvous.keep_alive_interval = duration_from_seconds(1 + (double)(seed % 5));
    settings.rendezvous.keep_alive_max_attempt = 2 + (int)(seed / 5 % 3);
    settings.fault_count = 20;
    settings.weather.message_is_lost = 0; /* it might be the last sign of life */
    settings.weather.faults = (struct whole_faults){.worker_fails = 20,
        .agent_is_stopped = 40,
        .machine_goes_off = 5,
        .another_comes = 15,
        .clock_jumps = 10};
    return settings;
}

static int fences;

static const char *count_fences(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    fences += outcome->fences;
    return NULL;
}

static void no_worker_of_an_agent_that_stands_still_runs_beside_a_new_world(void **state) {
    (void)state;
    whole_play_share(standing_still, 600, count_fences);
    assert_true(fences > 0);
}

/* Standby workers. */

static int given;
static int taught;

static const char *count_given(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    given += outcome->given;
    taught += outcome->taught;
    return NULL;
}

static struct whole_settings keeping_standby(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = seed % 3 != 0;
    settings.has_standby = true;
    settings.weather.start_fails = seed % 5 == 0 ? 5 : 0;
    return settings;
}

static void a_storm_over_a_job_with_standby_workers(void **state) {
    (void)state;
    whole_play_share(keeping_standby, 600, count_given);
    assert_true(given > 0);
    assert_true(taught > 0);
}

/* Nodes come all the time, and workers are started again. Only standby workers fail. */
static struct whole_settings failing_in_standby(uint64_t seed) {
    struct whole_settings settings = keeping_standby(seed);
    settings.max_restarts = 0;
    settings.nodes = 1 + (int)(seed % 3);
    settings.rendezvous.minimum_nodes = 1;
    settings.rendezvous.maximum_nodes = 8;
    settings.finishes_in_storm = false;
    settings.fault_count = 6;
    settings.weather = (struct whole_weather){.faults = {.another_comes = 1}};
    return settings;
}

static const char *check_standby_costs_nothing(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    given += outcome->given;
    for (int i = 0; i < outcome->node_count; i++) {
        if (outcome->endings[i].starts > 0 && outcome->endings[i].status != 0) {
            return "a standby worker that failed has ended a node";
        }
    }
    return outcome->restarts > 0 ? "a standby worker that failed has cost a restart" : NULL;
}

static void a_standby_worker_that_fails_costs_nothing(void **state) {
    (void)state;
    given = 0;
    whole_play_share(failing_in_standby, 300, check_standby_costs_nothing);
    assert_true(given > 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_worker_of_an_agent_that_stands_still_runs_beside_a_new_world),
    cmocka_unit_test(a_storm_over_a_job_with_standby_workers),
    cmocka_unit_test(a_standby_worker_that_fails_costs_nothing),
};

int main(int argument_count, char **arguments) {
    whole_take_arguments(argument_count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

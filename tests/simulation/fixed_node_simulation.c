/* SPDX-License-Identifier: BSD-3-Clause */
/* The same as node_simulation.c, of nodes that are alone or fixed. */
#include "whole_seeds.h"

static const struct whole_weather rough_for_workers = {
    .worker_fails = 15,
    .worker_is_stubborn = 10,
    .worker_is_stuck = 1,
    .worker_hangs = 2,
    .leaves_orphan = 10,
    .announces_end = 30,
    .start_fails = 3,
    .user_signals = 10,
};

static struct whole_settings fixed(uint64_t seed, int nodes, struct whole_weather weather) {
    struct whole_settings settings = {
        .seed = seed,
        .kind = nodes > 1 ? MEMBERSHIP_FIXED : MEMBERSHIP_ALONE,
        .nodes = nodes,
        .workers = 1 + (int)(seed % WHOLE_WORKERS_MAXIMUM),
        .max_restarts = (int)(seed % 4),
        .shutdown_timeout = 30,
        .is_hosted = true,
        .work_spread = 5,
        .weather = weather,
        .transcript_of = -1,
    };
    rendezvous_settings_init(&settings.rendezvous);
    return settings;
}

static struct whole_settings alone_in_rough_weather(uint64_t seed) {
    return fixed(seed, 1, rough_for_workers);
}

static const char *check_alone(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    const struct whole_ending *ending = &outcome->endings[0];
    bool is_fair = outcome->has_trouble || (ending->status == 0 && ending->starts == 1);
    return ending->starts > settings->max_restarts + 1 ? "it restarted too often"
           : !is_fair                                  ? "it failed for nothing"
                                                       : NULL;
}

static void one_node_in_rough_weather_always_ends_well_or_badly(void **state) {
    (void)state;
    whole_play_share(alone_in_rough_weather, 600, check_alone);
}

static struct whole_settings alone_and_hanging(uint64_t seed) {
    return fixed(seed, 1,
        (struct whole_weather){
            .worker_hangs = 20, .worker_is_stubborn = 20, .worker_is_stuck = 20});
}

static const char *check_hanging(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    const struct whole_ending *ending = &outcome->endings[0];
    bool is_right = ending->starts == 1 && ending->is_stuck == (ending->status != 0);
    return is_right ? NULL : "a hanging worker is not what the job failed of";
}

static void a_hanging_worker_fails_the_job_whatever_restarts_are_left(void **state) {
    (void)state;
    whole_play_share(alone_and_hanging, 300, check_hanging);
}

static struct whole_settings fair(uint64_t seed) {
    struct whole_settings settings = fixed(seed, 2 + (int)(seed % 4),
        (struct whole_weather){
            .leaves_orphan = 20, .worker_is_stubborn = 20, .message_is_lost = 2});
    settings.demands.success_everywhere = true;
    return settings;
}

static void several_nodes_in_fair_weather_all_succeed(void **state) {
    (void)state;
    whole_play_share(fair, 300, NULL);
}

static bool has_failed_node(const struct whole_outcome *outcome) {
    for (int i = 0; i < outcome->node_count; i++) {
        if (outcome->endings[i].outcome == AGENT_OUTCOME_FAILED) {
            return true;
        }
    }
    return false;
}

/* Without users, start failures and stuck processes, a job fails only when its restarts are used
 * up; a node may learn of the last failure before it has started for the last time. */
static const char *check_restarts(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    int attempts = settings->max_restarts + 1;
    for (int i = 0; i < outcome->node_count; i++) {
        const struct whole_ending *ending = &outcome->endings[i];
        if (!has_failed_node(outcome)) {
            if (ending->outcome != AGENT_OUTCOME_SUCCEEDED ||
                ending->starts != outcome->endings[0].starts) {
                return "nodes of a job that succeeds are not all alike";
            }
        } else if (ending->outcome == AGENT_OUTCOME_FAILED) {
            if (ending->starts != attempts) {
                return "a node fails though restarts are left";
            }
        } else if (ending->starts < attempts - 1 || ending->starts > attempts) {
            return "a node has not started as often as the one that failed";
        }
    }
    return NULL;
}

static struct whole_settings fixed_and_failing(uint64_t seed) {
    return fixed(
        seed, 2 + (int)(seed % 4), (struct whole_weather){.worker_fails = 15, .leaves_orphan = 10});
}

static void a_restart_anywhere_is_a_restart_everywhere(void **state) {
    (void)state;
    whole_play_share(fixed_and_failing, 800, check_restarts);
}

static struct whole_settings fixed_in_rough_weather(uint64_t seed) {
    return fixed(seed, 2 + (int)(seed % 11), rough_for_workers);
}

/* A final failure is known to all at once: nobody outlasts it by more than its own stop (the
 * shutdown timeout, and as much again for what does not die of SIGKILL). */
static const char *check_fixed_end(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    for (int i = 0; i < outcome->node_count; i++) {
        if (outcome->endings[i].starts > settings->max_restarts + 1) {
            return "a node restarted too often";
        }
        if (outcome->failed_at >= 0 && outcome->endings[i].ended_at > outcome->failed_at + 62) {
            return "a node has long not heard of the job's failure";
        }
    }
    return NULL;
}

static void several_nodes_in_rough_weather_always_end(void **state) {
    (void)state;
    whole_play_share(fixed_in_rough_weather, 1000, check_fixed_end);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_node_in_rough_weather_always_ends_well_or_badly),
    cmocka_unit_test(a_hanging_worker_fails_the_job_whatever_restarts_are_left),
    cmocka_unit_test(several_nodes_in_fair_weather_all_succeed),
    cmocka_unit_test(a_restart_anywhere_is_a_restart_everywhere),
    cmocka_unit_test(several_nodes_in_rough_weather_always_end),
};

int main(int argument_count, char **arguments) {
    whole_take_arguments(argument_count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

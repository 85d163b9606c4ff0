/* SPDX-License-Identifier: BSD-3-Clause */
/* Thousands of seeded jobs. What must hold at every moment (nothing starts beside processes of an
 * earlier attempt, SIGKILL comes on time, nothing comes after the end …) is checked by the virtual
 * cluster; here is what must hold in the end. The seed of a failing job is
 * printed. */
#include "unit.h"

#include "virtual_cluster.h"

#define SEEDS 2000

static const struct virtual_weather rough = {
    .worker_fails = 15,
    .worker_is_stubborn = 10,
    .worker_is_stuck = 1,
    .worker_hangs = 2,
    .leaves_orphan = 10,
    .start_fails = 3,
    .user_signals = 10,
};

static int remember_seed(void **state) {
    *state = calloc(1, sizeof(uint64_t));
    return *state == NULL ? -1 : 0;
}

static int print_seed(void **state) {
    print_message("last seed: %d\n", (int)*(uint64_t *)*state);
    free(*state);
    return 0;
}

static void play(
    void **state, struct virtual_settings settings, void (*check)(const struct virtual_cluster *)) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct virtual_cluster cluster;
        settings.seed = *(uint64_t *)*state = seed;
        settings.worker_count = 1 + (int)(seed % VIRTUAL_MAXIMUM_WORKERS);
        settings.max_restarts = (int)(seed % 4);
        virtual_cluster_play(&cluster, &settings);
        check(&cluster);
        virtual_cluster_clear(&cluster);
    }
}

static void check_alone(const struct virtual_cluster *cluster) {
    const struct virtual_node *node = &cluster->nodes[0];
    assert_true(node->starts <= cluster->settings.max_restarts + 1);
    if (!cluster->has_failed_somewhere) {
        assert_int_equal(node->outcome.kind, AGENT_OUTCOME_SUCCEEDED);
        assert_int_equal(node->starts, 1);
    }
    if (node->outcome.kind == AGENT_OUTCOME_FAILED) {
        assert_true(worker_group_has_failure(&node->machine.workers));
        assert_true(worker_group_root_cause(&node->machine.workers) != SIZE_MAX);
    }
    if (node->outcome.kind == AGENT_OUTCOME_SIGNALLED) {
        assert_true(node->user_signals > 0);
    }
}

static void one_node_in_rough_weather_always_ends_well_or_badly(void **state) {
    play(state, (struct virtual_settings){.node_count = 1, .weather = rough}, check_alone);
}

static void check_success(const struct virtual_cluster *cluster) {
    for (int i = 0; i < cluster->settings.node_count; i++) {
        assert_int_equal(cluster->nodes[i].outcome.kind, AGENT_OUTCOME_SUCCEEDED);
        assert_int_equal(cluster->nodes[i].starts, 1);
    }
}

static void several_nodes_in_fair_weather_all_succeed(void **state) {
    struct virtual_weather fair = {.leaves_orphan = 20, .worker_is_stubborn = 20};
    play(state, (struct virtual_settings){.node_count = 3, .weather = fair}, check_success);
}

/* Whether a worker hung while its agent was running it. */
static bool has_given_up(const struct virtual_node *node) {
    for (size_t i = 0; i < node->machine.workers.failure_count; i++) {
        if (node->machine.workers.failures[i].stuck.nanoseconds > 0) {
            return true;
        }
    }
    return false;
}

static void check_hanging(const struct virtual_cluster *cluster) {
    const struct virtual_node *node = &cluster->nodes[0];
    assert_int_equal(node->starts, 1);
    assert_int_equal(
        node->outcome.kind, has_given_up(node) ? AGENT_OUTCOME_FAILED : AGENT_OUTCOME_SUCCEEDED);
    if (has_given_up(node)) {
        assert_int_equal(worker_group_root_cause(&node->machine.workers), 0);
        assert_true(node->machine.workers.failures[0].stuck.nanoseconds > 0);
    } else {
        for (int rank = 0; rank < cluster->settings.worker_count; rank++) {
            assert_false(node->workers[rank].has_hung);
        }
    }
}

static void a_hanging_worker_fails_the_job_whatever_restarts_are_left(void **state) {
    struct virtual_weather hanging = {
        .worker_hangs = 20, .worker_is_stubborn = 20, .worker_is_stuck = 20};
    play(state, (struct virtual_settings){.node_count = 1, .weather = hanging}, check_hanging);
}

/* A final failure is known to all at once: nobody outlasts it by more than its own stop (the
 * shutdown timeout, and as much again for what does not die of SIGKILL). */
static void check_promptness(const struct virtual_cluster *cluster) {
    for (int i = 0; i < cluster->settings.node_count; i++) {
        if (cluster->failure_announced_at >= 0) {
            assert_true(cluster->nodes[i].finished_at <= cluster->failure_announced_at + 61000);
        }
    }
}

static bool has_failed_node(const struct virtual_cluster *cluster) {
    for (int i = 0; i < cluster->settings.node_count; i++) {
        if (cluster->nodes[i].outcome.kind == AGENT_OUTCOME_FAILED) {
            return true;
        }
    }
    return false;
}

/* Without users, start failures and stuck processes, a job fails only when its restarts are used
 * up; a node may learn of the last failure before it has started for the last time. */
static void check_restarts(const struct virtual_cluster *cluster) {
    int attempts = cluster->settings.max_restarts + 1;
    check_promptness(cluster);
    for (int i = 0; i < cluster->settings.node_count; i++) {
        const struct virtual_node *node = &cluster->nodes[i];
        if (!has_failed_node(cluster)) {
            assert_int_equal(node->outcome.kind, AGENT_OUTCOME_SUCCEEDED);
            assert_int_equal(node->starts, cluster->nodes[0].starts);
        } else if (node->outcome.kind == AGENT_OUTCOME_FAILED) {
            assert_int_equal(node->starts, attempts);
        } else {
            assert_in_range(node->starts, attempts - 1, attempts);
        }
    }
}

static void a_restart_anywhere_is_a_restart_everywhere(void **state) {
    struct virtual_weather failing = {.worker_fails = 15, .leaves_orphan = 10};
    play(state, (struct virtual_settings){.node_count = 4, .weather = failing}, check_restarts);
}

static void check_ended(const struct virtual_cluster *cluster) {
    check_promptness(cluster);
    for (int i = 0; i < cluster->settings.node_count; i++) {
        assert_true(cluster->nodes[i].is_finished);
        assert_true(cluster->nodes[i].starts <= cluster->settings.max_restarts + 1);
    }
}

static void several_nodes_in_rough_weather_always_end(void **state) {
    play(state, (struct virtual_settings){.node_count = 5, .weather = rough}, check_ended);
}

#define JOBS(test) cmocka_unit_test_setup_teardown(test, remember_seed, print_seed)

static const struct CMUnitTest tests[] = {
    JOBS(one_node_in_rough_weather_always_ends_well_or_badly),
    JOBS(a_hanging_worker_fails_the_job_whatever_restarts_are_left),
    JOBS(several_nodes_in_fair_weather_all_succeed),
    JOBS(a_restart_anywhere_is_a_restart_everywhere),
    JOBS(several_nodes_in_rough_weather_always_end),
};

TEST_MAIN(tests)

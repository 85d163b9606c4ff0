/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/workers/worker_command.h"

static struct launch_config plain_config(void) {
    return (struct launch_config){
        .role = memory_duplicate_string("trainer"),
        .max_restarts = 3,
        .signals = {15, 2},
        .signal_count = 2,
    };
}

static const struct node_placement placement = {
    .run_id = "job",
    .master_address = "10.0.0.1",
    .master_port = 29500,
    .group_rank = 1,
    .group_world_size = 2,
    .local_world_size = 4,
    .ranks = {.base_rank = 4, .world_size = 8, .role_base_rank = 1, .role_world_size = 5},
    .attempt = 2,
};

static void check(const struct text_list *environment, const char *name, const char *expected) {
    const char *value = text_list_variable(environment, name);
    assert_non_null(value);
    assert_string_equal(value, expected);
}

static struct text_list build(const struct launch_config *config, struct text_list *inherited) {
    struct text_list environment;
    assert_int_equal(
        worker_environment_build(config, &placement, 2, "/l/error.json", inherited, &environment),
        FAILURE_NONE);
    text_list_clear(inherited);
    return environment;
}

static void a_worker_learns_its_place_as_under_torchrun(void **state) {
    (void)state;
    struct launch_config config = plain_config();
    struct text_list inherited = {0};
    struct text_list environment = build(&config, &inherited);
    static const char *const expected[][2] = {{"RANK", "6"}, {"GROUP_RANK", "1"},
        {"ROLE_RANK", "3"}, {"ROLE_NAME", "trainer"}, {"LOCAL_RANK", "2"},
        {"LOCAL_WORLD_SIZE", "4"}, {"WORLD_SIZE", "8"}, {"GROUP_WORLD_SIZE", "2"},
        {"ROLE_WORLD_SIZE", "5"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"},
        {"TORCHELASTIC_RESTART_COUNT", "2"}, {"TORCHELASTIC_MAX_RESTARTS", "3"},
        {"TORCHELASTIC_RUN_ID", "job"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}, {"TORCHELASTIC_ERROR_FILE", "/l/error.json"},
        {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT"}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        check(&environment, expected[i][0], expected[i][1]);
    }
    assert_int_equal(environment.count, sizeof expected / sizeof *expected);
    text_list_clear(&environment);
    launch_config_clear(&config);
}

static void a_new_round_changes_the_place_but_not_the_restart_count(void **state) {
    (void)state;
    struct launch_config config = plain_config();
    struct text_list inherited = {0};
    struct text_list environment;
    struct node_placement next = placement;
    next.round = 9;
    next.group_rank = 0;
    next.group_world_size = 1;
    next.ranks = (struct rank_assignment){.world_size = 4, .role_world_size = 4};
    assert_int_equal(
        worker_environment_build(&config, &next, 2, NULL, &inherited, &environment), FAILURE_NONE);
    check(&environment, "RANK", "2");
    check(&environment, "GROUP_RANK", "0");
    check(&environment, "GROUP_WORLD_SIZE", "1");
    check(&environment, "WORLD_SIZE", "4");
    check(&environment, "TORCHELASTIC_RESTART_COUNT", "2");
    text_list_clear(&environment);
    launch_config_clear(&config);
}

static void a_job_may_have_used_more_restarts_than_this_node_allows(void **state) {
    (void)state;
    struct launch_config config = plain_config();
    struct text_list inherited = {0};
    struct text_list environment;
    struct node_placement generous = placement;
    generous.attempt = 7;
    assert_int_equal(
        worker_environment_build(&config, &generous, 0, NULL, &inherited, &environment),
        FAILURE_NONE);
    check(&environment, "TORCHELASTIC_RESTART_COUNT", "7");
    check(&environment, "TORCHELASTIC_MAX_RESTARTS", "3");
    text_list_clear(&environment);
    launch_config_clear(&config);
}

static void the_agents_environment_shows_through_but_loses_to_ours(void **state) {
    (void)state;
    struct launch_config config = plain_config();
    struct text_list inherited = {0};
    text_list_add(&inherited, "PATH=/bin");
    text_list_add(&inherited, "RANK=99");
    text_list_add(&inherited, "OMP_NUM_THREADS=7");
    text_list_add(&inherited, "CUDA_VISIBLE_DEVICES=3,4");
    text_list_add(&inherited, "TORCH_NCCL_ASYNC_ERROR_HANDLING=0");
    config.sets_omp_num_threads = true;
    struct text_list environment = build(&config, &inherited);
    check(&environment, "PATH", "/bin");
    check(&environment, "RANK", "6");
    check(&environment, "OMP_NUM_THREADS", "7");
    check(&environment, "CUDA_VISIBLE_DEVICES", "3,4");
    check(&environment, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "0");
    text_list_clear(&environment);
    launch_config_clear(&config);
}

static void several_workers_get_one_openmp_thread_each(void **state) {
    (void)state;
    struct launch_config config = plain_config();
    config.sets_omp_num_threads = true;
    struct text_list inherited = {0};
    struct text_list environment = build(&config, &inherited);
    check(&environment, "OMP_NUM_THREADS", "1");
    text_list_clear(&environment);

    struct node_placement alone = placement;
    alone.local_world_size = 1;
    assert_int_equal(
        worker_environment_build(&config, &alone, 0, NULL, &inherited, &environment), FAILURE_NONE);
    assert_null(text_list_variable(&environment, "OMP_NUM_THREADS"));
    text_list_clear(&environment);
    launch_config_clear(&config);
}

static void without_an_error_file_the_variable_is_empty(void **state) {
    (void)state;
    struct launch_config config = plain_config();
    struct text_list inherited = {0};
    struct text_list environment;
    text_list_add(&inherited, "TORCHELASTIC_ERROR_FILE=/ours/error.json");
    assert_int_equal(
        worker_environment_build(&config, &placement, 0, NULL, &inherited, &environment),
        FAILURE_NONE);
    check(&environment, "TORCHELASTIC_ERROR_FILE", "");
    text_list_clear(&environment);
    text_list_clear(&inherited);
    launch_config_clear(&config);
}

static void a_virtual_local_rank_sees_one_device(void **state) {
    (void)state;
    struct launch_config config = plain_config();
    config.is_virtual_local_rank = true;
    struct text_list inherited = {0};
    struct text_list environment = build(&config, &inherited);
    check(&environment, "LOCAL_RANK", "0");
    check(&environment, "CUDA_VISIBLE_DEVICES", "2");
    text_list_clear(&environment);

    text_list_add(&inherited, "CUDA_VISIBLE_DEVICES=7,6, GPU-5 ,4");
    environment = build(&config, &inherited);
    check(&environment, "CUDA_VISIBLE_DEVICES", "GPU-5");
    text_list_clear(&environment);
    launch_config_clear(&config);
}

static void too_few_devices_for_a_virtual_local_rank_are_refused(void **state) {
    (void)state;
    struct launch_config config = plain_config();
    config.is_virtual_local_rank = true;
    struct text_list inherited = {0};
    text_list_add(&inherited, "CUDA_VISIBLE_DEVICES=0,1");
    struct text_list environment = {.count = 77};
    assert_int_equal(
        worker_environment_build(&config, &placement, 2, NULL, &inherited, &environment),
        FAILURE_INVALID);
    assert_int_equal(environment.count, 77);
    text_list_clear(&inherited);
    launch_config_clear(&config);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_worker_learns_its_place_as_under_torchrun),
    cmocka_unit_test(a_new_round_changes_the_place_but_not_the_restart_count),
    cmocka_unit_test(a_job_may_have_used_more_restarts_than_this_node_allows),
    cmocka_unit_test(the_agents_environment_shows_through_but_loses_to_ours),
    cmocka_unit_test(several_workers_get_one_openmp_thread_each),
    cmocka_unit_test(without_an_error_file_the_variable_is_empty),
    cmocka_unit_test(a_virtual_local_rank_sees_one_device),
    cmocka_unit_test(too_few_devices_for_a_virtual_local_rank_are_refused),
};

UNIT_TESTS(tests)

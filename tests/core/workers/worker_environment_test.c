/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/workers/worker_group.h"

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

TEST(a_worker_learns_its_place_as_under_torchrun) {
    CLEARED_BY(launch_config_clear) struct launch_config config = plain_config();
    struct text_list inherited = {0};
    CLEARED_BY(text_list_clear) struct text_list environment = build(&config, &inherited);
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
}

/* By a program that has an agent. */
TEST(what_is_told_takes_the_place_of_the_rest) {
    CLEARED_BY(launch_config_clear) struct launch_config config = plain_config();
    struct text_list inherited = {0};
    config.told_master_host = memory_duplicate_string("elsewhere");
    config.told_master_port = 7;
    CLEARED_BY(text_list_clear) struct text_list environment = build(&config, &inherited);
    check(&environment, "MASTER_ADDR", "elsewhere");
    check(&environment, "MASTER_PORT", "7");
}

TEST(the_agents_environment_shows_through_but_loses_to_ours) {
    CLEARED_BY(launch_config_clear) struct launch_config config = plain_config();
    struct text_list inherited = {0};
    text_list_add(&inherited, "PATH=/bin");
    text_list_add(&inherited, "RANK=99");
    text_list_add(&inherited, "OMP_NUM_THREADS=7");
    text_list_add(&inherited, "CUDA_VISIBLE_DEVICES=3,4");
    text_list_add(&inherited, "TORCH_NCCL_ASYNC_ERROR_HANDLING=0");
    config.sets_omp_num_threads = true;
    CLEARED_BY(text_list_clear) struct text_list environment = build(&config, &inherited);
    check(&environment, "PATH", "/bin");
    check(&environment, "RANK", "6");
    check(&environment, "OMP_NUM_THREADS", "7");
    check(&environment, "CUDA_VISIBLE_DEVICES", "3,4");
    check(&environment, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "0");
}

TEST(several_workers_get_one_openmp_thread_each) {
    CLEARED_BY(launch_config_clear) struct launch_config config = plain_config();
    config.sets_omp_num_threads = true;
    struct text_list inherited = {0};
    CLEARED_BY(text_list_clear) struct text_list environment = build(&config, &inherited);
    check(&environment, "OMP_NUM_THREADS", "1");
    text_list_clear(&environment);

    struct node_placement alone = placement;
    alone.local_world_size = 1;
    assert_int_equal(
        worker_environment_build(&config, &alone, 0, NULL, &inherited, &environment), FAILURE_NONE);
    assert_null(text_list_variable(&environment, "OMP_NUM_THREADS"));
}

TEST(a_virtual_local_rank_sees_one_device) {
    CLEARED_BY(launch_config_clear) struct launch_config config = plain_config();
    config.is_virtual_local_rank = true;
    struct text_list inherited = {0};
    CLEARED_BY(text_list_clear) struct text_list environment = build(&config, &inherited);
    check(&environment, "LOCAL_RANK", "0");
    check(&environment, "CUDA_VISIBLE_DEVICES", "2");
    text_list_clear(&environment);

    text_list_add(&inherited, "CUDA_VISIBLE_DEVICES=7,6, GPU-5 ,4");
    environment = build(&config, &inherited);
    check(&environment, "CUDA_VISIBLE_DEVICES", "GPU-5");
}

TEST(too_few_devices_for_a_virtual_local_rank_are_refused) {
    CLEARED_BY(launch_config_clear) struct launch_config config = plain_config();
    config.is_virtual_local_rank = true;
    CLEARED_BY(text_list_clear) struct text_list inherited = {0};
    text_list_add(&inherited, "CUDA_VISIBLE_DEVICES=0,1");
    struct text_list environment = {.count = 77};
    assert_int_equal(
        worker_environment_build(&config, &placement, 2, NULL, &inherited, &environment),
        FAILURE_INVALID);
    assert_int_equal(environment.count, 77);
}

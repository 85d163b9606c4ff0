/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/launch/config_builder.h"
#include "options/launch/launch_options.h"

static struct launch_options launch;
static struct text_list environment;

static int clear(void **state) {
    (void)state;
    launch_options_clear(&launch);
    text_list_clear(&environment);
    return 0;
}

/* The task of a step on `node`: job 41, step 3, two nodes. */
static void be_task_on(const char *node) {
    static const char *const variables[] = {"SLURM_JOB_ID=41", "SLURM_STEP_ID=3",
        "SLURM_JOB_NUM_NODES=4", "SLURM_STEP_NUM_NODES=2", "SLURM_STEP_NODELIST=node[1-2]",
        "SLURM_STEP_TASKS_PER_NODE=1(x2)"};
    text_list_clear(&environment);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        text_list_add(&environment, variables[i]);
    }
    text_list_set_variable(&environment, "SLURMD_NODENAME", node);
}

static void be_task_on_the_only_node(const char *tasks) {
    be_task_on("node1");
    text_list_set_variable(&environment, "SLURM_STEP_NUM_NODES", "1");
    text_list_set_variable(&environment, "SLURM_STEP_NODELIST", "node1");
    text_list_set_variable(&environment, "SLURM_STEP_TASKS_PER_NODE", tasks);
}

static void read_line_as(const char *program, const char *line) {
    CLEARED_BY(text_list_clear) struct text_list arguments = {0};
    FREED char *copy = strdup(line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        text_list_add(&arguments, word);
    }
    launch_options_clear(&launch);
    launch_options_parse(program, &arguments, &environment, &launch);
}

static const struct launch_config *config_of(const char *line) {
    read_line_as("muster run", line);
    if (launch.outcome != OPTION_OUTCOME_VALUES) {
        fail_msg("%s gave %s", line, launch.text);
    }
    return &launch.config;
}

static void expect_mistake(const char *line, const char *part) {
    read_line_as("muster run", line);
    assert_int_equal(launch.outcome, OPTION_OUTCOME_MISTAKE);
    if (strstr(launch.text, part) == NULL) {
        fail_msg("%s gave %s", line, launch.text);
    }
}

static void expect_only_warning(const struct launch_config *config, const char *part) {
    assert_int_equal(config->warnings.count, 1);
    if (strstr(config->warnings.items[0], part) == NULL) {
        fail_msg("%s", config->warnings.items[0]);
    }
}

TEST_WITH(a_bare_command_takes_everything_from_slurm, NULL, clear) {
    be_task_on("node1");
    const struct launch_config *config = config_of("train.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
    assert_int_equal(config->minimum_nodes, 2);
    assert_int_equal(config->maximum_nodes, 2);
    assert_string_equal(config->run_id, "41.3");
    assert_string_equal(config->dynamic.host, "node1");
    assert_int_equal(config->dynamic.port, 20000 + 41 * 97 + 3);
    assert_int_equal(config->dynamic.is_host, LAUNCH_IS_HOST_YES);
    assert_int_equal(config->worker_count_kind, LAUNCH_COUNT_AUTO);
    assert_int_equal(config->warnings.count, 0);
    assert_string_equal(config->notice,
        "muster run: Slurm's step 41.3 has 2 nodes (node[1-2]); they meet at node1:23980; workers "
        "on this one: one for each GPU, or for each CPU where there is none (--slurm off takes "
        "nothing from Slurm)");
}

TEST_WITH(other_nodes_do_not_host_and_say_nothing, NULL, clear) {
    be_task_on("node2");
    const struct launch_config *config = config_of("train.py");
    assert_string_equal(config->dynamic.host, "node1");
    assert_int_equal(config->dynamic.is_host, LAUNCH_IS_HOST_NO);
    assert_null(config->notice);
    assert_int_equal(config->warnings.count, 0);
}

TEST_WITH(workers_are_gpus_where_slurm_knows_of_some, NULL, clear) {
    be_task_on("node1");
    text_list_set_variable(&environment, "SLURM_GPUS_ON_NODE", "4");
    const struct launch_config *config = config_of("train.py");
    assert_int_equal(config->worker_count_kind, LAUNCH_COUNT_NUMBER);
    assert_int_equal(config->worker_count, 4);
    assert_int_equal(config_of("--nproc-per-node 2 train.py")->worker_count, 2);
    text_list_set_variable(&environment, "PET_NPROC_PER_NODE", "3");
    assert_int_equal(config_of("train.py")->worker_count, 3);
}

TEST_WITH(the_number_of_nodes_may_be_given, NULL, clear) {
    be_task_on("node1");
    const struct launch_config *config = config_of("--nnodes 1:2 train.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
    assert_int_equal(config->minimum_nodes, 1);
    assert_int_equal(config->maximum_nodes, 2);
    assert_string_equal(config->dynamic.host, "node1");
    assert_int_equal(config_of("--nnodes 1 train.py")->rendezvous, LAUNCH_RENDEZVOUS_SINGLE);
    expect_mistake("--nnodes x train.py", "argument --nnodes: ");
}

TEST_WITH(who_says_where_to_meet_is_left_alone, NULL, clear) {
    static const char *const lines[] = {"--standalone t.py", "--slurm off t.py",
        "--rdzv-id job t.py", "--rdzv-conf timeout=5 t.py", "--master-port 7 t.py",
        "--rdzv-backend c10d --rdzv-endpoint localhost:0 --rdzv-id job t.py"};
    be_task_on("node1");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const struct launch_config *config = config_of(lines[i]);
        assert_int_not_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
        assert_null(config->notice);
        assert_int_equal(config->warnings.count, 0);
    }
    assert_string_equal(
        config_of("--nnodes 2 --node-rank 1 --master-addr h t.py")->master_host, "h");
    text_list_set_variable(&environment, "PET_SLURM", "off");
    assert_int_equal(config_of("t.py")->rendezvous, LAUNCH_RENDEZVOUS_SINGLE);
}

/* A worker inherits Slurm's variables, and is no task of the step. */
/* Also where nothing else is taken from Slurm. */
TEST_WITH(slurm_may_signal_workers_unless_it_is_off, NULL, clear) {
    be_task_on("node1");
    assert_true(config_of("train.py")->is_signalled_by_slurm);
    assert_true(config_of("--standalone train.py")->is_signalled_by_slurm);
    assert_false(config_of("--slurm off --standalone train.py")->is_signalled_by_slurm);
    text_list_clear(&environment);
    assert_false(config_of("train.py")->is_signalled_by_slurm);
}

TEST_WITH(jobs_of_workers_take_nothing, NULL, clear) {
    be_task_on("node1");
    text_list_set_variable(&environment, "TORCHELASTIC_RUN_ID", "41.3");
    assert_int_equal(config_of("t.py")->rendezvous, LAUNCH_RENDEZVOUS_SINGLE);
    assert_int_equal(config_of("t.py")->warnings.count, 0);
}

TEST_WITH(torchrun_takes_nothing_and_says_what_to_write, NULL, clear) {
    be_task_on("node2");
    read_line_as("torchrun", "t.py");
    assert_int_equal(launch.outcome, OPTION_OUTCOME_VALUES);
    assert_int_equal(launch.config.rendezvous, LAUNCH_RENDEZVOUS_SINGLE);
    assert_int_equal(launch.config.worker_count, 1);
    assert_null(launch.config.notice);
    expect_only_warning(&launch.config,
        "torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint node1:23980 --rdzv-id 41.3");
    text_list_set_variable(&environment, "SLURM_STEP_NODELIST", "[");
    read_line_as("torchrun", "t.py");
    assert_int_equal(launch.config.warnings.count, 0);
}

TEST_WITH(several_tasks_on_a_node_are_refused, NULL, clear) {
    be_task_on("node1");
    text_list_set_variable(&environment, "SLURM_STEP_TASKS_PER_NODE", "4(x2)");
    expect_mistake("t.py", "Slurm starts 4 tasks on a node");
    expect_mistake("t.py", "write srun --ntasks-per-node=1, and --nproc-per-node 4 for as many");
    assert_int_equal(config_of("--slurm off t.py")->rendezvous, LAUNCH_RENDEZVOUS_SINGLE);
}

/* Four tasks on the only node would be four jobs, which overwrite each other's files. */
TEST_WITH(several_tasks_on_the_only_node_are_refused, NULL, clear) {
    be_task_on_the_only_node("4");
    expect_mistake("train.py", "Slurm starts 4 tasks on a node (step 41.3)");
    expect_mistake("--nproc-per-node 2 train.py", "write srun --ntasks-per-node=1");
    expect_only_warning(config_of("--nnodes 1 train.py"), "each of them is a job of its own");
    assert_int_equal(config_of("--standalone train.py")->warnings.count, 0);
    assert_int_equal(config_of("--slurm off train.py")->warnings.count, 0);
    read_line_as("torchrun", "train.py");
    assert_int_equal(launch.outcome, OPTION_OUTCOME_VALUES);
    expect_only_warning(&launch.config, "each of them is a job of its own");
    text_list_clear(&environment);
    text_list_set_variable(&environment, "SLURM_STEP_NUM_NODES", "1");
    text_list_set_variable(&environment, "SLURM_STEP_NUM_TASKS", "2");
    expect_mistake("train.py", "Slurm starts 2 tasks on a node");
}

TEST_WITH(one_task_on_the_only_node_takes_the_gpus, NULL, clear) {
    be_task_on_the_only_node("1");
    assert_int_equal(config_of("train.py")->worker_count, 1);
    assert_null(launch.config.notice);
    text_list_set_variable(&environment, "SLURM_GPUS_ON_NODE", "4");
    const struct launch_config *config = config_of("train.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_SINGLE);
    assert_int_equal(config->worker_count, 4);
    assert_string_equal(config->notice,
        "muster run: Slurm's step 41.3 has one node; workers: 4, one for each GPU (--slurm off "
        "takes nothing from Slurm)");
    assert_int_equal(config_of("--nproc-per-node 2 train.py")->worker_count, 2);
    assert_int_equal(config_of("--slurm off train.py")->worker_count, 1);
    read_line_as("torchrun", "train.py");
    assert_int_equal(launch.config.worker_count, 1);
}

TEST_WITH(what_slurm_says_wrongly_is_refused, NULL, clear) {
    be_task_on("node1");
    text_list_set_variable(&environment, "SLURM_STEP_NODELIST", "node[1-");
    expect_mistake("t.py", "SLURM_STEP_NODELIST='node[1-' cannot be used: expected the names");
}

TEST_WITH(one_process_of_a_job_of_several_nodes_is_warned, NULL, clear) {
    text_list_add(&environment, "SLURM_JOB_ID=41");
    text_list_add(&environment, "SLURM_JOB_NUM_NODES=4");
    expect_only_warning(config_of("t.py"), "has 4 nodes, and this process runs on one of them");
    assert_int_equal(config_of("--standalone t.py")->warnings.count, 0);
    text_list_set_variable(&environment, "SLURM_STEP_NUM_NODES", "1");
    assert_int_equal(config_of("t.py")->warnings.count, 0);
    assert_int_equal(config_of("t.py")->rendezvous, LAUNCH_RENDEZVOUS_SINGLE);
}

TEST_WITH(parts_of_several_kinds_are_left_to_the_user, NULL, clear) {
    be_task_on("node1");
    text_list_set_variable(&environment, "SLURM_HET_SIZE", "2");
    expect_only_warning(config_of("t.py"), "parts of several kinds");
}

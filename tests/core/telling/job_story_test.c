/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/telling/job_story.h"

static struct launch_config sample(void) {
    return (struct launch_config){
        .minimum_nodes = 1,
        .maximum_nodes = 2,
        .rdzv_backend = memory_duplicate_string("c10d"),
        .role = memory_duplicate_string("trainer"),
        .max_restarts = 3,
        .signals_to_handle = memory_duplicate_string("SIGTERM,SIGINT"),
        .exit_barrier_timeout = duration_from_seconds(300),
    };
}

static void check_launch(const struct launch_config *config, const char *expected) {
    const struct job_story_launch launch = {config, "train.py", "job7", 2, NULL};
    struct text lines = {0};
    job_story_describe_launch(&launch, &lines);
    assert_non_null(strstr(text_string(&lines), expected));
    text_clear(&lines);
}

TEST(what_was_asked_for_has_torchruns_names) {
    struct launch_config config = sample();
    config.dynamic.host = memory_duplicate_string("node1");
    config.dynamic.port = 29400;
    text_list_add(&config.rdzv_conf, "timeout=60");
    text_list_add(&config.rdzv_conf, "is_host=true");
    text_list_add(&config.rdzv_conf, "password=hunter2");
    const struct job_story_launch launch = {&config, "train.py", "job7", 2, "/logs/job7_x"};
    struct text lines = {0};
    job_story_describe_launch(&launch, &lines);
    assert_string_equal(text_string(&lines),
        "Starting elastic_operator with launch configs:\n"
        "  entrypoint               : train.py\n"
        "  min_nodes                : 1\n"
        "  max_nodes                : 2\n"
        "  nproc_per_node           : 2\n"
        "  run_id                   : job7\n"
        "  rdzv_backend             : c10d\n"
        "  rdzv_endpoint            : node1:29400\n"
        "  rdzv_configs             : timeout=60,is_host=true,password=***\n"
        "  max_restarts             : 3\n"
        "  log_dir                  : /logs/job7_x\n"
        "  signals_to_handle        : SIGTERM,SIGINT");
    text_clear(&lines);
    launch_config_clear(&config);
}

TEST(endpoint_is_where_the_nodes_meet) {
    struct launch_config config = sample();
    check_launch(&config, "  rdzv_endpoint            : \n");
    check_launch(&config, "  log_dir                  : None\n");
    config.master_host = memory_duplicate_string("node1");
    config.master_port = 29500;
    check_launch(&config, "  rdzv_endpoint            : node1:29500\n");
    config.dynamic.file = memory_duplicate_string("/shared/record");
    check_launch(&config, "  rdzv_endpoint            : /shared/record\n");
    config.dynamic.register_engine = memory_duplicate_string("dir");
    check_launch(&config, "  rdzv_endpoint            : \n");
    config.dynamic.register_endpoint = memory_duplicate_string("/shared/jobs");
    check_launch(&config, "  rdzv_endpoint            : /shared/jobs\n");
    launch_config_clear(&config);
}

TEST(place_in_a_world_has_all_ranks) {
    const struct node_placement placement = {
        .master_address = "node1",
        .master_port = 34417,
        .group_rank = 1,
        .group_world_size = 2,
        .local_world_size = 2,
        .ranks = {.base_rank = 4, .world_size = 6, .role_base_rank = 0, .role_world_size = 2},
        .attempt = 1,
        .round = 3,
    };
    struct text lines = {0};
    job_story_describe_placement("trainer", &placement, &lines);
    assert_string_equal(text_string(&lines), "[trainer] Rendezvous complete for workers. Result:\n"
                                             "  restart_count=1\n"
                                             "  round=3\n"
                                             "  master_addr=node1\n"
                                             "  master_port=34417\n"
                                             "  group_rank=1\n"
                                             "  group_world_size=2\n"
                                             "  local_ranks=[0, 1]\n"
                                             "  role_ranks=[0, 1]\n"
                                             "  global_ranks=[4, 5]\n"
                                             "  role_world_sizes=[2, 2]\n"
                                             "  global_world_sizes=[6, 6]");
    text_clear(&lines);
}

static void check_step(enum agent_phase before, const struct agent_machine *machine,
    enum agent_event_kind kind, const char *expected) {
    struct launch_config config = sample();
    const struct agent_event event = {.kind = kind};
    struct text line = {0};
    bool is_told = job_story_describe_step(&config, machine, &event, before, false, &line);
    assert_int_equal(is_told, expected != NULL);
    if (is_told) {
        assert_string_equal(text_string(&line), expected);
    }
    text_clear(&line);
    launch_config_clear(&config);
}

static void check_phase(enum agent_phase before, enum agent_phase after, const char *expected) {
    const struct agent_machine machine = {.phase = after};
    check_step(before, &machine, AGENT_EVENT_START, expected);
}

TEST(phases_are_told_once) {
    check_phase(AGENT_IDLE, AGENT_JOINING, "[trainer] Rendezvous'ing worker group");
    check_phase(AGENT_JOINING, AGENT_JOINING, NULL);
    check_phase(AGENT_JOINING, AGENT_STARTING, "[trainer] Starting worker group");
    check_phase(AGENT_STARTING, AGENT_RUNNING, NULL);
    check_phase(AGENT_STOPPING, AGENT_LEAVING,
        "[trainer] worker group successfully finished. Waiting 300 seconds for other agents to "
        "finish.");
    check_phase(AGENT_LEAVING, AGENT_DONE, "[trainer] Done waiting for other agents");
    check_phase(AGENT_STOPPING, AGENT_DONE, NULL);
}

static void check_reason(
    enum agent_stop_reason reason, enum agent_event_kind kind, const char *expected) {
    const struct agent_machine machine = {.phase = AGENT_STOPPING, .stop_reason = reason};
    char *line = text_format("[trainer] Stopping worker group: %s", expected);
    check_step(AGENT_RUNNING, &machine, kind, line);
    free(line);
}

TEST(stop_has_its_reason) {
    check_reason(AGENT_STOP_CLEAN_UP, AGENT_EVENT_WORKER_EXITED, "all workers have succeeded");
    check_reason(AGENT_STOP_RESTART, AGENT_EVENT_WORKER_EXITED, "a worker of this node has failed");
    check_reason(
        AGENT_STOP_RESTART, AGENT_EVENT_PEER_RESTART, "a worker of another node has failed");
    check_reason(AGENT_STOP_RESTART, AGENT_EVENT_ROUND_OVER,
        "the world changes, since a node came, left or restarts");
    check_reason(AGENT_STOP_FAILURE, AGENT_EVENT_WORKER_EXITED, "a worker of this node has failed");
    check_reason(AGENT_STOP_PEER_FAILURE, AGENT_EVENT_PEER_FAILED, "another node has failed");
    check_reason(AGENT_STOP_SIGNAL, AGENT_EVENT_SIGNAL_RECEIVED, "a signal has come");
}

static void check_world_end(const struct agent_event *event, const char *expected) {
    const struct agent_machine machine = {.phase = AGENT_STOPPING,
        .stop_reason = AGENT_STOP_RESTART,
        .restarts = {.maximum = 5, .used = 1}};
    struct launch_config config = sample();
    struct text line = {0};
    assert_true(job_story_describe_step(&config, &machine, event, AGENT_RUNNING, false, &line));
    assert_string_equal(text_string(&line), expected);
    text_clear(&line);
    launch_config_clear(&config);
}

TEST(end_of_a_world_names_its_reason_and_what_the_record_counts) {
    struct agent_event event = {.kind = AGENT_EVENT_ROUND_OVER,
        .reason = "rank 3 (local_rank 1) on node1 failed: exit code 7",
        .is_counted = true,
        .restarts = 2};
    check_world_end(&event,
        "[trainer] Stopping worker group: the world changes, since rank 3 (local_rank 1) on node1 "
        "failed: exit code 7; this is restart 2 of 5 (--max-restarts)");
    event.reason = "a node has joined";
    event.restarts = 1;
    check_world_end(&event,
        "[trainer] Stopping worker group: the world changes, since a node has joined; this uses no "
        "restart");
    event.reason = "the connection to the job's store was lost";
    event.is_counted = false;
    check_world_end(&event,
        "[trainer] Stopping worker group: the world changes, since the connection to the job's "
        "store was lost");
}

static void check_is_of_node(enum agent_phase phase, enum agent_stop_reason reason,
    enum agent_event_kind kind, bool expected) {
    const struct agent_machine machine = {.phase = phase, .stop_reason = reason};
    const struct agent_event event = {.kind = kind};
    struct launch_config config = sample();
    struct text line = {0};
    bool is_told =
        job_story_describe_step(&config, &machine, &event, AGENT_PHASE_COUNT, true, &line);
    assert_int_equal(is_told, expected);
    text_clear(&line);
    launch_config_clear(&config);
}

TEST(what_happens_to_this_node_alone_is_told_apart_from_what_all_nodes_see) {
    check_is_of_node(AGENT_JOINING, AGENT_STOP_NONE, AGENT_EVENT_START, false);
    check_is_of_node(AGENT_STARTING, AGENT_STOP_NONE, AGENT_EVENT_JOINED, false);
    check_is_of_node(AGENT_STOPPING, AGENT_STOP_RESTART, AGENT_EVENT_WORKER_EXITED, true);
    check_is_of_node(AGENT_STOPPING, AGENT_STOP_RESTART, AGENT_EVENT_ROUND_OVER, false);
    check_is_of_node(AGENT_STOPPING, AGENT_STOP_RESTART, AGENT_EVENT_PEER_RESTART, false);
    check_is_of_node(AGENT_STOPPING, AGENT_STOP_SIGNAL, AGENT_EVENT_SIGNAL_RECEIVED, true);
    check_is_of_node(AGENT_STOPPING, AGENT_STOP_PEER_FAILURE, AGENT_EVENT_PEER_FAILED, false);
    check_is_of_node(AGENT_STOPPING, AGENT_STOP_CLEAN_UP, AGENT_EVENT_WORKER_EXITED, false);
    check_is_of_node(AGENT_LEAVING, AGENT_STOP_CLEAN_UP, AGENT_EVENT_WORKER_EXITED, true);
}

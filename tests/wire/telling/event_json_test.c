/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/telling/event_json.h"

static struct event_record agent_record(enum event_state state) {
    return (struct event_record){
        .time = {1700000000123456789},
        .state = state,
        .agent = {.run_id = "job7",
            .role = "default",
            .host_name = "node1.example",
            .rdzv_backend = "c10d",
            .entry_point = "python3"},
    };
}

static void assert_spelling(const struct event_record *record, const char *expected) {
    struct text out = {0};
    event_json_write(record, &out);
    assert_string_equal(text_string(&out), expected);
    text_clear(&out);
}

TEST(a_rendezvous_has_a_duration_and_no_place_yet) {
    struct event_record record = agent_record(EVENT_STATE_RENDEZVOUS);
    record.has_duration = true;
    record.duration = duration_from_milliseconds(12);
    assert_spelling(&record,
        "{\"name\": \"torchelastic.worker.status.RENDEZVOUS\", \"source\": \"AGENT\", "
        "\"timestamp\": 1700000000123, \"metadata\": {\"run_id\": \"job7\", \"global_rank\": null, "
        "\"group_rank\": null, \"worker_id\": null, \"role\": \"default\", \"hostname\": "
        "\"node1.example\", \"state\": \"RENDEZVOUS\", \"total_run_time\": 0, \"rdzv_backend\": "
        "\"c10d\", \"raw_error\": null, \"metadata\": \"{\\\"group_world_size\\\": null, "
        "\\\"entry_point\\\": \\\"python3\\\"}\", \"agent_restarts\": 0, \"duration_ms\": "
        "12.000000}}\n");
}

TEST(a_failed_worker_names_its_end) {
    struct event_worker worker = {.global_rank = 5,
        .local_rank = 1,
        .role_rank = 5,
        .role_world_size = 8,
        .pid = 4711,
        .is_failed = true,
        .has_exit_code = true,
        .exit_code = -9};
    struct event_record record = agent_record(EVENT_STATE_FAILED);
    record.agent.has_group = true;
    record.agent.group_rank = 2;
    record.agent.group_world_size = 4;
    record.agent.total_run_seconds = 61;
    record.agent.restarts = 3;
    record.worker = &worker;
    record.raw_error = "{\"message\": \"<NONE>\"}";
    assert_spelling(&record,
        "{\"name\": \"torchelastic.worker.status.FAILED\", \"source\": \"WORKER\", \"timestamp\": "
        "1700000000123, \"metadata\": {\"run_id\": \"job7\", \"global_rank\": 5, \"group_rank\": "
        "2, \"worker_id\": \"4711\", \"role\": \"default\", \"hostname\": \"node1.example\", "
        "\"state\": \"FAILED\", \"total_run_time\": 61, \"rdzv_backend\": \"c10d\", "
        "\"raw_error\": \"{\\\"message\\\": \\\"<NONE>\\\"}\", \"metadata\": "
        "\"{\\\"group_world_size\\\": 4, \\\"entry_point\\\": \\\"python3\\\", "
        "\\\"local_rank\\\": [1], \\\"role_rank\\\": [5], \\\"role_world_size\\\": [8], "
        "\\\"exit_code\\\": [-9], \\\"worker_pid\\\": [4711]}\", \"agent_restarts\": 3, "
        "\"duration_ms\": null}}\n");
}

TEST(a_watchdogs_record_names_its_timer_and_has_no_duration) {
    struct event_timer_record timer = {
        .pid = 12, .scope = "step", .expiration = {2500000000}, .signal = 9};
    struct event_record record = agent_record(EVENT_STATE_RUNNING);
    record.watchdog = EVENT_WATCHDOG_KILL;
    record.timer = &timer;
    assert_spelling(&record,
        "{\"name\": \"kill worker process\", \"source\": \"AGENT\", \"timestamp\": 1700000000123, "
        "\"metadata\": {\"run_id\": \"job7\", \"global_rank\": null, \"group_rank\": null, "
        "\"worker_id\": null, \"role\": \"default\", \"hostname\": \"node1.example\", \"state\": "
        "\"RUNNING\", \"total_run_time\": 0, \"rdzv_backend\": \"c10d\", \"raw_error\": null, "
        "\"metadata\": \"{\\\"watchdog_event\\\": \\\"kill worker process\\\", "
        "\\\"worker_pid\\\": \\\"12\\\", \\\"scope_id\\\": \\\"step\\\", \\\"expiration_time\\\": "
        "\\\"2.500000\\\", \\\"signal\\\": \\\"9\\\"}\", \"agent_restarts\": 0}}\n");
}

static void assert_rendezvous(const struct event_rendezvous *record, const char *expected) {
    struct text out = {0};
    event_json_write_rendezvous(record, &out);
    assert_string_equal(text_string(&out), expected);
    text_clear(&out);
}

TEST(a_rendezvous_own_record_is_flat) {
    struct event_rendezvous record = {.run_id = "job7",
        .name = "dynamic_rendezvous.py:DynamicRendezvousHandler.next_rendezvous",
        .message = "joined",
        .state = EVENT_NODE_RUNNING,
        .trouble = "",
        .host_name = "node1",
        .pid = 12,
        .has_rank = true,
        .rank = 1};
    assert_rendezvous(&record,
        "{\"name\": \"dynamic_rendezvous.py:DynamicRendezvousHandler.next_rendezvous\", "
        "\"run_id\": \"job7\", \"message\": \"joined\", \"hostname\": \"node1\", \"pid\": 12, "
        "\"node_state\": \"RUNNING\", \"master_endpoint\": \"\", \"rank\": 1, "
        "\"local_id\": null, \"error_trace\": \"\"}\n");
    record = (struct event_rendezvous){.run_id = "job7",
        .name = "dynamic_rendezvous.py:DynamicRendezvousHandler.shutdown",
        .message = "has failed",
        .trouble = "nobody came",
        .host_name = "node1",
        .pid = 12,
        .has_local_id = true,
        .local_id = 3,
        .state = EVENT_NODE_FAILED};
    assert_rendezvous(&record,
        "{\"name\": \"dynamic_rendezvous.py:DynamicRendezvousHandler.shutdown\", \"run_id\": "
        "\"job7\", \"message\": \"has failed\", \"hostname\": \"node1\", \"pid\": 12, "
        "\"node_state\": \"FAILED\", \"master_endpoint\": \"\", \"rank\": null, "
        "\"local_id\": 3, \"error_trace\": \"nobody came\"}\n");
}

static void assert_error(const char *file, struct process_exit exit, const char *expected) {
    struct text out = {0};
    event_json_write_error(slice_from_string(file), exit, &out);
    assert_string_equal(text_string(&out), expected);
    text_clear(&out);
}

TEST(a_raw_error_is_the_error_file_or_what_stands_for_none) {
    struct process_exit killed = {.is_signal = true, .value = 9};
    struct process_exit failed = {.value = 3};
    assert_error("{\"message\" : \"boom\"}\n", failed, "{\"message\": \"boom\"}");
    assert_error("", killed, "{\"message\": \"<NONE>\"}");
    assert_error("{\"half", failed,
        "{\"message\": \"<NONE>\", \"errorTraits\": {\"category\": \"system_terminated_error\", "
        "\"retryability\": \"False\"}}");
}

TEST(a_record_of_standby_workers_says_how_many) {
    struct text out = {0};
    struct event_record record = agent_record(EVENT_STATE_RUNNING);
    struct event_standby_record standby = {EVENT_STANDBY_USED, 3, 4, NULL};
    record.standby = &standby;
    event_json_write(&record, &out);
    assert_true(text_starts_with(text_string(&out), "{\"name\": \"standby.used\""));
    assert_non_null(
        strstr(text_string(&out), "\"metadata\": \"{\\\"standby_event\\\": \\\"standby.used\\\", "
                                  "\\\"count\\\": 3, \\\"total\\\": 4}\""));
    assert_null(strstr(text_string(&out), "duration_ms"));
    text_clear(&out);
    standby = (struct event_standby_record){EVENT_STANDBY_DIRTY, 0, 4, "late"};
    event_json_write(&record, &out);
    assert_non_null(strstr(text_string(&out), "\\\"reason\\\": \\\"late\\\""));
    text_clear(&out);
}

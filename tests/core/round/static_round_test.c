/* SPDX-License-Identifier: BSD-3-Clause */
/* One test per rule, on one node of two. Each step is compared with the transcript of its effects.
 * tests/simulation has several nodes together. */
#include "unit.h"

#include "round_fixture.h"

/* One node with its rank. */
struct node {
    struct scene scene;
    int rank;
};

static struct node node_with(int rank, struct round_settings settings) {
    settings.role = "default";
    settings.timeout = duration_from_seconds(900);
    settings.exit_barrier_timeout = duration_from_seconds(300);
    settings.where = "master:29500";
    return (struct node){
        {.exchange = round_exchange_new(&settings), .round = ROUND_OF_FIXED_NODES}, rank};
}

static struct node node_new(int rank) {
    return node_with(rank, (struct round_settings){.local_world_size = 1});
}

static void node_clear(struct node *node) {
    scene_clear(&node->scene);
}

static void take(struct node *node, struct round_event event, const char *expected) {
    event.round = ROUND_OF_FIXED_NODES;
    step(&node->scene, event, expected);
}

static void take_kind(struct node *node, enum round_event_kind kind, const char *expected) {
    take(node, (struct round_event){.kind = kind}, expected);
}

static void join(struct node *node, int attempt, const char *expected) {
    take(node,
        (struct round_event){.kind = ROUND_EVENT_BEGIN,
            .begin = {.group_rank = node->rank,
                .node_count = 2,
                .attempt = attempt,
                .master_address = "host",
                .master_port = 29500}},
        expected);
}

static void take_count(
    struct node *node, enum round_key_kind kind, int attempt, int64_t count, const char *expected) {
    take(node,
        (struct round_event){
            .kind = ROUND_EVENT_COUNTED, .key = {.kind = kind, .round = attempt}, .count = count},
        expected);
}

static void take_decision(struct node *node, enum round_key_kind kind, int attempt,
    const char *decision, const char *expected) {
    take(node,
        (struct round_event){.kind = ROUND_EVENT_VALUES,
            .key = {.kind = kind, .round = attempt},
            .values.decision = decision},
        expected);
}

static void take_checked(struct node *node, bool is_present) {
    take(node,
        (struct round_event){.kind = ROUND_EVENT_CHECKED,
            .key = {.kind = ROUND_KEY_COORDINATED, .round = ROUND_OF_FIXED_NODES},
            .is_present = is_present},
        "");
}

static void take_ranks(struct node *node, int base_rank, const char *expected) {
    take(node,
        (struct round_event){.kind = ROUND_EVENT_VALUES,
            .key = {ROUND_KEY_ASSIGNED_RANKS, ROUND_OF_FIXED_NODES, node->rank},
            .values = {.has_ranks = true, .ranks = {base_rank, 2, base_rank, 2}}},
        expected);
}

static void take_role_infos(
    struct node *node, int version_of_0, int version_of_1, const char *expected) {
    char role[] = "default";
    const struct role_info infos[] = {
        {role, 1, 0, version_of_0, NULL}, {role, 1, 1, version_of_1, NULL}};
    take(node, role_infos(&node->scene, infos, 2), expected);
}

#define CONNECTED_0 "add init 1; set_role_info role_info/0; wait role_infos/2; arm_timer at=2.000"
#define CONNECTED_1                                                                                \
    "add init 1; set_role_info role_info/1; wait assigned_ranks/1; arm_timer at=2.000"
#define JOINED_0(attempt) "joined rank=0 of 2 [0, 2, 0, 2] host:29500 restarts=" attempt
#define JOINED_1(attempt) "joined rank=1 of 2 [1, 2, 1, 2] host:29500 restarts=" attempt

/* Node 0 when all have come, and after the first join with a second node of the given kind. */
static struct node gathered_node(void) {
    struct node node = node_new(0);
    join(&node, 0, "arm_timer at=900.000; connect");
    take_kind(&node, ROUND_EVENT_CONNECTED, CONNECTED_0);
    take_kind(&node, ROUND_EVENT_WAITED, "get role_infos/2");
    return node;
}

static struct node host_node(int muster_version) {
    struct node node = gathered_node();
    take_role_infos(&node, 1, muster_version,
        muster_version == 0
            ? "set_assignments assigned_ranks/0 of 2; disarm_timer; " JOINED_0("0")
            : "set_assignments assigned_ranks/0 of 2 coordinated; disarm_timer; " JOINED_0(
                  "0") "; wait end/0");
    return node;
}

/* Node 1 after the first join. */
static struct node guest_node(bool is_coordinated) {
    struct node node = node_new(1);
    join(&node, 0, "arm_timer at=900.000; connect");
    take_kind(&node, ROUND_EVENT_CONNECTED, CONNECTED_1);
    take_kind(&node, ROUND_EVENT_WAITED, "check coordinated; get assigned_ranks/1");
    take_checked(&node, is_coordinated);
    take_ranks(&node, 1,
        is_coordinated ? "disarm_timer; " JOINED_1("0") "; wait end/0"
                       : "disarm_timer; " JOINED_1("0"));
    return node;
}

TEST(nodes_meet_as_torchruns_agents_do) {
    CLEARED_BY(node_clear) struct node node = host_node(0);
    node_clear(&node);
    node = guest_node(false);
}

TEST(agents_of_one_kind_coordinate) {
    CLEARED_BY(node_clear) struct node node = host_node(1);
    node_clear(&node);
    node = guest_node(true);
}

TEST(uniform_nodes_need_no_exchange) {
    CLEARED_BY(node_clear)
    struct node node =
        node_with(1, (struct round_settings){.local_world_size = 1, .is_uniform = true});
    join(&node, 0, "arm_timer at=900.000; connect");
    take_kind(&node, ROUND_EVENT_CONNECTED, "add init 1; disarm_timer; " JOINED_1("0"));
}

TEST(in_a_mixed_job_restarts_and_failures_stay_local) {
    CLEARED_BY(node_clear) struct node node = guest_node(false);
    take_kind(&node, ROUND_EVENT_RESTART_ASKED, "");
    join(&node, 1, JOINED_1("1"));
    take_kind(&node, ROUND_EVENT_CONNECTION_LOST, "");
    join(&node, 2, JOINED_1("2"));
    take_kind(&node, ROUND_EVENT_BARRIER_ASKED, "barrier_failed this node is in no round");
    node_clear(&node);
    node = guest_node(false);
    take_kind(&node, ROUND_EVENT_FAILURE_ASKED, "");
}

TEST(in_a_mixed_job_a_lost_store_ends_the_exit_barrier) {
    CLEARED_BY(node_clear) struct node node = guest_node(false);
    take_kind(&node, ROUND_EVENT_BARRIER_ASKED,
        "arm_timer at=5.000; add num_members 1; wait last_member");
    take_kind(&node, ROUND_EVENT_CONNECTION_LOST, "disarm_timer; barrier_failed ");
}

TEST(in_a_mixed_job_the_exit_barrier_is_torchruns) {
    CLEARED_BY(node_clear) struct node node = guest_node(false);
    take_kind(&node, ROUND_EVENT_BARRIER_ASKED,
        "arm_timer at=5.000; add num_members 1; wait last_member");
    take_count(&node, ROUND_KEY_NUM_MEMBERS, 0, 2, "set last_member <val_ignored>");
    take_kind(&node, ROUND_EVENT_WAITED, "disarm_timer; barrier_passed");
}

TEST(a_restart_waits_for_all_nodes_and_a_renewed_store) {
    CLEARED_BY(node_clear) struct node node = host_node(1);
    take_kind(&node, ROUND_EVENT_RESTART_ASKED, "decide end/0 restart");
    take_kind(&node, ROUND_EVENT_WAITED, "get end/0");
    take_decision(&node, ROUND_KEY_END, 0, "restart", "");
    join(&node, 1, "arm_timer at=900.000; add ready/1 1; wait gathered/1");
    take_count(&node, ROUND_KEY_READY, 1, 1, "");
    take_kind(&node, ROUND_EVENT_WAITED, "get gathered/1");
    take_decision(&node, ROUND_KEY_GATHERED, 1, "all", "open_worker_store wiped");
    take_kind(&node, ROUND_EVENT_STORE_OPENED, "decide start/1 go; wait start/1");
    take_kind(&node, ROUND_EVENT_WAITED, "get start/1");
    take_decision(&node, ROUND_KEY_START, 1, "go", "disarm_timer; " JOINED_0("1") "; wait end/1");
}

TEST(the_last_node_to_be_ready_says_so) {
    CLEARED_BY(node_clear) struct node node = guest_node(true);
    take_kind(&node, ROUND_EVENT_WAITED, "get end/0");
    take_decision(&node, ROUND_KEY_END, 0, "restart", "peer_restart attempt=1");
    join(&node, 1, "arm_timer at=900.000; add ready/1 1; wait start/1");
    take_count(&node, ROUND_KEY_READY, 1, 2, "decide gathered/1 all");
}

TEST(a_late_answer_about_the_last_attempt_is_no_news) {
    CLEARED_BY(node_clear) struct node node = guest_node(true);
    take_kind(&node, ROUND_EVENT_RESTART_ASKED, "decide end/0 restart");
    join(&node, 1, "arm_timer at=900.000; add ready/1 1");
    take_kind(&node, ROUND_EVENT_WAITED, "wait start/1; get end/0");
    take_decision(&node, ROUND_KEY_END, 0, "restart", "");
}

TEST(a_failure_is_written_wherever_others_may_look) {
    CLEARED_BY(node_clear) struct node node = guest_node(true);
    take_kind(&node, ROUND_EVENT_FAILURE_ASKED,
        "decide gathered/0 failed 1; decide start/0 failed 1; "
        "decide end/0 failed 1; decide gathered/1 failed 1; "
        "decide start/1 failed 1; decide end/1 failed 1; get end/0");
    take_kind(&node, ROUND_EVENT_FAILURE_ASKED, "");
    take_kind(&node, ROUND_EVENT_WAITED, ""); /* its own decision is no news */
    join(&node, 1, "join_failed the job is over");
}

static void expect_of_store(const char *decision, const char *expected) {
    struct node node = guest_node(true);
    take_kind(&node, ROUND_EVENT_FAILURE_ASKED,
        "decide gathered/0 failed 1; decide start/0 failed 1; decide end/0 failed 1; "
        "decide gathered/1 failed 1; decide start/1 failed 1; decide end/1 failed 1; get end/0");
    take_decision(&node, ROUND_KEY_END, 0, decision, expected);
    node_clear(&node);
}

TEST(a_node_that_has_failed_is_told_whether_another_one_was_first) {
    expect_of_store("failed 0", "peer_failed a node failed (node 0)");
    expect_of_store("failed 1", "");
    expect_of_store("failed 7", "");           /* there is none */
    expect_of_store("failed 0 signal 15", ""); /* nothing has failed there */
    expect_of_store("restart", "");
}

TEST(a_failure_elsewhere_is_told_in_every_phase) {
    CLEARED_BY(node_clear) struct node node = guest_node(true);
    take_kind(&node, ROUND_EVENT_WAITED, "get end/0");
    take_decision(&node, ROUND_KEY_END, 0, "failed 0", "peer_failed a node failed (node 0)");
    take_kind(&node, ROUND_EVENT_BARRIER_ASKED, "barrier_failed this node is in no round");
    node_clear(&node);

    node = guest_node(true);
    take_kind(&node, ROUND_EVENT_BARRIER_ASKED, "arm_timer at=300.000; add finished/0 1");
    take_kind(&node, ROUND_EVENT_WAITED, "get end/0");
    take_decision(&node, ROUND_KEY_END, 0, "failed 0", "disarm_timer; barrier_failed ");
    node_clear(&node);

    node = host_node(1);
    take_kind(&node, ROUND_EVENT_WAITED, "get end/0");
    take_decision(&node, ROUND_KEY_END, 0, "restart", "peer_restart attempt=1");
    join(&node, 1, "arm_timer at=900.000; add ready/1 1; wait gathered/1");
    take_kind(&node, ROUND_EVENT_WAITED, "get gathered/1");
    take_decision(&node, ROUND_KEY_GATHERED, 1, "failed 1",
        "disarm_timer; peer_failed a node failed (node 1)");
}

TEST(a_restart_calls_back_a_node_in_the_exit_barrier) {
    CLEARED_BY(node_clear) struct node node = guest_node(true);
    take_kind(&node, ROUND_EVENT_BARRIER_ASKED, "arm_timer at=300.000; add finished/0 1");
    take_kind(&node, ROUND_EVENT_WAITED, "get end/0");
    take_decision(&node, ROUND_KEY_END, 0, "restart", "disarm_timer; peer_restart attempt=1");
    join(&node, 1, "arm_timer at=900.000; add ready/1 1; wait start/1");
}

TEST(a_node_that_waits_no_longer_rules_out_a_restart_but_not_a_success) {
    CLEARED_BY(node_clear) struct node node = guest_node(true);
    take_kind(&node, ROUND_EVENT_BARRIER_ASKED, "arm_timer at=300.000; add finished/0 1");
    node.scene.seconds = 299;
    take_kind(&node, ROUND_EVENT_TIMER_FIRED, "");
    node.scene.seconds = 300;
    take_kind(&node, ROUND_EVENT_TIMER_FIRED,
        "decide gathered/1 failed 1; decide start/1 failed 1; "
        "decide end/1 failed 1; barrier_failed ");
}

TEST(the_host_of_the_store_waits_as_long_as_the_others_work) {
    CLEARED_BY(node_clear) struct node node = host_node(1);
    take(&node, (struct round_event){.kind = ROUND_EVENT_BARRIER_ASKED, .is_host = true},
        "arm_timer at=300.000; add finished/0 1");
    node.scene.seconds = 300;
    take_kind(&node, ROUND_EVENT_TIMER_FIRED, "barrier_late other nodes still work");
    node.scene.seconds = 3000;
    take_kind(&node, ROUND_EVENT_TIMER_FIRED, "");
    take_count(&node, ROUND_KEY_FINISHED, 0, 2, "decide end/0 done");
    take_decision(&node, ROUND_KEY_END, 0, "done", "barrier_passed");
}

TEST(a_node_that_is_told_to_end_at_the_first_meeting_says_so) {
    CLEARED_BY(node_clear) struct node node = node_new(1);
    join(&node, 0, "arm_timer at=900.000; connect");
    take_kind(&node, ROUND_EVENT_CONNECTED, CONNECTED_1);
    take(&node, (struct round_event){.kind = ROUND_EVENT_FAILURE_ASKED, .signal = 15},
        "disarm_timer; decide gathered/0 failed 1 signal 15; decide start/0 failed 1 signal 15; "
        "decide end/0 failed 1 signal 15; decide gathered/1 failed 1 signal 15; "
        "decide start/1 failed 1 signal 15; decide end/1 failed 1 signal 15");
}

TEST(a_node_that_waits_at_the_first_meeting_looks_whether_another_has_left) {
    CLEARED_BY(node_clear) struct node node = node_new(0);
    struct round_event checked = {.kind = ROUND_EVENT_CHECKED, .key = {.kind = ROUND_KEY_START}};
    join(&node, 0, "arm_timer at=900.000; connect");
    take_kind(&node, ROUND_EVENT_CONNECTED, CONNECTED_0);
    node.scene.seconds = 2;
    take_kind(&node, ROUND_EVENT_TIMER_FIRED, "check start/0; arm_timer at=4.000");
    take(&node, checked, "");
    node.scene.seconds = 4;
    take_kind(&node, ROUND_EVENT_TIMER_FIRED, "check start/0; arm_timer at=6.000");
    checked.is_present = true;
    take(&node, checked, "get start/0");
    take_decision(&node, ROUND_KEY_START, 0, "failed 1 signal 15",
        "disarm_timer; peer_failed a node was told to end by SIGTERM (node 1)");
}

TEST(a_node_that_was_told_to_end_by_a_signal_says_which) {
    CLEARED_BY(node_clear) struct node node = guest_node(true);
    take(&node, (struct round_event){.kind = ROUND_EVENT_FAILURE_ASKED, .signal = 10},
        "decide gathered/0 failed 1 signal 10; decide start/0 failed 1 signal 10; "
        "decide end/0 failed 1 signal 10; decide gathered/1 failed 1 signal 10; "
        "decide start/1 failed 1 signal 10; decide end/1 failed 1 signal 10");
}

/* What node 1 is told of another one, whose words may be anybody's. */
static void expect_told(const char *decision, const char *expected, int signal) {
    CLEARED_BY(node_clear) struct node node = guest_node(true);
    struct round_effects effects;
    struct round_event event = {.kind = ROUND_EVENT_VALUES,
        .round = ROUND_OF_FIXED_NODES,
        .key = {.kind = ROUND_KEY_END},
        .values.decision = decision};
    round_exchange_step(node.scene.exchange, &event, &effects);
    const struct round_effect *told = &effects.items[effects.count - 1];
    assert_int_equal(told->kind, ROUND_EFFECT_PEER_FAILED);
    assert_string_equal(told->reason, expected);
    assert_int_equal(told->signal, signal);
}

TEST(the_signal_that_ended_another_node_is_told_if_a_program_can_get_it) {
    expect_told("failed 0 signal 10", "a node was told to end by SIGUSR1 (node 0)", 10);
    expect_told("failed 0", "a node failed (node 0)", 0);
    expect_told("failed 0 signal 9", "a node failed (node 0)", 0);
    expect_told("failed 0 signal 19", "a node failed (node 0)", 0);
    expect_told("failed 0 signal -15", "a node failed (node 0)", 0);
    expect_told("failed 0 signal 4294967311", "a node failed (node 0)", 0);
    expect_told("failed 7 signal 15", "a node was told to end by SIGTERM", 15);
    expect_told("failed  signal ", "a node failed", 0);
}

TEST(a_join_has_its_deadline) {
    CLEARED_BY(node_clear) struct node node = node_new(1);
    join(&node, 0, "arm_timer at=900.000; connect");
    take_kind(&node, ROUND_EVENT_CONNECTED, CONNECTED_1);
    node.scene.seconds = 900;
    take_kind(&node, ROUND_EVENT_TIMER_FIRED,
        "join_failed not all nodes joined in time: the job needs all of its 2 nodes (--nnodes), "
        "with ranks from 0 to 1 (--node-rank), within 900 s (--rdzv-conf timeout)");
    take_kind(&node, ROUND_EVENT_WAITED, "");
}

TEST(a_store_that_is_reached_too_late_is_not_blamed_on_the_others) {
    CLEARED_BY(node_clear) struct node node = node_new(1);
    join(&node, 0, "arm_timer at=900.000; connect");
    node.scene.seconds = 900;
    take_kind(&node, ROUND_EVENT_TIMER_FIRED,
        "join_failed not all nodes joined in time: no connection to the job's store at "
        "master:29500");
}

TEST(ranks_that_do_not_fit_this_node_are_refused) {
    struct node node = node_with(1, (struct round_settings){.local_world_size = 4});
    join(&node, 0, "arm_timer at=900.000; connect");
    take_kind(&node, ROUND_EVENT_CONNECTED, CONNECTED_1);
    take_kind(&node, ROUND_EVENT_WAITED, "check coordinated; get assigned_ranks/1");
    take_checked(&node, false);
    take_ranks(&node, 1, "disarm_timer; join_failed node 0 assigned ranks that make no sense");
    node_clear(&node);
}

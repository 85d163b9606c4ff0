/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_transcript.h"

static struct rendezvous_node nodes[40];
static struct rendezvous_state shared;
static struct rendezvous_settings settings;
static struct text_list expected;
static const struct wall_time now = {INT64_C(1000000000000)};

static int begin(void **unused) {
    (void)unused;
    memset(nodes, 0, sizeof nodes);
    shared = (struct rendezvous_state){.nodes = nodes};
    rendezvous_settings_init(&settings);
    settings.minimum_nodes = settings.maximum_nodes = 3;
    return 0;
}

static int end(void **unused) {
    (void)unused;
    text_list_clear(&expected);
    return 0;
}

static void add(const char *address) {
    struct rendezvous_node *node = &nodes[shared.count++];
    node_identity_init(&node->identity, address, 7, 0);
    node->is_participant = true;
}

static void expect(const char *line) {
    CLEARED_BY(text_clear) struct text out = {0};
    rendezvous_waiting_describe(&shared, &settings, &expected, duration_from_seconds(5), now, &out);
    assert_string_equal(text_string(&out), line);
}

TEST_WITH(it_is_said_ever_less_often, begin, end) {
    static const int seconds[] = {5, 15, 60, 120, 180};
    for (int i = 0; i < 5; i++) {
        assert_true(duration_seconds(rendezvous_waiting_moment(i)) == seconds[i]);
    }
    assert_true(duration_seconds(rendezvous_waiting_moment(101)) == 6000);
}

TEST_WITH(who_is_here_is_said_by_name, begin, end) {
    expect("waiting for other nodes for 5 s: none is known yet, and 3 are needed (join_timeout: "
           "600 s)");
    add("node1");
    expect("waiting for other nodes for 5 s: 1 of 3 is here: node1 (join_timeout: 600 s)");
    add("node2");
    settings.maximum_nodes = 4;
    expect("waiting for other nodes for 5 s: 2 of 3 to 4 are here: node1, node2 (join_timeout: 600 "
           "s)");
}

TEST_WITH(who_is_missing_is_said_where_it_is_known, begin, end) {
    text_list_add(&expected, "node1");
    text_list_add(&expected, "node10");
    text_list_add(&expected, "node2");
    add("node10.example.org");
    expect("waiting for other nodes for 5 s: 1 of 3 is here: node10.example.org; missing: node1, "
           "node2 "
           "(join_timeout: 600 s)");
}

TEST_WITH(during_the_last_call_it_is_said_when_it_ends, begin, end) {
    add("node1");
    add("node2");
    settings.minimum_nodes = 2;
    shared.has_deadline = true;
    shared.deadline.nanoseconds = now.nanoseconds + INT64_C(24600000000);
    expect("waiting for other nodes for 5 s: 2 of 2 to 3 are here: node1, node2; they begin "
           "without others in 25 s (last_call_timeout: 30 s)");
    shared.deadline = now; /* by another clock, or on its way to be complete */
    expect("waiting for other nodes for 5 s: 2 of 2 to 3 are here: node1, node2 (join_timeout: 600 "
           "s)");
    shared.deadline.nanoseconds++;
    shared.is_complete = true;
    expect("waiting for other nodes for 5 s: 2 nodes are at work without this one: node1, node2 "
           "(join_timeout: 600 s)");
}

TEST_WITH(another_job_is_told_of_while_it_waits, begin, end) {
    struct text out = {0};
    assert_false(rendezvous_waiting_describe_neighbour(&shared, "exp\n2", "exp1", &out));
    add("node7");
    assert_true(rendezvous_waiting_describe_neighbour(&shared, "exp\n2", "exp1", &out));
    assert_string_equal(text_string(&out),
        "another job waits for nodes at the same store, --rdzv-id 'exp?2': node7; this one is "
        "--rdzv-id 'exp1', and nodes of one job need the same");
    text_clear(&out);
    shared.is_complete = true;
    assert_false(rendezvous_waiting_describe_neighbour(&shared, "exp2", "exp1", &out));
    shared.is_complete = false;
    shared.is_closed = true;
    assert_false(rendezvous_waiting_describe_neighbour(&shared, "exp2", "exp1", &out));
    assert_int_equal(out.length, 0);
}

static void expect_of_round(const char *line) {
    CLEARED_BY(text_clear) struct text out = {0};
    rendezvous_waiting_describe_round(&shared, &expected, duration_from_seconds(15), &out);
    assert_string_equal(text_string(&out), line);
}

TEST_WITH(who_is_in_a_round_is_told_who_is_not_ready, begin, end) {
    add("node1");
    shared.crowd.participants = 2; /* others, whose names a node that delegates does not know */
    shared.is_complete = true;
    shared.round = 7;
    expect_of_round(
        "waiting for other nodes for 15 s: round 7 of 3 nodes begins when all are ready "
        "and their old workers have ended");
    text_list_add(&expected, "node2");
    text_list_add(&expected, "no\nde3");
    expect_of_round(
        "waiting for other nodes for 15 s: round 7 of 3 nodes begins when all are ready "
        "and their old workers have ended; not ready: node2, no?de3");
}

TEST_WITH(long_lists_are_cut_and_foreign_names_stay_one_line, begin, end) {
    for (int i = 0; i < 20; i++) {
        add(i == 0 ? "a\nb" : "n");
    }
    settings.minimum_nodes = settings.maximum_nodes = 64;
    CLEARED_BY(text_clear) struct text out = {0};
    rendezvous_waiting_describe(&shared, &settings, &expected, duration_from_seconds(5), now, &out);
    assert_null(strchr(text_string(&out), '\n'));
    assert_non_null(strstr(text_string(&out), "20 of 64 are here: "));
    assert_non_null(strstr(text_string(&out), ", n and 4 more (join_timeout"));
}

TEST(fixed_nodes_are_told_what_they_need) {
    char host[] = "node1";
    const struct launch_config config = {
        .maximum_nodes = 4,
        .node_rank = 2,
        .master_host = host,
        .master_port = 29500,
        .store_timeout = duration_from_seconds(900),
    };
    CLEARED_BY(text_clear) struct text out = {0};
    rendezvous_waiting_describe_fixed(&config, duration_from_seconds(15), &out);
    assert_string_equal(text_string(&out),
        "waiting for other nodes for 15 s: this one has rank 2 of 0 to 3 (--node-rank), and all "
        "meet at node1:29500; a rank is missing, or two nodes have the same (timeout: 900 s)");
    text_clear(&out);
    rendezvous_waiting_describe_obstacle(
        &config, NULL, "no store there, and why", duration_from_seconds(15), &out);
    assert_string_equal(text_string(&out),
        "waiting for the job's store for 15 s: no store there, and why (timeout: 900 s)");
}

TEST(who_waits_beside_a_world_is_told_when_it_is_let_in) {
    CLEARED_BY(text_clear) struct text out = {0};
    rendezvous_waiting_describe_admission(duration_from_seconds(32), false, &out);
    assert_string_equal(text_string(&out), "the next are let in in 32 s, as --scale-up says");
    text_clear(&out);
    rendezvous_waiting_describe_admission(duration_from_seconds(8), true, &out);
    assert_string_equal(text_string(&out),
        "the next are let in in 8 s, a pause that doubles up to 60 s while nodes that make the "
        "world larger are lost within 10 s");
}

/* NULL: the node speaks for itself. */
static void expect_speaker(size_t me, bool is_host_of_delegates, const char *who) {
    CLEARED_BY(text_clear) struct text out = {0};
    FREED char *line = who == NULL
                           ? text_format("%s", "")
                           : text_format("waiting for other nodes for 5 s: %s says for which", who);
    bool is_anothers = rendezvous_waiting_describe_speaker(
        &shared, &nodes[me].identity, is_host_of_delegates, duration_from_seconds(5), &out);
    assert_int_equal(is_anothers, who != NULL);
    assert_string_equal(text_string(&out), line);
}

TEST_WITH(of_all_that_wait_one_speaks_and_the_others_name_it, begin, end) {
    add("node10");
    expect_speaker(0, false, NULL);
    add("node2");
    add("spare");
    nodes[2].is_participant = false;
    expect_speaker(0, false, "node2"); /* the first in the order of ranks */
    expect_speaker(1, false, NULL);
    expect_speaker(2, false, NULL); /* it waits for something else */
    shared.crowd.participants = 40; /* of whom only the host knows more than the number */
    expect_speaker(1, false, "the node that hosts the store");
    expect_speaker(0, true, NULL);
}

TEST(of_fixed_nodes_the_first_one_speaks) {
    struct launch_config config = {.node_rank = 2, .maximum_nodes = 4};
    CLEARED_BY(text_clear) struct text out = {0};
    assert_true(
        rendezvous_waiting_describe_fixed_speaker(&config, duration_from_seconds(15), &out));
    assert_string_equal(
        text_string(&out), "waiting for other nodes for 15 s: node 0 (--node-rank) says for which");
    config.node_rank = 0;
    assert_false(
        rendezvous_waiting_describe_fixed_speaker(&config, duration_from_seconds(15), &out));
}

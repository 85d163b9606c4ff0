/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/telling/chronicle_status.h"
#include "core/telling/node_groups.h"

/* One node's machine, its chronicle, and the fold of what it has told. */
struct fixture {
    struct agent_machine machine;
    struct node_placement placement;
    struct chronicle *chronicle;
    struct chronicle_status status;
    int64_t now; /* in milliseconds */
    struct text told;
    int64_t last_time;
    const char *words; /* of each failed worker; NULL: not known yet */
};

static void told(void *context, const struct chronicle_entry *entry) {
    struct fixture *fixture = context;
    text_append_format(&fixture->told, "%s%s", fixture->told.length > 0 ? " " : "",
        chronicle_kind_name(entry->kind));
    assert_true(entry->time.nanoseconds >= fixture->last_time);
    fixture->last_time = entry->time.nanoseconds;
    chronicle_status_take(&fixture->status, entry);
}

static int64_t pid_of(void *context, int local_rank) {
    (void)context;
    return 1000 + local_rank;
}

static bool words_of(void *context, int local_rank, int64_t pid, struct text *out) {
    const struct fixture *fixture = context;
    assert_int_equal(pid, 1000 + local_rank);
    text_append(out, fixture->words != NULL ? fixture->words : "");
    return fixture->words != NULL;
}

static uint64_t none_from_standby(void *context) {
    (void)context;
    return 0;
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.words = "ValueError: boom",
        .placement = {.group_world_size = 2,
            .local_world_size = 2,
            .group_rank = 1,
            .ranks = {.base_rank = 2, .world_size = 4}}};
    agent_machine_init(&fixture->machine, &(struct agent_settings){.worker_count = 2,
                                              .max_restarts = 3,
                                              .shutdown_timeout = duration_from_seconds(30),
                                              .has_peers = true,
                                              .may_lose_peers = true});
    const struct chronicle_settings settings = {.node = "node1",
        .version = "1.2",
        .placement = &fixture->placement,
        .minimum_nodes = 1,
        .maximum_nodes = 2,
        .began_at = {INT64_C(1700000000) * NANOSECONDS_PER_SECOND},
        .pid = pid_of,
        .from_standby = none_from_standby,
        .words = words_of,
        .told = told,
        .context = fixture};
    fixture->chronicle = chronicle_new(&settings);
}

static void tear_down(struct fixture *fixture) {
    chronicle_status_clear(&fixture->status);
    chronicle_free(fixture->chronicle);
    agent_machine_clear(&fixture->machine);
    text_clear(&fixture->told);
}

static int set_up_test(void **state) {
    static struct fixture fixture;
    set_up(&fixture);
    *state = &fixture;
    return 0;
}

static int tear_down_test(void **state) {
    tear_down(*state);
    return 0;
}

/* Each event comes so many milliseconds after the one before it. */
static void take(struct fixture *fixture, int milliseconds, struct agent_event event) {
    struct agent_effects effects;
    enum agent_phase before = fixture->machine.phase;
    const struct agent_outcome *outcome = NULL;
    fixture->now += milliseconds;
    event.now.nanoseconds = fixture->now * NANOSECONDS_PER_MILLISECOND;
    agent_machine_step(&fixture->machine, &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        outcome =
            effects.items[i].kind == AGENT_EFFECT_FINISH ? &effects.items[i].outcome : outcome;
    }
    chronicle_step(fixture->chronicle, before, &fixture->machine, &event, outcome);
}

static void take_kind(struct fixture *fixture, int milliseconds, enum agent_event_kind kind) {
    take(fixture, milliseconds, (struct agent_event){.kind = kind});
}

static void take_end(struct fixture *fixture, int milliseconds, int local_rank, int code) {
    take(fixture, milliseconds,
        (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
            .worker_exited = {.local_rank = local_rank, .exit = {.value = code}}});
}

static void take_round_over(
    struct fixture *fixture, int milliseconds, const char *reason, int restarts) {
    take(fixture, milliseconds,
        (struct agent_event){.kind = AGENT_EVENT_ROUND_OVER,
            .is_counted = true,
            .restarts = restarts,
            .reason = reason});
}

static void join(struct fixture *fixture, int milliseconds, int restarts) {
    fixture->placement.round++;
    fixture->placement.attempt = restarts;
    take(fixture, milliseconds,
        (struct agent_event){.kind = AGENT_EVENT_JOINED,
            .joined = {.ticket = fixture->machine.ticket, .restarts = restarts, .node_count = 2}});
}

static void run(struct fixture *fixture) {
    take_kind(fixture, 0, AGENT_EVENT_START);
    join(fixture, 2000, 0);
    take_kind(fixture, 500, AGENT_EVENT_WORKERS_STARTED);
}

/* The first worker fails; the other is stopped, and both start again. */
static void restart(struct fixture *fixture, int restarts) {
    take_end(fixture, 10000, 0, 7);
    take_end(fixture, 100, 1, 143);
    take_kind(fixture, 12, AGENT_EVENT_ALL_GONE);
    join(fixture, 6, restarts);
    take_kind(fixture, 31, AGENT_EVENT_WORKERS_STARTED);
}

static void expect_milliseconds(struct duration time, int64_t milliseconds) {
    assert_int_equal(time.nanoseconds, milliseconds * NANOSECONDS_PER_MILLISECOND);
}

static int64_t sum_of(const struct chronicle_status *status) {
    int64_t sum = 0;
    for (int state = 0; state < JOB_ENDED; state++) {
        sum += status->account.states[state].nanoseconds;
    }
    return sum;
}

static void take_entry(void *context, const struct chronicle_entry *entry) {
    chronicle_status_take(context, entry);
}

static void expect_law(const struct fixture *fixture) {
    struct chronicle_status again = {0};
    chronicle_each_after(fixture->chronicle, 0, take_entry, &again);
    assert_int_equal(again.state, fixture->status.state);
    assert_int_equal(again.recovery_count, fixture->status.recovery_count);
    assert_memory_equal(&again.account, &fixture->status.account, sizeof again.account);
    assert_int_equal(sum_of(&again), chronicle_status_wall(&again).nanoseconds);
    chronicle_status_clear(&again);
}

TEST_WITH(job_that_succeeds_is_told_from_its_beginning_to_its_end, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    run(fixture);
    assert_int_equal(fixture->status.state, JOB_RUNNING);
    take_end(fixture, 3000, 0, 0);
    take_end(fixture, 1000, 1, 0);
    assert_int_equal(fixture->status.state, JOB_ENDING);
    take_kind(fixture, 20, AGENT_EVENT_ALL_GONE);
    take_kind(fixture, 500, AGENT_EVENT_BARRIER_PASSED);
    assert_string_equal(
        text_string(&fixture->told), "waiting world joined started stopping stopped ended");
    assert_int_equal(fixture->status.state, JOB_ENDED);
    assert_int_equal(fixture->status.result, JOB_SUCCEEDED);
    expect_milliseconds(fixture->status.account.states[JOB_WAITING], 2000);
    expect_milliseconds(fixture->status.account.states[JOB_STARTING], 500);
    expect_milliseconds(fixture->status.account.states[JOB_RUNNING], 4000);
    expect_milliseconds(fixture->status.account.states[JOB_ENDING], 520);
    expect_law(fixture);
}

TEST_WITH(phases_of_a_recovery_add_up_and_name_the_failure, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    run(fixture);
    restart(fixture, 1);
    assert_string_equal(text_string(&fixture->told),
        "waiting world joined started worker_failed stopping stopped world joined restart started");
    assert_int_equal(fixture->status.recovery_count, 1);
    const struct chronicle_recovery *recovery = &fixture->status.recoveries[0];
    assert_true(recovery->is_over && recovery->is_charged);
    assert_int_equal(recovery->cause, CHRONICLE_CAUSE_WORKER_FAILED);
    assert_int_equal(recovery->rank, 2);
    assert_int_equal(recovery->exit, 7);
    assert_string_equal(recovery->what, "ValueError: boom");
    assert_string_equal(recovery->node, "node1");
    expect_milliseconds(chronicle_recovery_phase(recovery, RECOVERY_NOTICED), 0);
    expect_milliseconds(chronicle_recovery_phase(recovery, RECOVERY_STOPPED), 112);
    expect_milliseconds(chronicle_recovery_phase(recovery, RECOVERY_AGREED), 6);
    expect_milliseconds(chronicle_recovery_phase(recovery, RECOVERY_STARTED), 31);
    expect_milliseconds(fixture->status.account.recovering[CHRONICLE_CAUSE_WORKER_FAILED], 149);
    assert_int_equal(fixture->status.restarts, 1);
    assert_int_equal(fixture->status.nodes[0].failed_first, 1);
    expect_law(fixture);
}

TEST_WITH(nothing_is_told_before_the_words_of_a_failed_worker, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    run(fixture);
    text_clear(&fixture->told);
    fixture->words = NULL;
    take_end(fixture, 10, 1, 3);
    take_end(fixture, 10, 0, 143);
    take_kind(fixture, 10, AGENT_EVENT_ALL_GONE);
    assert_string_equal(text_string(&fixture->told), "");
    assert_false(chronicle_tell(fixture->chronicle, false));
    assert_true(chronicle_tell(fixture->chronicle, true));
    assert_string_equal(text_string(&fixture->told), "worker_failed stopping stopped");
    assert_null(fixture->status.recoveries[0].what);
    expect_law(fixture);
}

static void check_change(const char *reason, int restarts, enum chronicle_cause cause) {
    struct fixture fixture;
    set_up(&fixture);
    run(&fixture);
    take_round_over(&fixture, 100, reason, restarts);
    assert_int_equal(fixture.status.state, JOB_RECOVERING);
    assert_int_equal(fixture.status.recoveries[0].cause, cause);
    take_end(&fixture, 10, 0, 143);
    take_end(&fixture, 10, 1, 143);
    take_kind(&fixture, 0, AGENT_EVENT_ALL_GONE);
    join(&fixture, 10, restarts);
    take_kind(&fixture, 10, AGENT_EVENT_WORKERS_STARTED);
    assert_int_equal(fixture.status.state, JOB_RUNNING);
    assert_int_equal(fixture.status.recoveries[0].is_charged, restarts > 0);
    expect_milliseconds(fixture.status.account.recovering[cause], 40);
    expect_law(&fixture);
    tear_down(&fixture);
}

TEST(cause_of_a_new_world_follows_from_what_the_record_says) {
    check_change(
        "rank 3 (local_rank 1) on node2 failed: exit code 7", 1, CHRONICLE_CAUSE_WORKER_FAILED);
    check_change("a node has joined", 0, CHRONICLE_CAUSE_SCALE_UP);
    check_change("node node2 (pid 77) has left", 0, CHRONICLE_CAUSE_NODE_LEFT);
    check_change("node node2 (pid 77) is gone", 0, CHRONICLE_CAUSE_NODE_LOST);
    check_change("the connection to the store was lost", 0, CHRONICLE_CAUSE_NODE_LOST);
}

TEST_WITH(lost_node_is_named, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    run(fixture);
    take_round_over(fixture, 100, "node node2 (pid 77) is gone", 0);
    assert_int_equal(fixture->status.known_nodes, 2);
    assert_string_equal(fixture->status.nodes[1].name, "node2");
    assert_int_equal(fixture->status.nodes[1].state, CHRONICLE_NODE_MISSED);
    assert_string_equal(fixture->status.recoveries[0].node, "node2");
}

TEST_WITH(failure_without_a_restart_ends_the_job, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    fixture->machine.restarts.maximum = 0;
    run(fixture);
    take_end(fixture, 100, 0, 9);
    take_end(fixture, 10, 1, 143);
    take_kind(fixture, 10, AGENT_EVENT_FAILURE_STANDS);
    take_kind(fixture, 10, AGENT_EVENT_ALL_GONE);
    assert_int_equal(fixture->status.state, JOB_ENDED);
    assert_int_equal(fixture->status.result, JOB_FAILED);
    assert_true(fixture->status.recoveries[0].is_given_up);
    expect_law(fixture);
}

TEST_WITH(node_that_is_told_to_end_has_left, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    run(fixture);
    text_clear(&fixture->told);
    take(fixture, 10, (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = 15});
    take_end(fixture, 10, 0, 143);
    take_end(fixture, 10, 1, 143);
    take_kind(fixture, 10, AGENT_EVENT_ALL_GONE);
    assert_string_equal(text_string(&fixture->told), "stopping stopped node_left ended");
    assert_int_equal(fixture->status.result, JOB_STOPPED);
    expect_law(fixture);
}

TEST_WITH(only_the_last_entries_are_kept_and_all_are_told, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    size_t kept = 0;
    run(fixture);
    fixture->machine.restarts.maximum = 1000;
    for (int i = 1; i <= 300; i++) {
        restart(fixture, i);
    }
    int64_t last = fixture->status.nodes[0].said.nanoseconds;
    for (int64_t after = 0; kept == 0; after += 100) {
        struct chronicle_status status = {0};
        chronicle_each_after(fixture->chronicle, after, take_entry, &status);
        assert_true(status.nodes[0].said.nanoseconds == last);
        kept = status.recovery_count;
        chronicle_status_clear(&status);
    }
    assert_true(kept < 200);
    assert_int_equal(fixture->status.recovery_count, CHRONICLE_RECOVERIES_MAXIMUM);
    assert_int_equal(fixture->status.recoveries_before, 300 - CHRONICLE_RECOVERIES_MAXIMUM);
    assert_int_equal(sum_of(&fixture->status), chronicle_status_wall(&fixture->status).nanoseconds);
}

TEST(text_is_cut_and_fit_to_be_shown) {
    struct chronicle_entry entry = {.kind = CHRONICLE_WORKER_FAILED};
    char longest[2000];
    memset(longest, '"', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    chronicle_entry_add_text(&entry, CHRONICLE_TEXT, longest);
    assert_int_equal(strlen(chronicle_entry_text(&entry, CHRONICLE_TEXT)), 256);
    chronicle_entry_clear(&entry);
    entry.kind = CHRONICLE_STOPPED;
    chronicle_entry_add_text(&entry, CHRONICLE_REASON,
        "a\x1b[2Jb\n\xe2\x80\xae"
        "c\xff\xc3\xa4");
    const char *text = chronicle_entry_text(&entry, CHRONICLE_REASON);
    assert_null(strpbrk(text, "\x1b\n\xff"));
    assert_null(strstr(text, "\xe2\x80\xae"));
    assert_non_null(strstr(text, "\xc3\xa4"));
    chronicle_entry_clear(&entry);
}

/* Entries of two nodes, as they would be read from two files. */

static void tell(struct chronicle_status *status, const char *node, int milliseconds,
    enum chronicle_kind kind, enum chronicle_cause cause) {
    struct chronicle_entry entry = {.seq = 1,
        .time = {INT64_C(1) + (int64_t)milliseconds * NANOSECONDS_PER_MILLISECOND},
        .kind = kind};
    chronicle_entry_set_node(&entry, node);
    if (kind == CHRONICLE_STOPPING) {
        chronicle_entry_add_text(&entry, CHRONICLE_CAUSE, chronicle_cause_name(cause));
    }
    chronicle_status_take(status, &entry);
    chronicle_entry_clear(&entry);
}

TEST(phases_of_two_nodes_are_the_differences_of_their_last_moments) {
    struct chronicle_status status = {0};
    const char *const nodes[] = {"a", "b"};
    for (int i = 0; i < 2; i++) {
        tell(&status, nodes[i], 0, CHRONICLE_JOINED, 0);
        tell(&status, nodes[i], 0, CHRONICLE_STARTED, 0);
    }
    tell(&status, "b", 1000, CHRONICLE_WORKER_FAILED, 0);
    tell(&status, "b", 1000, CHRONICLE_STOPPING, CHRONICLE_CAUSE_WORKER_FAILED);
    tell(&status, "a", 1002, CHRONICLE_STOPPING, CHRONICLE_CAUSE_WORKER_FAILED);
    tell(&status, "a", 1010, CHRONICLE_STOPPED, 0);
    tell(&status, "b", 1212, CHRONICLE_STOPPED, 0);
    tell(&status, "b", 1215, CHRONICLE_JOINED, 0);
    tell(&status, "a", 1218, CHRONICLE_JOINED, 0);
    tell(&status, "a", 1220, CHRONICLE_STARTED, 0);
    assert_int_equal(status.state, JOB_RECOVERING);
    tell(&status, "b", 1250, CHRONICLE_STARTED, 0);
    assert_int_equal(status.state, JOB_RUNNING);
    const struct chronicle_recovery *recovery = &status.recoveries[0];
    expect_milliseconds(chronicle_recovery_phase(recovery, RECOVERY_STOPPED), 212);
    assert_string_equal(recovery->last[RECOVERY_STOPPED], "b");
    expect_milliseconds(chronicle_recovery_phase(recovery, RECOVERY_AGREED), 6);
    assert_string_equal(recovery->last[RECOVERY_AGREED], "a");
    expect_milliseconds(chronicle_recovery_phase(recovery, RECOVERY_STARTED), 32);
    assert_string_equal(recovery->last[RECOVERY_STARTED], "b");
    expect_milliseconds(status.account.states[JOB_RECOVERING], 250);
    assert_int_equal(status.tally.by_cause[CHRONICLE_CAUSE_WORKER_FAILED], 1);
    expect_milliseconds(status.tally.phases[RECOVERY_FAILED].sum, 250);
    expect_milliseconds(status.tally.phases[RECOVERY_STARTED].sum, 32);
    chronicle_status_clear(&status);
}

TEST(failure_during_a_recovery_belongs_to_it) {
    struct chronicle_status status = {0};
    tell(&status, "a", 0, CHRONICLE_STARTED, 0);
    tell(&status, "a", 10, CHRONICLE_STOPPING, CHRONICLE_CAUSE_SCALE_UP);
    tell(&status, "a", 20, CHRONICLE_STOPPED, 0);
    tell(&status, "a", 30, CHRONICLE_JOINED, 0);
    tell(&status, "a", 40, CHRONICLE_WORKER_FAILED, 0);
    tell(&status, "a", 40, CHRONICLE_STOPPING, CHRONICLE_CAUSE_WORKER_FAILED);
    tell(&status, "a", 50, CHRONICLE_STOPPED, 0);
    tell(&status, "a", 60, CHRONICLE_JOINED, 0);
    tell(&status, "a", 70, CHRONICLE_STARTED, 0);
    assert_int_equal(status.recovery_count, 1);
    assert_int_equal(status.tally.by_cause[CHRONICLE_CAUSE_SCALE_UP], 1);
    assert_int_equal(status.tally.by_cause[CHRONICLE_CAUSE_WORKER_FAILED], 0);
    int64_t sum = 0;
    for (int moment = RECOVERY_NOTICED; moment < RECOVERY_MOMENT_COUNT; moment++) {
        sum += chronicle_recovery_phase(&status.recoveries[0], (enum recovery_moment)moment)
                   .nanoseconds;
    }
    assert_int_equal(sum, 60 * NANOSECONDS_PER_MILLISECOND);
    chronicle_status_clear(&status);
}

TEST(time_after_the_end_is_no_part_of_the_account) {
    struct chronicle_status status = {0};
    tell(&status, "a", 0, CHRONICLE_STARTED, 0);
    tell(&status, "a", 100, CHRONICLE_ENDED, 0);
    chronicle_status_advance(&status, (struct wall_time){NANOSECONDS_PER_SECOND});
    expect_milliseconds(chronicle_status_wall(&status), 100);
    chronicle_status_clear(&status);
}

/* Groups of nodes. */

static void expect_names(const char *const *names, const char *text, size_t most) {
    struct chronicle_status status = {0};
    struct node_groups groups;
    struct text out = {0};
    for (size_t i = 0; names[i] != NULL; i++) {
        tell(&status, names[i], 0, CHRONICLE_STARTED, 0);
    }
    node_groups_make(&status, &groups);
    assert_int_equal(groups.count, 1);
    node_groups_append_names(&status, &groups.groups[0], most, &out);
    assert_string_equal(text_string(&out), text);
    text_clear(&out);
    node_groups_clear(&groups);
    chronicle_status_clear(&status);
}

TEST(names_of_nodes_are_ranges) {
    static const struct {
        const char *names[8];
        const char *text;
    } cases[] = {
        {{"gpu-n052", "gpu-n050", "gpu-n051", "gpu-n054"}, "gpu-n[050-052,054]"},
        {{"n9", "n10", "n8", "n11"}, "n[8-11]"},
        {{"n09", "n10", "n11"}, "n[09-11]"},
        {{"n9", "n09", "n010"}, "n[9,09,010]"},
        {{"n1.a.org", "n2.a.org", "n2.b.org"}, "n[1-2].a.org,n2.b.org"},
        {{"10.0.0.7", "10.0.0.8", "10.0.1.9"}, "10.0.0.[7-8],10.0.1.9"},
        {{"alpha", "beta", "a1b"}, "alpha,beta,a1b"},
        {{"rack1-n1", "rack1-n2", "rack2-n1"}, "rack1-n[1-2],rack2-n1"},
        {{"99999999999999999999", "99999999999999999998"},
            "99[999999999999999998-999999999999999999]"},
        {{"alone"}, "alone"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_names(cases[i].names, cases[i].text, 100);
    }
    expect_names((const char *const[]){"n1", "n3", "n5", "n7", NULL}, "n[1,3] and 2 more", 2);
}

TEST(odd_nodes_are_the_first_groups_and_the_last_one_has_the_rest) {
    struct chronicle_status status = {0};
    struct node_groups groups;
    char name[16];
    node_groups_make(&status, &groups);
    assert_int_equal(groups.count, 0);
    node_groups_clear(&groups);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "n%02d", i);
        tell(&status, name, 0, CHRONICLE_STARTED, 0);
    }
    tell(&status, "n42", 10, CHRONICLE_NODE_LOST, 0);
    node_groups_make(&status, &groups);
    assert_int_equal(groups.count, 2);
    assert_int_equal(groups.groups[0].state, CHRONICLE_NODE_MISSED);
    assert_int_equal(groups.groups[0].count, 1);
    assert_string_equal(status.nodes[groups.groups[0].members[0]].name, "n42");
    assert_int_equal(groups.groups[1].count, 99);
    node_groups_clear(&groups);
    for (size_t i = 0; i < status.known_nodes; i++) {
        status.nodes[i].failed_first = (int)i;
    }
    node_groups_make(&status, &groups);
    assert_int_equal(groups.count, NODE_GROUPS_MAXIMUM);
    assert_int_equal(groups.groups[NODE_GROUPS_MAXIMUM - 1].count, 100 - NODE_GROUPS_MAXIMUM + 1);
    assert_true(groups.groups[NODE_GROUPS_MAXIMUM - 1].is_mixed);
    node_groups_clear(&groups);
    chronicle_status_clear(&status);
}

/* Steps. */

static void note(struct fixture *fixture, int milliseconds, struct progress_news news) {
    fixture->now += milliseconds;
    news.at.nanoseconds = fixture->now * NANOSECONDS_PER_MILLISECOND;
    chronicle_note_progress(fixture->chronicle, &news);
}

static void note_training(struct fixture *fixture, int milliseconds, enum progress_source source) {
    note(fixture, milliseconds,
        (struct progress_news){.kind = CHRONICLE_TRAINING, .source = source, .local_rank = 1});
}

static void note_step(
    struct fixture *fixture, int milliseconds, enum progress_source source, int64_t step) {
    note(fixture, milliseconds,
        (struct progress_news){
            .kind = CHRONICLE_PROGRESS, .source = source, .step = step, .rate = 2});
}

TEST_WITH(job_starts_until_its_first_step_and_trains_then, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    run(fixture);
    assert_int_equal(fixture->status.state, JOB_RUNNING);
    assert_int_equal(fixture->status.step, -1);
    note_training(fixture, 1500, PROGRESS_OPTIMIZER);
    note_step(fixture, 3000, PROGRESS_OPTIMIZER, 6);
    assert_int_equal(fixture->status.state, JOB_TRAINING);
    assert_int_equal(fixture->status.nodes[0].state, CHRONICLE_NODE_TRAINING);
    assert_int_equal(fixture->status.step, 6);
    assert_int_equal(fixture->status.nodes[0].step, 6);
    assert_true(fixture->status.rate == 2);
    expect_milliseconds(fixture->status.account.states[JOB_RUNNING], 0);
    expect_milliseconds(fixture->status.account.states[JOB_STARTING], 2000);
    expect_milliseconds(fixture->status.account.states[JOB_TRAINING], 3000);
    assert_false(fixture->status.account.knows_redone);
    expect_law(fixture);
}

TEST_WITH(recovery_is_over_when_all_train_again, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    run(fixture);
    note_training(fixture, 1000, PROGRESS_PROGRAM);
    note_step(fixture, 0, PROGRESS_PROGRAM, 0);
    note_step(fixture, 10000, PROGRESS_PROGRAM, 100);
    restart(fixture, 1);
    assert_int_equal(fixture->status.state, JOB_RECOVERING);
    note_training(fixture, 700, PROGRESS_PROGRAM);
    assert_int_equal(fixture->status.state, JOB_TRAINING);
    const struct chronicle_recovery *recovery = &fixture->status.recoveries[0];
    assert_true(recovery->is_over);
    expect_milliseconds(chronicle_recovery_phase(recovery, RECOVERY_STARTED), 31);
    expect_milliseconds(chronicle_recovery_phase(recovery, RECOVERY_TRAINING), 700);
    expect_milliseconds(fixture->status.account.states[JOB_RECOVERING], 100 + 12 + 6 + 31 + 700);
    expect_law(fixture);
}

/* Steps 81 to 100 are lost, and taken again at 10 a second; 101 to 110 are new. */
TEST_WITH(steps_that_are_taken_again_are_redone_work, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    run(fixture);
    note_training(fixture, 1000, PROGRESS_PROGRAM);
    note_step(fixture, 0, PROGRESS_PROGRAM, 1);
    note_step(fixture, 9900, PROGRESS_PROGRAM, 100);
    restart(fixture, 1);
    note_training(fixture, 700, PROGRESS_PROGRAM);
    note_step(fixture, 0, PROGRESS_PROGRAM, 81);
    assert_int_equal(fixture->status.recoveries[0].redone_steps, 20);
    note_step(fixture, 900, PROGRESS_PROGRAM, 90);
    expect_milliseconds(fixture->status.account.redone, 900);
    note_step(fixture, 2000, PROGRESS_PROGRAM, 110);
    expect_milliseconds(fixture->status.account.redone, 1900);
    note_step(fixture, 1000, PROGRESS_PROGRAM, 120);
    note_step(fixture, 1000, PROGRESS_PROGRAM, 50); /* a program may count anew */
    note_step(fixture, 1000, PROGRESS_PROGRAM, 60);
    expect_milliseconds(fixture->status.account.redone, 1900);
    assert_true(fixture->status.account.knows_redone);
    expect_law(fixture);
}

TEST_WITH(failure_before_the_first_step_belongs_to_the_recovery, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    run(fixture);
    note_training(fixture, 1000, PROGRESS_OPTIMIZER);
    restart(fixture, 1);
    restart(fixture, 2);
    assert_int_equal(fixture->status.recovery_count, 1);
    assert_false(fixture->status.recoveries[0].is_over);
    assert_int_equal(fixture->status.tally.phases[RECOVERY_FAILED].count, 0);
    note_training(fixture, 500, PROGRESS_OPTIMIZER);
    assert_int_equal(fixture->status.recovery_count, 1);
    assert_true(fixture->status.recoveries[0].is_over);
    expect_milliseconds(fixture->status.account.states[JOB_RECOVERING], 149 + 10000 + 149 + 500);
    expect_law(fixture);
}

static void note_hang(struct fixture *fixture, int milliseconds, double seconds) {
    fixture->now += milliseconds;
    chronicle_note_hang(fixture->chronicle,
        (struct instant){fixture->now * NANOSECONDS_PER_MILLISECOND}, 1, "rank 1 in read",
        "read (data.py:88)", duration_from_seconds(seconds));
}

TEST_WITH(
    hang_is_the_time_from_the_last_step_until_steps_are_taken_again, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    run(fixture);
    note_training(fixture, 1000, PROGRESS_PROGRAM);
    note_step(fixture, 5000, PROGRESS_PROGRAM, 10);
    note_hang(fixture, 4000, 3);
    assert_int_equal(fixture->status.state, JOB_HANGING);
    assert_int_equal(fixture->status.hangs, 1);
    assert_string_equal(fixture->status.hung, "rank 1 in read");
    expect_milliseconds(fixture->status.account.states[JOB_TRAINING], 6000);
    expect_milliseconds(fixture->status.account.states[JOB_HANGING], 3000);
    note(fixture, 1000,
        (struct progress_news){.kind = CHRONICLE_PROGRESS, .source = PROGRESS_PROGRAM, .step = 10});
    assert_int_equal(fixture->status.state, JOB_HANGING); /* that no step is taken is no news */
    note_step(fixture, 1000, PROGRESS_PROGRAM, 11);
    assert_int_equal(fixture->status.state, JOB_TRAINING);
    expect_milliseconds(fixture->status.account.states[JOB_HANGING], 5000);
    expect_law(fixture);
}

TEST_WITH(worker_that_hangs_has_failed_with_its_last_step, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    run(fixture);
    note_training(fixture, 1000, PROGRESS_PROGRAM);
    note_step(fixture, 5000, PROGRESS_PROGRAM, 10);
    note_hang(fixture, 4000, 3);
    take_end(fixture, 100, 1, 137);
    take_end(fixture, 100, 0, 143);
    take_kind(fixture, 12, AGENT_EVENT_ALL_GONE);
    join(fixture, 6, 1);
    take_kind(fixture, 31, AGENT_EVENT_WORKERS_STARTED);
    note_training(fixture, 700, PROGRESS_PROGRAM);
    const struct chronicle_recovery *recovery = &fixture->status.recoveries[0];
    assert_int_equal(recovery->cause, CHRONICLE_CAUSE_HANG);
    assert_int_equal(recovery->moments[RECOVERY_NOTICED].nanoseconds -
                         recovery->moments[RECOVERY_FAILED].nanoseconds,
        (3000 + 100) * (int64_t)NANOSECONDS_PER_MILLISECOND);
    assert_string_equal(recovery->what, "rank 1 in read");
    assert_int_equal(fixture->status.state, JOB_TRAINING);
    expect_milliseconds(fixture->status.account.states[JOB_HANGING], 3000 + 100);
    expect_law(fixture);
}

TEST_WITH(days_of_progress_push_no_failure_out, set_up_test, tear_down_test) {
    struct fixture *fixture = *state;
    run(fixture);
    note_training(fixture, 1000, PROGRESS_OPTIMIZER);
    restart(fixture, 1);
    note_training(fixture, 500, PROGRESS_OPTIMIZER);
    for (int step = 1; step <= 3000; step++) {
        note_step(fixture, 10000, PROGRESS_OPTIMIZER, step);
    }
    struct chronicle_status again = {0};
    chronicle_each_after(fixture->chronicle, 0, take_entry, &again);
    assert_int_equal(again.recovery_count, 1);
    assert_int_equal(again.step, 3000);
    assert_memory_equal(&again.account, &fixture->status.account, sizeof again.account);
    chronicle_status_clear(&again);
}

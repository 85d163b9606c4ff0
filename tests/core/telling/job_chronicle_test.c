/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/telling/job_chronicle.h"

#define BEGAN_SECONDS INT64_C(1700000000)
#define NODES 3

static struct wall_time at(int64_t milliseconds) {
    return (struct wall_time){
        BEGAN_SECONDS * NANOSECONDS_PER_SECOND + milliseconds * NANOSECONDS_PER_MILLISECOND};
}

/* What the nodes of a job tell in which one worker fails: the same entries each time. */
struct told {
    int node;
    struct chronicle_entry entry;
};

struct story {
    struct told told[128];
    size_t count;
    int64_t seqs[NODES];
};

static const char *name_of(int node) {
    static const char *const names[NODES] = {"node0", "node1", "node2"};
    return names[node];
}

static struct chronicle_entry *add(
    struct story *story, int node, int64_t milliseconds, enum chronicle_kind kind) {
    struct told *told = &story->told[story->count++];
    *told = (struct told){.node = node,
        .entry = {
            .seq = ++story->seqs[node], .time = at(milliseconds), .kind = kind, .has_round = true}};
    chronicle_entry_set_node(&told->entry, name_of(node));
    return &told->entry;
}

static void add_start(struct story *story, int node, int64_t milliseconds, int restarts) {
    struct chronicle_entry *world = add(story, node, milliseconds, CHRONICLE_WORLD);
    chronicle_entry_add(world, CHRONICLE_NODES, NODES);
    chronicle_entry_add(world, CHRONICLE_WORKERS, 2 * NODES);
    chronicle_entry_add(world, CHRONICLE_CHARGED, restarts > 0);
    chronicle_entry_add(world, CHRONICLE_USED, restarts);
    chronicle_entry_add(world, CHRONICLE_MAX, 3);
    struct chronicle_entry *joined = add(story, node, milliseconds, CHRONICLE_JOINED);
    chronicle_entry_add(joined, CHRONICLE_RANK, node);
    chronicle_entry_add(joined, CHRONICLE_FIRST_RANK, 2 * node);
    chronicle_entry_add(joined, CHRONICLE_WORKERS, 2);
    (void)add(story, node, milliseconds + 20 + node, CHRONICLE_STARTED);
}

static void add_stop(struct story *story, int node, int64_t milliseconds) {
    struct chronicle_entry *stopping = add(story, node, milliseconds, CHRONICLE_STOPPING);
    chronicle_entry_add_text(stopping, CHRONICLE_REASON, "rank 3 on node1 failed");
    chronicle_entry_add_text(stopping, CHRONICLE_CAUSE, "worker_failed");
    (void)add(story, node, milliseconds + 100 - 10 * node, CHRONICLE_STOPPED);
}

static void write_story(struct story *story) {
    *story = (struct story){0};
    for (int node = 0; node < NODES; node++) {
        struct chronicle_entry *waiting = add(story, node, 10 * node, CHRONICLE_WAITING);
        chronicle_entry_add(waiting, CHRONICLE_MIN, NODES);
        chronicle_entry_add(waiting, CHRONICLE_MAX, NODES);
        add_start(story, node, 100 + node, 0);
    }
    struct chronicle_entry *failed = add(story, 1, 7000, CHRONICLE_WORKER_FAILED);
    chronicle_entry_add(failed, CHRONICLE_RANK, 3);
    chronicle_entry_add(failed, CHRONICLE_EXIT, 7);
    chronicle_entry_add(failed, CHRONICLE_FIRST, 1);
    for (int node = 0; node < NODES; node++) {
        add_stop(story, node, 7001 + node);
        add_start(story, node, 7200 + node, 1);
    }
}

static void clear_story(struct story *story) {
    for (size_t i = 0; i < story->count; i++) {
        chronicle_entry_clear(&story->told[i].entry);
    }
}

static bool tell(struct job_chronicle *job, const struct told *told, int64_t now) {
    return job_chronicle_take(job, name_of(told->node), at(0), &told->entry, at(now));
}

/* Each node tells all that is its own from one moment on, in the order of these nodes. */
static void tell_by_node(struct job_chronicle *job, const struct story *story, const int *order) {
    for (int i = 0; i < NODES; i++) {
        for (size_t k = 0; k < story->count; k++) {
            if (story->told[k].node == order[i]) {
                assert_true(tell(job, &story->told[k], 7600));
            }
        }
    }
}

static void assert_story(struct job_chronicle *job, int64_t now) {
    struct chronicle_status status;
    job_chronicle_write_status(job, at(now), &status);
    assert_int_equal(status.state, JOB_RUNNING);
    assert_int_equal(status.restarts, 1);
    assert_int_equal(status.known_nodes, NODES);
    assert_int_equal(status.recovery_count, 1);
    const struct chronicle_recovery *recovery = &status.recoveries[0];
    assert_string_equal(recovery->node, "node1");
    assert_true(recovery->is_over);
    static const int64_t moments[] = {7000, 7000, 7101, 7202, 7224};
    static const char *const last[] = {NULL, "node1", "node0", "node2", "node2"};
    for (int i = RECOVERY_NOTICED; i < RECOVERY_TRAINING; i++) {
        assert_int_equal(recovery->moments[i].nanoseconds, at(moments[i]).nanoseconds);
        assert_string_equal(recovery->last[i], last[i]);
    }
    assert_int_equal(
        chronicle_status_wall(&status).nanoseconds, now * (int64_t)NANOSECONDS_PER_MILLISECOND);
    chronicle_status_clear(&status);
}

TEST(status_is_the_same_in_whatever_order_nodes_tell) {
    static const int orders[][NODES] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
    struct story story;
    write_story(&story);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct job_chronicle *job = job_chronicle_new();
        tell_by_node(job, &story, orders[i]);
        assert_story(job, 7700);
        assert_story(job, 20000); /* also when all of it is settled */
        job_chronicle_free(job);
    }
    clear_story(&story);
}

/* Some of it, which outlives the look. */
static void look_at(void *context, const struct chronicle_status *status) {
    *(struct chronicle_status *)context = *status;
}

static struct chronicle_status settled(struct job_chronicle *job, int64_t now) {
    struct chronicle_status status;
    job_chronicle_see_settled(job, at(now), look_at, &status);
    return status;
}

TEST(what_is_settled_counts_recoveries_and_follows_some_seconds_later) {
    struct job_chronicle *job = job_chronicle_new();
    struct story story;
    write_story(&story);
    tell_by_node(job, &story, (const int[]){2, 0, 1});
    assert_false(settled(job, 7700).has_begun);
    struct chronicle_status status = settled(job, 20000);
    assert_int_equal(status.state, JOB_RUNNING);
    assert_int_equal(
        chronicle_status_wall(&status).nanoseconds, 15000 * (int64_t)NANOSECONDS_PER_MILLISECOND);
    assert_int_equal(status.tally.by_cause[CHRONICLE_CAUSE_WORKER_FAILED], 1);
    const struct recovery_times *whole = &status.tally.phases[RECOVERY_FAILED];
    assert_int_equal(whole->count, 1);
    assert_int_equal(whole->sum.nanoseconds, 224 * NANOSECONDS_PER_MILLISECOND);
    assert_int_equal(whole->counts[5], 1); /* more than 0.1 s, at most 0.3 s */
    assert_int_equal(status.tally.phases[RECOVERY_NOTICED].counts[0], 1);
    assert_int_equal(status.tally.phases[RECOVERY_TRAINING].count, 0);
    clear_story(&story);
    job_chronicle_free(job);
}

static void collect(void *context, const struct chronicle_entry *entry) {
    text_append_format(context, "%d:%s ", (int)entry->seq, entry->node);
}

TEST(what_is_told_twice_is_taken_once_and_numbers_are_the_jobs) {
    struct job_chronicle *job = job_chronicle_new();
    struct story story;
    struct text seen = {0};
    write_story(&story);
    assert_true(tell(job, &story.told[0], 1000));
    assert_true(tell(job, &story.told[4], 1000));
    assert_false(tell(job, &story.told[0], 1001));
    /* Another agent of that name has numbers of its own. */
    assert_true(job_chronicle_take(job, "node0", at(500), &story.told[0].entry, at(1002)));
    job_chronicle_each_after(job, 1, collect, &seen);
    assert_string_equal(text_string(&seen), "2:node1 3:node0 ");
    text_clear(&seen);
    clear_story(&story);
    job_chronicle_free(job);
}

static void count(void *context, const struct chronicle_entry *entry) {
    int64_t *last = context;
    assert_int_equal(entry->seq, *last + 1);
    *last = entry->seq;
}

TEST(of_very_many_entries_the_last_are_kept_and_all_count) {
    struct job_chronicle *job = job_chronicle_new();
    struct chronicle_status status;
    struct story story = {0};
    const int number = (int)JOB_CHRONICLE_ENTRIES_MAXIMUM + 100;
    for (int i = 0; i < number; i++) {
        struct chronicle_entry *failed = add(&story, 0, i, CHRONICLE_WORKER_FAILED);
        chronicle_entry_add(failed, CHRONICLE_RANK, i);
        assert_true(tell(job, &story.told[0], i));
        clear_story(&story);
        story.count = 0;
    }
    int64_t last = 100;
    job_chronicle_each_after(job, 0, count, &last);
    assert_int_equal(last, number);
    job_chronicle_write_status(job, at(number), &status);
    assert_int_equal(status.recoveries_before + status.recovery_count, number);
    chronicle_status_clear(&status);
    job_chronicle_free(job);
}

/* Anybody may tell that can write to the store. */
TEST(a_flood_within_a_moment_takes_little_memory) {
    struct job_chronicle *job = job_chronicle_new();
    struct story story = {0};
    char words[CHRONICLE_TEXT_MAXIMUM];
    size_t before = mallinfo2().uordblks;
    memset(words, 'a', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    struct chronicle_entry *failed = add(&story, 0, 0, CHRONICLE_WORKER_FAILED);
    chronicle_entry_add_text(failed, CHRONICLE_TEXT, words);
    for (int i = 0; i < 100000; i++) {
        failed->seq = i + 1;
        assert_true(tell(job, &story.told[0], 0));
    }
    assert_true(mallinfo2().uordblks - before < (size_t)40 * 1024 * 1024);
    clear_story(&story);
    job_chronicle_free(job);
}

/* The first two starts of the story are over, and settled: the next host hears of the failure only.
 */
static void tell_from(struct job_chronicle *job, const struct story *story, size_t first) {
    for (size_t i = first; i < story->count; i++) {
        assert_true(tell(job, &story->told[i], 20000));
    }
}

static void assert_same(struct job_chronicle *left, struct job_chronicle *right, int64_t now) {
    struct chronicle_status one;
    struct chronicle_status other;
    job_chronicle_write_status(left, at(now), &one);
    job_chronicle_write_status(right, at(now), &other);
    assert_int_equal(one.state, other.state);
    assert_int_equal(one.began.nanoseconds, other.began.nanoseconds);
    assert_memory_equal(&one.account, &other.account, sizeof one.account);
    assert_int_equal(one.recovery_count, other.recovery_count);
    assert_int_equal(one.recoveries_before, other.recoveries_before);
    for (size_t i = 0; i < one.recovery_count; i++) {
        assert_int_equal(one.recoveries[i].round, other.recoveries[i].round);
        assert_int_equal(one.recoveries[i].rank, other.recoveries[i].rank);
        for (int moment = 0; moment < RECOVERY_MOMENT_COUNT; moment++) {
            assert_int_equal(one.recoveries[i].moments[moment].nanoseconds,
                other.recoveries[i].moments[moment].nanoseconds);
        }
    }
    chronicle_status_clear(&one);
    chronicle_status_clear(&other);
}

TEST(next_host_goes_on_with_the_account_and_the_recoveries_of_the_one_before) {
    static const int order[NODES] = {0, 1, 2};
    struct job_chronicle *before = job_chronicle_new();
    struct job_chronicle *after = job_chronicle_new();
    struct chronicle_past past;
    struct chronicle_status status;
    struct story story;
    write_story(&story);
    tell_by_node(before, &story, order);
    job_chronicle_write_past(before, at(15000), &past);
    assert_int_equal(past.until.nanoseconds, at(7224).nanoseconds);
    assert_int_equal(past.recovery_number, 1);
    job_chronicle_inherit(after, &past);
    tell_from(after, &story, 12); /* it hears of the failure, and not of the start */
    assert_same(before, after, 30000);
    job_chronicle_write_status(after, at(30000), &status);
    assert_true(status.has_past);
    assert_int_equal(status.host_changed.nanoseconds, at(7224).nanoseconds);
    assert_int_equal(status.nodes[chronicle_status_find(&status, "node1")].failed_first, 1);
    chronicle_status_clear(&status);
    chronicle_past_clear(&past);
    clear_story(&story);
    job_chronicle_free(before);
    job_chronicle_free(after);
}

TEST(next_host_counts_what_came_after_the_one_before_and_a_look_changes_nothing) {
    static const int order[NODES] = {0, 1, 2};
    struct job_chronicle *before = job_chronicle_new();
    struct job_chronicle *after = job_chronicle_new();
    struct chronicle_past past;
    struct story story;
    write_story(&story);
    tell_by_node(before, &story, order);
    job_chronicle_write_past(before, at(15000), &past);
    job_chronicle_inherit(after, &past);
    for (int look = 0; look < 2; look++) {
        struct chronicle_status status = settled(after, 20000);
        assert_int_equal(status.state, JOB_RUNNING);
        assert_int_equal(chronicle_status_wall(&status).nanoseconds,
            15000 * (int64_t)NANOSECONDS_PER_MILLISECOND);
        assert_int_equal(status.tally.by_cause[CHRONICLE_CAUSE_WORKER_FAILED], 0);
    }
    tell_from(after, &story, 12);
    assert_same(before, after, 30000);
    for (int look = 0; look < 2; look++) {
        struct chronicle_status status = settled(after, 30000);
        assert_int_equal(chronicle_status_wall(&status).nanoseconds,
            25000 * (int64_t)NANOSECONDS_PER_MILLISECOND);
        assert_int_equal(status.tally.by_cause[CHRONICLE_CAUSE_WORKER_FAILED], 0);
    }
    chronicle_past_clear(&past);
    clear_story(&story);
    job_chronicle_free(before);
    job_chronicle_free(after);
}

TEST(host_that_hears_of_nothing_but_the_account_goes_on_from_there) {
    static const int order[NODES] = {0, 1, 2};
    struct job_chronicle *before = job_chronicle_new();
    struct job_chronicle *after = job_chronicle_new();
    struct chronicle_past past;
    struct chronicle_status status;
    struct story story;
    write_story(&story);
    tell_by_node(before, &story, order);
    job_chronicle_write_past(before, at(15000), &past);
    job_chronicle_inherit(after, &past);
    job_chronicle_write_status(after, at(16000), &status);
    assert_int_equal(status.state, JOB_RUNNING);
    assert_int_equal(
        chronicle_status_wall(&status).nanoseconds, 16000 * (int64_t)NANOSECONDS_PER_MILLISECOND);
    assert_int_equal(status.recovery_count, 1);
    chronicle_status_clear(&status);
    chronicle_past_clear(&past);
    clear_story(&story);
    job_chronicle_free(before);
    job_chronicle_free(after);
}

TEST(of_two_accounts_the_later_one_counts_and_of_recoveries_those_that_reach_further) {
    struct chronicle_recovery recovery = {.round = 4, .rank = -1};
    struct chronicle_past with = {.until = at(10), .recovery_number = 1, .last_round = 4};
    struct chronicle_past later = {.until = at(20), .recovery_number = 2, .last_round = 5};
    with.recoveries = memory_duplicate(&recovery, sizeof recovery);
    with.recovery_count = 1;
    chronicle_past_join(&with, &later);
    assert_int_equal(with.until.nanoseconds, at(20).nanoseconds);
    assert_int_equal(with.recovery_number, 2);
    assert_int_equal(with.recovery_count, 1);
    chronicle_past_clear(&with);
}

TEST(a_clock_that_differs_is_told_by_the_telling_that_took_the_least_time) {
    struct job_chronicle *job = job_chronicle_new();
    struct chronicle_status status;
    struct story story;
    write_story(&story);
    for (size_t i = 0; i < story.count; i++) {
        assert_true(tell(job, &story.told[i], 7600));
    }
    job_chronicle_note_clock(job, "node0", at(0), duration_from_seconds(-40));
    job_chronicle_note_clock(job, "node0", at(0), duration_from_milliseconds(-20));
    job_chronicle_note_clock(job, "node1", at(0), duration_from_seconds(-9));
    job_chronicle_note_clock(job, "node2", at(0), duration_from_seconds(600));
    job_chronicle_write_status(job, at(8000), &status);
    static const int64_t seconds[NODES] = {0, -9, 600};
    for (int node = 0; node < NODES; node++) {
        int place = chronicle_status_find(&status, name_of(node));
        assert_int_equal(status.nodes[place].clock_offset.nanoseconds,
            duration_from_seconds((double)seconds[node]).nanoseconds);
    }
    chronicle_status_clear(&status);
    clear_story(&story);
    job_chronicle_free(job);
}

TEST(who_is_not_in_the_next_world_is_lost_or_waits) {
    struct job_chronicle *job = job_chronicle_new();
    struct chronicle_status status;
    struct story story;
    write_story(&story);
    size_t told = story.count;
    for (size_t i = 0; i < told; i++) {
        assert_true(tell(job, &story.told[i], 7600));
    }
    (void)add(&story, 1, 9000, CHRONICLE_STOPPING);
    chronicle_entry_add_text(&story.told[story.count - 1].entry, CHRONICLE_CAUSE, "node_left");
    (void)add(&story, 1, 9010, CHRONICLE_STOPPED);
    struct chronicle_entry *world = add(&story, 0, 9100, CHRONICLE_WORLD);
    world->round = 2;
    chronicle_entry_add(world, CHRONICLE_NODES, 1);
    struct chronicle_entry *joined = add(&story, 0, 9100, CHRONICLE_JOINED);
    joined->round = 2;
    (void)add(&story, 0, 9200, CHRONICLE_STARTED);
    for (size_t i = told; i < story.count; i++) {
        assert_true(tell(job, &story.told[i], 9300));
    }
    job_chronicle_write_status(job, at(9400), &status);
    static const enum chronicle_node_state states[NODES] = {
        CHRONICLE_NODE_RUNNING, CHRONICLE_NODE_WAITING, CHRONICLE_NODE_MISSED};
    for (int node = 0; node < NODES; node++) {
        assert_int_equal(
            status.nodes[chronicle_status_find(&status, name_of(node))].state, states[node]);
    }
    assert_int_equal(status.state, JOB_RUNNING);
    assert_true(status.recoveries[status.recovery_count - 1].is_over);
    chronicle_status_clear(&status);
    clear_story(&story);
    job_chronicle_free(job);
}

TEST(who_failed_is_known_though_others_seem_to_have_stopped_before) {
    static const int order[NODES] = {0, 1, 2};
    struct job_chronicle *job = job_chronicle_new();
    struct chronicle_status status;
    struct story story;
    write_story(&story);
    for (size_t i = 0; i < story.count; i++) {
        story.told[i].entry.time.nanoseconds +=
            story.told[i].node == 1 ? 5 * (int64_t)NANOSECONDS_PER_MILLISECOND : 0;
    }
    tell_by_node(job, &story, order);
    job_chronicle_write_status(job, at(7700), &status);
    assert_int_equal(status.recovery_count, 1);
    assert_string_equal(status.recoveries[0].node, "node1");
    assert_int_equal(status.recoveries[0].rank, 3);
    assert_int_equal(status.recoveries[0].exit, 7);
    assert_int_equal(status.recoveries[0].cause, CHRONICLE_CAUSE_WORKER_FAILED);
    for (size_t i = 0; i < status.known_nodes; i++) {
        bool is_culprit = strcmp(status.nodes[i].name, "node1") == 0;
        assert_int_equal(status.nodes[i].failed_first, is_culprit ? 1 : 0);
    }
    chronicle_status_clear(&status);
    clear_story(&story);
    job_chronicle_free(job);
}

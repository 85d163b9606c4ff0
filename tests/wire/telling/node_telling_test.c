/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "base/memory.h"
#include "wire/telling/chronicle_json.h"
#include "wire/telling/node_telling.h"
#include "wire/telling/status_json.h"

#define SECOND ((int64_t)NANOSECONDS_PER_SECOND)

/* What a telling may have at a recovery, by the design. */
#define RECOVERY_MAXIMUM 352

static struct node_telling telling_of(const char *node) {
    return (struct node_telling){.node = memory_duplicate_string(node),
        .life = {1700000000 * SECOND},
        .said = {1700000100 * SECOND}};
}

static struct chronicle_entry entry_of(int64_t seq, int64_t age, enum chronicle_kind kind) {
    struct chronicle_entry entry = {.seq = seq,
        .time = {1700000100 * SECOND - age},
        .kind = kind,
        .severity = CHRONICLE_WARNING,
        .round = 4,
        .has_round = true};
    chronicle_entry_set_node(&entry, "gpu-n052");
    return entry;
}

static void collect(
    void *context, const struct node_telling *telling, const struct chronicle_entry *entry) {
    (void)telling;
    chronicle_json_write_entry(entry, context);
}

static enum failure_code read(const struct bytes *bytes, struct text *out) {
    struct node_telling telling;
    enum failure_code code = node_telling_read(
        bytes_slice(bytes), (struct wall_time){1800000000 * SECOND}, &telling, collect, out);
    node_telling_clear(&telling);
    return code;
}

static void add(struct bytes *bytes, struct chronicle_entry *entry_taken) {
    struct node_telling telling = telling_of("gpu-n052");
    if (bytes->length == 0) {
        node_telling_begin(&telling, bytes);
    }
    assert_true(node_telling_add(&telling, entry_taken, bytes));
    chronicle_entry_clear(entry_taken);
    node_telling_clear(&telling);
}

TEST(entries_come_as_they_were_told_dated_by_the_host) {
    struct bytes bytes = {0};
    struct text read_text = {0};
    struct chronicle_entry failed = entry_of(12, 1500000, CHRONICLE_WORKER_FAILED);
    chronicle_entry_add(&failed, CHRONICLE_RANK, 417);
    chronicle_entry_add(&failed, CHRONICLE_PID, INT64_C(1) << 40);
    chronicle_entry_add(&failed, CHRONICLE_SIGNAL, 11);
    chronicle_entry_add(&failed, CHRONICLE_FIRST, 1);
    chronicle_entry_add_text(&failed, CHRONICLE_TEXT, "no \"memory\"");
    struct chronicle_entry lost = entry_of(13, 2 * SECOND, CHRONICLE_NODE_LOST);
    chronicle_entry_set_node(&lost, "gpu-n7");
    chronicle_entry_add(&lost, CHRONICLE_SILENCE, 3500000000);
    struct chronicle_entry rate = entry_of(14, -5, CHRONICLE_PROGRESS);
    rate.has_round = false;
    chronicle_entry_add_rate(&rate, CHRONICLE_RATE, 2.5);
    add(&bytes, &failed);
    add(&bytes, &lost);
    add(&bytes, &rate);
    assert_int_equal(read(&bytes, &read_text), FAILURE_NONE);
    assert_string_equal(text_string(&read_text),
        "{\"schema\":\"muster.event/"
        "1\",\"seq\":12,\"time\":1799999999.998500,\"node\":\"gpu-n052\","
        "\"kind\":\"worker_failed\",\"severity\":\"warning\",\"round\":4,\"rank\":417,\"pid\":"
        "1099511627776,\"signal\":11,\"first\":true,\"text\":\"no \\\"memory\\\"\"}\n"
        "{\"schema\":\"muster.event/1\",\"seq\":13,\"time\":1799999998.000000,\"node\":\"gpu-n7\","
        "\"kind\":\"node_lost\",\"severity\":\"warning\",\"round\":4,\"silence\":3.500000}\n"
        "{\"schema\":\"muster.event/"
        "1\",\"seq\":14,\"time\":1800000000.000000,\"node\":\"gpu-n052\","
        "\"kind\":\"progress\",\"severity\":\"warning\",\"rate\":2.5}\n");
    text_clear(&read_text);
    bytes_clear(&bytes);
}

TEST(recovery_of_a_node_is_told_in_few_bytes) {
    static const char why[] = "rank 12345 (local_rank 5) on gpu-n052.cluster.example failed: "
                              "exit code 1";
    struct bytes bytes = {0};
    struct chronicle_entry stopping = entry_of(1001, SECOND, CHRONICLE_STOPPING);
    chronicle_entry_add_text(&stopping, CHRONICLE_REASON, why);
    chronicle_entry_add_text(&stopping, CHRONICLE_CAUSE, "worker_failed");
    struct chronicle_entry stopped = entry_of(1002, SECOND, CHRONICLE_STOPPED);
    chronicle_entry_add(&stopped, CHRONICLE_LAST, 79999);
    struct chronicle_entry world = entry_of(1003, SECOND, CHRONICLE_WORLD);
    chronicle_entry_add(&world, CHRONICLE_NODES, 10000);
    chronicle_entry_add(&world, CHRONICLE_WORKERS, 80000);
    chronicle_entry_add_text(&world, CHRONICLE_REASON, why);
    chronicle_entry_add(&world, CHRONICLE_CHARGED, 1);
    chronicle_entry_add(&world, CHRONICLE_USED, 300);
    chronicle_entry_add(&world, CHRONICLE_MAX, 1000);
    struct chronicle_entry joined = entry_of(1004, SECOND, CHRONICLE_JOINED);
    chronicle_entry_add(&joined, CHRONICLE_RANK, 9999);
    chronicle_entry_add(&joined, CHRONICLE_FIRST_RANK, 79992);
    chronicle_entry_add(&joined, CHRONICLE_WORKERS, 8);
    chronicle_entry_add_text(&joined, CHRONICLE_VERSION, "0.10.0");
    struct chronicle_entry restart = entry_of(1005, SECOND, CHRONICLE_RESTART);
    chronicle_entry_add(&restart, CHRONICLE_USED, 300);
    chronicle_entry_add(&restart, CHRONICLE_MAX, 1000);
    chronicle_entry_add_text(&restart, CHRONICLE_CAUSE, "worker_failed");
    struct chronicle_entry started = entry_of(1006, SECOND, CHRONICLE_STARTED);
    chronicle_entry_add(&started, CHRONICLE_ATTEMPT, 300);
    chronicle_entry_add(&started, CHRONICLE_FROM_STANDBY, 8);
    add(&bytes, &stopping);
    add(&bytes, &stopped);
    add(&bytes, &world);
    add(&bytes, &joined);
    add(&bytes, &restart);
    add(&bytes, &started);
    assert_in_range(bytes.length, 100, RECOVERY_MAXIMUM);
    bytes_clear(&bytes);
}

TEST(kinds_and_fields_of_later_versions_are_passed_over) {
    /* An entry of kind 200; then a "stopped" with a field 900 of each shape, and one of its own. */
    static const uint8_t later[] = {1, 10, 20, 1, 'n',                           /* head */
        7, 200, 0, 1, 0, 0, 0, 99,                                               /* unknown */
        29, 8, 0, 2, 0, 5, 0, 0x8c, 0x15, 6, 0x8d, 0x15, 1, 2, 3, 4, 5, 6, 7, 8, /* 900 */
        0x8e, 0x15, 3, 'a', 'b', 'c', 60, 10, 60, 12};
    struct bytes bytes = {0};
    struct text seen = {0};
    assert_int_equal(bytes_append(&bytes, later, sizeof later), FAILURE_NONE);
    assert_int_equal(read(&bytes, &seen), FAILURE_NONE);
    assert_string_equal(text_string(&seen),
        "{\"schema\":\"muster.event/"
        "1\",\"seq\":2,\"time\":1800000000.000000,\"node\":\"n\",\"kind\":"
        "\"stopped\",\"severity\":\"info\",\"round\":4,\"last\":5}\n");
    text_clear(&seen);
    bytes_clear(&bytes);
}

TEST(nonsense_of_a_node_is_no_entry) {
    static const struct {
        size_t length;
        const uint8_t bytes[24];
    } nonsense[] = {
        {0, {0}},
        {1, {2}},
        {4, {1, 10, 20, 0}},                                            /* no name */
        {5, {1, 10, 20, 9, 'n'}},                                       /* cut */
        {13, {1, 10, 20, 1, 'n', 7, 8, 0, 0, 0, 0, 0, 0}},              /* its number is 0 */
        {13, {1, 10, 20, 1, 'n', 90, 8, 0, 1, 0, 0, 0, 0}},             /* longer than it is */
        {15, {1, 10, 20, 1, 'n', 9, 8, 0, 1, 0, 0, 0, 62, 0xff, 0xff}}, /* a cut text */
        {16, {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 1, 'n', 0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        struct bytes bytes = {0};
        struct text seen = {0};
        assert_int_equal(bytes_append(&bytes, nonsense[i].bytes, nonsense[i].length), FAILURE_NONE);
        assert_int_equal(read(&bytes, &seen), FAILURE_MALFORMED);
        assert_int_equal(seen.length, 0);
        bytes_clear(&bytes);
    }
}

TEST(very_old_entry_is_as_old_as_an_entry_can_be) {
    struct bytes bytes = {0};
    struct text seen = {0};
    static const uint8_t old[] = {
        1, 10, 20, 1, 'n', 13, 8, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0};
    assert_int_equal(bytes_append(&bytes, old, sizeof old), FAILURE_NONE);
    assert_int_equal(read(&bytes, &seen), FAILURE_NONE);
    assert_non_null(strstr(text_string(&seen), "\"time\":1483776000.000000"));
    text_clear(&seen);
    bytes_clear(&bytes);
}

TEST(questions_are_read_as_they_are_written) {
    struct job_question question = {
        .kind = JOB_QUESTION_EVENTS, .after = 88120, .name = "0123456789abcdef"};
    struct job_question again;
    struct text text = {0};
    job_question_write(&question, &text);
    assert_string_equal(text_string(&text), "ask/1 0123456789abcdef events 88120");
    assert_int_equal(
        job_question_read(slice_from_string(text_string(&text)), &again), FAILURE_NONE);
    assert_int_equal(again.kind, JOB_QUESTION_EVENTS);
    assert_int_equal(again.after, 88120);
    assert_string_equal(again.name, question.name);
    text_clear(&text);
    question.kind = JOB_QUESTION_CLOCK;
    job_question_write(&question, &text);
    assert_string_equal(text_string(&text), "ask/1 0123456789abcdef clock 0");
    assert_int_equal(
        job_question_read(slice_from_string(text_string(&text)), &again), FAILURE_NONE);
    assert_int_equal(again.kind, JOB_QUESTION_CLOCK);
    text_clear(&text);
    static const char *const none[] = {"", "ask/1 ", "ask/2 0123456789abcdef status 0",
        "ask/1 0123456789ABCDEF status 0", "ask/1 0123456789abcdef0 status 0",
        "ask/1 0123456789abcdef end 0", "ask/1 0123456789abcdef status",
        "ask/1 0123456789abcdef events -1"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(job_question_read(slice_from_string(none[i]), &again), FAILURE_MALFORMED);
    }
}

TEST(status_that_was_read_is_spelled_the_same_again) {
    struct chronicle_status status = {0};
    struct chronicle_status read_status;
    struct status_seen seen;
    struct text first = {0};
    struct text second = {0};
    static const enum chronicle_kind kinds[] = {CHRONICLE_WAITING, CHRONICLE_WORLD,
        CHRONICLE_JOINED, CHRONICLE_STARTED, CHRONICLE_WORKER_FAILED, CHRONICLE_STOPPING,
        CHRONICLE_STOPPED, CHRONICLE_WORLD, CHRONICLE_JOINED, CHRONICLE_STARTED};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct chronicle_entry entry = entry_of((int64_t)i, (int64_t)(50 - i) * SECOND, kinds[i]);
        if (entry.kind == CHRONICLE_WORLD) {
            chronicle_entry_add(&entry, CHRONICLE_NODES, 1);
            chronicle_entry_add(&entry, CHRONICLE_WORKERS, 8);
            chronicle_entry_add(&entry, CHRONICLE_USED, i > 4);
            chronicle_entry_add(&entry, CHRONICLE_MAX, 3);
            chronicle_entry_add(&entry, CHRONICLE_CHARGED, i > 4);
        } else if (entry.kind == CHRONICLE_STOPPING) {
            chronicle_entry_add_text(&entry, CHRONICLE_CAUSE, "worker_failed");
        } else if (entry.kind == CHRONICLE_JOINED) {
            chronicle_entry_add(&entry, CHRONICLE_RANK, 0);
        } else if (entry.kind == CHRONICLE_WORKER_FAILED) {
            chronicle_entry_add(&entry, CHRONICLE_RANK, 3);
            chronicle_entry_add(&entry, CHRONICLE_SIGNAL, 9);
        }
        chronicle_status_take(&status, &entry);
        chronicle_entry_clear(&entry);
    }
    const struct chronicle_view view = {
        .run_id = "job", .log_dir = "/logs", .host = "gpu-n052", .has_nodes = true};
    chronicle_json_write_status(&status, &view, &first);
    assert_int_equal(status_json_read(slice_from_string(text_string(&first)), &read_status, &seen),
        FAILURE_NONE);
    assert_string_equal(seen.host, "gpu-n052");
    assert_true(seen.is_complete);
    assert_true(read_status.recoveries[0].is_over);
    chronicle_json_write_status(&read_status, &view, &second);
    assert_string_equal(text_string(&first), text_string(&second));
    chronicle_status_clear(&status);
    chronicle_status_clear(&read_status);
    status_seen_clear(&seen);
    text_clear(&first);
    text_clear(&second);
}

static struct chronicle_past past_of(size_t recoveries) {
    struct chronicle_past past = {.began = {1700000000 * SECOND},
        .until = {(1700000000 + 30 * 24 * 3600) * SECOND},
        .state = JOB_TRAINING,
        .largest_worker_count = 80000,
        .recovery_number = recoveries + 200,
        .last_round = recoveries > 0 ? (int64_t)recoveries + 200 : -1};
    past.account.states[JOB_TRAINING].nanoseconds = 29 * 24 * 3600 * SECOND;
    past.account.states[JOB_STARTING].nanoseconds = 3600 * SECOND;
    past.account.states[JOB_WAITING].nanoseconds = 22 * 3600 * SECOND + 1000;
    past.account.states[JOB_RECOVERING].nanoseconds = 3600 * SECOND - 1000;
    past.account.recovering[CHRONICLE_CAUSE_WORKER_FAILED].nanoseconds = 3600 * SECOND - 1000;
    past.account.redone.nanoseconds = 1200 * SECOND;
    past.account.knows_redone = true;
    past.account.worker_seconds = 1e11;
    past.recovery_count = recoveries;
    past.recoveries = recoveries > 0 ? memory_allocate(recoveries * sizeof *past.recoveries) : NULL;
    for (size_t i = 0; i < recoveries; i++) {
        struct chronicle_recovery *recovery = &past.recoveries[i];
        *recovery = (struct chronicle_recovery){.cause = CHRONICLE_CAUSE_WORKER_FAILED,
            .round = (int64_t)i + 201,
            .rank = 417,
            .exit = i % 2 == 0 ? 1 : -9,
            .redone_steps = 41,
            .is_over = true,
            .is_charged = true,
            .node = memory_duplicate_string("gpu-n052"),
            .what = memory_duplicate_string("torch.OutOfMemoryError: CUDA out of memory")};
        for (int moment = 0; moment < RECOVERY_MOMENT_COUNT; moment++) {
            recovery->moments[moment].nanoseconds =
                past.began.nanoseconds + (int64_t)(i + 1) * 3600 * SECOND + moment * SECOND;
            recovery->last[moment] =
                moment > RECOVERY_NOTICED ? memory_duplicate_string("gpu-n005") : NULL;
        }
    }
    return past;
}

static void assert_past(
    const struct chronicle_past *left, const struct chronicle_past *right, int64_t shift) {
    assert_int_equal(left->until.nanoseconds, right->until.nanoseconds + shift);
    assert_int_equal(left->began.nanoseconds, right->began.nanoseconds + shift);
    assert_memory_equal(&left->account, &right->account, sizeof left->account);
    assert_int_equal(left->state, right->state);
    assert_int_equal(left->recovery_number, right->recovery_number);
    assert_int_equal(left->last_round, right->last_round);
    assert_int_equal(left->recovery_count, right->recovery_count);
    for (size_t i = 0; i < left->recovery_count; i++) {
        const struct chronicle_recovery *one = &left->recoveries[i];
        const struct chronicle_recovery *other = &right->recoveries[i];
        assert_int_equal(one->round, other->round);
        assert_int_equal(one->exit, other->exit);
        assert_string_equal(one->what, other->what);
        for (int moment = 0; moment < RECOVERY_MOMENT_COUNT; moment++) {
            assert_int_equal(
                one->moments[moment].nanoseconds, other->moments[moment].nanoseconds + shift);
        }
        assert_string_equal(one->last[RECOVERY_STARTED], "gpu-n005");
    }
}

/* A node whose clock is ten minutes behind, which has joined the same round at the same moment. */
TEST(past_is_read_by_the_clock_of_who_reads_it) {
    struct chronicle_past past = past_of(3);
    struct past_anchor told = {7, {1703000000 * SECOND}};
    struct past_anchor here = {7, {(1703000000 - 600) * SECOND}};
    struct past_anchor other = {8, here.at};
    struct chronicle_past read;
    struct wall_time theirs;
    struct bytes bytes = {0};
    node_telling_write_past(&past, &told, true, &bytes);
    assert_int_equal(
        node_telling_read_past(bytes_slice(&bytes), &here, &read, &theirs), FAILURE_NONE);
    assert_int_equal(theirs.nanoseconds, told.at.nanoseconds);
    assert_past(&read, &past, -600 * SECOND);
    chronicle_past_clear(&read);
    assert_int_equal(
        node_telling_read_past(bytes_slice(&bytes), &other, &read, &theirs), FAILURE_MISSING);
    for (size_t length = 1; length < bytes.length; length++) {
        enum failure_code code =
            node_telling_read_past((struct slice){bytes.data, length}, &here, &read, &theirs);
        if (code == FAILURE_NONE) {
            assert_int_equal(read.until.nanoseconds, 0); /* the head alone is one */
        }
    }
    bytes_clear(&bytes);
    chronicle_past_clear(&past);
}

TEST(an_account_is_told_in_few_bytes_and_so_is_a_recovery) {
    struct chronicle_past past = past_of(CHRONICLE_PAST_RECOVERIES_MAXIMUM);
    struct past_anchor told = {7, {1703000000 * SECOND}};
    struct bytes account = {0};
    struct bytes bytes = {0};
    node_telling_write_past(&past, &told, false, &account);
    node_telling_write_past(&past, &told, true, &bytes);
    assert_true(account.length <= 96);
    assert_true((bytes.length - account.length) / CHRONICLE_PAST_RECOVERIES_MAXIMUM <= 200);
    bytes_clear(&account);
    bytes_clear(&bytes);
    chronicle_past_clear(&past);
}

TEST(past_that_does_not_add_up_is_none) {
    struct chronicle_past past = past_of(0);
    struct past_anchor told = {-1, {1703000000 * SECOND}};
    struct chronicle_past read;
    struct wall_time theirs;
    struct bytes bytes = {0};
    past.account.states[JOB_TRAINING].nanoseconds += SECOND;
    node_telling_write_past(&past, &told, false, &bytes);
    assert_int_equal(
        node_telling_read_past(bytes_slice(&bytes), &told, &read, &theirs), FAILURE_MALFORMED);
    bytes_clear(&bytes);
}

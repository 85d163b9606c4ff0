/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as what nodes push to the host of a job's store, one item behind its length
 * after the other: tellings and questions. What is accepted has the limits of a chronicle's entry,
 * and the whole job's chronicle takes it; its account adds up. */
#include <string.h>

#include "core/telling/job_chronicle.h"
#include "fuzz_input.h"
#include "wire/telling/chronicle_json.h"
#include "wire/telling/node_telling.h"
#include "wire/telling/status_json.h"

#define NOW_SECONDS INT64_C(1800000000)

static const struct wall_time now = {NOW_SECONDS * NANOSECONDS_PER_SECOND};

static void take(
    void *context, const struct node_telling *telling, const struct chronicle_entry *entry) {
    struct text line = {0};
    struct chronicle_entry again;
    FUZZ_REQUIRE(entry->time.nanoseconds <= now.nanoseconds);
    chronicle_json_write_entry(entry, &line);
    FUZZ_REQUIRE(line.length <= CHRONICLE_LINE_MAXIMUM);
    FUZZ_REQUIRE(strcspn(text_string(&line), "\n\x1b\x7f") == line.length - 1);
    FUZZ_REQUIRE(
        chronicle_json_read_entry(slice_from_string(text_string(&line)), &again) == FAILURE_NONE);
    chronicle_entry_clear(&again);
    text_clear(&line);
    (void)job_chronicle_take(context, telling->node, telling->life, entry, now);
}

static void take_item(struct job_chronicle *job, struct slice item) {
    const struct past_anchor anchor = {-1, now};
    struct node_telling telling;
    struct job_question question;
    struct chronicle_past past;
    struct wall_time theirs;
    if (node_telling_read_past(item, &anchor, &past, &theirs) == FAILURE_NONE) {
        struct bytes again = {0};
        struct chronicle_past read;
        node_telling_write_past(&past, &anchor, true, &again);
        FUZZ_REQUIRE(
            node_telling_read_past(bytes_slice(&again), &anchor, &read, &theirs) == FAILURE_NONE);
        FUZZ_REQUIRE(read.until.nanoseconds == past.until.nanoseconds);
        FUZZ_REQUIRE(read.recovery_count == past.recovery_count);
        job_chronicle_inherit(job, &past);
        chronicle_past_clear(&read);
        chronicle_past_clear(&past);
        bytes_clear(&again);
        return;
    }
    enum failure_code code = node_telling_read(item, now, &telling, take, job);
    FUZZ_REQUIRE(code == FAILURE_NONE || code == FAILURE_MALFORMED);
    node_telling_clear(&telling);
    if (job_question_read(item, &question) == FAILURE_NONE) {
        struct text text = {0};
        FUZZ_REQUIRE(strlen(question.name) == JOB_QUESTION_NAME_SIZE - 1);
        job_question_write(&question, &text);
        FUZZ_REQUIRE(text.length <= 128);
        text_clear(&text);
    }
}

static void check_settled(void *context, const struct chronicle_status *settled) {
    (void)context;
    uint64_t recoveries = 0;
    int64_t sum = 0;
    for (int cause = 0; cause < CHRONICLE_CAUSE_COUNT; cause++) {
        recoveries += settled->tally.by_cause[cause];
    }
    for (int state = 0; state < JOB_ENDED; state++) {
        sum += settled->account.states[state].nanoseconds;
    }
    FUZZ_REQUIRE(recoveries == settled->tally.phases[RECOVERY_FAILED].count);
    FUZZ_REQUIRE(recoveries <= settled->recoveries_before + settled->recovery_count);
    FUZZ_REQUIRE(sum == chronicle_status_wall(settled).nanoseconds);
}

static void check_status(struct job_chronicle *job) {
    struct chronicle_status status;
    struct chronicle_status again;
    struct status_seen seen;
    struct text text = {0};
    int64_t sum = 0;
    job_chronicle_write_status(job, now, &status);
    for (int state = 0; state < JOB_ENDED; state++) {
        sum += status.account.states[state].nanoseconds;
    }
    FUZZ_REQUIRE(sum == chronicle_status_wall(&status).nanoseconds);
    chronicle_json_write_status(
        &status, &(struct chronicle_view){.host = "host", .has_nodes = true}, &text);
    FUZZ_REQUIRE(
        status_json_read(slice_from_string(text_string(&text)), &again, &seen) == FAILURE_NONE);
    FUZZ_REQUIRE(again.known_nodes == status.known_nodes);
    FUZZ_REQUIRE(again.recovery_count == status.recovery_count);
    status_seen_clear(&seen);
    chronicle_status_clear(&again);
    chronicle_status_clear(&status);
    text_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice rest = {data, size};
    struct job_chronicle *job = job_chronicle_new();
    while (rest.length >= 2) {
        size_t length = (size_t)rest.data[0] << 8 | rest.data[1];
        rest = slice_from(rest, 2);
        length = length < rest.length ? length : rest.length;
        take_item(job, (struct slice){rest.data, length});
        rest = slice_from(rest, length);
    }
    job_chronicle_see_settled(job, now, check_settled, NULL);
    check_status(job);
    job_chronicle_free(job);
    return 0;
}

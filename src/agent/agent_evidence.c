/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_evidence.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/hang_summary.h"
#include "host/hang_evidence_collector.h"

/* Lines on the console for one order; a node may have thousands of workers. */
#define MAXIMUM_LINES 32
/* Orders under way at a time, each with threads of its own; who comes later is not looked at. */
#define MAXIMUM_GATHERINGS 64

/* One order under way. */
struct gathering {
    struct agent_evidence *evidence;
    struct gathering *next;
    struct hang_evidence_collection *collection;
    struct agent_evidence_subject *subjects;
    char **paths; /* of the reports, NULL where there is none */
    size_t count;
    void (*done)(void *context);
    void *context;
};

struct agent_evidence {
    struct agent_evidence_settings settings;
    struct event_loop *loop;
    struct gathering *gatherings;
    size_t gathering_count;
};

static void free_gathering(struct gathering *gathering) {
    hang_evidence_collection_free(gathering->collection);
    for (size_t i = 0; i < gathering->count; i++) {
        free(gathering->paths[i]);
    }
    free(gathering->paths);
    free(gathering->subjects);
    free(gathering);
}

/* Telling. */

static void tell(const struct gathering *gathering, size_t index,
    const struct hang_evidence_result *result, bool is_shown) {
    const struct agent_evidence_settings *settings = &gathering->evidence->settings;
    const struct agent_evidence_subject *subject = &gathering->subjects[index];
    const char *path = gathering->paths[index];
    struct text words = {0};
    if (result->is_finished) {
        hang_summary_append(&result->summary, &words);
    } else {
        text_append_format(&words, "not to be looked at within %.1f s",
            duration_seconds(settings->config->evidence_timeout));
    }
    if (path != NULL) {
        text_append_format(&words, "; see %s", path);
    }
    if (is_shown) {
        log_warning(settings->log, "evidence: process %lld (local_rank %d) is %s",
            (long long)subject->pid, subject->local_rank, text_string(&words));
    }
    if (agent_workers_pid(settings->workers, subject->local_rank) == subject->pid) {
        agent_workers_note_hang(settings->workers, subject->local_rank, text_string(&words));
    }
    text_clear(&words);
}

static void gathered(void *context, const struct hang_evidence_result *results, size_t count) {
    struct gathering *gathering = context;
    const struct log *log = gathering->evidence->settings.log;
    for (size_t i = 0; i < count; i++) {
        tell(gathering, i, &results[i], i < MAXIMUM_LINES);
    }
    if (count > MAXIMUM_LINES) {
        log_warning(
            log, "evidence: %zu more processes are not told of here", count - MAXIMUM_LINES);
    }
    struct gathering **link = &gathering->evidence->gatherings;
    while (*link != gathering) {
        link = &(*link)->next;
    }
    *link = gathering->next;
    gathering->evidence->gathering_count--;
    void (*done)(void *context) = gathering->done;
    void *done_context = gathering->context;
    free_gathering(gathering);
    if (done != NULL) {
        done(done_context);
    }
}

/* Gathering. */

static struct gathering *gathering_new(
    struct agent_evidence *evidence, const struct agent_evidence_order *order) {
    const struct agent_workers *workers = evidence->settings.workers;
    struct gathering *gathering = memory_allocate(sizeof *gathering);
    gathering->evidence = evidence;
    gathering->count = order->count;
    gathering->done = order->done;
    gathering->context = order->context;
    gathering->subjects = memory_duplicate(order->subjects, order->count * sizeof *order->subjects);
    gathering->paths = memory_allocate(order->count * sizeof *gathering->paths);
    for (size_t i = 0; i < order->count; i++) {
        gathering->paths[i] =
            agent_workers_log_file(workers, order->subjects[i].local_rank, LOG_TREE_HANG_EVIDENCE);
    }
    return gathering;
}

static enum failure_code start_gathering(
    struct gathering *gathering, const char *reason, struct failure *failure) {
    const struct agent_evidence_settings *settings = &gathering->evidence->settings;
    struct hang_evidence_request *requests = memory_allocate(gathering->count * sizeof *requests);
    struct text_list outputs = {0};
    for (size_t i = 0; i < gathering->count; i++) {
        int local_rank = gathering->subjects[i].local_rank;
        char *output = agent_workers_log_file(settings->workers, local_rank, LOG_TREE_STDOUT);
        char *errors = agent_workers_log_file(settings->workers, local_rank, LOG_TREE_STDERR);
        requests[i] = (struct hang_evidence_request){
            .pid = gathering->subjects[i].pid,
            .reason = reason,
            .is_full = settings->config->evidence == LAUNCH_EVIDENCE_FULL,
            .path = gathering->paths[i],
            .outputs = {output, errors},
        };
        if (output != NULL && errors != NULL) {
            text_list_add_taken(&outputs, output);
            text_list_add_taken(&outputs, errors);
        }
    }
    const struct hang_evidence_order order = {
        requests, gathering->count, settings->config->evidence_timeout, gathered, gathering};
    enum failure_code code = hang_evidence_collection_new(
        gathering->evidence->loop, &order, &gathering->collection, failure);
    text_list_clear(&outputs);
    free(requests);
    return code;
}

struct agent_evidence *agent_evidence_new(
    struct event_loop *loop, const struct agent_evidence_settings *settings) {
    if (settings->config->evidence == LAUNCH_EVIDENCE_OFF) {
        return NULL;
    }
    struct agent_evidence *evidence = memory_allocate(sizeof *evidence);
    evidence->settings = *settings;
    evidence->loop = loop;
    return evidence;
}

void agent_evidence_drop(struct agent_evidence *evidence) {
    while (evidence != NULL && evidence->gatherings != NULL) {
        struct gathering *gathering = evidence->gatherings;
        evidence->gatherings = gathering->next;
        evidence->gathering_count--;
        free_gathering(gathering);
    }
}

void agent_evidence_free(struct agent_evidence *evidence) {
    agent_evidence_drop(evidence);
    free(evidence);
}

void agent_evidence_gather(
    struct agent_evidence *evidence, const struct agent_evidence_order *order) {
    struct failure failure = {0};
    if (evidence != NULL && order->count > 0 && evidence->gathering_count < MAXIMUM_GATHERINGS) {
        struct gathering *gathering = gathering_new(evidence, order);
        if (start_gathering(gathering, order->reason, &failure) == FAILURE_NONE) {
            gathering->next = evidence->gatherings;
            evidence->gatherings = gathering;
            evidence->gathering_count++;
            return;
        }
        log_warning(evidence->settings.log, "no evidence is gathered: %s", failure.message);
        free_gathering(gathering);
    }
    if (order->done != NULL) {
        order->done(order->context);
    }
}

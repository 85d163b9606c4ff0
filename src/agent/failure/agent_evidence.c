/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/failure/agent_evidence.h"

#include <stdlib.h>
#include <string.h>

#include "agent/standby/agent_standby.h"
#include "base/memory.h"
#include "core/failure/failure_report.h"

/* Lines on the console for one order; a node may have thousands of workers. */
#define MAXIMUM_LINES 32

/* One process of an order. */
struct subject {
    struct gathering *gathering;
    struct agent_evidence_subject who;
    char *path; /* of the report, or NULL */
};

/* One order under way. */
struct gathering {
    struct agent_evidence *evidence;
    struct gathering *next;
    struct subject *subjects;
    size_t count;
    size_t answer_count;
    struct duration bound;
    void (*done)(void *context);
    void *context;
    void (*seen)(void *context, int local_rank, const struct hang_evidence_result *result);
};

struct agent_evidence {
    struct agent_evidence_settings settings;
    struct event_loop *loop;
    struct hang_evidence_collector *collector;
    struct gathering *gatherings;
};

static void free_gathering(struct gathering *gathering) {
    for (size_t i = 0; i < gathering->count; i++) {
        free(gathering->subjects[i].path);
    }
    free(gathering->subjects);
    free(gathering);
}

/* Telling. */

static void describe(
    const struct subject *subject, const struct hang_evidence_result *result, struct text *out) {
    double seconds = duration_seconds(subject->gathering->bound);
    if (result->is_complete || result->summary.state != '\0') {
        hang_summary_append(&result->summary, out);
    } else {
        text_append_format(out, "not to be looked at within %.1f s", seconds);
    }
    if (!result->is_complete && result->summary.state != '\0') {
        text_append_format(out, "; not everything was looked at within %.1f s", seconds);
    }
    if (subject->path != NULL && result->summary.file_error != 0) {
        text_append_format(
            out, "; %s is not whole: %s", subject->path, strerror(result->summary.file_error));
    } else if (subject->path != NULL) {
        text_append_format(out, "; see %s", subject->path);
    }
}

static void tell(
    const struct subject *subject, const struct hang_evidence_result *result, bool is_shown) {
    const struct agent_evidence_settings *settings = &subject->gathering->evidence->settings;
    int local_rank = subject->who.local_rank;
    struct text words = {0};
    describe(subject, result, &words);
    if (is_shown && local_rank >= 0) {
        log_warning(settings->log, "evidence: process %lld (local_rank %d) is %s",
            (long long)subject->who.pid, local_rank, text_string(&words));
    } else if (is_shown) {
        log_warning(settings->log, "evidence: process %lld (a worker's, left behind) is %s",
            (long long)subject->who.pid, text_string(&words));
    }
    if (local_rank >= 0 && agent_workers_pid(settings->workers, local_rank) == subject->who.pid) {
        agent_workers_note_hang(settings->workers, local_rank, text_string(&words));
    }
    text_clear(&words);
}

static void finish(struct gathering *gathering) {
    const struct log *log = gathering->evidence->settings.log;
    if (gathering->count > MAXIMUM_LINES && gathering->seen == NULL) {
        log_warning(log, "evidence: %zu more processes are not told of here",
            gathering->count - MAXIMUM_LINES);
    }
    struct gathering **link = &gathering->evidence->gatherings;
    while (*link != gathering) {
        link = &(*link)->next;
    }
    *link = gathering->next;
    void (*done)(void *context) = gathering->done;
    void *context = gathering->context;
    free_gathering(gathering);
    if (done != NULL) {
        done(context);
    }
}

static void looked_at(void *context, const struct hang_evidence_result *result) {
    const struct subject *subject = context;
    struct gathering *gathering = subject->gathering;
    gathering->answer_count++;
    if (gathering->seen != NULL) {
        gathering->seen(gathering->context, subject->who.local_rank, result);
    } else {
        tell(subject, result, gathering->answer_count <= MAXIMUM_LINES);
    }
    if (gathering->answer_count == gathering->count) {
        finish(gathering);
    }
}

/* Gathering. */

static struct gathering *gathering_new(
    struct agent_evidence *evidence, const struct agent_evidence_order *order) {
    struct gathering *gathering = memory_allocate(sizeof *gathering);
    gathering->evidence = evidence;
    gathering->subjects = memory_allocate(order->count * sizeof *gathering->subjects);
    gathering->bound = order->bound;
    gathering->done = order->done;
    gathering->context = order->context;
    gathering->seen = order->seen;
    gathering->next = evidence->gatherings;
    evidence->gatherings = gathering;
    return gathering;
}

static bool is_wanted(const struct agent_evidence *evidence) {
    return evidence->settings.config->evidence != LAUNCH_EVIDENCE_OFF;
}

static enum failure_code look(
    struct subject *subject, const char *reason, struct instant end, struct failure *failure) {
    struct agent_evidence *evidence = subject->gathering->evidence;
    const struct agent_workers *workers = evidence->settings.workers;
    int local_rank = subject->who.local_rank;
    char *output = agent_workers_log_file(workers, local_rank, LOG_TREE_STDOUT);
    char *errors = agent_workers_log_file(workers, local_rank, LOG_TREE_STDERR);
    struct hang_evidence_request request = {
        .pid = subject->who.pid,
        .reason = reason,
        .dump = agent_standby_dump(evidence->settings.standby, local_rank, subject->who.pid),
        .goes_on = subject->gathering->seen != NULL,
        .is_brief = !is_wanted(evidence),
        .is_full = evidence->settings.config->evidence == LAUNCH_EVIDENCE_FULL,
        .path = subject->path,
        .outputs = {output, errors},
        .end = end,
    };
    const struct hang_evidence_answer answer = {looked_at, subject};
    enum failure_code code =
        hang_evidence_collector_look(evidence->collector, &request, &answer, failure);
    free(output);
    free(errors);
    return code;
}

struct agent_evidence *agent_evidence_new(
    struct event_loop *loop, const struct agent_evidence_settings *settings) {
    struct failure failure;
    if (settings->config->evidence == LAUNCH_EVIDENCE_OFF && !settings->config->hang.is_wanted) {
        return NULL;
    }
    struct agent_evidence *evidence = memory_allocate(sizeof *evidence);
    evidence->settings = *settings;
    evidence->loop = loop;
    if (hang_evidence_collector_new(loop, &evidence->collector, &failure) != FAILURE_NONE) {
        log_warning(settings->log, "no evidence is gathered: %s", failure.message);
        free(evidence);
        return NULL;
    }
    return evidence;
}

void agent_evidence_drop(struct agent_evidence *evidence) {
    if (evidence == NULL) {
        return;
    }
    hang_evidence_collector_drop(evidence->collector);
    while (evidence->gatherings != NULL) {
        struct gathering *gathering = evidence->gatherings;
        evidence->gatherings = gathering->next;
        free_gathering(gathering);
    }
}

void agent_evidence_free(struct agent_evidence *evidence) {
    if (evidence != NULL) {
        agent_evidence_drop(evidence);
        hang_evidence_collector_free(evidence->collector);
        free(evidence);
    }
}

void agent_evidence_gather(
    struct agent_evidence *evidence, const struct agent_evidence_order *order) {
    if (evidence == NULL || order->count == 0 || (order->seen == NULL && !is_wanted(evidence))) {
        if (order->done != NULL) {
            order->done(order->context);
        }
        return;
    }
    struct instant end = instant_after(event_loop_now(evidence->loop), order->bound);
    struct gathering *gathering = gathering_new(evidence, order);
    for (size_t i = 0; i < order->count; i++) {
        struct subject *subject = &gathering->subjects[gathering->count];
        struct failure failure;
        int local_rank = order->subjects[i].local_rank;
        *subject = (struct subject){gathering, order->subjects[i],
            is_wanted(evidence) ? agent_workers_log_file(evidence->settings.workers, local_rank,
                                      LOG_TREE_HANG_EVIDENCE)
                                : NULL};
        gathering->count++;
        if (look(subject, order->reason, end, &failure) != FAILURE_NONE) {
            log_warning(evidence->settings.log, "evidence: process %lld is not looked at: %s",
                (long long)subject->who.pid, failure.message);
            free(subject->path);
            gathering->count--;
        }
    }
    if (gathering->count == 0) {
        finish(gathering);
    }
}

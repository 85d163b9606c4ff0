/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/failure/agent_evidence.h"

#include <stdlib.h>
#include <string.h>

#include "agent/standby/agent_standby.h"
#include "base/failure.h"
#include "base/memory.h"
#include "core/failure/failure_report.h"
#include "core/telling/folded_stacks.h"
#include "core/workers/worker_group.h"
#include "wire/telling/stacks_json.h"

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

/* Stuck watch. */

/* Whatever --monitor-interval says, the agent does not look more often than this. */
#define SHORTEST_INTERVAL_MILLISECONDS 10

struct agent_stuck_watch {
    struct agent_stuck_watch_settings settings;
    struct event_loop *loop;
    struct event_timer *timer;
    struct stuck_watch *watches; /* by local rank */
    bool is_watching;
};

static void set_timer(struct agent_stuck_watch *watch) {
    struct duration interval = watch->settings.config->monitor_interval;
    struct duration shortest = duration_from_milliseconds(SHORTEST_INTERVAL_MILLISECONDS);
    if (interval.nanoseconds < shortest.nanoseconds) {
        interval = shortest;
    }
    event_timer_set(watch->timer, instant_after(event_loop_now(watch->loop), interval));
}

static void look_at_worker(struct agent_stuck_watch *watch, int local_rank) {
    const struct agent_stuck_watch_settings *settings = &watch->settings;
    pid_t pid = agent_workers_pid(settings->workers, local_rank);
    struct kernel_process_stat stat;
    if (pid == 0 || agent_workers_find(settings->workers, pid) != local_rank ||
        !settings->read_process(pid, &stat)) {
        return;
    }
    struct duration timeout = settings->config->stuck_timeout;
    struct stuck_watch *worker = &watch->watches[local_rank];
    struct instant now = event_loop_now(watch->loop);
    switch (stuck_watch_see(worker, stat.state, now, timeout)) {
    case STUCK_NOTHING_NEW:
        break;
    case STUCK_BEGINS:
        log_warning(settings->log,
            "worker %lld (local_rank %d) is in uninterruptible sleep; the job fails if it stays "
            "there for %.1f s",
            (long long)pid, local_rank, duration_seconds(timeout));
        break;
    case STUCK_TIMED_OUT:
        settings->stuck(settings->context, local_rank, instant_until(worker->since, now));
        break;
    }
}

static void stuck_watch_look(void *context) {
    struct agent_stuck_watch *watch = context;
    for (int rank = 0; rank < watch->settings.worker_count && watch->is_watching; rank++) {
        look_at_worker(watch, rank);
    }
    if (watch->is_watching) {
        set_timer(watch);
    }
}

struct agent_stuck_watch *agent_stuck_watch_new(
    struct event_loop *loop, const struct agent_stuck_watch_settings *settings) {
    if (settings->config->stuck_timeout.nanoseconds == 0) {
        return NULL;
    }
    struct agent_stuck_watch *watch = memory_allocate(sizeof *watch);
    watch->settings = *settings;
    watch->loop = loop;
    watch->timer = event_timer_new(loop, stuck_watch_look, watch);
    watch->watches = memory_allocate((size_t)settings->worker_count * sizeof *watch->watches);
    return watch;
}

void agent_stuck_watch_free(struct agent_stuck_watch *watch) {
    if (watch != NULL) {
        event_timer_free(watch->timer);
        free(watch->watches);
        free(watch);
    }
}

void agent_stuck_watch_begin(struct agent_stuck_watch *watch) {
    if (watch != NULL) {
        memset(watch->watches, 0, (size_t)watch->settings.worker_count * sizeof *watch->watches);
        watch->is_watching = true;
        set_timer(watch);
    }
}

void agent_stuck_watch_end(struct agent_stuck_watch *watch) {
    if (watch != NULL) {
        watch->is_watching = false;
        event_timer_stop(watch->timer);
    }
}

/* Stacks. */

/* The socket answers as many at a time. */
#define QUESTIONS_MAXIMUM 8
/* For all workers together; an asker's own patience is longer. */
#define LOOK_SECONDS 5
#define PAUSE_SECONDS 1
#define ALL "/v1/stacks"
#define SOME "/v1/stacks?ranks="

struct question {
    uint64_t ticket;
    struct rank_ranges ranks;
};

/* A worker that is looked at. */
struct stacks_subject {
    struct agent_stacks *stacks;
    int rank;
};

struct agent_stacks {
    struct agent_stacks_settings settings;
    struct event_loop *loop;
    struct hang_evidence_collector *collector;    /* NULL until somebody asks */
    struct event_timer *timer;                    /* the next look begins */
    struct instant next;                          /* not before this */
    struct question questions[QUESTIONS_MAXIMUM]; /* the first one is being answered, if any is */
    size_t question_count;
    struct stacks_subject *subjects; /* NULL: nobody is looked at */
    size_t awaited;
    struct folded_stacks folded;
};

static void await_next(struct agent_stacks *stacks) {
    if (stacks->question_count > 0 && stacks->subjects == NULL) {
        event_timer_set(stacks->timer, stacks->next);
    }
}

/* Of a job with many workers that are all elsewhere the last stacks are left out. */
static void write_answer(struct folded_stacks *folded, struct text *out) {
    struct text body = {0};
    folded_stacks_sort(folded);
    for (size_t i = 0; i < folded->count; i++) {
        size_t start = body.length;
        stacks_json_write(&folded->items[i], &body);
        if (body.length > STACKS_ANSWER_MAXIMUM) {
            struct folded_stack bare = folded->items[i];
            bare.stack = NULL;
            bare.words = (char[]){"its stack is left out, since the answer would be too long"};
            body.length = start;
            stacks_json_write(&bare, &body);
        }
    }
    snapshot_answer_append("200 OK", (struct slice){(const uint8_t *)body.data, body.length}, out);
    text_clear(&body);
}

static void answer_first(struct agent_stacks *stacks) {
    struct text text = {0};
    uint64_t ticket = stacks->questions[0].ticket;
    write_answer(&stacks->folded, &text);
    folded_stacks_clear(&stacks->folded);
    free(stacks->subjects);
    stacks->subjects = NULL;
    stacks->question_count--;
    for (size_t i = 0; i < stacks->question_count; i++) {
        stacks->questions[i] = stacks->questions[i + 1];
    }
    stacks->settings.answer(stacks->settings.context, ticket, &text);
    await_next(stacks);
}

static void stacks_looked_at(void *context, const struct hang_evidence_result *result) {
    const struct stacks_subject *subject = context;
    struct agent_stacks *stacks = subject->stacks;
    struct text words = {0};
    if (!result->is_complete && result->summary.state == '\0') {
        text_append_format(&words, "not to be looked at within %d s", LOOK_SECONDS);
    } else {
        struct hang_summary bare = result->summary; /* its place is the stack's first line */
        bare.stack = NULL;
        hang_summary_append(&bare, &words);
    }
    folded_stacks_add(
        &stacks->folded, result->summary.stack, text_string(&words), false, subject->rank, 1);
    text_clear(&words);
    if (--stacks->awaited == 0) {
        answer_first(stacks);
    }
}

static void stacks_look(struct agent_stacks *stacks, int local_rank, struct instant end) {
    const struct agent_stacks_settings *settings = &stacks->settings;
    pid_t pid = agent_workers_pid(settings->workers, local_rank);
    int rank = settings->placement->ranks.base_rank + local_rank;
    struct failure failure = {0};
    if (!rank_ranges_have(&stacks->questions[0].ranks, rank) || pid <= 0) {
        return;
    }
    struct stacks_subject *subject = &stacks->subjects[stacks->awaited];
    *subject = (struct stacks_subject){stacks, rank};
    const struct hang_evidence_request request = {
        .pid = pid,
        .reason = "somebody asks",
        .is_brief = true,
        .dump = agent_standby_dump(settings->standby, local_rank, pid),
        .end = end,
    };
    const struct hang_evidence_answer answer = {stacks_looked_at, subject};
    if (hang_evidence_collector_look(stacks->collector, &request, &answer, &failure) ==
        FAILURE_NONE) {
        stacks->awaited++;
    } else {
        folded_stacks_add(&stacks->folded, NULL, failure.message, false, rank, 1);
    }
}

static void take_next(void *context) {
    struct agent_stacks *stacks = context;
    struct instant now = event_loop_now(stacks->loop);
    stacks->next = instant_after(now, duration_from_seconds(PAUSE_SECONDS));
    stacks->subjects =
        memory_allocate(((size_t)stacks->settings.worker_count + 1) * sizeof *stacks->subjects);
    stacks->awaited = 0;
    for (int i = 0; i < stacks->settings.worker_count; i++) {
        stacks_look(stacks, i, instant_after(now, duration_from_seconds(LOOK_SECONDS)));
    }
    if (stacks->awaited == 0) {
        answer_first(stacks);
    }
}

struct agent_stacks *agent_stacks_new(
    struct event_loop *loop, const struct agent_stacks_settings *settings) {
    struct agent_stacks *stacks = memory_allocate(sizeof *stacks);
    stacks->settings = *settings;
    stacks->loop = loop;
    stacks->timer = event_timer_new(loop, take_next, stacks);
    return stacks;
}

void agent_stacks_free(struct agent_stacks *stacks) {
    if (stacks == NULL) {
        return;
    }
    hang_evidence_collector_free(stacks->collector);
    event_timer_free(stacks->timer);
    folded_stacks_clear(&stacks->folded);
    free(stacks->subjects);
    free(stacks);
}

bool agent_stacks_are_meant(const char *path) {
    return text_equals(path, ALL) || text_starts_with(path, SOME);
}

static enum snapshot_answer refuse(const char *why, struct text *out) {
    snapshot_answer_append("400 Bad Request", slice_from_string(why), out);
    return SNAPSHOT_WHOLE;
}

enum snapshot_answer agent_stacks_answer(
    struct agent_stacks *stacks, const struct snapshot_question *question, struct text *out) {
    struct failure failure = {0};
    struct rank_ranges ranks = {0};
    if (text_starts_with(question->path, SOME) &&
        !rank_ranges_add(&ranks, question->path + sizeof SOME - 1)) {
        return refuse("expected a list of ranks, as 0-3,7\n", out);
    }
    if (stacks == NULL || stacks->question_count == QUESTIONS_MAXIMUM) {
        return refuse("nobody can be looked at now\n", out);
    }
    if (stacks->collector == NULL &&
        hang_evidence_collector_new(stacks->loop, &stacks->collector, &failure) != FAILURE_NONE) {
        return refuse(failure.message, out);
    }
    stacks->questions[stacks->question_count++] = (struct question){question->ticket, ranks};
    await_next(stacks);
    return SNAPSHOT_LATER;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/failure/agent_stacks.h"

#include <stdlib.h>

#include "agent/standby/agent_standby.h"
#include "base/memory.h"
#include "core/failure/failure_report.h"
#include "core/telling/folded_stacks.h"
#include "host/failure/hang_evidence_collector.h"
#include "wire/telling/stacks_json.h"

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
struct subject {
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
    struct subject *subjects; /* NULL: nobody is looked at */
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

static void looked_at(void *context, const struct hang_evidence_result *result) {
    const struct subject *subject = context;
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

static void look(struct agent_stacks *stacks, int local_rank, struct instant end) {
    const struct agent_stacks_settings *settings = &stacks->settings;
    pid_t pid = agent_workers_pid(settings->workers, local_rank);
    int rank = settings->placement->ranks.base_rank + local_rank;
    struct failure failure = {0};
    if (!rank_ranges_have(&stacks->questions[0].ranks, rank) || pid <= 0) {
        return;
    }
    struct subject *subject = &stacks->subjects[stacks->awaited];
    *subject = (struct subject){stacks, rank};
    const struct hang_evidence_request request = {
        .pid = pid,
        .reason = "somebody asks",
        .is_brief = true,
        .dump = agent_standby_dump(settings->standby, local_rank, pid),
        .end = end,
    };
    const struct hang_evidence_answer answer = {looked_at, subject};
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
        look(stacks, i, instant_after(now, duration_from_seconds(LOOK_SECONDS)));
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

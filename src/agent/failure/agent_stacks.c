/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/failure/agent_stacks.h"

#include <stdlib.h>

#include "agent/standby/agent_standby.h"
#include "base/memory.h"
#include "core/failure/hang_summary.h"
#include "core/telling/folded_stacks.h"
#include "host/failure/hang_evidence_collector.h"
#include "wire/telling/stacks_json.h"

/* The socket serves as many at a time. */
#define QUESTIONS_MAXIMUM 8
/* For all workers together; an asker's own patience is longer. */
#define LOOK_SECONDS 5
#define PAUSE_SECONDS 1

struct question {
    snapshot_client client;
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
    struct hang_evidence_collector *collector; /* NULL until somebody asks */
    struct event_timer *pause;
    bool is_pausing;
    struct question questions[QUESTIONS_MAXIMUM]; /* the first one is being answered, if any is */
    size_t question_count;
    struct subject *subjects; /* NULL: nobody is looked at */
    size_t awaited;
    struct folded_stacks folded;
};

static void take_next(struct agent_stacks *stacks);

static void pause_is_over(void *context) {
    struct agent_stacks *stacks = context;
    stacks->is_pausing = false;
    take_next(stacks);
}

/* Of a job with many workers that are all elsewhere the last ones are left out. */
static void write_answer(struct folded_stacks *folded, struct text *out) {
    struct text body = {0};
    folded_stacks_sort(folded);
    for (size_t i = 0; i < folded->count; i++) {
        size_t start = body.length;
        stacks_json_write(&folded->items[i], &body);
        if (body.length > STACKS_ANSWER_MAXIMUM) {
            body.length = start;
        }
    }
    snapshot_answer_write(NULL, &body, out);
    text_clear(&body);
}

static void answer_first(struct agent_stacks *stacks) {
    struct text text = {0};
    snapshot_client client = stacks->questions[0].client;
    write_answer(&stacks->folded, &text);
    folded_stacks_clear(&stacks->folded);
    free(stacks->subjects);
    stacks->subjects = NULL;
    stacks->question_count--;
    for (size_t i = 0; i < stacks->question_count; i++) {
        stacks->questions[i] = stacks->questions[i + 1];
    }
    stacks->settings.answer(stacks->settings.context, client, &text);
    take_next(stacks);
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

static void take_next(struct agent_stacks *stacks) {
    struct instant now = event_loop_now(stacks->loop);
    if (stacks->question_count == 0 || stacks->subjects != NULL || stacks->is_pausing) {
        return;
    }
    stacks->is_pausing = true;
    event_timer_set(stacks->pause, instant_after(now, duration_from_seconds(PAUSE_SECONDS)));
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
    stacks->pause = event_timer_new(loop, pause_is_over, stacks);
    return stacks;
}

void agent_stacks_free(struct agent_stacks *stacks) {
    if (stacks == NULL) {
        return;
    }
    hang_evidence_collector_free(stacks->collector);
    event_timer_free(stacks->pause);
    folded_stacks_clear(&stacks->folded);
    free(stacks->subjects);
    free(stacks);
}

static void refuse(struct agent_stacks *stacks, snapshot_client client, const char *why) {
    struct text text = {0};
    struct text body = {0};
    text_append(&body, why);
    snapshot_answer_write("400 Bad Request", &body, &text);
    text_clear(&body);
    stacks->settings.answer(stacks->settings.context, client, &text);
}

bool agent_stacks_ask(struct agent_stacks *stacks, const char *path, snapshot_client client) {
    static const char all[] = "/v1/stacks";
    static const char some[] = "/v1/stacks?ranks=";
    struct failure failure = {0};
    struct rank_ranges ranks = {0};
    if (stacks == NULL || (!text_equals(path, all) && !text_starts_with(path, some))) {
        return false;
    }
    if (text_starts_with(path, some) && !rank_ranges_add(&ranks, path + sizeof some - 1)) {
        refuse(stacks, client, "ranks: expected a list as 0-3,7\n");
    } else if (stacks->question_count == QUESTIONS_MAXIMUM) {
        refuse(stacks, client, "too many ask at this moment\n");
    } else if (stacks->collector == NULL && hang_evidence_collector_new(stacks->loop,
                                                &stacks->collector, &failure) != FAILURE_NONE) {
        refuse(stacks, client, failure.message);
    } else {
        stacks->questions[stacks->question_count++] = (struct question){client, ranks};
        take_next(stacks);
    }
    return true;
}

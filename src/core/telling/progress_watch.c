/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/progress_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* A worker that has taken none by the time that another one has taken so many takes no steps. */
#define STEPS_WITHOUT_OTHERS 3

struct progress_watch {
    struct progress_sample *workers; /* by local rank */
    int worker_count;
    bool tells_steps;
    bool has_told_training;
    struct instant began;
    struct progress_sample told; /* of the leader */
    struct instant told_at;
    double told_rate;
    int64_t highest; /* step of a program, in this attempt and … */
    int64_t highest_before;
    bool has_new_step; /* in this attempt */
};

struct progress_watch *progress_watch_new(int worker_count) {
    struct progress_watch *watch = memory_allocate(sizeof *watch);
    *watch = (struct progress_watch){.worker_count = worker_count,
        .highest = -1,
        .workers = memory_allocate((size_t)worker_count * sizeof *watch->workers)};
    return watch;
}

void progress_watch_free(struct progress_watch *watch) {
    if (watch != NULL) {
        free(watch->workers);
        free(watch);
    }
}

void progress_watch_begin(struct progress_watch *watch, struct instant now, bool tells_steps) {
    memset(watch->workers, 0, (size_t)watch->worker_count * sizeof *watch->workers);
    watch->tells_steps = tells_steps;
    watch->has_told_training = false;
    watch->began = watch->told_at = now;
    watch->told = (struct progress_sample){0};
    watch->told_rate = -1;
    watch->highest_before = watch->highest;
    watch->has_new_step = false;
}

/* A time of this attempt, or now. */
static struct instant credible(
    const struct progress_watch *watch, struct instant time, struct instant now) {
    bool is_well = !instant_is_before(time, watch->began) && !instant_is_before(now, time);
    return is_well ? time : now;
}

void progress_watch_see(struct progress_watch *watch, int local_rank,
    const struct progress_sample *sample, struct instant now) {
    struct progress_sample *worker = &watch->workers[local_rank];
    struct progress_sample seen = *sample;
    seen.first = worker->count > 0 ? worker->first : credible(watch, seen.first, now);
    seen.first_step = worker->count > 0 ? worker->first_step : seen.first_step;
    seen.stepped =
        seen.count == worker->count ? worker->stepped : credible(watch, seen.stepped, now);
    seen.saved =
        seen.save_count == worker->save_count ? worker->saved : credible(watch, seen.saved, now);
    *worker = seen;
    if (seen.count > 0 && seen.source == PROGRESS_PROGRAM && seen.step > watch->highest) {
        watch->highest = seen.step;
    }
    watch->has_new_step = watch->has_new_step || watch->highest > watch->highest_before ||
                          (seen.count > 0 && seen.source == PROGRESS_OPTIMIZER);
}

struct progress_advance progress_watch_advance(const struct progress_watch *watch) {
    bool has_stepped = false;
    for (int i = 0; i < watch->worker_count && !has_stepped; i++) {
        has_stepped = watch->workers[i].count > 0;
    }
    return (struct progress_advance){has_stepped, watch->has_new_step};
}

bool progress_watch_has_begun(const struct progress_watch *watch) {
    return watch->has_told_training;
}

/* The first one that takes steps; NULL: none does. */
static const struct progress_sample *leader_of(const struct progress_watch *watch) {
    for (int i = 0; i < watch->worker_count; i++) {
        if (watch->workers[i].count > 0) {
            return &watch->workers[i];
        }
    }
    return NULL;
}

/* The local rank of the one that was last to take its first step; -1: others are still awaited. */
static int find_last(const struct progress_watch *watch) {
    int last = -1;
    int64_t most = 0;
    bool is_any_without = false;
    for (int i = 0; i < watch->worker_count; i++) {
        const struct progress_sample *worker = &watch->workers[i];
        is_any_without = is_any_without || worker->count == 0;
        most = worker->count > most ? worker->count : most;
        if (worker->count > 0 &&
            (last == -1 || instant_is_before(watch->workers[last].first, worker->first))) {
            last = i;
        }
    }
    return is_any_without && most < STEPS_WITHOUT_OTHERS ? -1 : last;
}

static struct progress_news first_steps(
    struct progress_watch *watch, const struct progress_sample *leader, int last) {
    const struct progress_sample *worker = &watch->workers[last];
    watch->has_told_training = true;
    watch->told = *leader;
    watch->told.count = 1;
    watch->told.stepped = leader->first;
    watch->told_at = leader->first;
    return (struct progress_news){.kind = CHRONICLE_TRAINING,
        .source = leader->source,
        .at = worker->first,
        .took = instant_until(watch->began, worker->first),
        .local_rank = last};
}

/* Of the steps since it was told last. A program that begins to tell begins anew. */
static double rate_since_told(
    const struct progress_watch *watch, const struct progress_sample *leader) {
    double time = duration_seconds(instant_until(watch->told.stepped, leader->stepped));
    int64_t count = leader->count - watch->told.count;
    if (count == 0) {
        return 0;
    }
    return leader->source == watch->told.source && count > 0 && time > 0 ? (double)count / time
                                                                         : -1;
}

static struct progress_news steps(
    struct progress_watch *watch, const struct progress_sample *leader, struct instant now) {
    double rate = rate_since_told(watch, leader);
    bool stands = leader->count == watch->told.count;
    watch->told = *leader;
    watch->told_at = now;
    watch->told_rate = rate;
    return (struct progress_news){.kind = CHRONICLE_PROGRESS,
        .source = leader->source,
        .at = stands ? now : leader->stepped,
        .step = leader->step,
        .rate = rate};
}

static bool is_due(const struct progress_watch *watch, const struct progress_sample *leader,
    struct instant now, bool is_last) {
    if (leader->count == watch->told.count && (is_last || watch->told_rate == 0)) {
        return false;
    }
    struct instant due =
        instant_after(watch->told_at, duration_from_seconds(PROGRESS_TELL_SECONDS));
    return is_last || (watch->tells_steps && !instant_is_before(now, due));
}

size_t progress_watch_tell(struct progress_watch *watch, struct instant now, bool is_last,
    struct progress_news out_news[PROGRESS_NEWS_MAXIMUM]) {
    const struct progress_sample *leader = leader_of(watch);
    size_t count = 0;
    if (leader == NULL) {
        return 0;
    }
    int last = watch->has_told_training ? -1 : find_last(watch);
    if (last >= 0) {
        out_news[count++] = first_steps(watch, leader, last);
        if (watch->tells_steps) {
            out_news[count++] = (struct progress_news){.kind = CHRONICLE_PROGRESS,
                .source = leader->source,
                .at = leader->first,
                .step = leader->first_step,
                .rate = -1};
        }
    }
    if (leader->save_count != watch->told.save_count && watch->tells_steps) {
        watch->told.save_count = leader->save_count;
        out_news[count++] = (struct progress_news){
            .kind = CHRONICLE_CHECKPOINT, .at = leader->saved, .step = leader->saved_step};
    }
    if (watch->has_told_training && is_due(watch, leader, now, is_last)) {
        out_news[count++] = steps(watch, leader, now);
    }
    return count;
}

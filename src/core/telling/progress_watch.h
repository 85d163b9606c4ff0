/* SPDX-License-Identifier: BSD-3-Clause */
/* What is news of the steps that the workers of one node take (core/telling/chronicle has the
 * entries): when all of them have taken their first one since they were started, and from then on
 * how far they are. It is asked with what was just seen of the workers, and knows no clock.
 *
 * Workers may say anything. Times that cannot be are those of the look. */
#ifndef MUSTER_CORE_TELLING_PROGRESS_WATCH_H
#define MUSTER_CORE_TELLING_PROGRESS_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/telling/chronicle.h"

/* The largest number of a step, which every reader of JSON can have. */
#define PROGRESS_STEP_MAXIMUM (INT64_C(1) << 53)
/* How often a node that tells of its steps does so. */
#define PROGRESS_TELL_SECONDS 10

/* What a worker has said of itself; see include/muster/progress.h. */
struct progress_sample {
    enum progress_source source;
    int64_t count; /* 0: it has taken no step */
    int64_t step;
    int64_t first_step;
    struct instant stepped;
    struct instant first;
    int64_t save_count;
    int64_t saved_step;
    struct instant saved;
};

struct progress_watch;

struct progress_watch *progress_watch_new(int worker_count);
void progress_watch_free(struct progress_watch *watch);

/* The workers have been started. `tells_steps`: rank 0 is here, and this node tells of the steps of
 * the job. */
void progress_watch_begin(struct progress_watch *watch, struct instant now, bool tells_steps);
void progress_watch_see(struct progress_watch *watch, int local_rank,
    const struct progress_sample *sample, struct instant now);

/* Whether one of them has taken a step since they were started, and whether that was a new one: the
 * steps of an optimizer are, and those of a program above all that it has told of before. */
struct progress_advance {
    bool has_stepped;
    bool is_new;
};
struct progress_advance progress_watch_advance(const struct progress_watch *watch);

/* Whether all of them take steps. */
bool progress_watch_has_begun(const struct progress_watch *watch);

/* Appends what is news by now, in order. `is_last`: the workers are ending, and how far they came
 * is news. */
#define PROGRESS_NEWS_MAXIMUM 4
size_t progress_watch_tell(struct progress_watch *watch, struct instant now, bool is_last,
    struct progress_news out_news[PROGRESS_NEWS_MAXIMUM]);

#endif

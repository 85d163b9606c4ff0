/* SPDX-License-Identifier: BSD-3-Clause */
/* What is news of the steps that the workers of one node take (core/telling/chronicle has the
 * entries): when all of them have taken their first one since they were started, from then on how
 * far they are, and when none of them takes any more, though that is not to be expected. It is
 * asked with what was just seen of the workers, and knows no clock.
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
/* A worker is slow that is busy so many times as long a step as the others of its node, as many
 * minutes running. All workers of a job take as many steps; who waits less for the others is slow.
 */
#define PROGRESS_SLOW_RATIO 1.15
#define PROGRESS_SLOW_MINUTES 3

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
    struct duration waited;     /* in all, in waits that are over */
    struct instant waits_since; /* zero: it does not wait now */
};

struct progress_watch;

/* For how long no worker may take a step. A zeroed struct: for as long as they like. */
struct progress_patience {
    bool is_learned; /* from the steps so far */
    struct duration time;
};

/* A learned patience is no shorter than this, … */
#define PROGRESS_PATIENCE_SECONDS 60
/* … and so many times what all but the slowest hundredth of the last steps have taken, … */
#define PROGRESS_PATIENCE_STEPS 20
/* … and so many times as long as the longest step with a checkpoint, and the longest standstill
 * that was over by itself. */
#define PROGRESS_PATIENCE_PAUSES 2
/* The first steps after a start, of which nothing is learned, and in which a learned patience does
 * not end. */
#define PROGRESS_FIRST_STEPS 10

struct progress_watch *progress_watch_new(int worker_count, struct progress_patience patience);
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

/* The step of the worker that is least far, of those that take steps; -1: none does. */
int64_t progress_watch_step(const struct progress_watch *watch);

/* Appends what is news by now, in order. `is_last`: the workers are ending, or stand still, or
 * no longer do, and how far they came is news. */
#define PROGRESS_NEWS_MAXIMUM 5
size_t progress_watch_tell(struct progress_watch *watch, struct instant now, bool is_last,
    struct progress_news out_news[PROGRESS_NEWS_MAXIMUM]);

enum progress_standing {
    PROGRESS_AS_BEFORE,
    PROGRESS_STANDS_STILL, /* for this long no worker has taken a step, and patience is at an end */
    PROGRESS_GOES_ON,      /* a standstill that was told is over */
};

/* Once for each look, after it was told. */
enum progress_standing progress_watch_judge(
    struct progress_watch *watch, struct instant now, struct duration *out_silence);

#endif

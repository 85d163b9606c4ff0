/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/progress_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* A worker that has taken none by the time that another one has taken so many takes no steps. */
#define STEPS_WITHOUT_OTHERS 3
/* Of which is learned how long a step takes, … */
#define LEARNED_STEPS 1000
/* … and how many there are at least. */
#define LEARNED_STEPS_MINIMUM 10

/* How long steps take, in all attempts so far. */
struct step_times {
    int64_t nanoseconds[LEARNED_STEPS]; /* of the last ones, as a ring */
    size_t count;
    size_t next;
    struct duration longest_pause; /* with a checkpoint, or in a standstill that is over */
};

#define MINUTE_SECONDS 60

/* Of one worker in this minute, and in those before. */
struct worker_pace {
    int64_t count; /* when the minute began, as these */
    struct duration waited;
    double busy;      /* seconds a step; negative: not known */
    int slow_minutes; /* running */
};

struct progress_watch {
    struct progress_sample *workers; /* by local rank */
    struct worker_pace *paces;       /* the same */
    double *sorted;                  /* room for as many */
    struct instant minute;           /* it began; not before all take steps */
    bool counts_minutes;
    int slow_rank;     /* that is to be told; -1: none … */
    double slow_ratio; /* … and how slow it is */
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
    struct progress_patience patience;
    struct step_times *times;     /* NULL: patience is not learned */
    struct progress_sample paced; /* of the leader, when its last step was seen */
    bool stands_still;            /* and that is told, … */
    struct instant standing_since;
};

struct progress_watch *progress_watch_new(int worker_count, struct progress_patience patience) {
    struct progress_watch *watch = memory_allocate(sizeof *watch);
    *watch = (struct progress_watch){.worker_count = worker_count,
        .highest = -1,
        .workers = memory_allocate((size_t)worker_count * sizeof *watch->workers),
        .patience = patience,
        .times = patience.is_learned ? memory_allocate(sizeof *watch->times) : NULL,
        .slow_rank = -1,
        .paces = memory_allocate((size_t)worker_count * sizeof *watch->paces),
        .sorted = memory_allocate((size_t)worker_count * sizeof *watch->sorted)};
    return watch;
}

void progress_watch_free(struct progress_watch *watch) {
    if (watch != NULL) {
        free(watch->workers);
        free(watch->times);
        free(watch->paces);
        free(watch->sorted);
        free(watch);
    }
}

void progress_watch_begin(struct progress_watch *watch, struct instant now, bool tells_steps) {
    memset(watch->workers, 0, (size_t)watch->worker_count * sizeof *watch->workers);
    memset(watch->paces, 0, (size_t)watch->worker_count * sizeof *watch->paces);
    watch->counts_minutes = false;
    watch->slow_rank = -1;
    watch->tells_steps = tells_steps;
    watch->has_told_training = false;
    watch->began = watch->told_at = now;
    watch->told = (struct progress_sample){0};
    watch->told_rate = -1;
    watch->highest_before = watch->highest;
    watch->has_new_step = false;
    watch->paced = (struct progress_sample){0};
    watch->stands_still = false;
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

int64_t progress_watch_step(const struct progress_watch *watch) {
    int64_t step = -1;
    for (int i = 0; i < watch->worker_count; i++) {
        const struct progress_sample *worker = &watch->workers[i];
        if (worker->count > 0 && (step < 0 || worker->step < step)) {
            step = worker->step;
        }
    }
    return step;
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

/* Who is slow. */

/* With the wait that it is in. */
static struct duration waited_by(const struct progress_sample *worker, struct instant now) {
    bool waits =
        worker->waits_since.nanoseconds != 0 && !instant_is_before(now, worker->waits_since);
    return (struct duration){worker->waited.nanoseconds +
                             (waits ? instant_until(worker->waits_since, now).nanoseconds : 0)};
}

static void begin_minute(struct progress_watch *watch, struct instant now) {
    watch->minute = now;
    for (int i = 0; i < watch->worker_count; i++) {
        watch->paces[i].count = watch->workers[i].count;
        watch->paces[i].waited = waited_by(&watch->workers[i], now);
    }
}

/* Of a worker that marks its waits, and has taken steps in this minute. */
static double busy_of(const struct progress_watch *watch, int local_rank, struct instant now) {
    const struct progress_sample *worker = &watch->workers[local_rank];
    const struct worker_pace *pace = &watch->paces[local_rank];
    struct duration waited = waited_by(worker, now);
    int64_t steps = worker->count - pace->count;
    double time = duration_seconds(instant_until(watch->minute, now));
    double wait =
        duration_seconds((struct duration){waited.nanoseconds - pace->waited.nanoseconds});
    return waited.nanoseconds > 0 && steps > 0 && wait >= 0 && wait <= time
               ? (time - wait) / (double)steps
               : -1;
}

static int compare_busy(const void *left, const void *right) {
    double one = *(const double *)left;
    double other = *(const double *)right;
    return (one > other) - (one < other);
}

/* The lower one of two in the middle; 0: there are no two to be compared. */
static double median_busy(struct progress_watch *watch) {
    size_t count = 0;
    for (int i = 0; i < watch->worker_count; i++) {
        if (watch->paces[i].busy >= 0) {
            watch->sorted[count++] = watch->paces[i].busy;
        }
    }
    if (count < 2) {
        return 0;
    }
    qsort(watch->sorted, count, sizeof *watch->sorted, compare_busy);
    return watch->sorted[(count - 1) / 2];
}

/* It is told once for as long as it is slow. */
static void look_for_slow(struct progress_watch *watch, struct instant now) {
    for (int i = 0; i < watch->worker_count; i++) {
        watch->paces[i].busy = busy_of(watch, i, now);
    }
    double median = median_busy(watch);
    int slow = -1;
    for (int i = 0; i < watch->worker_count; i++) {
        struct worker_pace *pace = &watch->paces[i];
        bool is_slow = median > 0 && pace->busy > median * PROGRESS_SLOW_RATIO;
        pace->slow_minutes = is_slow ? pace->slow_minutes + 1 : 0;
        if (pace->slow_minutes == PROGRESS_SLOW_MINUTES &&
            (slow < 0 || pace->busy > watch->paces[slow].busy)) {
            slow = i;
        }
    }
    watch->slow_rank = slow;
    watch->slow_ratio = slow >= 0 ? watch->paces[slow].busy / median : 0;
}

static size_t tell_slow(
    struct progress_watch *watch, struct instant now, struct progress_news *out_news) {
    if (!watch->counts_minutes) {
        watch->counts_minutes = true;
        begin_minute(watch, now);
        return 0;
    }
    if (instant_is_before(
            now, instant_after(watch->minute, duration_from_seconds(MINUTE_SECONDS)))) {
        return 0;
    }
    look_for_slow(watch, now);
    begin_minute(watch, now);
    if (watch->slow_rank < 0) {
        return 0;
    }
    *out_news = (struct progress_news){.kind = CHRONICLE_SLOW,
        .at = now,
        .rate = watch->slow_ratio,
        .local_rank = watch->slow_rank};
    return 1;
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
    if (watch->has_told_training && !is_last) {
        count += tell_slow(watch, now, &out_news[count]);
    }
    if (watch->has_told_training && is_due(watch, leader, now, is_last)) {
        out_news[count++] = steps(watch, leader, now);
    }
    return count;
}

/* Standstill. */

static void learn(struct step_times *times, int64_t nanoseconds) {
    times->nanoseconds[times->next] = nanoseconds;
    times->next = (times->next + 1) % LEARNED_STEPS;
    times->count += times->count < LEARNED_STEPS ? 1 : 0;
}

static void learn_pause(struct step_times *times, struct duration pause) {
    if (pause.nanoseconds > times->longest_pause.nanoseconds) {
        times->longest_pause = pause;
    }
}

/* Of steps that were taken since the last look each one counts as their mean. */
static void follow_leader(struct progress_watch *watch, const struct progress_sample *leader) {
    const struct progress_sample before = watch->paced;
    int64_t count = leader->count - before.count;
    struct duration time = instant_until(before.stepped, leader->stepped);
    if (count == 0 && leader->source == before.source) {
        return;
    }
    watch->paced = *leader;
    if (watch->times == NULL || leader->source != before.source || count < 0 ||
        before.count <= PROGRESS_FIRST_STEPS) {
        return;
    }
    if (leader->save_count != before.save_count) {
        learn_pause(watch->times, time);
    } else {
        learn(watch->times, time.nanoseconds / count);
    }
}

static int compare_times(const void *left, const void *right) {
    int64_t one = *(const int64_t *)left;
    int64_t other = *(const int64_t *)right;
    return (one > other) - (one < other);
}

/* All but the slowest hundredth take no longer. */
static int64_t usual_time(const struct step_times *times) {
    int64_t sorted[LEARNED_STEPS];
    memcpy(sorted, times->nanoseconds, times->count * sizeof *sorted);
    qsort(sorted, times->count, sizeof *sorted, compare_times);
    return sorted[times->count - 1 - times->count / 100];
}

static int64_t larger(int64_t one, int64_t other) {
    return one > other ? one : other;
}

static int64_t times_as_long(int64_t time, int64_t factor) {
    return time > INT64_MAX / factor ? INT64_MAX : time * factor;
}

/* Of a silence that is long enough to be one: no sooner is anything computed. */
static bool is_patience_over(const struct progress_watch *watch, struct duration silence) {
    const struct step_times *times = watch->times;
    if (times == NULL) {
        return watch->patience.time.nanoseconds > 0 &&
               silence.nanoseconds >= watch->patience.time.nanoseconds;
    }
    return silence.nanoseconds >= PROGRESS_PATIENCE_SECONDS * (int64_t)NANOSECONDS_PER_SECOND &&
           watch->paced.count > PROGRESS_FIRST_STEPS && times->count >= LEARNED_STEPS_MINIMUM &&
           silence.nanoseconds >=
               larger(times_as_long(usual_time(times), PROGRESS_PATIENCE_STEPS),
                   times_as_long(times->longest_pause.nanoseconds, PROGRESS_PATIENCE_PAUSES));
}

/* Of all workers. */
static struct instant last_step(const struct progress_watch *watch) {
    struct instant last = watch->began;
    for (int i = 0; i < watch->worker_count; i++) {
        const struct progress_sample *worker = &watch->workers[i];
        if (worker->count > 0 && instant_is_before(last, worker->stepped)) {
            last = worker->stepped;
        }
    }
    return last;
}

enum progress_standing progress_watch_judge(
    struct progress_watch *watch, struct instant now, struct duration *out_silence) {
    const struct progress_sample *leader = leader_of(watch);
    struct instant last = last_step(watch);
    struct duration silence = instant_until(last, now);
    if (leader == NULL || !watch->has_told_training) {
        return PROGRESS_AS_BEFORE;
    }
    follow_leader(watch, leader);
    if (watch->stands_still && instant_is_before(watch->standing_since, last)) {
        watch->stands_still = false;
        if (watch->times != NULL) {
            learn_pause(watch->times, instant_until(watch->standing_since, last));
        }
        return PROGRESS_GOES_ON;
    }
    if (watch->stands_still || !is_patience_over(watch, silence)) {
        return PROGRESS_AS_BEFORE;
    }
    watch->stands_still = true;
    watch->standing_since = last;
    *out_silence = silence;
    return PROGRESS_STANDS_STILL;
}

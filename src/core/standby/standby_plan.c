/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/standby/standby_plan.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"

static const char *const event_names[STANDBY_EVENT_COUNT] = {
    [STANDBY_EVENT_ATTEMPT_BEGAN] = "attempt_began",
    [STANDBY_EVENT_WORKERS_STARTED] = "workers_started",
    [STANDBY_EVENT_WORKERS_ENDING] = "workers_ending",
    [STANDBY_EVENT_JOB_ENDING] = "job_ending",
    [STANDBY_EVENT_HELLO] = "hello",
    [STANDBY_EVENT_RECORDS] = "records",
    [STANDBY_EVENT_INVITED] = "invited",
    [STANDBY_EVENT_LINE] = "line",
    [STANDBY_EVENT_SPARE_HELLO] = "spare_hello",
    [STANDBY_EVENT_SPARE_READY] = "spare_ready",
    [STANDBY_EVENT_SPARE_DIRTY] = "spare_dirty",
    [STANDBY_EVENT_SPARE_UNSUITED] = "spare_unsuited",
    [STANDBY_EVENT_SPARE_ENDED] = "spare_ended",
    [STANDBY_EVENT_SPARE_FAILED] = "spare_failed",
    [STANDBY_EVENT_SPARE_GIVEN] = "spare_given",
    [STANDBY_EVENT_SPARE_REFUSED] = "spare_refused",
    [STANDBY_EVENT_PARENT] = "parent",
    [STANDBY_EVENT_TIMER_FIRED] = "timer_fired",
};

static const char *const effect_names[STANDBY_EFFECT_COUNT] = {
    [STANDBY_EFFECT_WARM] = "warm",
    [STANDBY_EFFECT_TEACH] = "teach",
    [STANDBY_EFFECT_END_SPARE] = "end_spare",
    [STANDBY_EFFECT_END_ALL] = "end_all",
    [STANDBY_EFFECT_LOOK] = "look",
    [STANDBY_EFFECT_PUBLISH] = "publish",
    [STANDBY_EFFECT_WARMED] = "warmed",
    [STANDBY_EFFECT_ARM_TIMER] = "arm_timer",
    [STANDBY_EFFECT_DISARM_TIMER] = "disarm_timer",
    [STANDBY_EFFECT_TELL_AWAITED] = "tell_awaited",
    [STANDBY_EFFECT_TELL_READY] = "tell_ready",
    [STANDBY_EFFECT_TELL_TAUGHT] = "tell_taught",
    [STANDBY_EFFECT_TELL_USED] = "tell_used",
    [STANDBY_EFFECT_TELL_OFF] = "tell_off",
    [STANDBY_EFFECT_TELL_SCARCE] = "tell_scarce",
    [STANDBY_EFFECT_TELL_SILENT] = "tell_silent",
};

static const char *const off_names[STANDBY_OFF_COUNT] = {
    [STANDBY_OFF_NONE] = "none",
    [STANDBY_OFF_DIRTY] = "dirty",
    [STANDBY_OFF_UNSUITED] = "unsuited",
    [STANDBY_OFF_LATE] = "late",
    [STANDBY_OFF_ENDED] = "ended",
    [STANDBY_OFF_DEATHS] = "deaths",
};

static const char *const cold_names[STANDBY_COLD_COUNT] = {
    [STANDBY_COLD_NOT] = "not",
    [STANDBY_COLD_NONE] = "none",
    [STANDBY_COLD_SILENT] = "silent",
    [STANDBY_COLD_SCARCE] = "scarce",
    [STANDBY_COLD_DUE] = "due",
    [STANDBY_COLD_IMPORTING] = "importing",
    [STANDBY_COLD_LEARNING] = "learning",
    [STANDBY_COLD_ENDED] = "ended",
    [STANDBY_COLD_REFUSED] = "refused",
    [STANDBY_COLD_OFF] = "off",
};

static void describe_used(const struct standby_effect *effect, struct text *out) {
    const enum standby_cold *cold = effect->told.cold;
    text_append_format(out, " %d/%d", effect->told.count, effect->told.total);
    for (int rank = 0; effect->told.count < effect->told.total && rank < effect->told.total;
         rank++) {
        text_append_format(out, "%s%s", rank == 0 ? " cold=" : ",", cold_names[cold[rank]]);
    }
}

const char *standby_off_name(enum standby_off why) {
    return off_names[why];
}

void standby_event_describe(const struct standby_event *event, struct text *out) {
    text_append(out, event_names[event->kind]);
    switch (event->kind) {
    case STANDBY_EVENT_WORKERS_STARTED:
        text_append(out, event->may_restart ? "" : " last");
        break;
    case STANDBY_EVENT_PARENT:
        text_append(out, event->parent.is_there ? " ready" : " gone");
        text_append(out, event->parent.has_cut ? " unsuited" : "");
        break;
    case STANDBY_EVENT_HELLO:
    case STANDBY_EVENT_SPARE_HELLO:
    case STANDBY_EVENT_LINE:
    case STANDBY_EVENT_SPARE_DIRTY:
    case STANDBY_EVENT_SPARE_FAILED:
    case STANDBY_EVENT_SPARE_GIVEN:
    case STANDBY_EVENT_SPARE_REFUSED:
        text_append_format(out, " rank=%d", event->local_rank);
        break;
    case STANDBY_EVENT_RECORDS:
        text_append_format(out, " quiet=%.3f modules=%zu memory=%" PRIu64,
            duration_seconds(event->records.quiet), event->records.modules, event->records.memory);
        break;
    case STANDBY_EVENT_INVITED:
        text_append_format(out, " modules=%zu", event->records.modules);
        break;
    case STANDBY_EVENT_SPARE_READY:
        text_append_format(out, " rank=%d bytes=%" PRIu64 "%s", event->ready.local_rank,
            event->ready.bytes, event->ready.is_at_line ? " at its line" : "");
        break;
    case STANDBY_EVENT_SPARE_UNSUITED:
        text_append_format(out, " rank=%d%s", event->unsuited.local_rank,
            event->unsuited.is_new ? "" : " nothing new");
        break;
    case STANDBY_EVENT_SPARE_ENDED:
        text_append_format(out, " rank=%d %s=%d", event->ended.local_rank,
            event->ended.exit.is_signal ? "signal" : "status", event->ended.exit.value);
        break;
    case STANDBY_EVENT_ATTEMPT_BEGAN:
    case STANDBY_EVENT_WORKERS_ENDING:
    case STANDBY_EVENT_JOB_ENDING:
    case STANDBY_EVENT_TIMER_FIRED:
    case STANDBY_EVENT_COUNT:
        break;
    }
}

void standby_effect_describe(const struct standby_effect *effect, struct text *out) {
    text_append(out, effect_names[effect->kind]);
    switch (effect->kind) {
    case STANDBY_EFFECT_WARM:
        text_append_format(
            out, " rank=%d%s", effect->local_rank, effect->makes_way ? "" : " alone");
        break;
    case STANDBY_EFFECT_TEACH:
    case STANDBY_EFFECT_END_SPARE:
        text_append_format(out, " rank=%d", effect->local_rank);
        break;
    case STANDBY_EFFECT_ARM_TIMER:
        text_append_format(
            out, " at=%.3f", (double)effect->deadline.nanoseconds / (double)NANOSECONDS_PER_SECOND);
        break;
    case STANDBY_EFFECT_TELL_READY:
        text_append_format(out, " %d/%d bytes=%" PRIu64, effect->told.count, effect->told.total,
            effect->told.bytes);
        break;
    case STANDBY_EFFECT_TELL_USED:
        describe_used(effect, out);
        break;
    case STANDBY_EFFECT_TELL_TAUGHT:
        text_append_format(out, " %d/%d", effect->told.count, effect->told.total);
        break;
    case STANDBY_EFFECT_TELL_AWAITED:
        text_append_format(out, " %d/%d importing=%d unbegun=%d ended=%d", effect->awaited.ready,
            effect->awaited.total, effect->awaited.importing, effect->awaited.unbegun,
            effect->awaited.ended);
        break;
    case STANDBY_EFFECT_TELL_OFF:
        text_append_format(
            out, " %s rank=%d", standby_off_name(effect->off.why), effect->off.local_rank);
        break;
    case STANDBY_EFFECT_END_ALL:
    case STANDBY_EFFECT_LOOK:
    case STANDBY_EFFECT_PUBLISH:
    case STANDBY_EFFECT_WARMED:
    case STANDBY_EFFECT_DISARM_TIMER:
    case STANDBY_EFFECT_TELL_SCARCE:
    case STANDBY_EFFECT_TELL_SILENT:
    case STANDBY_EFFECT_COUNT:
        break;
    }
}

/* Plan. */

struct standby_failures {
    int deaths;
    int cuts; /* of the list */
};

/* One has died. True: another may be started after `out_pause`. */
static bool take_death(struct standby_failures *failures, struct duration *out_pause) {
    if (++failures->deaths >= STANDBY_DEATHS_MAXIMUM) {
        return false;
    }
    *out_pause = duration_from_seconds(STANDBY_BACKOFF_SECONDS << (failures->deaths - 1));
    return true;
}

/* One that was started when the list had been cut `told` times cannot be used. `is_new`: the list
 * has become shorter by what it has named. True: another may be started, since it is told of a
 * list that this one did not know. */
static bool take_unsuited(struct standby_failures *failures, bool is_new, int told) {
    failures->cuts += is_new ? 1 : 0;
    return failures->cuts <= STANDBY_CUTS_MAXIMUM && told < failures->cuts;
}

/* Choice. */

bool standby_is_for_python(const struct launch_config *config) {
    return config->entry != LAUNCH_ENTRY_PROGRAM;
}

static bool may_restart(const struct launch_config *config) {
    return config->max_restarts > 0 || config->maximum_nodes > config->minimum_nodes;
}

enum standby_choice standby_choose(
    const struct launch_config *config, int worker_count, int cpu_count) {
    if (config->standby == LAUNCH_STANDBY_OFF) {
        return STANDBY_CHOICE_OFF;
    }
    if (!may_restart(config)) {
        bool is_asked_for = config->standby == LAUNCH_STANDBY_ON;
        return is_asked_for ? STANDBY_CHOICE_NO_RESTART : STANDBY_CHOICE_OFF;
    }
    if (config->standby == LAUNCH_STANDBY_AUTO && !standby_is_for_python(config)) {
        return STANDBY_CHOICE_NO_PYTHON;
    }
    if (config->standby == LAUNCH_STANDBY_AUTO && worker_count > cpu_count / 2) {
        return STANDBY_CHOICE_FEW_CPUS;
    }
    return STANDBY_CHOICE_WANTED;
}

/* `size` is that of one spare, in bytes. */
static bool leaves_memory(uint64_t available, int worker_count, uint64_t size) {
    return available / STANDBY_MEMORY_PART / (uint64_t)worker_count >= size;
}

/* Looking at what the workers have recorded, and whether they are quiet: none of them has imported
 * anything for a while. What follows from that is the plan's. */

/* Looks at quiet workers of which none has said hello, before that is told. */
#define SILENT_LOOKS 3
/* Between a look at workers that import and the next one, at least. */
#define SHORTEST_PAUSE_MILLISECONDS 100
/* When they have imported last is known as exactly as they are looked at: so often while they may
 * become quiet. */
#define LOOKS_UNTIL_QUIET 4

#define NEVER ((struct instant){INT64_MAX})

struct standby_looking {
    bool is_running;       /* workers run, and there may be another attempt */
    bool is_quiet;         /* they were at the last look */
    struct instant next;   /* look; NEVER: none is planned */
    struct duration after; /* for how long quiet workers have imported nothing */
    struct duration pause;
    size_t modules; /* that were imported, at the last look */
    int silent_looks;
    bool has_told_silent;
};

static void looking_init(struct standby_looking *looking, struct duration after) {
    *looking = (struct standby_looking){.after = after};
    looking->next = NEVER;
}

static struct duration short_pause(const struct standby_looking *looking, int64_t missing) {
    int64_t shortest = duration_from_milliseconds(SHORTEST_PAUSE_MILLISECONDS).nanoseconds;
    int64_t pause = looking->after.nanoseconds / LOOKS_UNTIL_QUIET;
    pause = missing < pause ? missing : pause;
    return (struct duration){pause > shortest ? pause : shortest};
}

static void looking_begin(struct standby_looking *looking, struct instant now, bool may_restart) {
    looking->is_running = may_restart;
    looking->is_quiet = false;
    looking->pause = looking->after;
    looking->next =
        may_restart ? instant_after(now, short_pause(looking, looking->after.nanoseconds)) : NEVER;
}

static void looking_end(struct standby_looking *looking) {
    looking->is_running = false;
    looking->is_quiet = false;
    looking->next = NEVER;
}

/* Whether it is time for a look. If so, none is planned until its result is taken. */
static bool looking_is_due(struct standby_looking *looking, struct instant now) {
    if (instant_is_before(now, looking->next)) {
        return false;
    }
    looking->next = NEVER;
    return true;
}

static struct duration longer(struct duration pause) {
    struct duration longest = duration_from_seconds(STANDBY_LOOK_SECONDS);
    bool is_longest = pause.nanoseconds >= longest.nanoseconds / 2;
    return is_longest ? longest : (struct duration){2 * pause.nanoseconds};
}

/* The result of a look. Returns whether the workers run and are quiet. */
static bool looking_take(
    struct standby_looking *looking, struct instant now, struct duration quiet, size_t modules) {
    int64_t missing = looking->after.nanoseconds - quiet.nanoseconds;
    if (!looking->is_running) {
        return false;
    }
    looking->modules = modules;
    if (missing > 0) {
        looking->next = instant_after(now, short_pause(looking, missing));
        return false;
    }
    looking->is_quiet = true;
    looking->pause = longer(looking->pause);
    looking->next = instant_after(now, looking->pause);
    return true;
}

/* The workers are quiet, and none has said hello. Returns true once, when that has been so several
 * times. */
static bool looking_note_silence(struct standby_looking *looking) {
    if (looking->has_told_silent || ++looking->silent_looks < SILENT_LOOKS) {
        return false;
    }
    looking->has_told_silent = true;
    return true;
}

/* Plan. */

#define STANDBY_STILL_AWAITED_SECONDS 60

struct spare {
    enum standby_state state;
    bool has_hello;            /* a worker of the rank has said hello */
    bool has_reached_hook;     /* WARMING: the spare has */
    struct instant not_before; /* DUE: after a death */
    struct instant deadline;   /* WARMING, LEARNING */
    size_t modules;            /* in the list when it was told of it */
    int cuts;                  /* of the list then */
    bool is_behind;            /* READY: it is to be taught */
    bool is_at_line;           /* READY: there is nothing to teach */
    uint64_t bytes;            /* READY */
};

struct standby_plan {
    struct standby_settings settings;
    struct spare *spares;    /* by local rank */
    enum standby_cold *cold; /* by local rank; when the present attempt began */
    struct standby_looking looking;
    enum standby_off off;
    struct standby_failures failures;
    uint64_t used;    /* spares that have become workers, in all attempts */
    uint64_t largest; /* memory of a spare that was ready; 0: not known */
    bool has_any_hello;
    bool is_scarce; /* there was not enough memory at the last look */
    bool has_told_scarce;
    bool is_invited; /* and not all spares have been warmed */
    bool has_begun;  /* an attempt */
    bool has_started;
    bool is_first;
    bool has_parent;          /* which forks spares */
    bool is_ahead;            /* spares are forked although the workers are not quiet yet */
    struct instant ahead;     /* when they are to be; NEVER: not in this attempt, or they were */
    struct instant minute;    /* the beginning of the last one in which they were */
    int starts;               /* in that minute */
    size_t published;         /* modules that new nodes have been told of */
    bool is_ready_news;       /* a spare has become ready, which was not told yet */
    int taught;               /* spares that are ready again, which was not told yet */
    struct instant next_word; /* of spares that are awaited; NEVER: none are */
    struct instant armed;
    struct standby_effect *effects;
    size_t effect_count;
    size_t effect_capacity;
};

struct standby_plan *standby_plan_new(const struct standby_settings *settings) {
    struct standby_plan *plan = memory_allocate(sizeof *plan);
    plan->settings = *settings;
    plan->spares = memory_allocate((size_t)settings->worker_count * sizeof *plan->spares);
    plan->cold = memory_allocate((size_t)settings->worker_count * sizeof *plan->cold);
    plan->next_word = NEVER;
    plan->ahead = NEVER;
    plan->armed = NEVER;
    looking_init(&plan->looking, settings->after);
    return plan;
}

void standby_plan_free(struct standby_plan *plan) {
    if (plan != NULL) {
        free(plan->spares);
        free(plan->cold);
        free(plan->effects);
        free(plan);
    }
}

enum standby_state standby_plan_state(const struct standby_plan *plan, int local_rank) {
    return plan == NULL ? STANDBY_ABSENT : plan->spares[local_rank].state;
}

int standby_plan_count(const struct standby_plan *plan, enum standby_state state) {
    int count = 0;
    for (int rank = 0; plan != NULL && rank < plan->settings.worker_count; rank++) {
        count += plan->spares[rank].state == state ? 1 : 0;
    }
    return count;
}

uint64_t standby_plan_used(const struct standby_plan *plan) {
    return plan == NULL ? 0 : plan->used;
}

enum standby_off standby_plan_off(const struct standby_plan *plan) {
    return plan == NULL ? STANDBY_OFF_NONE : plan->off;
}

static struct standby_effect *push(struct standby_plan *plan, enum standby_effect_kind kind) {
    plan->effects = memory_reserve(
        plan->effects, &plan->effect_capacity, plan->effect_count + 1, sizeof *plan->effects);
    struct standby_effect *effect = &plan->effects[plan->effect_count++];
    *effect = (struct standby_effect){.kind = kind};
    return effect;
}

static struct standby_effect *push_told(
    struct standby_plan *plan, enum standby_effect_kind kind, int count) {
    struct standby_effect *effect = push(plan, kind);
    effect->told.count = count;
    effect->told.total = plan->settings.worker_count;
    return effect;
}

/* Ending spares. */

static void end_all(struct standby_plan *plan) {
    for (int rank = 0; rank < plan->settings.worker_count; rank++) {
        if (plan->spares[rank].state != STANDBY_GIVEN) {
            plan->spares[rank].state = STANDBY_ABSENT;
        }
    }
    plan->taught = 0;
    push(plan, STANDBY_EFFECT_END_ALL);
}

static void turn_off(
    struct standby_plan *plan, enum standby_off why, int local_rank, struct process_exit how) {
    struct standby_effect *effect = push(plan, STANDBY_EFFECT_TELL_OFF);
    effect->off.why = why;
    effect->off.local_rank = local_rank;
    effect->off.exit = how;
    plan->off = why;
    end_all(plan);
    plan->cold[local_rank] = STANDBY_COLD_OFF;
}

static bool is_importing(const struct spare *spare) {
    return spare->state == STANDBY_WARMING || spare->state == STANDBY_LEARNING;
}

static bool is_waiting(const struct spare *spare) {
    return is_importing(spare) || spare->state == STANDBY_READY;
}

static void count_death(
    struct standby_plan *plan, int local_rank, struct process_exit how, struct instant now) {
    struct duration pause;
    if (take_death(&plan->failures, &pause)) {
        plan->spares[local_rank].state = STANDBY_DUE;
        plan->spares[local_rank].not_before = instant_after(now, pause);
    } else {
        turn_off(plan, STANDBY_OFF_DEATHS, local_rank, how);
    }
}

/* The kernel kills what takes too much memory; that may be over soon. What ends by itself before it
 * is ready has gone another way than the hook's. */
static void note_end(struct standby_plan *plan, const struct standby_event *event) {
    const struct spare *spare = &plan->spares[event->ended.local_rank];
    if (is_importing(spare) && !event->ended.exit.is_signal) {
        turn_off(plan, STANDBY_OFF_ENDED, event->ended.local_rank, event->ended.exit);
    } else if (is_waiting(spare)) {
        count_death(plan, event->ended.local_rank, event->ended.exit, event->now);
    } /* else it was ended meanwhile */
}

/* Likewise where the program fails in it: what it lacks may be there soon. It would fail for the
 * other ranks now, too. */
static void note_failure(struct standby_plan *plan, const struct standby_event *event) {
    const struct spare *spare = &plan->spares[event->local_rank];
    if (!is_waiting(spare)) {
        return;
    }
    count_death(plan, event->local_rank, (struct process_exit){.value = 1}, event->now);
    for (int rank = 0; rank < plan->settings.worker_count; rank++) {
        plan->spares[rank].not_before = spare->not_before;
    }
}

/* It has imported what workers do, or is about to. Another one will run the program. */
static void note_line(struct standby_plan *plan, int rank) {
    if (is_waiting(&plan->spares[rank])) {
        push(plan, STANDBY_EFFECT_END_SPARE)->local_rank = rank;
        plan->spares[rank].state = STANDBY_DUE;
    }
}

/* One that has not reached the hook may have run the program. */
static void end_late(struct standby_plan *plan, struct instant now) {
    for (int rank = 0; rank < plan->settings.worker_count; rank++) {
        const struct spare *spare = &plan->spares[rank];
        bool is_late = is_importing(spare) && !instant_is_before(now, spare->deadline);
        if (is_late && !spare->has_reached_hook) {
            turn_off(plan, STANDBY_OFF_LATE, rank, (struct process_exit){0});
            return;
        }
        if (is_late) {
            push(plan, STANDBY_EFFECT_END_SPARE)->local_rank = rank;
            count_death(plan, rank, (struct process_exit){.is_signal = true}, now);
        }
    }
}

static void note_spare_hello(struct standby_plan *plan, const struct standby_event *event) {
    struct spare *spare = &plan->spares[event->local_rank];
    if (spare->state == STANDBY_WARMING && !spare->has_reached_hook) {
        spare->has_reached_hook = true;
        spare->deadline =
            instant_after(event->now, duration_from_seconds(STANDBY_PATIENCE_SECONDS));
    }
}

/* Looking at what workers import. */

static void note_silence(struct standby_plan *plan) {
    if (!plan->has_any_hello && looking_note_silence(&plan->looking)) {
        push(plan, STANDBY_EFFECT_TELL_SILENT);
    }
}

static void note_memory(struct standby_plan *plan, uint64_t available) {
    uint64_t size = plan->largest > 0 ? plan->largest : plan->settings.assumed;
    plan->is_scarce =
        plan->settings.is_auto && !leaves_memory(available, plan->settings.worker_count, size);
    if (plan->is_scarce && !plan->has_told_scarce) {
        plan->has_told_scarce = true;
        push(plan, STANDBY_EFFECT_TELL_SCARCE);
    }
    if (plan->is_scarce) {
        end_all(plan);
    }
}

static void find_outdated(struct standby_plan *plan, struct duration quiet) {
    bool is_settled =
        quiet.nanoseconds >= duration_from_seconds(STANDBY_SETTLED_SECONDS).nanoseconds;
    size_t tolerated = is_settled ? 0 : STANDBY_MODULES_BEHIND;
    for (int rank = 0; rank < plan->settings.worker_count; rank++) {
        struct spare *spare = &plan->spares[rank];
        spare->is_behind = spare->state == STANDBY_READY && !spare->is_at_line &&
                           plan->looking.modules > spare->modules + tolerated;
    }
}

static void want_missing(struct standby_plan *plan) {
    for (int rank = 0; rank < plan->settings.worker_count; rank++) {
        struct spare *spare = &plan->spares[rank];
        bool is_missing = spare->state == STANDBY_ABSENT || spare->state == STANDBY_GIVEN;
        if (is_missing && spare->has_hello) {
            spare->state = STANDBY_DUE;
        }
    }
}

static void publish(struct standby_plan *plan) {
    if (plan->is_first && plan->looking.modules != plan->published) {
        plan->published = plan->looking.modules;
        push(plan, STANDBY_EFFECT_PUBLISH);
    }
}

static void note_records(struct standby_plan *plan, const struct standby_event *event) {
    if (!looking_take(&plan->looking, event->now, event->records.quiet, event->records.modules)) {
        return;
    }
    note_silence(plan);
    publish(plan);
    note_memory(plan, event->records.memory);
    if (!plan->is_scarce) {
        find_outdated(plan, event->records.quiet);
        want_missing(plan);
    }
}

/* Spares. */

static void note_ready(struct standby_plan *plan, const struct standby_event *event) {
    struct spare *spare = &plan->spares[event->ready.local_rank];
    if (is_importing(spare)) {
        plan->is_ready_news = plan->is_ready_news || spare->state == STANDBY_WARMING;
        plan->taught += spare->state == STANDBY_LEARNING ? 1 : 0;
        spare->state = STANDBY_READY;
        spare->has_reached_hook = true;
        spare->is_behind = false;
        spare->is_at_line = event->ready.is_at_line;
        spare->bytes = event->ready.bytes;
        plan->largest = spare->bytes > plan->largest ? spare->bytes : plan->largest;
    }
}

static int count_importing(const struct standby_plan *plan) {
    return standby_plan_count(plan, STANDBY_WARMING) + standby_plan_count(plan, STANDBY_LEARNING);
}

static void tell_ready(struct standby_plan *plan) {
    int ready = standby_plan_count(plan, STANDBY_READY);
    bool is_more_to_come = standby_plan_count(plan, STANDBY_DUE) > 0 || count_importing(plan) > 0;
    if (!plan->is_ready_news || ready == 0 || is_more_to_come) {
        return;
    }
    struct standby_effect *effect = push_told(plan, STANDBY_EFFECT_TELL_READY, ready);
    for (int rank = 0; rank < plan->settings.worker_count; rank++) {
        const struct spare *spare = &plan->spares[rank];
        effect->told.bytes += spare->state == STANDBY_READY ? spare->bytes : 0;
        effect->told.at_line += spare->state == STANDBY_READY && spare->is_at_line ? 1 : 0;
    }
    plan->is_ready_news = false;
}

static void tell_taught(struct standby_plan *plan) {
    if (plan->taught == 0 || count_importing(plan) > 0) {
        return;
    }
    push_told(plan, STANDBY_EFFECT_TELL_TAUGHT, plan->taught);
    plan->taught = 0;
}

/* Spares that are awaited. */

static bool is_put_off(const struct spare *spare, struct instant now) {
    return spare->state == STANDBY_DUE && instant_is_before(now, spare->not_before);
}

static bool is_unbegun(const struct standby_plan *plan, const struct spare *spare) {
    bool is_missing = spare->state == STANDBY_ABSENT || spare->state == STANDBY_GIVEN;
    return !plan->looking.is_quiet && (is_missing || spare->state == STANDBY_DUE);
}

static struct standby_awaited count_awaited(const struct standby_plan *plan, struct instant now) {
    struct standby_awaited awaited = {.total = plan->settings.worker_count};
    for (int rank = 0; rank < plan->settings.worker_count; rank++) {
        const struct spare *spare = &plan->spares[rank];
        if (spare->state == STANDBY_READY) {
            awaited.ready++;
        } else if (is_put_off(spare, now)) {
            awaited.ended++;
        } else if (is_unbegun(plan, spare)) {
            awaited.unbegun++;
        } else if (is_importing(spare) || spare->state == STANDBY_DUE) {
            awaited.importing++;
        } /* else there will be none, as was said */
    }
    return awaited;
}

static void tell_awaited(struct standby_plan *plan, struct instant now) {
    struct standby_awaited awaited = count_awaited(plan, now);
    bool is_awaiting = plan->looking.is_running && plan->off == STANDBY_OFF_NONE &&
                       !plan->is_scarce && awaited.importing + awaited.unbegun + awaited.ended > 0;
    int seconds = STANDBY_AWAITED_SECONDS;
    if (!is_awaiting) {
        plan->next_word = NEVER;
        return;
    }
    if (!instant_is_before(now, plan->next_word)) {
        push(plan, STANDBY_EFFECT_TELL_AWAITED)->awaited = awaited;
        plan->next_word = NEVER;
        seconds = STANDBY_STILL_AWAITED_SECONDS;
    }
    if (plan->next_word.nanoseconds == NEVER.nanoseconds) {
        plan->next_word = instant_after(now, duration_from_seconds(seconds));
    }
}

/* Forks cost milliseconds, which the new workers have first. */
static void plan_ahead(struct standby_plan *plan, struct instant now) {
    bool is_planned = plan->has_parent && plan->looking.is_running;
    struct duration pause = duration_from_milliseconds(STANDBY_AHEAD_MILLISECONDS);
    plan->ahead = is_planned ? instant_after(now, pause) : NEVER;
}

static void end_ahead(struct standby_plan *plan) {
    plan->is_ahead = false;
    plan->ahead = NEVER;
}

/* But not again and again in a crash loop. */
static void fork_ahead(struct standby_plan *plan, struct instant now) {
    if (instant_is_before(now, plan->ahead)) {
        return;
    }
    plan->ahead = NEVER;
    struct instant end = instant_after(plan->minute, duration_from_seconds(60));
    if (plan->starts == 0 || !instant_is_before(now, end)) {
        plan->minute = now;
        plan->starts = 0;
    }
    plan->is_ahead = plan->has_parent && plan->looking.is_running && !plan->is_scarce &&
                     plan->starts < STANDBY_FORKS_MAXIMUM;
    if (plan->is_ahead) {
        plan->starts++;
        want_missing(plan);
    }
}

/* Spares that have become workers, or not. */

static enum standby_cold cold_of_absent(
    const struct standby_plan *plan, const struct spare *spare) {
    if (plan->off != STANDBY_OFF_NONE) {
        return STANDBY_COLD_OFF;
    }
    if (plan->is_scarce) {
        return STANDBY_COLD_SCARCE;
    }
    bool is_silent = !spare->has_hello && plan->looking.has_told_silent;
    return is_silent ? STANDBY_COLD_SILENT : STANDBY_COLD_NONE;
}

/* What will be true if it does not become a worker now. */
static enum standby_cold cold_of(
    const struct standby_plan *plan, const struct spare *spare, struct instant now) {
    switch (spare->state) {
    case STANDBY_DUE:
        return is_put_off(spare, now) ? STANDBY_COLD_ENDED : STANDBY_COLD_DUE;
    case STANDBY_WARMING:
        return STANDBY_COLD_IMPORTING;
    case STANDBY_LEARNING:
        return STANDBY_COLD_LEARNING;
    case STANDBY_READY:
        return STANDBY_COLD_ENDED;
    case STANDBY_ABSENT:
    case STANDBY_GIVEN:
    case STANDBY_STATE_COUNT:
        break;
    }
    return cold_of_absent(plan, spare);
}

static void find_cold(struct standby_plan *plan, struct instant now) {
    for (int rank = 0; rank < plan->settings.worker_count; rank++) {
        plan->cold[rank] = cold_of(plan, &plan->spares[rank], now);
    }
}

static void refuse(struct standby_plan *plan, int rank) {
    plan->spares[rank].state = STANDBY_ABSENT;
    plan->cold[rank] = STANDBY_COLD_REFUSED;
}

/* At the first start there is nothing to tell, unless this node was invited. */
static void tell_used(struct standby_plan *plan) {
    int given = standby_plan_count(plan, STANDBY_GIVEN);
    if (given > 0 || plan->has_started) {
        push_told(plan, STANDBY_EFFECT_TELL_USED, given)->told.cold = plan->cold;
    }
    plan->has_started = true;
}

static void forget_given(struct standby_plan *plan) {
    for (int rank = 0; rank < plan->settings.worker_count; rank++) {
        if (plan->spares[rank].state == STANDBY_GIVEN) {
            plan->spares[rank].state = STANDBY_ABSENT;
        }
    }
}

static void warm(struct standby_plan *plan, int rank, bool makes_way, struct instant now) {
    struct spare *spare = &plan->spares[rank];
    spare->state = STANDBY_WARMING;
    spare->has_reached_hook = false;
    spare->modules = plan->looking.modules;
    spare->cuts = plan->failures.cuts;
    spare->deadline = instant_after(now, duration_from_seconds(STANDBY_WARMING_SECONDS));
    struct standby_effect *effect = push(plan, STANDBY_EFFECT_WARM);
    effect->local_rank = rank;
    effect->makes_way = makes_way;
}

/* It has ended. Another one leaves out what it has named, or others have named meanwhile. */
static void note_unsuited(struct standby_plan *plan, const struct standby_event *event) {
    int rank = event->unsuited.local_rank;
    struct spare *spare = &plan->spares[rank];
    if (!is_waiting(spare)) {
        return;
    }
    if (event->unsuited.is_new && plan->is_first) {
        push(plan, STANDBY_EFFECT_PUBLISH);
    }
    if (!take_unsuited(&plan->failures, event->unsuited.is_new, spare->cuts)) {
        turn_off(plan, STANDBY_OFF_UNSUITED, rank, (struct process_exit){0});
    } else if (plan->is_invited && !plan->has_begun) {
        warm(plan, rank, false, event->now);
    } else {
        *spare = (struct spare){.state = STANDBY_DUE, .has_hello = true};
    }
}

/* Nothing else runs on this node for the job yet. */
static void warm_all(struct standby_plan *plan, const struct standby_event *event) {
    bool is_late = plan->has_begun;
    plan->is_invited = true;
    plan->looking.modules = event->records.modules;
    note_memory(plan, event->records.memory);
    for (int rank = 0; rank < plan->settings.worker_count && !is_late && !plan->is_scarce; rank++) {
        plan->spares[rank].has_hello = plan->has_any_hello = true;
        warm(plan, rank, false, event->now);
    }
}

static void end_invitation(struct standby_plan *plan) {
    if (plan->is_invited && standby_plan_count(plan, STANDBY_WARMING) == 0) {
        plan->is_invited = false;
        push(plan, STANDBY_EFFECT_WARMED);
    }
}

static void teach(struct standby_plan *plan, int rank, struct instant now) {
    struct spare *spare = &plan->spares[rank];
    spare->state = STANDBY_LEARNING;
    spare->modules = plan->looking.modules;
    spare->cuts = plan->failures.cuts;
    spare->deadline = instant_after(now, duration_from_seconds(STANDBY_PATIENCE_SECONDS));
    push(plan, STANDBY_EFFECT_TEACH)->local_rank = rank;
}

static bool warm_first_due(struct standby_plan *plan, struct instant now) {
    for (int rank = 0; rank < plan->settings.worker_count; rank++) {
        const struct spare *spare = &plan->spares[rank];
        if (spare->state == STANDBY_DUE && !instant_is_before(now, spare->not_before)) {
            warm(plan, rank, true, now);
            return true;
        }
    }
    return false;
}

static void teach_first_behind(struct standby_plan *plan, struct instant now) {
    for (int rank = 0; rank < plan->settings.worker_count; rank++) {
        if (plan->spares[rank].state == STANDBY_READY && plan->spares[rank].is_behind) {
            teach(plan, rank, now);
            return;
        }
    }
}

/* One at a time, and only beside workers that run and import nothing. Those that are forked import
 * nothing themselves. */
static void import_next(struct standby_plan *plan, struct instant now) {
    bool may_begin = plan->looking.is_quiet || plan->is_ahead;
    if (!may_begin) {
        return;
    }
    while (plan->has_parent && warm_first_due(plan, now)) {
    }
    if (count_importing(plan) == 0 && !warm_first_due(plan, now) && plan->looking.is_quiet) {
        teach_first_behind(plan, now);
    }
}

/* The timer. */

static struct instant next_deadline(const struct standby_plan *plan, struct instant now) {
    struct instant next = instant_earlier(plan->looking.next, plan->ahead);
    if (plan->looking.next.nanoseconds != NEVER.nanoseconds) { /* else its answer comes first */
        next = instant_earlier(next, plan->next_word);
    }
    for (int rank = 0; rank < plan->settings.worker_count; rank++) {
        const struct spare *spare = &plan->spares[rank];
        if (is_importing(spare)) {
            next = instant_earlier(next, spare->deadline);
        } else if (spare->state == STANDBY_DUE && plan->looking.is_quiet &&
                   instant_is_before(now, spare->not_before)) {
            next = instant_earlier(next, spare->not_before);
        }
    }
    return next;
}

static void arm(struct standby_plan *plan, struct instant now) {
    struct instant next = plan->off == STANDBY_OFF_NONE ? next_deadline(plan, now) : NEVER;
    if (next.nanoseconds == plan->armed.nanoseconds) {
        return;
    }
    plan->armed = next;
    if (next.nanoseconds == NEVER.nanoseconds) {
        push(plan, STANDBY_EFFECT_DISARM_TIMER);
    } else {
        push(plan, STANDBY_EFFECT_ARM_TIMER)->deadline = next;
    }
}

static void note_timer(struct standby_plan *plan, struct instant now) {
    if (!instant_is_before(now, plan->armed)) {
        plan->armed = NEVER;
    }
    end_late(plan, now);
    if (plan->off != STANDBY_OFF_NONE) {
        return;
    }
    fork_ahead(plan, now);
    if (looking_is_due(&plan->looking, now)) {
        push(plan, STANDBY_EFFECT_LOOK);
    }
}

/* One event. */

static void take(struct standby_plan *plan, const struct standby_event *event) {
    switch (event->kind) {
    case STANDBY_EVENT_ATTEMPT_BEGAN:
        plan->has_begun = true;
        forget_given(plan);
        find_cold(plan, event->now);
        break;
    case STANDBY_EVENT_WORKERS_STARTED:
        tell_used(plan);
        plan->is_first = event->is_first;
        looking_begin(&plan->looking, event->now, event->may_restart);
        plan_ahead(plan, event->now);
        break;
    case STANDBY_EVENT_WORKERS_ENDING:
        looking_end(&plan->looking);
        end_ahead(plan);
        break;
    case STANDBY_EVENT_JOB_ENDING:
        looking_end(&plan->looking);
        end_ahead(plan);
        end_all(plan);
        break;
    case STANDBY_EVENT_HELLO:
        plan->spares[event->local_rank].has_hello = true;
        plan->has_any_hello = true;
        break;
    case STANDBY_EVENT_LINE:
        note_line(plan, event->local_rank);
        break;
    case STANDBY_EVENT_RECORDS:
        note_records(plan, event);
        break;
    case STANDBY_EVENT_INVITED:
        warm_all(plan, event);
        break;
    case STANDBY_EVENT_SPARE_HELLO:
        note_spare_hello(plan, event);
        break;
    case STANDBY_EVENT_SPARE_READY:
        note_ready(plan, event);
        break;
    case STANDBY_EVENT_SPARE_DIRTY:
        if (is_waiting(&plan->spares[event->local_rank])) {
            turn_off(plan, STANDBY_OFF_DIRTY, event->local_rank, (struct process_exit){0});
        }
        break;
    case STANDBY_EVENT_SPARE_UNSUITED:
        note_unsuited(plan, event);
        break;
    case STANDBY_EVENT_SPARE_ENDED:
        note_end(plan, event);
        break;
    case STANDBY_EVENT_SPARE_FAILED:
        note_failure(plan, event);
        break;
    case STANDBY_EVENT_SPARE_GIVEN:
        plan->spares[event->local_rank].state = STANDBY_GIVEN;
        plan->cold[event->local_rank] = STANDBY_COLD_NOT;
        plan->used++;
        break;
    case STANDBY_EVENT_SPARE_REFUSED:
        refuse(plan, event->local_rank);
        break;
    case STANDBY_EVENT_PARENT:
        plan->has_parent = event->parent.is_there;
        plan->is_ahead = plan->is_ahead && plan->has_parent;
        if (event->parent.has_cut && plan->is_first) {
            push(plan, STANDBY_EFFECT_PUBLISH);
        }
        break;
    case STANDBY_EVENT_TIMER_FIRED:
        note_timer(plan, event->now);
        break;
    case STANDBY_EVENT_COUNT:
        break;
    }
}

/* Without spares there is only to be told who has become a worker, and who has not. */
static bool is_heard(const struct standby_plan *plan, enum standby_event_kind kind) {
    return plan->off == STANDBY_OFF_NONE || kind == STANDBY_EVENT_ATTEMPT_BEGAN ||
           kind == STANDBY_EVENT_SPARE_GIVEN;
}

void standby_plan_step(struct standby_plan *plan, const struct standby_event *event,
    struct standby_effects *out_effects) {
    plan->effect_count = 0;
    if (is_heard(plan, event->kind)) {
        take(plan, event);
    } else if (event->kind == STANDBY_EVENT_WORKERS_STARTED) {
        tell_used(plan);
    }
    end_invitation(plan);
    if (plan->off == STANDBY_OFF_NONE) {
        import_next(plan, event->now);
        tell_ready(plan);
        tell_taught(plan);
    }
    tell_awaited(plan, event->now);
    arm(plan, event->now);
    *out_effects = (struct standby_effects){plan->effects, plan->effect_count};
}

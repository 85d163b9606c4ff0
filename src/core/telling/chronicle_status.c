/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/chronicle_status.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* Recoveries. */

static void clear_recovery(struct chronicle_recovery *recovery) {
    free(recovery->what);
    free(recovery->node);
    for (int moment = 0; moment < RECOVERY_MOMENT_COUNT; moment++) {
        free(recovery->last[moment]);
    }
}

static struct chronicle_recovery copy_of(const struct chronicle_recovery *recovery) {
    struct chronicle_recovery copy = *recovery;
    copy.what = memory_duplicate_string(recovery->what);
    copy.node = memory_duplicate_string(recovery->node);
    for (int moment = 0; moment < RECOVERY_MOMENT_COUNT; moment++) {
        copy.last[moment] = memory_duplicate_string(recovery->last[moment]);
    }
    return copy;
}

static struct chronicle_recovery *copy_recoveries(
    const struct chronicle_recovery *recoveries, size_t count) {
    struct chronicle_recovery *copies = memory_allocate((count + 1) * sizeof *copies);
    for (size_t i = 0; i < count; i++) {
        copies[i] = copy_of(&recoveries[i]);
    }
    return copies;
}

static void clear_recoveries(struct chronicle_recovery *recoveries, size_t count) {
    for (size_t i = 0; i < count; i++) {
        clear_recovery(&recoveries[i]);
    }
    free(recoveries);
}

void chronicle_past_clear(struct chronicle_past *past) {
    clear_recoveries(past->recoveries, past->recovery_count);
    *past = (struct chronicle_past){0};
}

static void copy_past(const struct chronicle_past *past, struct chronicle_past *out_copy) {
    *out_copy = *past;
    out_copy->recoveries =
        past->recovery_count > 0 ? copy_recoveries(past->recoveries, past->recovery_count) : NULL;
}

void chronicle_status_clear(struct chronicle_status *status) {
    for (size_t i = 0; i < status->known_nodes; i++) {
        free(status->nodes[i].name);
        free(status->nodes[i].version);
    }
    clear_recoveries(status->recoveries, status->recovery_count);
    chronicle_past_clear(&status->past);
    free(status->nodes);
    free(status->excluded.node);
    free(status->excluded.reason);
    free(status->kept.node);
    free(status->kept.reason);
    free(status->hung);
    free(status->hung_node);
    if (status->places != NULL) {
        table_free(status->places);
    }
    *status = (struct chronicle_status){0};
}

void chronicle_status_copy(
    const struct chronicle_status *status, struct chronicle_status *out_copy) {
    *out_copy = *status;
    out_copy->places = NULL;
    out_copy->hung = memory_duplicate_string(status->hung);
    out_copy->hung_node = memory_duplicate_string(status->hung_node);
    out_copy->node_capacity = 0;
    out_copy->recovery_capacity = status->recovery_count + 1;
    out_copy->nodes = memory_reserve(
        NULL, &out_copy->node_capacity, status->known_nodes + 1, sizeof *out_copy->nodes);
    out_copy->recoveries = copy_recoveries(status->recoveries, status->recovery_count);
    copy_past(&status->past, &out_copy->past);
    out_copy->excluded.node = memory_duplicate_string(status->excluded.node);
    out_copy->excluded.reason = memory_duplicate_string(status->excluded.reason);
    out_copy->kept.node = memory_duplicate_string(status->kept.node);
    out_copy->kept.reason = memory_duplicate_string(status->kept.reason);
    for (size_t i = 0; i < status->known_nodes; i++) {
        out_copy->nodes[i] = status->nodes[i];
        out_copy->nodes[i].name = memory_duplicate_string(status->nodes[i].name);
        out_copy->nodes[i].version = memory_duplicate_string(status->nodes[i].version);
    }
}

/* Nodes. */

static bool is_any_present(const struct chronicle_status *status) {
    int count = 0;
    for (int state = 0; state < CHRONICLE_NODE_ENDED; state++) {
        count += status->in_state[state];
    }
    return count > 0;
}

static bool runs(enum chronicle_node_state state) {
    return state == CHRONICLE_NODE_RUNNING || state == CHRONICLE_NODE_TRAINING;
}

static bool has_node_in(const struct chronicle_status *status, enum chronicle_node_state state) {
    return status->in_state[state] > 0;
}

static void set_state(
    struct chronicle_status *status, struct chronicle_node *node, enum chronicle_node_state state) {
    status->in_state[node->state]--;
    status->in_state[state]++;
    if (node->has_trained) {
        status->trained_running_count += (state == CHRONICLE_NODE_RUNNING ? 1 : 0) -
                                         (node->state == CHRONICLE_NODE_RUNNING ? 1 : 0);
    }
    node->state = state;
}

/* The table's values are numbers from 1 on. */
static void note_place(struct chronicle_status *status, size_t index) {
    table_put(status->places, slice_from_string(status->nodes[index].name),
        (void *)(uintptr_t)(index + 1));
}

int chronicle_status_find(struct chronicle_status *status, const char *name) {
    if (status->places == NULL) {
        status->places = table_new(NULL);
        for (size_t i = 0; i < status->known_nodes; i++) {
            note_place(status, i);
        }
    }
    return (int)(uintptr_t)table_get(status->places, slice_from_string(name)) - 1;
}

/* NULL: there are too many. */
static struct chronicle_node *node_of(struct chronicle_status *status, const char *name) {
    int place = chronicle_status_find(status, name);
    if (place >= 0) {
        return &status->nodes[place];
    }
    if (status->known_nodes >= CHRONICLE_NODES_MAXIMUM) {
        return NULL;
    }
    status->nodes = memory_reserve(
        status->nodes, &status->node_capacity, status->known_nodes + 1, sizeof *status->nodes);
    struct chronicle_node *node = &status->nodes[status->known_nodes++];
    *node = (struct chronicle_node){.name = memory_duplicate_string(name),
        .rank = -1,
        .round = -1,
        .first_rank = -1,
        .workers = -1,
        .step = -1,
        .rate = -1,
        .spares_ready = -1,
        .spares = -1};
    status->in_state[node->state]++;
    note_place(status, status->known_nodes - 1);
    return node;
}

/* Time. */

static void add_time(struct chronicle_status *status, struct duration time) {
    struct chronicle_account *account = &status->account;
    account->states[status->state].nanoseconds += time.nanoseconds;
    if (status->state == JOB_RECOVERING && status->recovery_count > 0) {
        enum chronicle_cause cause = status->recoveries[status->recovery_count - 1].cause;
        account->recovering[cause].nanoseconds += time.nanoseconds;
    }
    if (status->state == JOB_RUNNING) {
        status->since_started.nanoseconds += time.nanoseconds;
    }
    if (status->state == JOB_RUNNING || status->state == JOB_TRAINING ||
        status->state == JOB_HANGING) {
        double seconds = duration_seconds(time);
        account->worker_seconds += seconds * status->worker_count;
        account->missing_worker_seconds +=
            seconds * (status->largest_worker_count - status->worker_count);
    }
}

static void go_on(struct chronicle_status *status, struct wall_time now) {
    if (!status->has_begun) {
        status->has_begun = true;
        status->began = status->since = status->now = now;
    }
    if (now.nanoseconds > status->now.nanoseconds) {
        add_time(status, (struct duration){now.nanoseconds - status->now.nanoseconds});
        status->now = now;
    }
}

static void reach_past(struct chronicle_status *status);

void chronicle_status_advance(struct chronicle_status *status, struct wall_time now) {
    if (status->past.until.nanoseconds != 0 && now.nanoseconds >= status->past.until.nanoseconds) {
        reach_past(status);
    }
    go_on(status, now);
}

struct duration chronicle_status_wall(const struct chronicle_status *status) {
    return (struct duration){status->now.nanoseconds - status->began.nanoseconds -
                             status->account.states[JOB_ENDED].nanoseconds};
}

/* A recovery at work. */

static struct chronicle_recovery *open_recovery(struct chronicle_status *status) {
    struct chronicle_recovery *last =
        status->recovery_count > 0 ? &status->recoveries[status->recovery_count - 1] : NULL;
    return last != NULL && !last->is_over && !last->is_given_up ? last : NULL;
}

static void forget_from(struct chronicle_recovery *recovery, int moment) {
    for (; moment < RECOVERY_MOMENT_COUNT; moment++) {
        recovery->moments[moment] = (struct wall_time){0};
        free(recovery->last[moment]);
        recovery->last[moment] = NULL;
    }
}

static void reach(struct chronicle_status *status, enum recovery_moment moment,
    const struct chronicle_node *node) {
    struct chronicle_recovery *recovery = open_recovery(status);
    if (recovery == NULL) {
        return;
    }
    recovery->moments[moment] = status->now;
    free(recovery->last[moment]);
    recovery->last[moment] = memory_duplicate_string(node != NULL ? node->name : NULL);
    /* What was reached before is to be reached once more, where a failure interrupts. */
    forget_from(recovery, (int)moment + 1);
}

static void know_culprit(struct chronicle_recovery *recovery, const struct chronicle_entry *entry) {
    free(recovery->what);
    if (entry->kind == CHRONICLE_WORKER_FAILED) {
        recovery->rank = (int)chronicle_entry_number(entry, CHRONICLE_RANK, -1);
        recovery->exit = (int)chronicle_entry_number(entry, CHRONICLE_EXIT,
            -chronicle_entry_number(entry, CHRONICLE_SIGNAL, -(int64_t)INT_MIN));
        recovery->what = memory_duplicate_string(chronicle_entry_text(entry, CHRONICLE_TEXT));
        recovery->node = memory_duplicate_string(entry->node);
    } else {
        recovery->what = memory_duplicate_string(chronicle_entry_text(entry, CHRONICLE_REASON));
        if (entry->kind == CHRONICLE_NODE_LOST) {
            recovery->node = memory_duplicate_string(entry->node);
        }
    }
}

/* Of entries of several nodes, dated by the host that heard of them, a consequence may seem to be
 * before its cause. */
static bool is_culprit_missing(
    const struct chronicle_recovery *recovery, enum chronicle_cause cause) {
    return recovery->cause == cause && recovery->node == NULL &&
           recovery->moments[RECOVERY_AGREED].nanoseconds == 0;
}

static void begin_recovery(struct chronicle_status *status, enum chronicle_cause cause,
    const struct chronicle_node *node, const struct chronicle_entry *entry) {
    struct chronicle_recovery *open = open_recovery(status);
    if (status->has_past && entry->time.nanoseconds <= status->host_changed.nanoseconds) {
        return; /* told once more, and late: it is among those of the past */
    }
    if (open != NULL) {
        if (entry->kind != CHRONICLE_STOPPING && is_culprit_missing(open, cause)) {
            know_culprit(open, entry);
        }
        /* A failure in a recovery belongs to it: what had been started starts once more. */
        forget_from(open, RECOVERY_STARTED);
        return;
    }
    if (status->recovery_count == CHRONICLE_RECOVERIES_MAXIMUM) {
        clear_recovery(&status->recoveries[0]);
        memmove(status->recoveries, status->recoveries + 1,
            --status->recovery_count * sizeof *status->recoveries);
        status->recoveries_before++;
    }
    status->recoveries = memory_reserve(status->recoveries, &status->recovery_capacity,
        status->recovery_count + 1, sizeof *status->recoveries);
    struct chronicle_recovery *recovery = &status->recoveries[status->recovery_count++];
    *recovery = (struct chronicle_recovery){
        .cause = cause, .round = status->round, .rank = -1, .exit = INT_MIN, .redone_steps = -1};
    know_culprit(recovery, entry);
    reach(status, RECOVERY_FAILED, NULL);
    if (cause == CHRONICLE_CAUSE_HANG && status->is_hanging) {
        recovery->moments[RECOVERY_FAILED] = status->hung_since;
    }
    reach(status, RECOVERY_NOTICED, entry->kind == CHRONICLE_NODE_LOST ? NULL : node);
}

/* Whether workers run that have not taken a step yet, though they are known to take steps. */
static bool awaits_steps(const struct chronicle_status *status) {
    return status->trained_running_count > 0 ||
           (status->trained_count > 0 && has_node_in(status, CHRONICLE_NODE_RUNNING) &&
               !has_node_in(status, CHRONICLE_NODE_TRAINING));
}

static bool is_any_at_work(const struct chronicle_status *status) {
    return has_node_in(status, CHRONICLE_NODE_RUNNING) ||
           has_node_in(status, CHRONICLE_NODE_TRAINING);
}

struct duration chronicle_recovery_phase(
    const struct chronicle_recovery *recovery, enum recovery_moment until) {
    struct wall_time from = recovery->moments[RECOVERY_FAILED];
    for (int moment = RECOVERY_FAILED + 1; moment < (int)until; moment++) {
        if (recovery->moments[moment].nanoseconds > from.nanoseconds) {
            from = recovery->moments[moment];
        }
    }
    int64_t time = recovery->moments[until].nanoseconds - from.nanoseconds;
    return (struct duration){time > 0 ? time : 0};
}

const double recovery_bounds[RECOVERY_BUCKETS] = {
    0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 120, 600};

static void tally_time(struct recovery_times *times, struct duration time) {
    size_t bucket = 0;
    while (bucket < RECOVERY_BUCKETS && duration_seconds(time) > recovery_bounds[bucket]) {
        bucket++;
    }
    if (bucket < RECOVERY_BUCKETS) {
        times->counts[bucket]++;
    }
    times->count++;
    times->sum.nanoseconds += time.nanoseconds;
}

static void tally_recovery(
    struct recovery_tally *tally, const struct chronicle_recovery *recovery) {
    struct duration whole = {0};
    for (int moment = RECOVERY_NOTICED; moment < RECOVERY_MOMENT_COUNT; moment++) {
        if (recovery->moments[moment].nanoseconds != 0) {
            struct duration phase =
                chronicle_recovery_phase(recovery, (enum recovery_moment)moment);
            tally_time(&tally->phases[moment], phase);
            whole.nanoseconds += phase.nanoseconds;
        }
    }
    tally_time(&tally->phases[RECOVERY_FAILED], whole);
    tally->by_cause[recovery->cause]++;
}

/* All that go on run again; or nobody goes on. */
static void end_recovery(struct chronicle_status *status) {
    struct chronicle_recovery *recovery = open_recovery(status);
    if (recovery == NULL || has_node_in(status, CHRONICLE_NODE_STOPPING) ||
        has_node_in(status, CHRONICLE_NODE_JOINING) ||
        has_node_in(status, CHRONICLE_NODE_STARTING) || awaits_steps(status)) {
        return;
    }
    recovery->is_over = recovery->moments[RECOVERY_STARTED].nanoseconds != 0;
    if (recovery->is_over) {
        tally_recovery(&status->tally, recovery);
    }
    /* Where nodes run, and none is to start, the failure is news of which the others hear next. */
    recovery->is_given_up = !recovery->is_over && !is_any_at_work(status);
}

/* The past. */

static bool is_done_with(const struct chronicle_recovery *recovery) {
    return recovery->is_over || recovery->is_given_up;
}

void chronicle_status_write_past(
    const struct chronicle_status *status, struct chronicle_past *out_past) {
    size_t done = status->recovery_count;
    while (done > 0 && !is_done_with(&status->recoveries[done - 1])) {
        done--;
    }
    size_t first =
        done > CHRONICLE_PAST_RECOVERIES_MAXIMUM ? done - CHRONICLE_PAST_RECOVERIES_MAXIMUM : 0;
    *out_past = (struct chronicle_past){.began = status->began,
        .until = status->has_begun ? status->now : (struct wall_time){0},
        .state = status->state,
        .largest_worker_count = status->largest_worker_count,
        .account = status->account,
        .recovery_number = status->recoveries_before + done,
        .last_round = done > 0 ? status->recoveries[done - 1].round : -1,
        .recoveries = done > 0 ? copy_recoveries(status->recoveries + first, done - first) : NULL,
        .recovery_count = done - first};
}

static int64_t last_round_of(const struct chronicle_past *past) {
    return past->recovery_count > 0 ? past->recoveries[past->recovery_count - 1].round : -1;
}

void chronicle_past_join(struct chronicle_past *past, const struct chronicle_past *other) {
    int64_t own_round = last_round_of(past);
    int64_t other_round = last_round_of(other);
    if (other_round > own_round ||
        (other_round == own_round && other->recovery_count > past->recovery_count)) {
        clear_recoveries(past->recoveries, past->recovery_count);
        past->recoveries = copy_recoveries(other->recoveries, other->recovery_count);
        past->recovery_count = other->recovery_count;
    }
    if (other->until.nanoseconds > past->until.nanoseconds) {
        struct chronicle_past later = *other;
        later.recoveries = past->recoveries;
        later.recovery_count = past->recovery_count;
        *past = later;
    }
}

/* Of a recovery that another failure has made longer the entries that are told again may show two,
 * of which the second one begins in a later round. */
static bool is_of_past(const struct chronicle_recovery *recovery, const struct chronicle_past *past,
    int64_t last_round) {
    bool is_open_there = past->state == JOB_RECOVERING && !is_done_with(recovery);
    return recovery->round <= last_round ||
           (past->recovery_count > 0 && !is_open_there &&
               recovery->moments[RECOVERY_FAILED].nanoseconds <= past->until.nanoseconds);
}

/* Those of the past, and of these entries what is later. */
static void join_recoveries(struct chronicle_status *status, struct chronicle_past *past) {
    int64_t last_round = last_round_of(past);
    size_t count = past->recovery_count;
    size_t told_before = past->recovery_count;
    past->recoveries = memory_reallocate(
        past->recoveries, (count + status->recovery_count + 1) * sizeof *past->recoveries);
    for (size_t i = 0; i < status->recovery_count; i++) {
        struct chronicle_recovery *recovery = &status->recoveries[i];
        if (is_of_past(recovery, past, last_round)) {
            clear_recovery(recovery);
            continue;
        }
        told_before += is_done_with(recovery) && recovery->round <= past->last_round ? 1 : 0;
        past->recoveries[count++] = *recovery;
    }
    size_t dropped =
        count > CHRONICLE_RECOVERIES_MAXIMUM ? count - CHRONICLE_RECOVERIES_MAXIMUM : 0;
    for (size_t i = 0; i < dropped; i++) {
        clear_recovery(&past->recoveries[i]);
    }
    memmove(
        past->recoveries, past->recoveries + dropped, (count - dropped) * sizeof *past->recoveries);
    free(status->recoveries);
    status->recoveries = past->recoveries;
    status->recovery_count = count - dropped;
    status->recovery_capacity = count + 1;
    status->recoveries_before =
        dropped + (past->recovery_number > told_before ? past->recovery_number - told_before : 0);
    past->recoveries = NULL;
    past->recovery_count = 0;
}

/* Of the recoveries that are known, each has one node whose worker was first. */
static void count_first_failures(struct chronicle_status *status) {
    for (size_t i = 0; i < status->known_nodes; i++) {
        status->nodes[i].failed_first = 0;
    }
    for (size_t i = 0; i < status->recovery_count; i++) {
        const struct chronicle_recovery *recovery = &status->recoveries[i];
        int place = recovery->rank >= 0 && recovery->node != NULL
                        ? chronicle_status_find(status, recovery->node)
                        : -1;
        if (place >= 0) {
            status->nodes[place].failed_first++;
        }
    }
}

static void reach_past(struct chronicle_status *status) {
    struct chronicle_past past = status->past;
    status->past = (struct chronicle_past){0};
    if (!status->has_begun) {
        status->state = past.state;
    }
    go_on(status, past.until);
    status->host_changed = past.until;
    status->has_past = true;
    status->began = past.began;
    status->account = past.account;
    status->tally = (struct recovery_tally){0};
    if (past.largest_worker_count > status->largest_worker_count) {
        status->largest_worker_count = past.largest_worker_count;
    }
    int64_t running = past.account.states[JOB_RUNNING].nanoseconds;
    if (status->since_started.nanoseconds > running) {
        status->since_started.nanoseconds = running;
    }
    join_recoveries(status, &past);
    count_first_failures(status);
}

/* Steps. */

/* Up to now the job has started, as is known by its first step. */
static void take_training(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    if (!runs(node->state)) {
        return; /* it stops again already */
    }
    set_state(status, node, CHRONICLE_NODE_TRAINING);
    status->trained_count += node->has_trained ? 0 : 1;
    node->has_trained = true;
    status->source = progress_source_from_name(chronicle_entry_text(entry, CHRONICLE_SOURCE));
    if (open_recovery(status) == NULL) {
        status->account.states[JOB_RUNNING].nanoseconds -= status->since_started.nanoseconds;
        status->account.states[JOB_STARTING].nanoseconds += status->since_started.nanoseconds;
        status->since_started = (struct duration){0};
    }
    reach(status, RECOVERY_TRAINING, node);
}

/* Of the time from one told step to the next one that part in which lost steps were taken again. */
static void count_redone(struct chronicle_status *status, int64_t step, struct wall_time at) {
    int64_t before = status->step_of_world;
    int64_t time = at.nanoseconds - status->stepped.nanoseconds;
    if (before < 0 || step <= before || before >= status->lost_step || time <= 0) {
        return;
    }
    int64_t last = step < status->lost_step ? step : status->lost_step;
    double part = (double)(last - before) / (double)(step - before);
    int64_t room =
        status->account.states[JOB_TRAINING].nanoseconds - status->account.redone.nanoseconds;
    int64_t redone = (int64_t)((double)time * part);
    status->account.redone.nanoseconds += redone < room ? redone : room;
    status->lost_step = step < status->lost_step ? status->lost_step : -1;
}

static void take_first_step(struct chronicle_status *status, int64_t step) {
    struct chronicle_recovery *last =
        status->recovery_count > 0 ? &status->recoveries[status->recovery_count - 1] : NULL;
    if (last != NULL && last->redone_steps < 0 && status->lost_step >= 0) {
        last->redone_steps = status->lost_step >= step ? status->lost_step - step + 1 : 0;
    }
}

/* The numbers of an optimizer's steps say nothing of those before. */
static void take_progress(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    int64_t step = chronicle_entry_number(entry, CHRONICLE_STEP, -1);
    status->source = progress_source_from_name(chronicle_entry_text(entry, CHRONICLE_SOURCE));
    node->step = step;
    node->rate = chronicle_entry_rate(entry, CHRONICLE_RATE, -1);
    status->is_hanging = status->is_hanging && node->rate == 0;
    if (!runs(node->state) || step < 0) {
        return;
    }
    status->account.knows_redone = status->source == PROGRESS_PROGRAM;
    if (status->source == PROGRESS_PROGRAM) {
        if (status->step_of_world < 0) {
            take_first_step(status, step);
        }
        count_redone(status, step, entry->time);
    }
    status->step = status->step_of_world = step;
    status->stepped = entry->time;
    if (node->rate >= 0) {
        status->rate = node->rate;
    }
}

/* Its steps from here on are those of another world. */
static void lose_steps(struct chronicle_status *status) {
    if (status->source == PROGRESS_PROGRAM && status->step_of_world > status->lost_step) {
        status->lost_step = status->step_of_world;
    }
    status->step_of_world = -1;
    status->since_started = (struct duration){0};
}

/* Entries. */

/* Rounds count up from a multiple of this, which is another one where the record was lost. */
#define ROUNDS_OF_A_RECORD 1000

static bool is_earlier(int64_t round, int64_t other) {
    return round < other && round / ROUNDS_OF_A_RECORD == other / ROUNDS_OF_A_RECORD;
}

/* The job has gone on from this round. */
static bool is_behind(const struct chronicle_status *status, int64_t round) {
    return round != status->round && !is_earlier(status->round, round);
}

/* The job has gone on without the node that tells this, which stood still. */
static bool is_of_old_round(
    const struct chronicle_status *status, const struct chronicle_entry *entry) {
    return status->has_round && entry->has_round && is_behind(status, entry->round);
}

/* Those of torchrun's that are in the next world are told with it. */
static void forget_foreign(struct chronicle_status *status) {
    for (size_t i = 0; has_node_in(status, CHRONICLE_NODE_FOREIGN) && i < status->known_nodes;
         i++) {
        if (status->nodes[i].state == CHRONICLE_NODE_FOREIGN) {
            set_state(status, &status->nodes[i], CHRONICLE_NODE_GONE);
        }
    }
}

static void take_world(struct chronicle_status *status, const struct chronicle_entry *entry) {
    struct chronicle_recovery *recovery = open_recovery(status);
    if (status->has_round && is_earlier(entry->round, status->round)) {
        return; /* of a node that stood still */
    }
    if (!status->has_round || status->round != entry->round) {
        status->joined_count = 0;
        forget_foreign(status);
    }
    status->has_round = entry->has_round;
    status->round = entry->round;
    status->node_count = (int)chronicle_entry_number(entry, CHRONICLE_NODES, 0);
    status->worker_count = (int)chronicle_entry_number(entry, CHRONICLE_WORKERS, 0);
    status->restarts = (int)chronicle_entry_number(entry, CHRONICLE_USED, 0);
    status->max_restarts = (int)chronicle_entry_number(entry, CHRONICLE_MAX, -1);
    if (status->worker_count > status->largest_worker_count) {
        status->largest_worker_count = status->worker_count;
    }
    if (recovery != NULL) {
        recovery->is_charged = chronicle_entry_number(entry, CHRONICLE_CHARGED, 0) != 0;
    }
}

/* All nodes of the world are known: any other waits for a place, or is gone without a word. */
static void leave_others_behind(struct chronicle_status *status) {
    for (size_t i = 0; i < status->known_nodes; i++) {
        struct chronicle_node *node = &status->nodes[i];
        bool is_idle =
            node->state == CHRONICLE_NODE_STOPPING || node->state == CHRONICLE_NODE_JOINING;
        if (!is_behind(status, node->round)) {
            continue;
        }
        if (is_idle) {
            set_state(status, node, CHRONICLE_NODE_WAITING);
        } else if (runs(node->state) || node->state == CHRONICLE_NODE_STARTING) {
            set_state(status, node, CHRONICLE_NODE_MISSED);
        }
    }
}

static void count_joined(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    bool is_new = entry->has_round && entry->round == status->round && node->round != entry->round;
    node->round = entry->has_round ? entry->round : -1;
    status->joined_count += is_new ? 1 : 0;
    if (is_new && status->joined_count == status->node_count) {
        leave_others_behind(status);
    }
}

static void take_joined(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    const char *version = chronicle_entry_text(entry, CHRONICLE_VERSION);
    node->rank = (int)chronicle_entry_number(entry, CHRONICLE_RANK, -1);
    node->first_rank = (int)chronicle_entry_number(entry, CHRONICLE_FIRST_RANK, -1);
    node->workers = (int)chronicle_entry_number(entry, CHRONICLE_WORKERS, -1);
    free(node->version);
    node->version = memory_duplicate_string(version);
    set_state(status, node,
        version != NULL && text_equals(version, CHRONICLE_FOREIGN_VERSION)
            ? CHRONICLE_NODE_FOREIGN
            : CHRONICLE_NODE_STARTING);
    count_joined(status, node, entry);
}

static void take_waiting(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    status->minimum_nodes = (int)chronicle_entry_number(entry, CHRONICLE_MIN, 0);
    status->maximum_nodes = (int)chronicle_entry_number(entry, CHRONICLE_MAX, 0);
    status->here = (int)chronicle_entry_number(entry, CHRONICLE_HERE, -1);
    if (node->state != CHRONICLE_NODE_JOINING) {
        set_state(status, node, CHRONICLE_NODE_WAITING);
    }
}

static void take_stopping(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    enum chronicle_cause cause =
        chronicle_cause_from_name(chronicle_entry_text(entry, CHRONICLE_CAUSE));
    if (cause == CHRONICLE_CAUSE_NONE || cause == CHRONICLE_CAUSE_COUNT) {
        set_state(status, node, CHRONICLE_NODE_ENDING);
        return;
    }
    if (is_of_old_round(status, entry)) {
        set_state(status, node, CHRONICLE_NODE_WAITING);
        return;
    }
    begin_recovery(status, cause, node, entry);
    set_state(status, node, CHRONICLE_NODE_STOPPING);
}

static void take_failed(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    if (is_of_old_round(status, entry)) {
        return;
    }
    bool has_hung = status->hung_rank >= 0 &&
                    chronicle_entry_number(entry, CHRONICLE_RANK, -1) == status->hung_rank;
    const struct chronicle_recovery *open = open_recovery(status);
    node->failed_first +=
        open == NULL || is_culprit_missing(open, CHRONICLE_CAUSE_WORKER_FAILED) ? 1 : 0;
    begin_recovery(
        status, has_hung ? CHRONICLE_CAUSE_HANG : CHRONICLE_CAUSE_WORKER_FAILED, node, entry);
}

static void take_excluded(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    const char *result = chronicle_entry_text(entry, CHRONICLE_RESULT);
    bool stays = result != NULL && text_equals(result, CHRONICLE_RESULT_STAYS);
    struct chronicle_exclusion *last = stays ? &status->kept : &status->excluded;
    node->is_excluded = !stays;
    status->excluded_count += stays ? 0 : 1;
    free(last->node);
    free(last->reason);
    *last = (struct chronicle_exclusion){.node = memory_duplicate_string(entry->node),
        .reason = memory_duplicate_string(chronicle_entry_text(entry, CHRONICLE_REASON)),
        .at = entry->time};
}

/* From the last step on the job did not train. */
static void take_hang(struct chronicle_status *status, const struct chronicle_entry *entry) {
    struct chronicle_account *account = &status->account;
    int64_t silence = chronicle_entry_number(entry, CHRONICLE_SILENCE, 0);
    int64_t room = account->states[JOB_TRAINING].nanoseconds - account->redone.nanoseconds;
    status->hung_rank = (int)chronicle_entry_number(entry, CHRONICLE_RANK, -1);
    if (silence <= 0 || status->state != JOB_TRAINING) {
        return;
    }
    silence = silence < room ? silence : room;
    account->states[JOB_TRAINING].nanoseconds -= silence;
    account->states[JOB_HANGING].nanoseconds += silence;
    status->is_hanging = true;
    status->hung_since.nanoseconds = entry->time.nanoseconds - silence;
    status->hangs++;
    free(status->hung);
    free(status->hung_node);
    status->hung = memory_duplicate_string(chronicle_entry_text(entry, CHRONICLE_WHAT));
    status->hung_node = memory_duplicate_string(entry->node);
}

static enum job_result result_named(const char *name) {
    int result = JOB_UNDECIDED + 1;
    while (name != NULL && result < JOB_RESULT_COUNT &&
           !text_equals(name, job_result_name((enum job_result)result))) {
        result++;
    }
    return name == NULL || result == JOB_RESULT_COUNT ? JOB_FAILED : (enum job_result)result;
}

/* The worst of all nodes' is the job's. */
static void take_ended(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    enum job_result result = result_named(chronicle_entry_text(entry, CHRONICLE_RESULT));
    if (node->is_excluded && result == JOB_STOPPED) {
        set_state(status, node, CHRONICLE_NODE_GONE); /* the others go on */
        return;
    }
    if (node->state != CHRONICLE_NODE_GONE) {
        set_state(status, node, CHRONICLE_NODE_ENDED);
    }
    status->result = result > status->result ? result : status->result;
}

static void take_kind(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    switch (entry->kind) {
    case CHRONICLE_WAITING:
        take_waiting(status, node, entry);
        break;
    case CHRONICLE_WORLD:
        take_world(status, entry);
        break;
    case CHRONICLE_JOINED:
        take_joined(status, node, entry);
        if (node->state != CHRONICLE_NODE_FOREIGN) {
            reach(status, RECOVERY_AGREED, node);
        }
        break;
    case CHRONICLE_STARTED:
        lose_steps(status);
        set_state(status, node, CHRONICLE_NODE_RUNNING);
        status->hung_rank = -1;
        status->is_hanging = false;
        status->slow_at = (struct wall_time){0};
        reach(status, RECOVERY_STARTED, node);
        break;
    case CHRONICLE_WORKER_FAILED:
        take_failed(status, node, entry);
        break;
    case CHRONICLE_STOPPING:
        take_stopping(status, node, entry);
        break;
    case CHRONICLE_STOPPED:
        if (node->state == CHRONICLE_NODE_STOPPING) {
            set_state(status, node, CHRONICLE_NODE_JOINING);
            reach(status, RECOVERY_STOPPED, node);
        }
        break;
    case CHRONICLE_NODE_LOST:
        if (!is_of_old_round(status, entry)) {
            set_state(status, node, CHRONICLE_NODE_MISSED);
            begin_recovery(status, CHRONICLE_CAUSE_NODE_LOST, node, entry);
        }
        break;
    case CHRONICLE_NODE_LEFT:
        set_state(status, node, CHRONICLE_NODE_GONE);
        break;
    case CHRONICLE_SPARES:
        node->spares_ready = (int)chronicle_entry_number(entry, CHRONICLE_READY, -1);
        node->spares = (int)chronicle_entry_number(entry, CHRONICLE_OF, -1);
        break;
    case CHRONICLE_ENDED:
        take_ended(status, node, entry);
        break;
    case CHRONICLE_HANG:
        take_hang(status, entry);
        break;
    case CHRONICLE_PROGRESS:
        take_progress(status, node, entry);
        break;
    case CHRONICLE_TRAINING:
        take_training(status, node, entry);
        break;
    case CHRONICLE_EXCLUDED:
        take_excluded(status, node, entry);
        break;
    case CHRONICLE_SLOW:
        status->slow_rank = (int)chronicle_entry_number(entry, CHRONICLE_RANK, -1);
        status->slow_ratio = chronicle_entry_rate(entry, CHRONICLE_RATIO, 0);
        status->slow_at = entry->time;
        break;
    case CHRONICLE_CHECKPOINT:
    case CHRONICLE_HOST:
    case CHRONICLE_RESTART: /* its world has said so */
    case CHRONICLE_KIND_COUNT:
        break;
    }
}

static enum job_state judge(struct chronicle_status *status) {
    return !is_any_present(status)                        ? JOB_ENDED
           : open_recovery(status) != NULL                ? JOB_RECOVERING
           : has_node_in(status, CHRONICLE_NODE_STARTING) ? JOB_STARTING
           : has_node_in(status, CHRONICLE_NODE_TRAINING)
               ? (status->is_hanging ? JOB_HANGING : JOB_TRAINING)
           : has_node_in(status, CHRONICLE_NODE_RUNNING) ? JOB_RUNNING
           : has_node_in(status, CHRONICLE_NODE_ENDING)  ? JOB_ENDING
                                                         : JOB_WAITING;
}

void chronicle_status_take(struct chronicle_status *status, const struct chronicle_entry *entry) {
    if (status->known_nodes == 0) {
        status->max_restarts = -1;
        status->here = -1;
        status->hung_rank = -1;
        status->step = status->step_of_world = status->lost_step = -1;
        status->rate = -1;
    }
    chronicle_status_advance(status, entry->time);
    struct chronicle_node *node = entry->node != NULL ? node_of(status, entry->node) : NULL;
    if (node == NULL) {
        return;
    }
    take_kind(status, node, entry);
    if (entry->kind != CHRONICLE_NODE_LOST && node->state != CHRONICLE_NODE_FOREIGN) {
        node->said = entry->time;
    }
    end_recovery(status);
    enum job_state state = judge(status);
    if (state != status->state) {
        status->state = state;
        status->since = status->now;
    }
}

const char *job_state_name(enum job_state state) {
    static const char *const names[] = {
        "waiting", "starting", "running", "training", "hanging", "recovering", "ending", "ended"};
    return names[state];
}

const char *job_result_name(enum job_result result) {
    static const char *const names[] = {NULL, "succeeded", "stopped", "failed"};
    return names[result];
}

const char *chronicle_node_state_name(enum chronicle_node_state state) {
    static const char *const names[] = {"waiting", "starting", "running", "training", "stopping",
        "joining", "ending", "ended", "torchrun", "left", "lost"};
    return names[state];
}

const char *recovery_moment_name(enum recovery_moment moment) {
    static const char *const names[] = {
        "failed", "noticed", "stopped", "agreed", "started", "training"};
    return names[moment];
}

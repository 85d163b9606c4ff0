/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/workers/worker_group.h"

#include <stdlib.h>

#include "base/memory.h"

void worker_group_init(struct worker_group *group, size_t count) {
    *group = (struct worker_group){
        .count = count,
        .states = memory_allocate(count * sizeof *group->states),
        .failures = memory_allocate(count * sizeof *group->failures),
    };
    worker_group_reset(group);
}

static void forget_failures(struct worker_group *group) {
    for (size_t i = 0; i < group->failure_count; i++) {
        free(group->failures[i].start_message);
    }
    group->failure_count = 0;
}

void worker_group_clear(struct worker_group *group) {
    forget_failures(group);
    free(group->failures);
    free(group->states);
    *group = (struct worker_group){0};
}

void worker_group_reset(struct worker_group *group) {
    forget_failures(group);
    for (size_t i = 0; i < group->count; i++) {
        group->states[i] = WORKER_RUNNING;
    }
    group->running_count = group->count;
}

static bool is_running(const struct worker_group *group, int local_rank) {
    return local_rank >= 0 && (size_t)local_rank < group->count &&
           group->states[local_rank] == WORKER_RUNNING;
}

static void leave(struct worker_group *group, int local_rank, enum worker_state state) {
    group->states[local_rank] = state;
    group->running_count--;
}

/* Records the failure, and owns it afterwards. Returns false when the worker was not running. */
static bool record_failure(struct worker_group *group, struct worker_failure failure) {
    if (!is_running(group, failure.local_rank)) {
        free(failure.start_message);
        return false;
    }
    leave(group, failure.local_rank, WORKER_FAILED);
    group->failures[group->failure_count++] = failure;
    return true;
}

static bool is_success(struct process_exit exit) {
    return !exit.is_signal && exit.value == 0;
}

/* The end of a worker that is known to be ending. A success is not believed: the others have been
 * told to end because of its failure. */
static void complete_failure(struct worker_group *group, int local_rank, struct process_exit exit) {
    for (size_t i = 0; i < group->failure_count; i++) {
        struct worker_failure *failure = &group->failures[i];
        if (failure->local_rank == local_rank && failure->is_ending) {
            failure->is_ending = false;
            failure->exit = is_success(exit) ? failure->exit : exit;
        }
    }
}

bool worker_group_record_exit(struct worker_group *group, int local_rank, struct process_exit exit,
    struct wall_time observed, bool is_from_our_signal) {
    complete_failure(group, local_rank, exit);
    if (is_running(group, local_rank) && is_success(exit)) {
        leave(group, local_rank, WORKER_SUCCEEDED);
        return true;
    }
    return record_failure(group, (struct worker_failure){
                                     .local_rank = local_rank,
                                     .observed = observed,
                                     .exit = exit,
                                     .is_from_our_signal = is_from_our_signal,
                                 });
}

bool worker_group_record_ending(struct worker_group *group, int local_rank,
    struct process_exit exit, struct wall_time observed) {
    return !is_success(exit) && record_failure(group, (struct worker_failure){
                                                          .local_rank = local_rank,
                                                          .observed = observed,
                                                          .exit = exit,
                                                          .is_ending = true,
                                                      });
}

bool worker_group_record_start_failure(
    struct worker_group *group, int local_rank, const char *message, struct wall_time observed) {
    return record_failure(group, (struct worker_failure){
                                     .local_rank = local_rank,
                                     .observed = observed,
                                     .start_message = memory_duplicate_string(message),
                                 });
}

bool worker_group_record_stuck(
    struct worker_group *group, int local_rank, struct duration stuck, struct wall_time observed) {
    return record_failure(group, (struct worker_failure){
                                     .local_rank = local_rank,
                                     .observed = observed,
                                     .stuck = stuck,
                                 });
}

bool worker_group_has_failure(const struct worker_group *group) {
    return group->failure_count > 0;
}

bool worker_group_has_succeeded(const struct worker_group *group) {
    return group->running_count == 0 && group->failure_count == 0;
}

void worker_group_set_error_time(struct worker_group *group, int local_rank, int64_t seconds) {
    for (size_t i = 0; i < group->failure_count; i++) {
        struct worker_failure *failure = &group->failures[i];
        if (failure->local_rank == local_rank) {
            failure->has_error_time = true;
            failure->error_seconds = seconds;
        }
    }
}

static int64_t failure_seconds(const struct worker_failure *failure) {
    return failure->has_error_time ? failure->error_seconds
                                   : failure->observed.nanoseconds / NANOSECONDS_PER_SECOND;
}

/* A failure with a smaller class comes first as the root cause. */
static int root_cause_class(const struct worker_failure *failure) {
    if (failure->start_message != NULL) {
        return 0;
    }
    return failure->is_from_our_signal ? 2 : 1;
}

static bool comes_first_as_root_cause(
    const struct worker_failure *left, const struct worker_failure *right) {
    if (root_cause_class(left) != root_cause_class(right)) {
        return root_cause_class(left) < root_cause_class(right);
    }
    return failure_seconds(left) < failure_seconds(right);
}

size_t worker_group_root_cause(const struct worker_group *group) {
    size_t root = SIZE_MAX;
    for (size_t i = 0; i < group->failure_count; i++) {
        if (root == SIZE_MAX ||
            comes_first_as_root_cause(&group->failures[i], &group->failures[root])) {
            root = i;
        }
    }
    return root;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/workers/worker_group.h"

#include <limits.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/table.h"

/* The worker counts of one role. */
struct role_total {
    int size;     /* workers on all nodes */
    int assigned; /* workers on the nodes so far */
};

void role_info_clear(struct role_info *info) {
    free(info->addresses);
    free(info->role);
    *info = (struct role_info){0};
}

static enum failure_code measure_world(
    const struct node_role *nodes, size_t count, int *out_world_size) {
    int64_t world_size = 0;
    for (size_t i = 0; i < count; i++) {
        if (nodes[i].local_world_size < 1) {
            return FAILURE_INVALID;
        }
        world_size += nodes[i].local_world_size;
        if (world_size > INT_MAX) {
            return FAILURE_LIMIT;
        }
    }
    *out_world_size = (int)world_size;
    return FAILURE_NONE;
}

static struct table *total_roles(const struct node_role *nodes, size_t count) {
    struct table *roles = table_new(free);
    for (size_t i = 0; i < count; i++) {
        struct slice key = slice_from_string(nodes[i].role);
        struct role_total *total = table_get(roles, key);
        if (total == NULL) {
            total = memory_allocate(sizeof *total);
            table_put(roles, key, total);
        }
        total->size += nodes[i].local_world_size;
    }
    return roles;
}

enum failure_code rank_assignment_compute(
    const struct node_role *nodes, size_t count, struct rank_assignment *out_assignments) {
    int world_size;
    enum failure_code code = measure_world(nodes, count, &world_size);
    if (code != FAILURE_NONE) {
        return code;
    }
    struct table *roles = total_roles(nodes, count);
    int base_rank = 0;
    for (size_t i = 0; i < count; i++) {
        struct role_total *total = table_get(roles, slice_from_string(nodes[i].role));
        out_assignments[i] = (struct rank_assignment){
            .base_rank = base_rank,
            .world_size = world_size,
            .role_base_rank = total->assigned,
            .role_world_size = total->size,
        };
        base_rank += nodes[i].local_world_size;
        total->assigned += nodes[i].local_world_size;
    }
    table_free(roles);
    return FAILURE_NONE;
}

/* Worker group. */

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

/* Stuck watch. */

enum stuck_verdict stuck_watch_see(
    struct stuck_watch *watch, char state, struct instant now, struct duration timeout) {
    if (state != 'D') {
        *watch = (struct stuck_watch){0};
        return STUCK_NOTHING_NEW;
    }
    if (!watch->is_stuck) {
        *watch = (struct stuck_watch){.is_stuck = true, .since = now};
        return STUCK_BEGINS;
    }
    if (watch->has_timed_out || instant_is_before(now, instant_after(watch->since, timeout))) {
        return STUCK_NOTHING_NEW;
    }
    watch->has_timed_out = true;
    return STUCK_TIMED_OUT;
}

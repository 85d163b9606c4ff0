/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/job_hang.h"

#include <limits.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/table.h"

void standstill_clear(struct standstill *standstill) {
    free(standstill->node);
    folded_stacks_clear(&standstill->places);
    *standstill = (struct standstill){0};
}

void job_hang_clear(struct job_hang *hang) {
    free(hang->what);
    free(hang->where);
    *hang = (struct job_hang){0};
}

void job_hang_describe(struct folded_stacks *places, struct duration silence, int64_t round,
    struct job_hang *out_hang) {
    struct text what = {0};
    struct text where = {0};
    folded_stacks_sort_by_blame(places);
    text_append_format(
        &what, "no rank has taken a step for %.1f s: ", duration_seconds_told(silence));
    folded_stacks_describe(places, &what);
    folded_stack_append_place(&places->items[0], &where);
    *out_hang = (struct job_hang){.round = round,
        .silence = silence,
        .rank = places->items[0].ranks[0].rank,
        .what = text_take(&what),
        .where = text_take(&where)};
}

/* The watch. */

struct job_hang_watch {
    struct table *nodes; /* that stand still, by their names */
};

static void free_standstill(void *value) {
    standstill_clear(value);
    free(value);
}

struct job_hang_watch *job_hang_watch_new(void) {
    struct job_hang_watch *watch = memory_allocate(sizeof *watch);
    watch->nodes = table_new(free_standstill);
    return watch;
}

void job_hang_watch_free(struct job_hang_watch *watch) {
    if (watch != NULL) {
        table_free(watch->nodes);
        free(watch);
    }
}

void job_hang_watch_take(struct job_hang_watch *watch, struct standstill *told_taken) {
    struct slice name = slice_from_string(told_taken->node);
    if (told_taken->silence.nanoseconds == 0) {
        (void)table_remove(watch->nodes, name);
    } else if (table_count(watch->nodes) < CHRONICLE_NODES_MAXIMUM ||
               table_get(watch->nodes, name) != NULL) {
        (void)table_put(watch->nodes, name, memory_duplicate(told_taken, sizeof *told_taken));
        *told_taken = (struct standstill){0};
    }
    standstill_clear(told_taken);
}

/* Of the node, where it stands still in this round; or NULL. */
static const struct standstill *find(const struct job_hang_watch *watch,
    const struct chronicle_status *status, const struct chronicle_node *node) {
    const struct standstill *told = table_get(watch->nodes, slice_from_string(node->name));
    return told != NULL && told->round == status->round ? told : NULL;
}

static int first_rank(const struct standstill *told) {
    int first = INT_MAX;
    for (size_t i = 0; i < told->places.count; i++) {
        int rank = told->places.items[i].ranks[0].rank;
        first = rank < first ? rank : first;
    }
    return first;
}

static int compare(const void *left, const void *right) {
    int one = first_rank(*(const struct standstill *const *)left);
    int other = first_rank(*(const struct standstill *const *)right);
    return (one > other) - (one < other);
}

static void fold(const struct standstill *told, struct folded_stacks *folded) {
    for (size_t i = 0; i < told->places.count; i++) {
        const struct folded_stack *place = &told->places.items[i];
        for (size_t k = 0; k < place->rank_count; k++) {
            folded_stacks_add(folded, place->stack, place->words, true, place->ranks[k].rank, 1);
        }
    }
}

/* All that take steps stand still: fills `out_told` with them. 0: one does not. */
static size_t collect(const struct job_hang_watch *watch, const struct chronicle_status *status,
    const struct standstill **out_told) {
    size_t count = 0;
    for (size_t i = 0; i < status->known_nodes; i++) {
        const struct chronicle_node *node = &status->nodes[i];
        if (node->state != CHRONICLE_NODE_TRAINING) {
            continue;
        }
        out_told[count] = find(watch, status, node);
        if (out_told[count++] == NULL) {
            return 0;
        }
    }
    return count;
}

static bool is_all(void *context, struct slice key, void *value) {
    (void)context;
    (void)key;
    (void)value;
    return true;
}

bool job_hang_watch_judge(
    struct job_hang_watch *watch, struct chronicle_status *status, struct job_hang *out_hang) {
    if (table_count(watch->nodes) == 0 || status->state != JOB_TRAINING) {
        return false;
    }
    const struct standstill **told =
        memory_allocate((status->known_nodes + 1) * sizeof(const struct standstill *));
    size_t count = collect(watch, status, told);
    struct folded_stacks folded = {0};
    struct duration silence = DURATION_FOREVER;
    qsort(told, count, sizeof(const struct standstill *), compare); /* ranks are then in order */
    for (size_t i = 0; i < count; i++) {
        fold(told[i], &folded);
        silence = told[i]->silence.nanoseconds < silence.nanoseconds ? told[i]->silence : silence;
    }
    bool hangs = folded.count > 0;
    if (hangs) {
        job_hang_describe(&folded, silence, status->round, out_hang);
        table_remove_if(watch->nodes, is_all, NULL);
    }
    folded_stacks_clear(&folded);
    free(told);
    return hangs;
}

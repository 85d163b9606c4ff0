/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/job_hang.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/table.h"
#include "core/telling/round_reason.h"

void standstill_clear(struct standstill *standstill) {
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
    text_append_format(&what, ROUND_REASON_HANG "%.1f s: ", duration_seconds_told(silence));
    folded_stacks_describe(places, &what);
    folded_stack_append_place(&places->items[0], &where);
    *out_hang = (struct job_hang){.round = round,
        .silence = silence,
        .rank = places->items[0].ranks[0].rank,
        .what = text_take(&what),
        .where = text_take(&where)};
}

/* The watch. */

/* Of the places of all nodes together: who tells is not asked for its rank. */
#define PLACES_BYTES_MAXIMUM ((size_t)8 << 20)

struct job_hang_watch {
    struct table *nodes; /* that stand still, by their ranks */
    size_t size;         /* of their places, in bytes */
};

static size_t size_of(const struct standstill *told) {
    size_t size = 0;
    for (size_t i = 0; told != NULL && i < told->places.count; i++) {
        const struct folded_stack *place = &told->places.items[i];
        size += sizeof *place + place->rank_count * sizeof *place->ranks;
        size += strlen(place->stack != NULL ? place->stack : "");
        size += strlen(place->words != NULL ? place->words : "");
    }
    return size;
}

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

static struct slice key_of(const int *node_rank) {
    return (struct slice){(const uint8_t *)node_rank, sizeof *node_rank};
}

void job_hang_watch_take(struct job_hang_watch *watch, struct standstill *told_taken) {
    struct slice key = key_of(&told_taken->node_rank);
    size_t size = size_of(told_taken);
    watch->size -= size_of(table_get(watch->nodes, key));
    (void)table_remove(watch->nodes, key);
    if (told_taken->silence.nanoseconds > 0 &&
        table_count(watch->nodes) < CHRONICLE_NODES_MAXIMUM &&
        watch->size + size <= PLACES_BYTES_MAXIMUM) {
        (void)table_put(watch->nodes, key, memory_duplicate(told_taken, sizeof *told_taken));
        watch->size += size;
        *told_taken = (struct standstill){0};
    }
    standstill_clear(told_taken);
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

struct collecting {
    int64_t round;
    const struct standstill **told;
    size_t count;
};

static bool collect(void *context, struct slice key, void *value) {
    struct collecting *collecting = context;
    const struct standstill *told = value;
    (void)key;
    if (told->round == collecting->round) {
        collecting->told[collecting->count++] = told;
    }
    return true;
}

/* Whether a node of this world is known to take steps, and has not told that it stands still. */
static bool steps(const struct job_hang_watch *watch, const struct chronicle_status *status,
    const struct chronicle_node *node) {
    const struct standstill *told = table_get(watch->nodes, key_of(&node->rank));
    return node->state == CHRONICLE_NODE_TRAINING && (told == NULL || told->round != status->round);
}

static bool do_all_stand_still(const struct job_hang_watch *watch,
    const struct chronicle_status *status, size_t standing_count) {
    int known = 0;
    bool does_one_step = false;
    for (size_t i = 0; i < status->known_nodes; i++) {
        const struct chronicle_node *node = &status->nodes[i];
        bool runs = node->state == CHRONICLE_NODE_TRAINING || node->state == CHRONICLE_NODE_RUNNING;
        known += runs ? 1 : 0;
        does_one_step = does_one_step || steps(watch, status, node);
    }
    return !does_one_step &&
           (known >= status->node_count || standing_count >= (size_t)status->node_count);
}

static bool is_all(void *context, struct slice key, void *value) {
    (void)context;
    (void)key;
    (void)value;
    return true;
}

bool job_hang_watch_judge(struct job_hang_watch *watch, const struct chronicle_status *status,
    struct job_hang *out_hang) {
    if (table_count(watch->nodes) == 0 || status->state != JOB_TRAINING) {
        return false;
    }
    struct collecting standing = {.round = status->round,
        .told = memory_allocate(table_count(watch->nodes) * sizeof(const struct standstill *))};
    struct folded_stacks folded = {0};
    struct duration silence = DURATION_FOREVER;
    table_each(watch->nodes, collect, &standing);
    bool hangs = standing.count > 0 && do_all_stand_still(watch, status, standing.count);
    if (hangs) { /* in the order of ranks, so that each is added behind the others */
        qsort(standing.told, standing.count, sizeof(const struct standstill *), compare);
    }
    for (size_t i = 0; i < standing.count && hangs; i++) {
        const struct standstill *told = standing.told[i];
        fold(told, &folded);
        silence = told->silence.nanoseconds < silence.nanoseconds ? told->silence : silence;
    }
    hangs = folded.count > 0;
    if (hangs) {
        job_hang_describe(&folded, silence, status->round, out_hang);
        table_remove_if(watch->nodes, is_all, NULL);
        watch->size = 0;
    }
    folded_stacks_clear(&folded);
    free(standing.told);
    return hangs;
}

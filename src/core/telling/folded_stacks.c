/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/folded_stacks.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Ranges. */

static bool read_rank(const char **text, int *out_rank) {
    int rank = 0;
    const char *start = *text;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        if (rank > (INT_MAX - 9) / 10) {
            return false;
        }
        rank = rank * 10 + (**text - '0');
    }
    *out_rank = rank;
    return *text > start;
}

static bool read_range(const char **text, struct rank_range *out_range) {
    if (!read_rank(text, &out_range->first)) {
        return false;
    }
    out_range->last = out_range->first;
    if (**text != '-') {
        return true;
    }
    ++*text;
    return read_rank(text, &out_range->last) && out_range->last >= out_range->first;
}

bool rank_ranges_add(struct rank_ranges *ranges, const char *text) {
    for (;;) {
        if (ranges->count == RANK_RANGES_MAXIMUM ||
            !read_range(&text, &ranges->items[ranges->count])) {
            return false;
        }
        ranges->count++;
        if (*text == '\0') {
            return true;
        }
        if (*text++ != ',') {
            return false;
        }
    }
}

bool rank_ranges_have(const struct rank_ranges *ranges, int rank) {
    bool is_there = ranges->count == 0;
    for (size_t i = 0; i < ranges->count; i++) {
        is_there = is_there || (rank >= ranges->items[i].first && rank <= ranges->items[i].last);
    }
    return is_there;
}

static void append_range(struct rank_range range, bool is_first, struct text *out) {
    text_append_format(out, "%s%d", is_first ? "" : ",", range.first);
    if (range.last > range.first) {
        text_append_format(out, "-%d", range.last);
    }
}

void rank_ranges_append(const struct rank_ranges *ranges, struct text *out) {
    for (size_t i = 0; i < ranges->count; i++) {
        append_range(ranges->items[i], i == 0, out);
    }
}

/* Stacks. */

static void clear_one(struct folded_stack *one) {
    free(one->stack);
    free(one->words);
    free(one->ranks);
    *one = (struct folded_stack){0};
}

void folded_stacks_clear(struct folded_stacks *folded) {
    for (size_t i = 0; i < folded->count; i++) {
        clear_one(&folded->items[i]);
    }
    free(folded->items);
    *folded = (struct folded_stacks){0};
}

static bool is_equal(
    const struct folded_stack *one, const char *stack, const char *words, bool by_place) {
    if (one->stack == NULL || stack == NULL) {
        return one->stack == NULL && stack == NULL && strcmp(one->words, words) == 0;
    }
    size_t place = strcspn(stack, "\n");
    return by_place ? strcspn(one->stack, "\n") == place && strncmp(one->stack, stack, place) == 0
                    : strcmp(one->stack, stack) == 0;
}

static void note_rank(struct folded_stack *one, int rank, int times) {
    size_t at = one->rank_count;
    one->times += times;
    while (at > 0 && one->ranks[at - 1].rank > rank) {
        at--;
    }
    if (at > 0 && one->ranks[at - 1].rank == rank) {
        one->ranks[at - 1].times += times;
        return;
    }
    one->ranks =
        memory_reserve(one->ranks, &one->rank_capacity, one->rank_count + 1, sizeof *one->ranks);
    memmove(&one->ranks[at + 1], &one->ranks[at], (one->rank_count - at) * sizeof *one->ranks);
    one->ranks[at] = (struct seen_rank){rank, times};
    one->rank_count++;
}

void folded_stacks_add(struct folded_stacks *folded, const char *stack, const char *words,
    bool by_place, int rank, int times) {
    size_t at = 0;
    while (at < folded->count && !is_equal(&folded->items[at], stack, words, by_place)) {
        at++;
    }
    if (at == folded->count) {
        folded->items = memory_reserve(
            folded->items, &folded->capacity, folded->count + 1, sizeof *folded->items);
        folded->items[folded->count++] = (struct folded_stack){
            .stack = memory_duplicate_string(stack), .words = memory_duplicate_string(words)};
    }
    note_rank(&folded->items[at], rank, times);
}

static int compare(const void *left, const void *right) {
    const struct folded_stack *one = left;
    const struct folded_stack *other = right;
    if ((one->stack == NULL) != (other->stack == NULL)) {
        return one->stack == NULL ? 1 : -1;
    }
    return one->times != other->times ? (one->times > other->times) - (one->times < other->times)
                                      : (one->ranks[0].rank > other->ranks[0].rank) -
                                            (one->ranks[0].rank < other->ranks[0].rank);
}

void folded_stacks_sort(struct folded_stacks *folded) {
    if (folded->count > 1) {
        qsort(folded->items, folded->count, sizeof *folded->items, compare);
    }
}

void folded_stack_append_ranks(const struct folded_stack *one, struct text *out) {
    text_append(out, one->rank_count == 1 ? "rank " : "ranks ");
    for (size_t i = 0; i < one->rank_count;) {
        size_t end = i + 1;
        while (end < one->rank_count && one->ranks[end].rank == one->ranks[end - 1].rank + 1) {
            end++;
        }
        append_range(
            (struct rank_range){one->ranks[i].rank, one->ranks[end - 1].rank}, i == 0, out);
        i = end;
    }
}

/* Blame. */

/* So many places are named in one line, and no longer lists of ranks. */
#define PLACES_NAMED 4
#define RANKS_NAMED_LENGTH 24

/* As core/failure/failure_report words it. */
static bool is_held_by_kernel(const struct folded_stack *one) {
    return one->stack == NULL && (text_starts_with(one->words, "stopped") ||
                                     text_starts_with(one->words, "in uninterruptible sleep"));
}

/* The backward pass of data-parallel training waits for other ranks, too. */
static bool waits_for_others(const struct folded_stack *one) {
    static const char *const folders[] = {"torch/distributed/", "torch/autograd/"};
    const char *line = one->stack != NULL ? one->stack : "";
    bool waits = false;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *found = strstr(line, folders[i]);
        waits = waits || (found != NULL && found < line + strcspn(line, "\n"));
    }
    return waits;
}

static int compare_blame(const void *left, const void *right) {
    const struct folded_stack *one = left;
    const struct folded_stack *other = right;
    if (is_held_by_kernel(one) != is_held_by_kernel(other)) {
        return is_held_by_kernel(one) ? -1 : 1;
    }
    if (one->times != other->times) {
        return one->times < other->times ? -1 : 1;
    }
    if (waits_for_others(one) != waits_for_others(other)) {
        return waits_for_others(one) ? 1 : -1;
    }
    return (one->ranks[0].rank > other->ranks[0].rank) -
           (one->ranks[0].rank < other->ranks[0].rank);
}

void folded_stacks_sort_by_blame(struct folded_stacks *folded) {
    if (folded->count > 1) {
        qsort(folded->items, folded->count, sizeof *folded->items, compare_blame);
    }
}

/* Where the function stands in a line of a stack, as "/data/data.py:88 in read"; NULL: nowhere. */
static const char *find_function(const char *line, size_t length) {
    static const char in[] = " in ";
    const char *found = NULL;
    for (const char *next = strstr(line, in); next != NULL && next < line + length;
         next = strstr(found, in)) {
        found = next + sizeof in - 1;
    }
    return found;
}

void folded_stack_append_place(const struct folded_stack *one, struct text *out) {
    const char *line = one->stack != NULL ? one->stack : one->words;
    size_t length = strcspn(line, "\n");
    const char *function = one->stack != NULL ? find_function(line, length) : NULL;
    if (function == NULL) {
        text_append_bytes(out, line, length);
        return;
    }
    const char *end = function - strlen(" in ");
    const char *file = end;
    while (file > line && file[-1] != '/') {
        file--;
    }
    text_append_format(
        out, "%.*s (%.*s)", (int)(line + length - function), function, (int)(end - file), file);
}

static void describe_one(const struct folded_stack *one, struct text *out) {
    struct text ranks = {0};
    folded_stack_append_ranks(one, &ranks);
    if (ranks.length <= RANKS_NAMED_LENGTH) {
        text_append(out, text_string(&ranks));
    } else {
        text_append_format(out, "%zu ranks", one->rank_count);
    }
    text_append(out, one->stack != NULL ? " in " : " ");
    folded_stack_append_place(one, out);
    text_clear(&ranks);
}

void folded_stacks_describe(const struct folded_stacks *folded, struct text *out) {
    for (size_t i = 0; i < folded->count && i < PLACES_NAMED; i++) {
        text_append(out, i > 0 ? "; " : "");
        describe_one(&folded->items[i], out);
    }
    if (folded->count > PLACES_NAMED) {
        text_append_format(out, "; %zu more places", folded->count - PLACES_NAMED);
    }
}

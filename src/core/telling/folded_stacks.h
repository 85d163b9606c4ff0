/* SPDX-License-Identifier: BSD-3-Clause */
/* What the workers of a job do at a moment: the ranks that are at the same place together, the rare
 * ones first. The stack is that of a worker's first thread (core/failure/hang_summary). */
#ifndef MUSTER_CORE_TELLING_FOLDED_STACKS_H
#define MUSTER_CORE_TELLING_FOLDED_STACKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Ranks, as somebody has asked for them: "0-3,7". */
#define RANK_RANGES_MAXIMUM 256

struct rank_range {
    int first;
    int last;
};

/* None: all ranks. */
struct rank_ranges {
    struct rank_range items[RANK_RANGES_MAXIMUM];
    size_t count;
};

/* Adds them. False: the text is no such list, or there are too many. */
bool rank_ranges_add(struct rank_ranges *ranges, const char *text);
bool rank_ranges_have(const struct rank_ranges *ranges, int rank);
void rank_ranges_append(const struct rank_ranges *ranges, struct text *out);

struct seen_rank {
    int rank;
    int times; /* it was seen so */
};

struct folded_stack {
    char *stack; /* lines, the innermost one first, each with its newline; NULL: none is known */
    char *words; /* what the kernel says of the first thread, or why there is no stack */
    struct seen_rank *ranks; /* in their order */
    size_t rank_count;
    size_t rank_capacity;
    int times;
};

/* A zeroed struct is valid. */
struct folded_stacks {
    struct folded_stack *items;
    size_t count;
    size_t capacity;
};

void folded_stacks_clear(struct folded_stacks *folded);

/* With `by_place` those with the same innermost line are equal; of them the first stack is kept. */
void folded_stacks_add(struct folded_stacks *folded, const char *stack, const char *words,
    bool by_place, int rank, int times);

/* Rare ones first, those without a stack last. */
void folded_stacks_sort(struct folded_stacks *folded);

/* Of workers that hang: those first that are the reason, as far as can be told. These are workers
 * that the kernel does not let run, then the rare ones. Of equally many, those are not that wait
 * for others in PyTorch's own code. */
void folded_stacks_sort_by_blame(struct folded_stacks *folded);

/* Where they are: "read (data.py:88)", or the words where no stack is known. */
void folded_stack_append_place(const struct folded_stack *one, struct text *out);

/* "rank 417 in read (data.py:88); 1023 ranks in all_reduce (train.py:214)", in their order. */
void folded_stacks_describe(const struct folded_stacks *folded, struct text *out);

/* "rank 3", "ranks 0-2,5". */
void folded_stack_append_ranks(const struct folded_stack *one, struct text *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "core/telling/folded_stacks.h"

#define READ "data.py:88 in read\ntrain.py:40 in <module>\n"
#define REDUCE "train.py:214 in all_reduce\ntrain.py:90 in <module>\n"
#define REDUCE_ELSEWHERE "train.py:214 in all_reduce\ntrain.py:95 in <module>\n"

static char *ranks_of(const struct folded_stack *one) {
    struct text words = {0};
    folded_stack_append_ranks(one, &words);
    return text_take(&words);
}

TEST(ranges_are_numbers_and_pairs_of_them) {
    static const char *const wrong[] = {
        "", ",", "1,", ",1", "a", "1-", "-1", "3-2", "1 2", "1;2", "99999999999", "0-3-4"};
    struct rank_ranges ranges = {0};
    CLEARED_BY(text_clear) struct text again = {0};
    assert_true(rank_ranges_have(&ranges, 5)); /* none are all */
    assert_true(rank_ranges_add(&ranges, "0-3,7"));
    assert_true(rank_ranges_add(&ranges, "12"));
    assert_true(rank_ranges_have(&ranges, 0) && rank_ranges_have(&ranges, 3));
    assert_true(rank_ranges_have(&ranges, 7) && rank_ranges_have(&ranges, 12));
    assert_false(rank_ranges_have(&ranges, 4) || rank_ranges_have(&ranges, 13));
    rank_ranges_append(&ranges, &again);
    assert_string_equal(text_string(&again), "0-3,7,12");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct rank_ranges none = {0};
        assert_false(rank_ranges_add(&none, wrong[i]));
    }
}

TEST(more_ranges_than_there_is_room_for_are_refused) {
    struct rank_ranges ranges = {0};
    for (int i = 0; i < RANK_RANGES_MAXIMUM; i++) {
        assert_true(rank_ranges_add(&ranges, "1"));
    }
    assert_false(rank_ranges_add(&ranges, "1"));
}

TEST(those_at_the_same_place_are_together_and_the_rare_ones_first) {
    CLEARED_BY(folded_stacks_clear) struct folded_stacks folded = {0};
    folded_stacks_add(&folded, NULL, "gone", false, 9, 1);
    for (int rank = 5; rank >= 0; rank--) {
        folded_stacks_add(&folded, rank == 3 ? READ : REDUCE, "running", false, rank, 1);
    }
    folded_stacks_sort(&folded);
    assert_int_equal(folded.count, 3);
    FREED char *odd = ranks_of(&folded.items[0]);
    FREED char *equal = ranks_of(&folded.items[1]);
    assert_string_equal(odd, "rank 3");
    assert_string_equal(equal, "ranks 0-2,4-5");
    assert_string_equal(folded.items[0].stack, READ);
    assert_int_equal(folded.items[1].times, 5);
    assert_null(folded.items[2].stack);
}

TEST(by_place_only_the_innermost_line_counts) {
    CLEARED_BY(folded_stacks_clear) struct folded_stacks folded = {0};
    folded_stacks_add(&folded, REDUCE, "running", true, 0, 1);
    folded_stacks_add(&folded, REDUCE_ELSEWHERE, "running", true, 0, 1);
    folded_stacks_add(&folded, REDUCE_ELSEWHERE, "running", false, 0, 1);
    folded_stacks_add(&folded, "train.py:214 in all_reduce_more\n", "running", true, 0, 1);
    assert_int_equal(folded.count, 3);
    assert_string_equal(folded.items[0].stack, REDUCE);
    assert_int_equal(folded.items[0].ranks[0].times, 2);
}

TEST(without_a_stack_the_words_count) {
    CLEARED_BY(folded_stacks_clear) struct folded_stacks folded = {0};
    folded_stacks_add(&folded, NULL, "sleeping", true, 0, 1);
    folded_stacks_add(&folded, NULL, "gone", true, 1, 1);
    folded_stacks_add(&folded, NULL, "sleeping", true, 2, 1);
    assert_int_equal(folded.count, 2);
    assert_int_equal(folded.items[0].rank_count, 2);
}

/* Blame. */

static char *described(struct folded_stacks *folded) {
    struct text words = {0};
    folded_stacks_sort_by_blame(folded);
    folded_stacks_describe(folded, &words);
    return text_take(&words);
}

static void add_many(struct folded_stacks *folded, const char *stack, int first, int last) {
    for (int rank = first; rank <= last; rank++) {
        folded_stacks_add(folded, stack, "sleeping", true, rank, 1);
    }
}

TEST(rank_that_is_elsewhere_than_the_others_is_to_blame) {
    CLEARED_BY(folded_stacks_clear) struct folded_stacks folded = {0};
    add_many(&folded, "/data/train.py:214 in all_reduce\n", 0, 416);
    add_many(&folded, "/data/a in b/data.py:88 in read\n", 417, 417);
    add_many(&folded, "/data/train.py:214 in all_reduce\n", 418, 1023);
    FREED char *words = described(&folded);
    assert_string_equal(
        words, "rank 417 in read (data.py:88); ranks 0-416,418-1023 in all_reduce (train.py:214)");
}

TEST(worker_that_the_kernel_does_not_let_run_is_to_blame_before_all) {
    CLEARED_BY(folded_stacks_clear) struct folded_stacks folded = {0};
    add_many(&folded, READ, 0, 0);
    add_many(&folded, REDUCE, 1, 3);
    folded_stacks_add(&folded, NULL, "stopped, at train.py:1 in f", true, 4, 1);
    folded_stacks_add(&folded, NULL, "stopped, at train.py:1 in f", true, 5, 1);
    FREED char *words = described(&folded);
    assert_string_equal(words,
        "ranks 4-5 stopped, at train.py:1 in f; rank 0 in read (data.py:88); "
        "ranks 1-3 in all_reduce (train.py:214)");
}

TEST(of_equally_many_those_that_wait_for_others_are_not_to_blame) {
    static const char *const waiting[] = {
        "/usr/lib/python3/torch/distributed/distributed_c10d.py:2810 in all_reduce\n",
        "/usr/lib/python3/torch/autograd/graph.py:829 in _engine_run_backward\n"};
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++) {
        CLEARED_BY(folded_stacks_clear) struct folded_stacks folded = {0};
        folded_stacks_add(&folded, waiting[i], "", true, 0, 1);
        folded_stacks_add(&folded,
            "/data/train.py:9 in <module>\n/torch/distributed/run.py:1 in f\n", "", true, 1, 1);
        FREED char *words = described(&folded);
        assert_true(text_starts_with(words, "rank 1 in <module> (train.py:9); rank 0 in "));
    }
}

TEST(without_any_difference_the_first_rank_is_named) {
    CLEARED_BY(folded_stacks_clear) struct folded_stacks folded = {0};
    folded_stacks_add(&folded, NULL, "sleeping in futex", true, 1, 1);
    folded_stacks_add(&folded, NULL, "sleeping in futex", true, 0, 1);
    FREED char *words = described(&folded);
    assert_string_equal(words, "ranks 0-1 sleeping in futex");
    assert_int_equal(folded.items[0].ranks[0].rank, 0);
}

TEST(of_many_places_and_many_ranks_a_few_are_named) {
    CLEARED_BY(folded_stacks_clear) struct folded_stacks folded = {0};
    for (int place = 0; place < 6; place++) {
        FREED char *stack = text_format("f.py:%d in f\n", place);
        for (int rank = place; rank < 60; rank += 6) {
            folded_stacks_add(&folded, stack, "", true, rank, 1);
        }
    }
    FREED char *words = described(&folded);
    assert_true(text_starts_with(words, "10 ranks in f (f.py:0); 10 ranks in f (f.py:1); "));
    assert_non_null(strstr(words, "; 2 more places"));
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/failure/failure_report.h"
#include "wire/failure/python_stack.h"

#define RECENT " (most recent call first):\n"
#define LOADER                                                                                     \
    "Thread 0x00007f01" RECENT "  File \"/usr/lib/queue.py\", line 180 in get\n"                   \
    "  File \"data.py\", line 3 in run\n\n"
#define MAIN                                                                                       \
    "Current thread 0x00007f02" RECENT "  File \"train.py\", line 17 in step\n"                    \
    "  File \"train.py\", line 30 in <module>\n"

/* As asked of thread `asked` of process 4711. */
static void expect(const char *dump, int64_t asked, const char *words, const char *stack) {
    CLEARED_BY(text_clear) struct text found_words = {0};
    FREED char *found = NULL;
    python_dump_describe(slice_from_string(dump), asked, 4711, &found_words, &found);
    if (words != NULL) {
        assert_string_equal(text_string(&found_words), words);
    }
    if (stack == NULL) {
        assert_null(found);
    } else {
        assert_non_null(found);
        assert_string_equal(found, stack);
    }
}

TEST(the_stacks_of_all_threads_are_described) {
    expect(LOADER MAIN, 4711,
        "  Python thread 0x00007f01:\n    /usr/lib/queue.py:180 in get\n    data.py:3 in run\n"
        "  Python thread 4711, 0x00007f02:\n    train.py:17 in step\n    train.py:30 in <module>\n",
        "train.py:17 in step\ntrain.py:30 in <module>\n");
}

TEST(names_of_threads_are_kept) {
    expect("Current thread 0x00007f41 [l\xc3\xa4ser] (most recent call first):\n"
           "  File \"a.py\", line 4 in wait\n",
        4711, "  Python thread 4711, 0x00007f41 [l\xc3\xa4ser]:\n    a.py:4 in wait\n",
        "a.py:4 in wait\n");
}

TEST(when_another_thread_was_asked_the_first_thread_is_the_last_one) {
    expect("Current thread 0x01" RECENT "  File \"data.py\", line 3 in run\n\n"
           "Thread 0x02" RECENT "  File \"train.py\", line 17 in step\n",
        4712, NULL, "train.py:17 in step\n");
    expect("Current thread 0x01" RECENT "  File \"data.py\", line 3 in run\n\n"
           "Thread 0x02" RECENT "  <no Python frame>\n",
        4712, NULL, NULL);
    expect(
        "Current thread 0x01" RECENT "  File \"data.py\", line 3 in run\n...\n", 4712, NULL, NULL);
}

TEST(a_first_thread_that_is_not_shown_has_no_stack) {
    expect(LOADER "...\n", 4711, NULL, NULL);
    expect("Current thread 0x02" RECENT "  <no Python frame>\n", 4711, NULL, NULL);
    expect("Current thread 0x02" RECENT, 4711, NULL, NULL);
    expect("", 4711, "", NULL);
}

TEST(what_is_no_frame_is_kept_as_words) {
    expect("Current thread 0x02" RECENT "  Garbage-collecting\n"
           "  File \"train.py\", line ??? in ???\n  ...\nnonsense\n",
        4711,
        "  Python thread 4711, 0x02:\n    Garbage-collecting\n    train.py:??? in ???\n    ...\n"
        "    nonsense\n",
        "train.py:??? in ???\n");
    expect("  File \"a.py\", line 3 in f\n", 4711, "    File \"a.py\", line 3 in f\n", NULL);
}

TEST(a_file_may_have_any_name) {
    expect("Current thread 0x02" RECENT "  File \"a\"b\", line 3 in x.py\", line 1 in f\n", 4711,
        NULL, "a\"b\", line 3 in x.py:1 in f\n");
    expect("Current thread 0x02" RECENT "  File \"\", line 1 in \n", 4711, NULL, ":1 in \n");
    expect("Current thread 0x02" RECENT "  File \"a.py\", line 1 on f\n", 4711, NULL, NULL);
    expect("Current thread 0x02" RECENT "  File \"a.py\", line \n", 4711, NULL, NULL);
    expect("Current thread 0x02" RECENT "  File \"\n", 4711, NULL, NULL);
}

TEST(control_characters_do_not_reach_a_terminal) {
    expect("Current thread 0x02 [\x1b]0;x\x07]" RECENT "  File \"a\x1b[2J\t.py\", line 1 in \xff\n"
           "\x1b[2J\n",
        4711, "  Python thread 4711, 0x02 [?]0;x?]:\n    a?[2J?.py:1 in ?\n    ?[2J\n",
        "a?[2J?.py:1 in ?\n");
}

TEST(a_torn_dump_is_read_as_far_as_it_goes) {
    const char dump[] = LOADER MAIN;
    for (size_t length = 0; length < sizeof dump; length++) {
        CLEARED_BY(text_clear) struct text words = {0};
        FREED char *stack = NULL;
        size_t frames = python_dump_describe(
            (struct slice){(const uint8_t *)dump, length}, 4711, 4711, &words, &stack);
        assert_in_range(frames, 0, 4);
        assert_true((stack != NULL) == (frames > 2));
    }
}

TEST(a_dump_without_end_is_cut) {
    CLEARED_BY(text_clear) struct text dump = {0};
    CLEARED_BY(text_clear) struct text words = {0};
    FREED char *stack = NULL;
    text_append(&dump, "Current thread 0x02" RECENT);
    while (dump.length < 2 * PYTHON_DUMP_CEILING) {
        text_append(&dump, "  File \"a.py\", line 1 in f\n");
    }
    python_dump_describe(
        (struct slice){(const uint8_t *)dump.data, dump.length}, 4711, 4711, &words, &stack);
    assert_int_equal(strlen(stack), HANG_SUMMARY_FRAMES_MAXIMUM * strlen("a.py:1 in f\n"));
    assert_true(words.length < PYTHON_DUMP_CEILING);
    assert_non_null(strstr(text_string(&words), "is left out\n"));
}

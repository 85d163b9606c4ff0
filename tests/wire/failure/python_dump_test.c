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

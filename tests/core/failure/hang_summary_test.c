/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/failure/failure_report.h"

static void expect(struct hang_summary summary, const char *words) {
    CLEARED_BY(text_clear) struct text out = {0};
    hang_summary_append(&summary, &out);
    assert_string_equal(text_string(&out), words);
}

TEST(everything_that_is_known_is_said) {
    char call[] = "read";
    char function[] = "nfs_wait";
    char place[] = "train.py:17 in step";
    expect((struct hang_summary){'D', call, function, place, 12, 0},
        "in uninterruptible sleep in read (nfs_wait), 12 threads, at train.py:17 in step");
}

TEST(what_is_not_known_is_left_out) {
    expect((struct hang_summary){.state = 'T', .thread_count = 1}, "stopped");
    expect((struct hang_summary){.state = '?'}, "in a state not known");
    expect((struct hang_summary){0}, "gone");
}

TEST(a_copy_outlives_what_it_was_taken_from) {
    CLEARED_BY(hang_summary_clear)
    struct hang_summary original = {
        'S', text_format("read"), text_format("pipe_read"), text_format("a.py:1 in f"), 2, 5};
    struct hang_summary copy;
    hang_summary_copy(&original, &copy);
    assert_int_equal(copy.file_error, 5);
    expect(copy, "sleeping in read (pipe_read), 2 threads, at a.py:1 in f");
    hang_summary_clear(&copy);
}

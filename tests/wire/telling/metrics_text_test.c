/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/telling/metrics_text.h"

static void assert_text(struct text *out, const char *expected) {
    assert_string_equal(text_string(out), expected);
    text_clear(out);
}

TEST(families_have_help_type_and_samples) {
    struct text out = {0};
    metrics_text_begin(&out, "a_total", METRICS_COUNTER, "What it is.");
    metrics_text_number(&out, "a_total", METRICS_NO_LABEL, UINT64_MAX);
    metrics_text_begin(&out, "b", METRICS_GAUGE, "Another.");
    metrics_text_number(&out, "b", (struct metrics_label){"kind", "x"}, 0);
    assert_text(&out, "# HELP a_total What it is.\n# TYPE a_total counter\n"
                      "a_total 18446744073709551615\n"
                      "# HELP b Another.\n# TYPE b gauge\nb{kind=\"x\"} 0\n");
}

TEST(summaries_are_counts_and_sums_in_seconds) {
    struct text out = {0};
    metrics_text_summary(
        &out, "s_seconds", (struct metrics_label){"of", "a"}, 3, duration_from_milliseconds(1500));
    assert_text(&out, "s_seconds_count{of=\"a\"} 3\ns_seconds_sum{of=\"a\"} 1.500000000\n");
}

TEST(label_values_are_escaped_and_made_text) {
    struct text out = {0};
    metrics_text_number(&out, "m", (struct metrics_label){"l", "a\"b\\c\nd\xff"}, 1);
    assert_text(&out, "m{l=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\"} 1\n");
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/telling/metrics_text.h"

static void assert_text(struct text *out, const char *expected) {
    assert_string_equal(text_string(out), expected);
    text_clear(out);
}

TEST(families_have_help_type_and_samples) {
    struct text out = {0};
    struct metrics_page page = {&out, ""};
    metrics_text_begin(&page, "a_total", METRICS_COUNTER, "What it is.");
    metrics_text_number(&page, "a_total", METRICS_NO_LABEL, UINT64_MAX);
    metrics_text_begin(&page, "b", METRICS_GAUGE, "Another.");
    metrics_text_number(&page, "b", (struct metrics_label){"kind", "x"}, 0);
    metrics_text_real(&page, "b", (struct metrics_label){"kind", "y"}, -1.5);
    assert_text(&out, "# HELP a_total What it is.\n# TYPE a_total counter\n"
                      "a_total 18446744073709551615\n"
                      "# HELP b Another.\n# TYPE b gauge\nb{kind=\"x\"} 0\nb{kind=\"y\"} "
                      "-1.500000\n");
}

TEST(summaries_are_counts_and_sums_in_seconds) {
    struct text out = {0};
    struct metrics_page page = {&out, ""};
    metrics_text_summary(
        &page, "s_seconds", (struct metrics_label){"of", "a"}, 3, duration_from_milliseconds(1500));
    assert_text(&out, "s_seconds_count{of=\"a\"} 3\ns_seconds_sum{of=\"a\"} 1.500000000\n");
}

TEST(a_bucket_has_all_that_are_no_larger_than_its_bound) {
    static const double bounds[] = {0.001, 600};
    static const uint64_t counts[] = {2, 1};
    struct text out = {0};
    struct metrics_page page = {&out, "node=\"n\""};
    struct metrics_buckets buckets = {bounds, counts, 2};
    metrics_text_histogram(&page, "h", METRICS_NO_LABEL, &buckets, 4, duration_from_seconds(1200));
    assert_text(&out, "h_bucket{node=\"n\",le=\"0.001\"} 2\nh_bucket{node=\"n\",le=\"600\"} 3\n"
                      "h_bucket{node=\"n\",le=\"+Inf\"} 4\nh_count{node=\"n\"} 4\n"
                      "h_sum{node=\"n\"} 1200.000000000\n");
}

TEST(all_samples_have_the_labels_of_the_page) {
    struct text out = {0};
    struct text labels = {0};
    metrics_text_append_label((struct metrics_label){"run_id", "a\"b"}, &labels);
    metrics_text_append_label((struct metrics_label){"role", ""}, &labels);
    struct metrics_page page = {&out, text_string(&labels)};
    metrics_text_number(&page, "m", METRICS_NO_LABEL, 1);
    metrics_text_number(&page, "m", (struct metrics_label){"l", "x"}, 2);
    assert_text(
        &out, "m{run_id=\"a\\\"b\",role=\"\"} 1\nm{run_id=\"a\\\"b\",role=\"\",l=\"x\"} 2\n");
    text_clear(&labels);
}

TEST(label_values_are_escaped_and_made_text) {
    struct text out = {0};
    struct metrics_page page = {&out, ""};
    metrics_text_number(&page, "m", (struct metrics_label){"l", "a\"b\\c\nd\xff"}, 1);
    assert_text(&out, "m{l=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\"} 1\n");
}

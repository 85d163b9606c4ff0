/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>

#include "host/failure/hang_report.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"
#include "temporary_tree.h"

static const struct duration a_minute = {60000000000};

static void expect_file(const char *path, const char *expected) {
    struct bytes bytes = {0};
    assert_int_equal(whole_file_read(path, false, 4096, &bytes, NULL), FAILURE_NONE);
    assert_true(slice_equals(bytes_slice(&bytes), slice_from_string(expected)));
    bytes_clear(&bytes);
}

TREE_TEST(what_is_flushed_is_in_the_file_at_once) {
    char *path = temporary_tree_path(fixture, "report");
    struct hang_report report = {.end = instant_after(clock_now(), a_minute)};
    assert_true(hang_report_open(&report, path));
    text_append(&report.text, "one\n");
    hang_report_flush(&report);
    expect_file(path, "one\n");
    text_append(&report.text, "two\n");
    hang_report_close(&report);
    assert_true(hang_report_open(&report, path));
    text_append(&report.text, "three\n");
    hang_report_close(&report);
    expect_file(path, "one\ntwo\nthree\n");
    free(path);
}

TEST(a_report_without_a_file_is_dropped) {
    struct hang_report report = {.end = instant_after(clock_now(), a_minute)};
    assert_false(hang_report_open(&report, NULL));
    assert_int_equal(report.error, 0);
    assert_false(hang_report_open(&report, "/proc/no such directory/report"));
    assert_int_equal(report.error, ENOENT);
    text_append(&report.text, "one\n");
    hang_report_close(&report);
    assert_int_equal(report.text.length, 0);
}

TEST(what_the_disk_does_not_take_is_told_by_its_errno) {
    struct hang_report report = {.end = instant_after(clock_now(), a_minute)};
    assert_true(hang_report_open(&report, "/dev/full"));
    text_append(&report.text, "one\n");
    hang_report_close(&report);
    assert_int_equal(report.error, ENOSPC);
}

TEST(a_report_is_over_when_its_time_is_up_or_nobody_waits) {
    atomic_bool is_abandoned = false;
    struct hang_report report = {.is_abandoned = &is_abandoned, .end = clock_now()};
    assert_true(hang_report_is_over(&report));
    report.end = instant_after(clock_now(), a_minute);
    assert_false(hang_report_is_over(&report));
    atomic_store(&is_abandoned, true);
    assert_true(hang_report_is_over(&report));
}

TEST(files_are_read_up_to_a_ceiling) {
    struct bytes bytes = {0};
    assert_false(hang_report_read("/proc/self/no such file", 10, &bytes));
    assert_true(hang_report_read("/proc/self/stat", 4096, &bytes));
    assert_true(bytes.length > 20);
    bytes_clear(&bytes);
}

TEST(text_from_outside_cannot_control_a_terminal) {
    struct text text = {0};
    hang_report_append_safely(&text, "a\x1b[1m\tb\n\0\x7f", 10);
    assert_string_equal(text_string(&text), "a\tb\n??");
    text_clear(&text);
}

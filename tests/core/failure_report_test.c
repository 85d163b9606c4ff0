/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/failure_report.h"

static struct failure_report_entry entry_of(int rank, struct process_exit exit) {
    return (struct failure_report_entry){
        .time = {.year = 2026, .month = 11, .day = 20, .hour = 9, .minute = 3, .second = 2},
        .host = "localhost",
        .rank = rank,
        .local_rank = rank,
        .pid = 16990 + rank,
        .exit = exit,
    };
}

static void check(
    const struct failure_report_entry *entries, size_t count, size_t root, const char *expected) {
    struct text report = {0};
    failure_report_format(&report, "train.py", entries, count, root);
    assert_string_equal(text_string(&report), expected);
    text_clear(&report);
}

static void the_root_cause_comes_first_and_keeps_its_number(void **state) {
    (void)state;
    struct failure_report_entry entries[] = {
        entry_of(0, (struct process_exit){.is_signal = true, .value = 15}),
        entry_of(1, (struct process_exit){.value = 3}),
    };
    check(entries, 2, 1,
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        "============================================================\n"
        "train.py FAILED\n"
        "------------------------------------------------------------\n"
        "Root Cause (first observed failure):\n"
        "[1]:\n"
        "  time      : 2026-11-20_09:03:02\n"
        "  host      : localhost\n"
        "  rank      : 1 (local_rank: 1)\n"
        "  exitcode  : 3 (pid: 16991) \n"
        "  error_file: <N/A>\n"
        "  traceback : To enable traceback see: "
        "https://pytorch.org/docs/stable/elastic/errors.html\n"
        "------------------------------------------------------------\n"
        "Failures:\n"
        "[0]:\n"
        "  time      : 2026-11-20_09:03:02\n"
        "  host      : localhost\n"
        "  rank      : 0 (local_rank: 0)\n"
        "  exitcode  : -15 (pid: 16990)  (SIGTERM)\n"
        "  error_file: <N/A>\n"
        "  traceback : Signal 15 (SIGTERM) received by PID 16990\n"
        "============================================================\n");
}

static void the_rule_is_as_wide_as_the_longest_line(void **state) {
    (void)state;
    struct failure_report_entry entry = entry_of(0, (struct process_exit){.value = 1});
    entry.message = "b\303\266\303\266m"; /* four characters in six bytes */
    entry.error_file = "/a";
    check(&entry, 1, 0,
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        "=================================\n"
        "train.py FAILED\n"
        "---------------------------------\n"
        "Root Cause (first observed failure):\n"
        "[0]:\n"
        "  time      : 2026-11-20_09:03:02\n"
        "  host      : localhost\n"
        "  rank      : 0 (local_rank: 0)\n"
        "  exitcode  : 1 (pid: 16990) \n"
        "  error_file: /a\n"
        "  traceback : b\303\266\303\266m\n"
        "---------------------------------\n"
        "Failures:\n"
        "  <NO_OTHER_FAILURES>\n"
        "=================================\n");
}

/* The lines from "traceback" to the rule. */
static void check_traceback(struct failure_report_entry entry, const char *expected) {
    struct text report = {0};
    failure_report_format(&report, "train.py", &entry, 1, 0);
    const char *start = strstr(text_string(&report), "  traceback : ");
    assert_non_null(start);
    start += strlen("  traceback : ");
    const char *end = strstr(start, "\n---");
    assert_non_null(end);
    char *actual = strndup(start, (size_t)(end - start));
    assert_string_equal(actual, expected);
    free(actual);
    text_clear(&report);
}

static void tracebacks_from_objects_are_indented_and_strings_are_not(void **state) {
    (void)state;
    struct failure_report_entry entry = entry_of(0, (struct process_exit){.value = 1});
    entry.message = "Traceback:\n  line\n";
    check_traceback(entry, "Traceback:\n  line\n");
    entry.is_message_object = true;
    check_traceback(entry, "Traceback:\n    line\n  ");
}

static void what_the_kernel_knows_is_said_in_words(void **state) {
    (void)state;
    struct failure_report_entry entry =
        entry_of(0, (struct process_exit){.is_signal = true, .value = 9});
    entry.evidence = "killed by the kernel's OOM killer";
    check_traceback(
        entry, "Signal 9 (SIGKILL) received by PID 16990; killed by the kernel's OOM killer");
    entry =
        entry_of(0, (struct process_exit){.is_signal = true, .value = 11, .has_dumped_core = true});
    check_traceback(entry, "Signal 11 (SIGSEGV) received by PID 16990; core dumped");
    entry.message = "gone";
    entry.note = "and more";
    check_traceback(entry, "gone\n  core dumped\n  and more");
}

static void a_worker_that_did_not_start_says_why(void **state) {
    (void)state;
    struct failure_report_entry entry = entry_of(0, (struct process_exit){0});
    entry.start_message = "exec of 'x' failed: No such file or directory";
    check_traceback(entry, "exec of 'x' failed: No such file or directory");
    struct text report = {0};
    failure_report_format(&report, "x", &entry, 1, 0);
    assert_non_null(strstr(text_string(&report), "\n  exitcode  : <N/A> (not started)\n"));
    text_clear(&report);
}

static void a_worker_that_hung_says_for_how_long(void **state) {
    (void)state;
    struct failure_report_entry entry = entry_of(0, (struct process_exit){0});
    entry.stuck = duration_from_seconds(5.25);
    check_traceback(
        entry, "PID 16990 hung in the kernel for 5.2 s (uninterruptible sleep, state D)");
    struct text report = {0};
    failure_report_format(&report, "x", &entry, 1, 0);
    assert_non_null(strstr(text_string(&report), "\n  exitcode  : <N/A> (pid: 16990) (stuck)\n"));
    text_clear(&report);
}

static void a_signal_without_a_name_is_still_a_signal(void **state) {
    (void)state;
    struct failure_report_entry entry =
        entry_of(0, (struct process_exit){.is_signal = true, .value = 33});
    check_traceback(entry, "Signal 33 (<N/A>) received by PID 16990");
    struct text report = {0};
    failure_report_format(&report, "x", &entry, 1, 0);
    assert_non_null(strstr(text_string(&report), "\n  exitcode  : -33 (pid: 16990) \n"));
    text_clear(&report);
}

static void exits_are_described_in_one_phrase(void **state) {
    (void)state;
    struct text text = {0};
    failure_report_describe_exit(&text, (struct process_exit){.value = 3});
    text_append(&text, "; ");
    failure_report_describe_exit(
        &text, (struct process_exit){.is_signal = true, .value = 6, .has_dumped_core = true});
    assert_string_equal(text_string(&text), "exit code 3; signal 6 (SIGABRT), core dumped");
    text_clear(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_root_cause_comes_first_and_keeps_its_number),
    cmocka_unit_test(the_rule_is_as_wide_as_the_longest_line),
    cmocka_unit_test(tracebacks_from_objects_are_indented_and_strings_are_not),
    cmocka_unit_test(what_the_kernel_knows_is_said_in_words),
    cmocka_unit_test(a_worker_that_did_not_start_says_why),
    cmocka_unit_test(a_worker_that_hung_says_for_how_long),
    cmocka_unit_test(a_signal_without_a_name_is_still_a_signal),
    cmocka_unit_test(exits_are_described_in_one_phrase),
};

TEST_MAIN(tests)

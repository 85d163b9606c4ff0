/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/failure/failure_report.h"

static const struct failure_report_job python_job = {"train.py", true};

static struct failure_account account_of(int rank, struct process_exit exit) {
    return (struct failure_account){
        .host = memory_duplicate_string("localhost"),
        .rank = rank,
        .local_rank = rank,
        .pid = 16990 + rank,
        .exit = exit,
    };
}

/* The caller frees the report. */
static char *format(const struct failure_account *accounts, size_t count, size_t root) {
    struct failure_report_entry entries[2];
    struct text report = {0};
    for (size_t i = 0; i < count; i++) {
        entries[i] = (struct failure_report_entry){
            .time = {.year = 2026, .month = 11, .day = 20, .hour = 9, .minute = 3, .second = 2},
            .account = &accounts[i],
        };
    }
    failure_report_format(&report, &python_job, entries, count, root);
    return text_take(&report);
}

/* Checks the report, and clears the accounts. */
static void check(
    struct failure_account *accounts, size_t count, size_t root, const char *expected) {
    FREED char *report = format(accounts, count, root);
    assert_string_equal(report, expected);
    for (size_t i = 0; i < count; i++) {
        failure_account_clear(&accounts[i]);
    }
}

static void check_contains(const struct failure_account *account, const char *expected) {
    FREED char *report = format(account, 1, 0);
    assert_non_null(strstr(report, expected));
}

TEST(the_root_cause_comes_first_and_keeps_its_number) {
    struct failure_account accounts[] = {
        account_of(0, (struct process_exit){.is_signal = true, .value = 15}),
        account_of(1, (struct process_exit){.value = 3}),
    };
    check(accounts, 2, 1,
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

TEST(the_rule_is_as_wide_as_the_longest_line) {
    struct failure_account account = account_of(0, (struct process_exit){.value = 1});
    account.message =
        memory_duplicate_string("b\303\266\303\266m"); /* four characters in six bytes */
    account.error_file = memory_duplicate_string("/a");
    check(&account, 1, 0,
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

/* Checks the lines from "traceback" to the rule. */
static void check_traceback(const struct failure_account *account, const char *expected) {
    FREED char *report = format(account, 1, 0);
    const char *start = strstr(report, "  traceback : ");
    assert_non_null(start);
    start += strlen("  traceback : ");
    const char *end = strstr(start, "\n---");
    assert_non_null(end);
    FREED char *actual = strndup(start, (size_t)(end - start));
    assert_string_equal(actual, expected);
}

TEST(tracebacks_from_objects_are_indented_and_strings_are_not) {
    struct failure_account account = account_of(0, (struct process_exit){.value = 1});
    account.message = memory_duplicate_string("Traceback:\n  line\n");
    check_traceback(&account, "Traceback:\n  line\n");
    account.is_message_object = true;
    check_traceback(&account, "Traceback:\n    line\n  ");
    failure_account_clear(&account);
}

TEST(what_the_kernel_knows_is_said_in_words) {
    CLEARED_BY(failure_account_clear)
    struct failure_account account =
        account_of(0, (struct process_exit){.is_signal = true, .value = 9});
    account.evidence = memory_duplicate_string("killed by the kernel's OOM killer");
    check_traceback(
        &account, "Signal 9 (SIGKILL) received by PID 16990; killed by the kernel's OOM killer");
    failure_account_clear(&account);
    account = account_of(
        0, (struct process_exit){.is_signal = true, .value = 11, .has_dumped_core = true});
    check_traceback(&account, "Signal 11 (SIGSEGV) received by PID 16990; core dumped");
    account.message = memory_duplicate_string("gone");
    account.note = memory_duplicate_string("and more");
    check_traceback(&account, "gone\n  core dumped\n  and more");
}

TEST(a_worker_that_did_not_start_says_why) {
    struct failure_account account = account_of(0, (struct process_exit){0});
    account.start_message =
        memory_duplicate_string("exec of 'x' failed: No such file or directory");
    check_traceback(&account, "exec of 'x' failed: No such file or directory");
    check_contains(&account, "\n  exitcode  : <N/A> (not started)\n");
    failure_account_clear(&account);
}

TEST(a_worker_that_hung_says_for_how_long) {
    struct failure_account account = account_of(0, (struct process_exit){0});
    account.stuck = duration_from_seconds(5.25);
    check_traceback(
        &account, "PID 16990 hung in the kernel for 5.2 s (uninterruptible sleep, state D)");
    check_contains(&account, "\n  exitcode  : <N/A> (pid: 16990) (stuck)\n");
    failure_account_clear(&account);
}

TEST(a_signal_without_a_name_is_still_a_signal) {
    CLEARED_BY(failure_account_clear)
    struct failure_account account =
        account_of(0, (struct process_exit){.is_signal = true, .value = 33});
    check_traceback(&account, "Signal 33 (<N/A>) received by PID 16990");
    check_contains(&account, "\n  exitcode  : -33 (pid: 16990) \n");
}

TEST(a_consequence_is_called_so) {
    CLEARED_BY(failure_account_clear)
    struct failure_account account =
        account_of(0, (struct process_exit){.is_signal = true, .value = 15});
    struct failure_report_entry entry = {.account = &account, .judgement = "consequence: of that"};
    CLEARED_BY(text_clear) struct text report = {0};
    failure_report_format(&report, &python_job, &entry, 1, 0);
    assert_non_null(strstr(text_string(&report), "\n  error_file: <N/A>\n"
                                                 "  judgement : consequence: of that\n"
                                                 "  traceback : "));
}

TEST(last_lines_follow_and_look_like_no_other_line) {
    struct failure_account account = account_of(0, (struct process_exit){.value = 1});
    account.log_file = memory_duplicate_string("/logs/0/stderr.log");
    const struct failure_report_entry entry = {
        .account = &account, .last_lines = "[1]:\n\nValueError: boom\n"};
    const struct failure_report_job job = {"a.out", false};
    CLEARED_BY(text_clear) struct text report = {0};
    failure_report_format(&report, &job, &entry, 1, 0);
    assert_non_null(strstr(text_string(&report), "\n  error_file: <N/A>\n"
                                                 "  log_file  : /logs/0/stderr.log\n"
                                                 "  traceback : <N/A>\n"
                                                 "  last lines of log_file:\n"
                                                 "  | [1]:\n"
                                                 "  |\n"
                                                 "  | ValueError: boom\n"
                                                 "---"));
    failure_account_clear(&account);
}

/* Failure judgement. */

static void check_message(const char *message, enum failure_judgement expected) {
    CLEARED_BY(failure_account_clear)
    struct failure_account account = {
        .exit = {.value = 1}, .message = memory_duplicate_string(message)};
    assert_int_equal(failure_judge(&account, false), expected);
}

static void check_exit(struct process_exit exit, enum failure_judgement expected) {
    struct failure_account account = {.exit = exit};
    assert_int_equal(failure_judge(&account, false), expected);
}

TEST(our_signal_is_our_doing_whatever_the_worker_says) {
    struct failure_account account = {.message = memory_duplicate_string("Broken pipe")};
    assert_int_equal(failure_judge(&account, true), FAILURE_JUDGED_TERMINATED);
    failure_account_clear(&account);
}

TEST(words_of_a_lost_peer_are_known) {
    static const char *const messages[] = {
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by "
        "peer [127.0.0.1]:1234",
        "torch.distributed.DistNetworkError: failed to recv, got 0 bytes",
        "BrokenPipeError: [Errno 32] Broken pipe",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "torch.distributed.DistBackendError: NCCL error in: x, remote process exited or there was "
        "a network error, NCCL version 2.20.5\nncclRemoteError: A call failed",
        "bbbroken pipe",
    };
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        check_message(messages[i], FAILURE_JUDGED_DISCONNECTED);
    }
}

TEST(other_words_are_a_failure_of_its_own) {
    check_message("ValueError: boom", FAILURE_JUDGED_INDEPENDENT);
    check_message("", FAILURE_JUDGED_INDEPENDENT);
    check_message("broken pip", FAILURE_JUDGED_INDEPENDENT);
}

TEST(without_words_the_end_decides) {
    check_exit((struct process_exit){.value = 1}, FAILURE_JUDGED_UNKNOWN);
    check_exit((struct process_exit){.is_signal = true, .value = 6}, FAILURE_JUDGED_UNKNOWN);
    check_exit((struct process_exit){.is_signal = true, .value = 11}, FAILURE_JUDGED_INDEPENDENT);
    struct failure_account account = {.stuck = duration_from_seconds(1)};
    assert_int_equal(failure_judge(&account, false), FAILURE_JUDGED_INDEPENDENT);
    account = (struct failure_account){.start_message = memory_duplicate_string("no such file")};
    assert_int_equal(failure_judge(&account, false), FAILURE_JUDGED_INDEPENDENT);
    failure_account_clear(&account);
}

TEST(consequences_are_called_so) {
    assert_string_equal(
        failure_judgement_text(FAILURE_JUDGED_TERMINATED), "consequence: ended by the launcher");
    assert_true(
        text_starts_with(failure_judgement_text(FAILURE_JUDGED_DISCONNECTED), "consequence: "));
    assert_true(
        text_starts_with(failure_judgement_text(FAILURE_JUDGED_INDEPENDENT), "independent"));
    assert_true(text_starts_with(failure_judgement_text(FAILURE_JUDGED_UNKNOWN), "unknown"));
}

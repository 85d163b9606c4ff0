/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/failure/failure_report.h"

static struct failure_account account_of(struct process_exit exit) {
    return (struct failure_account){
        .host = memory_duplicate_string("node2"),
        .rank = 5,
        .local_rank = 1,
        .exit = exit,
    };
}

/* Checks the one-line form, and clears the account. */
static void check_line(struct failure_account *account, const char *expected) {
    CLEARED_BY(text_clear) struct text line = {0};
    failure_account_describe(account, &line);
    assert_string_equal(text_string(&line), expected);
    failure_account_clear(account);
}

TEST(a_signal_is_told_with_what_the_kernel_knows) {
    struct failure_account account =
        account_of((struct process_exit){.is_signal = true, .value = 9});
    account.evidence = memory_duplicate_string("killed by the kernel's OOM killer");
    check_line(&account, "rank 5 (local_rank 1) on node2 failed: signal 9 (SIGKILL) (killed by the "
                         "kernel's OOM killer)");
    account =
        account_of((struct process_exit){.is_signal = true, .value = 6, .has_dumped_core = true});
    check_line(&account, "rank 5 (local_rank 1) on node2 failed: signal 6 (SIGABRT), core dumped");
    account = account_of((struct process_exit){.is_signal = true, .value = 33});
    check_line(&account, "rank 5 (local_rank 1) on node2 failed: signal 33");
}

TEST(workers_that_did_not_run_or_end_are_told_apart) {
    struct failure_account account = account_of((struct process_exit){0});
    account.start_message = memory_duplicate_string("exec of 'x' failed");
    check_line(&account, "rank 5 (local_rank 1) on node2 could not be started: exec of 'x' failed");
    account = account_of((struct process_exit){0});
    account.stuck = duration_from_seconds(5);
    check_line(&account, "rank 5 (local_rank 1) on node2 hung in the kernel for 5.0 s");
}

TEST(the_line_is_one_line_of_text_whatever_the_failure_says) {
    struct failure_account account = account_of((struct process_exit){.value = 1});
    account.summary = memory_duplicate_string("a\nb\tc\377d\033[0m\303\266\303");
    check_line(
        &account, "rank 5 (local_rank 1) on node2 failed: exit code 1 (a b c?d [0m\303\266?)");
}

TEST(the_line_ends_with_a_whole_character) {
    struct failure_account account = account_of((struct process_exit){.value = 1});
    struct text long_summary = {0};
    for (int i = 0; i < 200; i++) {
        text_append(&long_summary, "\342\202\254"); /* the euro sign */
    }
    account.summary = text_take(&long_summary);
    CLEARED_BY(text_clear) struct text line = {0};
    failure_account_describe(&account, &line);
    size_t before = strlen("rank 5 (local_rank 1) on node2 failed: exit code 1 (");
    assert_int_equal(line.length, before + (FAILURE_ACCOUNT_LINE_MAXIMUM - before) / 3 * 3);
    failure_account_clear(&account);
}

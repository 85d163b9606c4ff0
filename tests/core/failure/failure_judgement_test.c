/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/failure/failure_report.h"

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

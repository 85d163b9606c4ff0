/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/failure/failure_judgement.h"

#include <string.h>

#define SIGNAL_NUMBER_ABORT 6

/* Messages of the kernel, TCPStore, Gloo and NCCL, in lower case. */
static const char *const phrases[] = {
    "broken pipe",
    "connection refused",
    "connection reset by",
    "connection closed by",
    "connection was likely closed",
    "failed to recv, got 0 bytes",
    "failed on socketimpl",
    "socket closed",
    "recv operation to complete",
    "send operation to complete",
    "pair closure",
    "ncclremoteerror",
    "remote process exit",
    "nccl communicator was aborted",
    "collective operation timeout",
};

static char small_letter(char letter) {
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

static bool starts_with_phrase(const char *text, const char *phrase) {
    for (; *phrase != '\0'; text++, phrase++) {
        if (small_letter(*text) != *phrase) {
            return false;
        }
    }
    return true;
}

static bool contains_phrase(const char *text, const char *phrase) {
    const char initials[] = {phrase[0], (char)(phrase[0] - 'a' + 'A'), '\0'};
    for (; (text = strpbrk(text, initials)) != NULL; text++) {
        if (starts_with_phrase(text, phrase)) {
            return true;
        }
    }
    return false;
}

static bool describes_lost_peer(const char *text) {
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        if (contains_phrase(text, phrases[i])) {
            return true;
        }
    }
    return false;
}

enum failure_judgement failure_judge(
    const struct failure_account *account, bool is_from_our_signal) {
    if (is_from_our_signal) {
        return FAILURE_JUDGED_TERMINATED;
    }
    if (account->message != NULL) {
        return describes_lost_peer(account->message) ? FAILURE_JUDGED_DISCONNECTED
                                                     : FAILURE_JUDGED_INDEPENDENT;
    }
    /* NCCL's watchdog ends its process by abort. Other signals, a worker that never ran and a
     * worker that hangs have nothing to do with other nodes. */
    bool has_ended = account->start_message == NULL && account->stuck.nanoseconds == 0;
    bool may_be_consequence =
        !account->exit.is_signal || account->exit.value == SIGNAL_NUMBER_ABORT;
    return has_ended && may_be_consequence ? FAILURE_JUDGED_UNKNOWN : FAILURE_JUDGED_INDEPENDENT;
}

const char *failure_judgement_text(enum failure_judgement judgement) {
    switch (judgement) {
    case FAILURE_JUDGED_TERMINATED:
        return "consequence: ended by the launcher";
    case FAILURE_JUDGED_DISCONNECTED:
        return "consequence: lost its connection to another worker";
    case FAILURE_JUDGED_UNKNOWN:
        return "unknown: it left no message";
    case FAILURE_JUDGED_INDEPENDENT:
        break;
    }
    return "independent of the root cause, as far as can be told";
}

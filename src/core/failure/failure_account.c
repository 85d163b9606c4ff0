/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/failure/failure_account.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "core/workers/signal_name.h"

void failure_account_clear(struct failure_account *account) {
    free(account->host);
    free(account->node);
    free(account->start_message);
    free(account->error_file);
    free(account->log_file);
    free(account->message);
    free(account->summary);
    free(account->evidence);
    free(account->note);
    *account = (struct failure_account){0};
}

void failure_account_copy(const struct failure_account *account, struct failure_account *out_copy) {
    struct failure_account copy = *account;
    copy.host = memory_duplicate_string(account->host);
    copy.node = memory_duplicate_string(account->node);
    copy.start_message = memory_duplicate_string(account->start_message);
    copy.error_file = memory_duplicate_string(account->error_file);
    copy.log_file = memory_duplicate_string(account->log_file);
    copy.message = memory_duplicate_string(account->message);
    copy.summary = memory_duplicate_string(account->summary);
    copy.evidence = memory_duplicate_string(account->evidence);
    copy.note = memory_duplicate_string(account->note);
    failure_account_clear(out_copy);
    *out_copy = copy;
}

static void describe_exit(struct process_exit exit, struct text *out) {
    if (!exit.is_signal) {
        text_append_format(out, "exit code %d", exit.value);
        return;
    }
    const char *name = signal_name_from_number(exit.value);
    text_append_format(out, "signal %d", exit.value);
    if (name != NULL) {
        text_append_format(out, " (%s)", name);
    }
    if (exit.has_dumped_core) {
        text_append(out, ", core dumped");
    }
}

static void describe_in_full(const struct failure_account *account, struct text *out) {
    text_append_format(out, "rank %d (local_rank %d) on %s ", account->rank, account->local_rank,
        account->host == NULL ? "an unknown host" : account->host);
    if (account->start_message != NULL) {
        text_append_format(out, "could not be started: %s", account->start_message);
        return;
    }
    if (account->stuck.nanoseconds > 0) {
        text_append_format(out, "hung in the kernel for %.1f s", duration_seconds(account->stuck));
        return;
    }
    text_append(out, "failed: ");
    describe_exit(account->exit, out);
    const char *why = account->summary != NULL ? account->summary : account->evidence;
    if (why != NULL) {
        text_append_format(out, " (%s)", why);
    }
}

void failure_account_describe(const struct failure_account *account, struct text *out) {
    struct text full = {0};
    describe_in_full(account, &full);
    size_t length = 0;
    for (size_t i = 0; i < full.length;) {
        const uint8_t *bytes = (const uint8_t *)full.data + i;
        size_t width = utf8_character_length(bytes, full.length - i);
        if (length + (width == 0 ? 1 : width) > FAILURE_ACCOUNT_LINE_MAXIMUM) {
            break;
        }
        if (width == 0) {
            text_append(out, "?");
            width = 1;
        } else if (bytes[0] < 0x20 || bytes[0] == 0x7f) {
            text_append(out, " ");
        } else {
            text_append_bytes(out, full.data + i, width);
        }
        length += width;
        i += width;
    }
    text_clear(&full);
}

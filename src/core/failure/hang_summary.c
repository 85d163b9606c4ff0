/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/failure/hang_summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void hang_summary_clear(struct hang_summary *summary) {
    free(summary->call);
    free(summary->waits_in);
    free(summary->stack);
    *summary = (struct hang_summary){0};
}

void hang_summary_copy(const struct hang_summary *summary, struct hang_summary *out_copy) {
    *out_copy = (struct hang_summary){
        .state = summary->state,
        .call = memory_duplicate_string(summary->call),
        .waits_in = memory_duplicate_string(summary->waits_in),
        .stack = memory_duplicate_string(summary->stack),
        .thread_count = summary->thread_count,
        .file_error = summary->file_error,
    };
}

/* The state in words, for example "sleeping" for 'S'. */
static const char *hang_summary_state_words(char state) {
    switch (state) {
    case 'R':
        return "running";
    case 'S':
        return "sleeping";
    case 'D':
        return "in uninterruptible sleep";
    case 'T':
        return "stopped";
    case 't':
        return "stopped by a debugger";
    case 'Z':
    case 'X':
        return "ended";
    case 'I':
        return "idle";
    case '\0':
        return "gone";
    default:
        return "in a state not known";
    }
}

void hang_summary_append(const struct hang_summary *summary, struct text *out) {
    text_append(out, hang_summary_state_words(summary->state));
    if (summary->call != NULL) {
        text_append_format(out, " in %s", summary->call);
    }
    if (summary->waits_in != NULL) {
        text_append_format(out, " (%s)", summary->waits_in);
    }
    if (summary->thread_count > 1) {
        text_append_format(out, ", %zu threads", summary->thread_count);
    }
    if (summary->stack != NULL) {
        text_append_format(out, ", at %.*s", (int)strcspn(summary->stack, "\n"), summary->stack);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/worker_notes.h"

#include <stdlib.h>

#include "base/memory.h"

void worker_notes_clear(struct worker_notes *notes) {
    free(notes->signalled_by);
    free(notes->hang);
    *notes = (struct worker_notes){0};
}

void worker_notes_set_signal(struct worker_notes *notes, int signal, const char *by_whom) {
    notes->signal = signal;
    free(notes->signalled_by);
    notes->signalled_by = memory_duplicate_string(by_whom);
}

void worker_notes_set_hang(struct worker_notes *notes, const char *words) {
    free(notes->hang);
    notes->hang = memory_duplicate_string(words);
}

static void add_signal(
    const struct worker_notes *notes, const struct process_exit *how, struct text *evidence) {
    bool is_its_end = how->is_signal && how->value == notes->signal;
    struct text kernel = *evidence;
    *evidence = (struct text){0};
    text_append_format(
        evidence, "%s %s", is_its_end ? "killed" : "had been signalled", notes->signalled_by);
    if (kernel.length > 0) {
        text_append_format(evidence, "; %s", text_string(&kernel));
    }
    text_clear(&kernel);
}

void worker_notes_add(
    const struct worker_notes *notes, const struct process_exit *how, struct text *evidence) {
    if (notes->signal != 0) {
        add_signal(notes, how, evidence);
    }
    if (notes->hang != NULL) {
        text_append_format(
            evidence, "%sbefore that it was %s", evidence->length == 0 ? "" : "; ", notes->hang);
    }
}

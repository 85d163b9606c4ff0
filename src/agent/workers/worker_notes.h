/* SPDX-License-Identifier: BSD-3-Clause */
/* What was noted about a worker while it ran, for the account of its end: who of ours has signalled
 * it, and what it was doing when it was decided to kill it. */
#ifndef MUSTER_AGENT_WORKERS_WORKER_NOTES_H
#define MUSTER_AGENT_WORKERS_WORKER_NOTES_H

#include "base/text.h"
#include "core/workers/worker_group.h"

/* A zeroed struct has no notes. */
struct worker_notes {
    int signal;         /* sent by somebody of ours while the worker was to run; 0: none … */
    char *signalled_by; /* "by the watchdog: timer 'x' expired" */
    char *hang;         /* "sleeping in read; see …", or NULL */
};

void worker_notes_clear(struct worker_notes *notes);

/* Each takes the place of an earlier one. The words are copied. */
void worker_notes_set_signal(struct worker_notes *notes, int signal, const char *by_whom);
void worker_notes_set_hang(struct worker_notes *notes, const char *words);

/* The worker has ended like this. Puts the notes around what the kernel has told so far. */
void worker_notes_add(
    const struct worker_notes *notes, const struct process_exit *how, struct text *evidence);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows about a worker's death besides its exit status: whether the OOM killer
 * killed it, and where its core dump went. This module gathers facts; core/failure_report puts
 * them into words. Nothing here blocks. A source that may not be read (/dev/kmsg in a container)
 * counts as unknown. */
#ifndef MUSTER_HOST_FAILURE_PROCESS_EVIDENCE_H
#define MUSTER_HOST_FAILURE_PROCESS_EVIDENCE_H

#include <sys/types.h>

#include "base/text.h"
#include "core/workers/worker_group.h"

struct process_evidence;

/* Never fails; a source that cannot be opened is not used. */
struct process_evidence *process_evidence_new(void);
/* Accepts NULL. */
void process_evidence_free(struct process_evidence *evidence);

/* Forgets earlier deaths. Call it before the workers of an attempt are started. */
void process_evidence_begin(struct process_evidence *evidence);

/* Appends what is known of the death of `pid`, as sentences without a full stop at the end, joined
 * by "; ": "killed by the kernel's OOM killer (…)". Appends nothing when nothing is known, as after
 * an ordinary exit. Call it soon after the death. */
void process_evidence_describe(
    struct process_evidence *evidence, pid_t pid, const struct process_exit *how, struct text *out);

#endif

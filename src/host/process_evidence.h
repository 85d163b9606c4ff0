/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows about a worker's death beyond its exit status: whether the OOM killer did
 * it, where a core dump went. Gathers the facts; their words are core/death_explanation's. Nothing
 * here blocks, and what may not be read (/dev/kmsg in a container) is simply not known. */
#ifndef MUSTER_HOST_PROCESS_EVIDENCE_H
#define MUSTER_HOST_PROCESS_EVIDENCE_H

#include <sys/types.h>

#include "base/text.h"
#include "core/process_exit.h"

struct process_evidence;

/* Never fails: sources that cannot be opened are left out. */
struct process_evidence *process_evidence_new(void);
/* Accepts NULL. */
void process_evidence_free(struct process_evidence *evidence);

/* Forgets what happened so far; call it before the workers of an attempt are started. */
void process_evidence_begin(struct process_evidence *evidence);

/* Appends what is known of the death of `pid`, as sentences without a full stop at the end, joined
 * by "; ": "killed by the kernel's OOM killer (…)". Nothing when there is nothing to say, as after
 * an ordinary exit. Call it soon after the death. */
void process_evidence_describe(
    struct process_evidence *evidence, pid_t pid, const struct process_exit *how, struct text *out);

#endif

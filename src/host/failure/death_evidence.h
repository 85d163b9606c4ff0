/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a worker died: what it may have told in its error file, and what the kernel knows. */
#ifndef MUSTER_HOST_FAILURE_DEATH_EVIDENCE_H
#define MUSTER_HOST_FAILURE_DEATH_EVIDENCE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/workers/worker_group.h"

/* Files in which workers tell why they died (TORCHELASTIC_ERROR_FILE): reads those of workers,
 * which may be anything, and writes the launcher's own. What is inside is wire/failure_json's
 * business. */

/* Largest file worth reading; a traceback has a few KiB. */
#define ERROR_FILE_CEILING (1024 * 1024)

/* Appends the file's bytes to `out_bytes`. FAILURE_MISSING when there is none (the usual case),
 * FAILURE_INVALID for anything but a regular file (a symbolic link too), FAILURE_LIMIT, with the
 * size in the message, over `ceiling` bytes, FAILURE_SYSTEM otherwise. Never blocks. */
__attribute__((warn_unused_result)) enum failure_code error_file_read(
    const char *path, size_t ceiling, struct bytes *out_bytes, struct failure *failure);

/* Writes a new file and renames it over `path`, so that a reader sees all of it or the one before.
 * Where that cannot be done (a device, a mounted file such as Kubernetes' /dev/termination-log, a
 * directory that takes no new files) writes in place. FAILURE_SYSTEM when neither works. */
__attribute__((warn_unused_result)) enum failure_code error_file_write(
    const char *path, struct slice content, struct failure *failure);

/* What the kernel knows about a worker's death besides its exit status: whether the OOM killer
 * killed it, and where its core dump went. This module gathers facts; core/failure_report puts
 * them into words. Nothing here blocks. A source that may not be read (/dev/kmsg in a container)
 * counts as unknown. */

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

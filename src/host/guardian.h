/* SPDX-License-Identifier: BSD-3-Clause */
/* A small process that outlives an agent killed by SIGKILL just long enough to end its workers. The
 * kernel's parent-death signal reaches the workers themselves; the guardian also ends what they
 * started: every process of their sessions, and every process that carries the job's fingerprint in
 * its environment, whatever session it moved to.
 *
 * It learns of the agent's death as the end of a pipe whose other end only the agent and its
 * children before exec hold. It is nobody's child, has its own session, holds no other descriptor
 * and ignores the signals people send to whole groups. After guardian_free it leaves at once and
 * touches nobody. */
#ifndef MUSTER_HOST_GUARDIAN_H
#define MUSTER_HOST_GUARDIAN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/failure.h"
#include "base/text.h"

struct guardian;

/* Starts the guardian; do it before other threads, and before the first worker.
 *
 * `fingerprint` holds NAME=START assignments; a process is the job's when its environment has, for
 * every one of them, a variable NAME whose value begins with START. Choose what no other job on the
 * machine can share (a directory just created, say). NULL or empty: sessions only. It is copied. */
__attribute__((warn_unused_result)) enum failure_code guardian_start(
    const struct text_list *fingerprint, struct guardian **out_guardian, struct failure *failure);

/* Says farewell: the guardian exits without touching anybody. Accepts NULL. */
void guardian_free(struct guardian *guardian);

/* Where a child announces itself before exec (process_request.guardian_fd). -1 for NULL. */
int guardian_descriptor(const struct guardian *guardian);

/* The session that `leader` led is over and needs no guarding any more; its number may be used
 * anew. */
void guardian_end_session(struct guardian *guardian, pid_t leader);

/* The guardian's pid, for logs and tests. */
pid_t guardian_pid(const struct guardian *guardian);

/* For a child between fork and exec: tells the guardian that the calling process leads a session to
 * be guarded, or that it does not get that far after all. Async-signal-safe; a guardian that is
 * gone or does not read is no failure. */
void guardian_announce_self(int guardian_fd);
void guardian_withdraw_self(int guardian_fd);

#endif

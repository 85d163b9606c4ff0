/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends what is left of a job whose agent is gone: the sessions in a list, and the processes with
 * the job's fingerprint. The guardian process decides when. */
#ifndef MUSTER_HOST_PROCESS_GUARDIAN_SWEEP_H
#define MUSTER_HOST_PROCESS_GUARDIAN_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"

struct guardian_session {
    pid_t leader;
    uint64_t start_time; /* 0: unknown */
};

/* A zeroed struct is a valid empty list. */
struct guardian_sessions {
    struct guardian_session *items;
    size_t count;
    size_t capacity;
};

void guardian_sessions_add(struct guardian_sessions *sessions, pid_t leader, uint64_t start_time);
void guardian_sessions_remove(struct guardian_sessions *sessions, pid_t leader);
void guardian_sessions_clear(struct guardian_sessions *sessions);

/* Sends SIGKILL until no process is left, for at most 0.8 s. A process that is still there then
 * cannot die yet, but has the signal. The caller is never signalled, nor a session whose number now
 * belongs to another process. */
void guardian_sweep(const struct guardian_sessions *sessions, const struct text_list *fingerprint);

/* Whether the environment (NAME=VALUE strings, each ended by NUL) matches the fingerprint: for one
 * NAME=START of it there is a variable NAME whose value begins with START. An empty fingerprint
 * matches nothing. */
bool guardian_fingerprint_fits(
    const struct text_list *fingerprint, const char *environment, size_t length);

#endif

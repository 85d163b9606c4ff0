/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends what is left of a job whose agent is gone: the sessions on a list, and the processes that
 * carry the job's fingerprint. Used by the guardian process, which knows when. */
#ifndef MUSTER_HOST_GUARDIAN_SWEEP_H
#define MUSTER_HOST_GUARDIAN_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"

struct guardian_session {
    pid_t leader;
    uint64_t start_time; /* 0: not known */
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

/* Sends SIGKILL until nothing is left, for at most 0.8 s: who is still there then cannot die yet,
 * but has the signal. Never hits the caller, nor a session whose number belongs to others now. */
void guardian_sweep(const struct guardian_sessions *sessions, const struct text_list *fingerprint);

/* Whether the environment (NAME=VALUE strings, each ended by NUL) has, for every NAME=START of the
 * fingerprint, a variable NAME whose value begins with START. An empty fingerprint fits nothing. */
bool guardian_fingerprint_fits(
    const struct text_list *fingerprint, const char *environment, size_t length);

#endif

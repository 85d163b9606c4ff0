/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of the guardian process itself, and what it is told. Between guardian.c, which starts
 * it, and this there is nothing but a socket. */
#ifndef MUSTER_HOST_GUARDIAN_PROCESS_H
#define MUSTER_HOST_GUARDIAN_PROCESS_H

#include <stdint.h>

#include "base/text.h"

#define GUARDIAN_NAME "muster-guardian" /* as long as a name in the process table can be */

enum guardian_notice_kind {
    GUARDIAN_SESSION_BEGINS,
    GUARDIAN_SESSION_ENDS,
    GUARDIAN_FAREWELL,
};

/* One packet. */
struct guardian_notice {
    enum guardian_notice_kind kind;
    int32_t leader;      /* pid of the session's leader, which is the session's number */
    uint64_t start_time; /* SESSION_BEGINS: of the leader, 0 when not known */
};

/* Runs in a process of its own and never returns. Reads notices from `notices_fd` until the
 * farewell or its end, writes its pid (an int32_t) to `ready_fd` once nothing of the agent's can
 * take it along any more. */
_Noreturn void guardian_process_run(
    int notices_fd, int ready_fd, const struct text_list *fingerprint);

#endif

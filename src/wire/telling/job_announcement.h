/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent says of its job in a small file, for other programs of its user on the same
 * machine: which job it is, where its nodes meet, where this agent can be asked, and where its
 * workers' store is. One JSON object; members that are not known are ignored. No token is ever in
 * it. */
#ifndef MUSTER_WIRE_TELLING_JOB_ANNOUNCEMENT_H
#define MUSTER_WIRE_TELLING_JOB_ANNOUNCEMENT_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

/* Of the whole text, and of the texts in it, in bytes. */
#define JOB_ANNOUNCEMENT_MAXIMUM ((size_t)4096)
#define JOB_ANNOUNCEMENT_RUN_ID_MAXIMUM ((size_t)256)
#define JOB_ANNOUNCEMENT_HOST_MAXIMUM ((size_t)255)

#define JOB_ANNOUNCEMENT_TEXT_MAXIMUM                                                              \
    ((size_t)400) /* of the other texts; a longer one is not said */

/* What is said in one more text; each may be NULL. */
enum job_fact {
    JOB_FACT_ENDPOINT, /* where the nodes meet */
    JOB_FACT_BACKEND,
    JOB_FACT_SOCKET, /* of this agent: a path */
    JOB_FACT_STATE,
    JOB_FACT_LOG_DIR,
    JOB_FACT_SLURM_JOB,
    JOB_FACT_VERSION,
    JOB_FACT_NODE,
    JOB_FACT_COUNT,
};

/* A zeroed struct is empty. All texts are the struct's own. */
struct job_announcement {
    char *run_id;  /* one line that may be shown; the beginning of a longer one */
    char *host;    /* MASTER_ADDR: letters, digits and .:-_%; NULL: not known yet */
    int port;      /* MASTER_PORT; 0: the same */
    int64_t pid;   /* the agent's, as it sees itself */
    int64_t began; /* Unix seconds; 0: not known */
    char *facts[JOB_FACT_COUNT];
};

void job_announcement_clear(struct job_announcement *announcement);

/* Appends the object and a newline. */
void job_announcement_write(const struct job_announcement *announcement, struct text *out);

/* The caller clears the result. FAILURE_MALFORMED for anything else than job_announcement_write
 * writes, FAILURE_LIMIT for a text that is too long. */
__attribute__((warn_unused_result)) enum failure_code job_announcement_read(
    struct slice text, struct job_announcement *out_announcement);

#endif

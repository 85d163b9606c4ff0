/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the store of the job that runs on this machine, for `muster store` without an endpoint:
 * agents announce themselves (host/telling/job_directory). */
#ifndef MUSTER_MAIN_STORE_STORE_FINDING_H
#define MUSTER_MAIN_STORE_STORE_FINDING_H

#include "base/text.h"
#include "host/telling/job_directory.h"

enum store_finding {
    STORE_FINDING_NONE, /* no job of this user announces itself here */
    STORE_FINDING_ONE,
    STORE_FINDING_SEVERAL,
};

/* Says on stderr what was found: the one job, how to choose one of several, or that there is none.
 * `program` is how messages call the command. The caller clears the list (job_list_clear). */
enum store_finding store_find_job(
    const char *program, const struct text_list *environment, struct job_list *out_jobs);

#endif

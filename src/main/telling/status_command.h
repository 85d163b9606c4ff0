/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster status`, `muster events` and `muster stacks`: how a job of this machine stands, what has
 * happened to it, and what its workers do now, as its agents here know it. They are found by their
 * announcements (host/telling/job_directory) and asked at their sockets; nothing of the job changes
 * by that. */
#ifndef MUSTER_MAIN_TELLING_STATUS_COMMAND_H
#define MUSTER_MAIN_TELLING_STATUS_COMMAND_H

#include "base/text.h"
#include "core/telling/chronicle_status.h"
#include "main/telling/job_inquiry.h"
#include "options/argparse/option_result.h"

/* Return the exit status. */
int status_command(const struct text_list *arguments, const struct text_list *environment);
int events_command(const struct text_list *arguments, const struct text_list *environment);
int stacks_command(const struct text_list *arguments, const struct text_list *environment);

/* For commands that show the same in another way. */

/* Finds the job with the options of job_endpoint, and asks its agents. False: the exit status of
 * what has been said. `job`: its name, or NULL. */
bool status_command_open(struct inquiry *inquiry, struct option_result *result, const char *job,
    const struct text_list *environment, int *out_status);
/* How the job stands after it was asked: as its agents here know it where they are all, else as the
 * host of its store does. The caller clears the status. False: the failure says why. */
bool status_command_find(
    struct inquiry *inquiry, struct chronicle_status *out_status, struct failure *failure);

#endif

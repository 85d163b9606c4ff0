/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster status` and `muster events`: how a job of this machine stands, and what has happened to
 * it, as its agents here know it. They are found by their announcements
 * (host/telling/job_directory) and asked at their sockets; nothing of the job changes by that. */
#ifndef MUSTER_MAIN_TELLING_STATUS_COMMAND_H
#define MUSTER_MAIN_TELLING_STATUS_COMMAND_H

#include "base/text.h"

/* Return the exit status. */
int status_command(const struct text_list *arguments, const struct text_list *environment);
int events_command(const struct text_list *arguments, const struct text_list *environment);

#endif

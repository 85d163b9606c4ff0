/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster report` and `muster dashboard`: what has become of a job, from the files of its nodes or
 * from the job itself, as JSON, as a page, as a trace; and the page of a job that runs. */
#ifndef MUSTER_MAIN_TELLING_REPORT_COMMAND_H
#define MUSTER_MAIN_TELLING_REPORT_COMMAND_H

#include "base/failure.h"
#include "base/text.h"
#include "core/telling/chronicle_status.h"
#include "main/telling/job_inquiry.h"

/* Return the exit status. */
int report_command(const struct text_list *arguments, const struct text_list *environment);
int dashboard_command(const struct text_list *arguments, const struct text_list *environment);

/* How a job stands that was asked (status_command_open): the status, which the caller clears, and
 * the same as JSON with nodes. False: the failure says why. */
bool report_job_ask(struct inquiry *inquiry, struct chronicle_status *out_status, struct text *json,
    struct failure *failure);

#endif

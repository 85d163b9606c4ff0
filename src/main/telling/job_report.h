/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a job as something to keep or to look at: data for the page, the page with its
 * data inside, a trace for Perfetto. Texts of the job are data in each of them, never markup. */
#ifndef MUSTER_MAIN_TELLING_JOB_REPORT_H
#define MUSTER_MAIN_TELLING_JOB_REPORT_H

#include <stdbool.h>

#include "base/text.h"
#include "core/telling/chronicle_status.h"
#include "main/telling/job_inquiry.h"

/* What the page has; the last ones. */
#define JOB_REPORT_EVENTS_MAXIMUM ((size_t)4096)
#define JOB_REPORT_STATES_MAXIMUM ((size_t)4096)
#define JOB_REPORT_RATES_MAXIMUM ((size_t)1440)
/* Of larger jobs a trace has nodes only. */
#define JOB_REPORT_TRACED_NODES_MAXIMUM ((size_t)2000)

struct job_report {
    const struct inquiry *inquiry; /* its entries, in the order of their times */
    struct chronicle_status *status;
    const char *status_json; /* with nodes; "muster.status/1" */
    bool is_live;
};

/* One JSON object, "muster.page/1". */
void job_report_append_data(const struct job_report *report, struct text *out);
/* NULL: the page asks for its data. */
void job_report_append_page(const struct job_report *report, struct text *out);
/* In Chrome's trace format. */
void job_report_append_trace(const struct job_report *report, struct text *out);

#endif

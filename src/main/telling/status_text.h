/* SPDX-License-Identifier: BSD-3-Clause */
/* Renders what is known of a job: for people in words, for programs as JSON. */
#ifndef MUSTER_MAIN_TELLING_STATUS_TEXT_H
#define MUSTER_MAIN_TELLING_STATUS_TEXT_H

#include "core/telling/chronicle_status.h"
#include "main/telling/job_inquiry.h"

/* The nodes of `status` are put in the order of their ranks. */
void status_text_append(
    const struct inquiry *inquiry, struct chronicle_status *status, struct text *out);
void status_text_append_json(const struct inquiry *inquiry, const struct chronicle_status *status,
    bool has_nodes, struct text *out);
/* One line. */
void status_text_append_entry(const struct chronicle_entry *entry, struct text *out);

#endif

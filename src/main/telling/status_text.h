/* SPDX-License-Identifier: BSD-3-Clause */
/* Renders what is known of a job: for people in words, for programs as JSON. */
#ifndef MUSTER_MAIN_TELLING_STATUS_TEXT_H
#define MUSTER_MAIN_TELLING_STATUS_TEXT_H

#include "core/telling/chronicle_status.h"
#include "main/telling/job_inquiry.h"

/* What is wanted of it. */
struct status_shown {
    bool has_nodes; /* one by one, also where there are many */
    bool has_ranks;
    bool has_colour;
    const char *node; /* only this one; NULL: all */
    int64_t rank;     /* only this one; -1: all */
};

/* False: what is wanted is not there. */
bool status_text_append(const struct inquiry *inquiry, const struct status_shown *shown,
    const struct chronicle_status *status, struct text *out);
/* Appends so many rows of it, each cut to so many columns. */
void status_text_fit(const char *text, int columns, int rows, struct text *out);
void status_text_append_json(const struct inquiry *inquiry, const struct chronicle_status *status,
    bool has_nodes, struct text *out);
/* One line. */
void status_text_append_entry(const struct chronicle_entry *entry, struct text *out);

#endif

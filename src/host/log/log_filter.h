/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that collects the lines (with their headers) that contain one of several needles: the
 * filtered_stdout.log and filtered_stderr.log of an attempt. All ranks share one filter. */
#ifndef MUSTER_HOST_LOG_LOG_FILTER_H
#define MUSTER_HOST_LOG_LOG_FILTER_H

#include "base/text.h"
#include "host/log/log_file.h"

struct log_filter {
    struct log_file file;
    struct text_list needles;
    struct bytes gathered; /* lines of this turn that are not yet written */
    struct log_filter *next;
};

__attribute__((warn_unused_result)) enum failure_code log_filter_open(const char *path,
    const struct text_list *needles, struct log_filter **out_filter, struct failure *failure);
/* Accepts NULL. Gathered lines must have been flushed. */
void log_filter_free(struct log_filter *filter);

/* Gathers the line if it matches. */
void log_filter_offer(
    struct log_filter *filter, const char *header, struct slice line, struct instant now);
/* Writes what was gathered. */
void log_filter_flush(struct log_filter *filter, struct instant now);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Spells the chronicle's entries, one JSON object a line ("muster.event/1"), and how a job stands
 * ("muster.status/1"). Times are seconds since 1970, lengths of time are seconds, and what is not
 * known is null or not there. Members are only ever added. */
#ifndef MUSTER_WIRE_TELLING_CHRONICLE_JSON_H
#define MUSTER_WIRE_TELLING_CHRONICLE_JSON_H

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/telling/chronicle_status.h"

#define CHRONICLE_EVENT_SCHEMA "muster.event/1"
#define CHRONICLE_STATUS_SCHEMA "muster.status/1"
/* Of one entry, with its newline. */
#define CHRONICLE_LINE_MAXIMUM ((size_t)1024)
/* Of a line that is read: later versions may say more. */
#define CHRONICLE_LINE_READ_MAXIMUM ((size_t)16 * 1024)

/* Appends the object and a newline. */
void chronicle_json_write_entry(const struct chronicle_entry *entry, struct text *out);

/* Reads one line. FAILURE_MISSING for a kind that is not known here, FAILURE_MALFORMED for what is
 * no entry, FAILURE_LIMIT for a line that is too long. The caller clears the entry. */
__attribute__((warn_unused_result)) enum failure_code chronicle_json_read_entry(
    struct slice line, struct chronicle_entry *out_entry);

/* What the fold does not know. Borrowed; NULL: not known. */
struct chronicle_view {
    const char *run_id;
    const char *log_dir;
    const char *slurm_job;
    const struct text_list *seen_from; /* the nodes whose entries these are */
    const char *host;                  /* the node that hosts the store, which says this */
    bool has_nodes;                    /* one by one */
};

/* Appends the object and a newline. */
void chronicle_json_write_status(
    const struct chronicle_status *status, const struct chronicle_view *view, struct text *out);

#endif

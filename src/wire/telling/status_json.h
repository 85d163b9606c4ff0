/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads how a job stands (muster.status/1, as wire/telling/chronicle_json writes it), so that who
 * has asked the host of the job's store shows the same as who folds entries. Members that are not
 * known here are passed over. */
#ifndef MUSTER_WIRE_TELLING_STATUS_JSON_H
#define MUSTER_WIRE_TELLING_STATUS_JSON_H

#include "base/bytes.h"
#include "base/failure.h"
#include "core/telling/chronicle_status.h"

#define STATUS_JSON_MAXIMUM ((size_t)16 << 20)

/* What the fold does not know; NULL: not said. */
struct status_seen {
    char *run_id;
    char *log_dir;
    char *host; /* the node that hosts the store, whose answer this is */
    bool is_complete;
};

void status_seen_clear(struct status_seen *seen);

/* FAILURE_MALFORMED: it is none; FAILURE_LIMIT: it is too long. The caller clears both. */
__attribute__((warn_unused_result)) enum failure_code status_json_read(
    struct slice text, struct chronicle_status *out_status, struct status_seen *out_seen);

#endif

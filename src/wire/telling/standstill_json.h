/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node whose workers stand still tells the host of the job's store, and what the host says
 * when the whole job hangs (core/telling/job_hang). Reading trusts nothing in it. */
#ifndef MUSTER_WIRE_TELLING_STANDSTILL_JSON_H
#define MUSTER_WIRE_TELLING_STANDSTILL_JSON_H

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/telling/job_hang.h"

/* Of one telling. Places for which there is no room are left out. */
#define STANDSTILL_JSON_MAXIMUM ((size_t)32 * 1024)
/* It begins with this, as nothing else does that is told to the host. */
#define STANDSTILL_JSON_MARK '{'

/* {"schema":"muster.standstill/1","round":3,"silence":61.2,"node":0}
 * and a line of wire/telling/stacks_json for each place */
void standstill_json_write(const struct standstill *standstill, struct text *out);
/* FAILURE_MALFORMED: it is none. The caller clears the result. */
__attribute__((warn_unused_result)) enum failure_code standstill_json_read(
    struct slice text, struct standstill *out_standstill);

/* {"schema":"muster.hang/1","round":3,"rank":417,"silence":61.2,"what":"…","where":"…"} */
void job_hang_json_write(const struct job_hang *hang, struct text *out);
__attribute__((warn_unused_result)) enum failure_code job_hang_json_read(
    struct slice text, struct job_hang *out_hang);

#endif
